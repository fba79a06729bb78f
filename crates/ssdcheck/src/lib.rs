//! SSDcheck: learns from outside what decides a drive's latency, and predicts
//! every request from that (Kim et al., MICRO 2018).
//!
//! [`probe`] runs diagnosis workloads against any leaf and gives a
//! [`DeviceModel`] with the evidence for it. [`Engine`] predicts with the model
//! and corrects itself from what it sees. Neither looks into the device.
//! [`score_log`] judges its predictions by what a drive was asked some other time.

mod model;
mod offline;
mod predict;
mod probe;

pub use model::{BufferType, DeviceModel, FlushTrigger, Latencies, Sleep, Thresholds, WriteBuffer};
pub use offline::{
    LEAST, Measured, Method, Scored, TELLING, Tenth, assume, contradiction, score as score_log,
};
pub use predict::{Engine, Learned, Score};
pub use probe::{
    BitEvidence, BufferEvidence, CollectionEvidence, Evidence, PairEvidence, ProbeError, Report,
    SleepEvidence, probe,
};
