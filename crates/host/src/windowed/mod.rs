//! Deterministic windows that software imposes on a device that knows none (PLMlight:
//! Roy's dissertation, chapter 5): what changes data is held back while one lasts.

mod report;
mod settings;
mod stage;

pub use report::WindowedReport;
pub(crate) use settings::SHORTEST_WINDOW;
pub use settings::WindowSettings;
pub use stage::Windowed;
