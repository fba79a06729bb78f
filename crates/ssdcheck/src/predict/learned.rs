//! What an engine has learnt of a drive, so that the next one begins with it.
//!
//! Kept is what stays true when nobody has watched for a while: how long things take, how often
//! they come, what became of requests in which circumstances, and what each opinion is worth.
//! Where the buffers' counters stand is not.

use serde::{Deserialize, Serialize};

use super::calibration::{Calibration, Step};
use super::calls::{Called, Calls};
use super::circumstances::Circumstances;
use super::history::Noted;
use super::intervals::Intervals;
use super::knowledge::{Knowledge, Waking};
use super::mixer::{Mixed, Mixer};
use super::tables::Tables;
use crate::DeviceModel;
use crate::model::LONGEST_NS;

/// Another arrangement of what follows has another number.
const LAYOUT: u32 = 7;

/// What an engine has learnt of a drive: part of a [`DeviceModel`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    layout: u32,
    /// Mean times of a flush, of one that a read starts, and of one with collection.
    flush_ns: u64,
    read_flush_ns: u64,
    collection_ns: u64,
    /// Of writes and reads.
    slow_ns: [u64; 2],
    slow_share: [f32; 2],
    /// Flushes between two collections, and between two others that last long: how often each
    /// number came.
    collections: Vec<u16>,
    wakes: Vec<u16>,
    busy: Vec<Noted>,
    silence: Vec<Noted>,
    signals: Vec<Noted>,
    mixed: Vec<Mixed>,
    calibration: Vec<Step>,
    calls: Called,
    /// Part of the calls that came true of late, and whether they are given out.
    precision: f32,
    is_on: bool,
}

impl Learned {
    /// Checks what was read from a file.
    ///
    /// # Errors
    /// A sentence naming the key.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.layout != LAYOUT {
            return Err(format!(
                "learned.layout: {}, of another version; this one has {LAYOUT}: leave `learned` out, and it is learnt anew",
                self.layout
            ));
        }
        let tables = [
            ("busy", Circumstances::holds(&self.busy)),
            ("silence", Waking::holds(&self.silence)),
            ("signals", Tables::holds(&self.signals)),
        ];
        if let Some((key, _)) = tables.into_iter().find(|(_, is_right)| !is_right) {
            return Err(format!("learned.{key}: entries of a table and what they saw"));
        }
        let is_time = |ns: u64| ns <= LONGEST_NS;
        let is_part = |part: f32| (0.0..=1.0).contains(&part);
        let tests = [
            ("flush_ns", is_time(self.flush_ns)),
            ("read_flush_ns", is_time(self.read_flush_ns)),
            ("collection_ns", is_time(self.collection_ns)),
            ("slow_ns", self.slow_ns.into_iter().all(is_time)),
            ("slow_share", self.slow_share.into_iter().all(is_part)),
            ("collections", Intervals::holds(&self.collections)),
            ("wakes", Intervals::holds(&self.wakes)),
            ("mixed", Mixer::holds(&self.mixed)),
            ("calibration", Calibration::holds(&self.calibration)),
            ("calls", Calls::holds(&self.calls)),
            ("precision", is_part(self.precision)),
        ];
        match tests.into_iter().find(|(_, is_right)| !is_right) {
            Some((key, _)) => Err(format!("learned.{key}: no engine can have learnt that")),
            None => Ok(()),
        }
    }
}

impl Knowledge {
    /// The model with what has been learnt: who begins with it need not learn it again.
    pub(super) fn model(&self) -> DeviceModel {
        let learned = Learned {
            layout: LAYOUT,
            flush_ns: self.drive.flush_ns,
            read_flush_ns: self.drive.read_flush_ns,
            collection_ns: self.drive.collection_ns,
            slow_ns: self.signals.of.map(|ground| ground.slow_ns),
            slow_share: self.signals.shares(),
            collections: self.recurring.collections.noted(),
            wakes: self.recurring.wakes.noted(),
            busy: self.circumstances.noted(),
            silence: self.silence.noted(),
            signals: self.signals.tables.noted(),
            mixed: self.mixer.mixed(),
            calibration: self.calibration.noted(),
            calls: self.calls.noted(),
            precision: self.switch.precision,
            is_on: self.switch.is_on,
        };
        DeviceModel { learned: Some(Box::new(learned)), ..self.model.clone() }
    }

    /// Begins with what another engine has learnt, which was checked.
    pub(super) fn recall(&mut self, learned: &Learned) {
        self.drive.flush_ns = learned.flush_ns;
        self.drive.read_flush_ns = learned.read_flush_ns;
        self.drive.collection_ns = learned.collection_ns;
        for (ground, slow_ns) in self.signals.of.iter_mut().zip(learned.slow_ns) {
            ground.slow_ns = slow_ns;
        }
        self.recurring.collections.recall(&learned.collections);
        self.recurring.wakes.recall(&learned.wakes);
        self.volumes.iter_mut().for_each(|volume| volume.find_level(&self.recurring));
        self.circumstances.recall(&learned.busy);
        self.silence.recall(&learned.silence);
        self.signals.recall(&learned.signals, learned.slow_share);
        self.mixer.recall(&learned.mixed);
        self.calibration.recall(&learned.calibration);
        self.calls.recall(&learned.calls);
        self.switch.recall(learned.precision, learned.is_on);
    }
}
