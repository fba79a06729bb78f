//! The device's front door: host link, requests, write buffer.

pub mod buffer;
mod lanes;
mod link;
mod pending;
pub mod power;
mod reads;
mod rebuild;
mod requests;
mod stripes;
pub mod throttle;
pub mod window;
mod writes;

pub use buffer::BufferConfig;
pub(crate) use buffer::{Buffer, BufferLayout};
pub(crate) use link::{Direction, Link};
pub use power::PowerConfig;
pub(crate) use requests::Requests;
pub use throttle::ThrottleConfig;
pub use window::WindowConfig;
