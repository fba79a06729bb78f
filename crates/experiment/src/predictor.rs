//! The predictor in plain numbers, for callers outside the simulator.

use std::collections::BTreeSet;

use flashkeel_engine::{
    Completion, Lba, Ledger, Operation, Predictor as _, Request, RequestId, Status, Time,
};
use flashkeel_ssdcheck::{DeviceModel, Engine};

use crate::Error;

/// Reads a device model file.
///
/// # Errors
/// [`Error::Input`] naming what is wrong in it; `name` is what it is called.
pub fn parse_model(text: &str, name: &str) -> Result<DeviceModel, Error> {
    let refuse = |why: String| Error::Input(format!("{name}: not a device model: {why}"));
    let model: DeviceModel = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
    model.validate().map_err(refuse)?;
    Ok(model)
}

/// Predicts the requests of one drive; times are nanoseconds since any moment.
pub struct DrivePredictor {
    engine: Engine,
    sectors: u64,
    latest: Time,
    /// Requests that the drive was given and that have not completed.
    outstanding: BTreeSet<u64>,
}

impl DrivePredictor {
    /// A predictor that knows no more than `model` says, with what was learnt if that is in it.
    /// Of the normal requests it calls no greater part slow than `false_calls`, if that is given.
    pub fn new(model: &DeviceModel, false_calls: Option<f64>) -> DrivePredictor {
        let (engine, outstanding) = (Engine::new(model, false_calls), BTreeSet::new());
        DrivePredictor { engine, sectors: model.sectors, latest: Time::ZERO, outstanding }
    }

    /// Expected latency in nanoseconds, how likely it is to be above the threshold, and whether
    /// that is called slow, of a request if it were submitted now.
    ///
    /// # Errors
    /// [`Error::Input`] for a request that the drive could not serve, or a time
    /// before the latest one.
    pub fn predict(
        &mut self,
        now_ns: u64,
        operation: &str,
        lba: u64,
        sectors: u32,
    ) -> Result<(u64, f32, bool), Error> {
        let request = self.request(0, operation, lba, sectors)?;
        let now = self.advance(now_ns)?;
        let prediction = self.engine.predict(now, &[], &request);
        Ok((prediction.latency.0, prediction.chance, prediction.is_slow))
    }

    /// The drive has been given request number `id`: a read or a write, or a `flush` of 0 sectors at 0.
    ///
    /// # Errors
    /// As for [`predict`](Self::predict), and for one of that number that has not completed.
    pub fn submitted(
        &mut self,
        now_ns: u64,
        id: u64,
        operation: &str,
        lba: u64,
        sectors: u32,
    ) -> Result<(), Error> {
        let request = match operation {
            "flush" if lba == 0 && sectors == 0 => Request::new(RequestId(id), Operation::Flush, Lba(0), 0),
            "flush" => {
                return Err(Error::Input(format!("a flush of {sectors} sectors at LBA {lba}; 0 at 0")));
            }
            _ => self.request(id, operation, lba, sectors)?,
        };
        if self.outstanding.contains(&id) {
            return Err(Error::Input(format!(
                "request {id}: it was submitted before, and has not completed"
            )));
        }
        let now = self.advance(now_ns)?;
        self.outstanding.insert(id);
        self.engine.submitted(now, &request);
        Ok(())
    }

    /// Request number `id` has completed.
    ///
    /// # Errors
    /// [`Error::Input`] for a time before the latest one, or a request that was not submitted, or
    /// has completed.
    pub fn observe(&mut self, now_ns: u64, id: u64) -> Result<(), Error> {
        if !self.outstanding.contains(&id) {
            return Err(Error::Input(format!("request {id}: it was not submitted, or has completed before")));
        }
        let time = self.advance(now_ns)?;
        self.outstanding.remove(&id);
        let completion = Completion { id: RequestId(id), time, status: Status::Ok, ledger: Ledger::ZERO };
        self.engine.observe(time, &completion);
        Ok(())
    }

    /// Whether predictions are given out; otherwise none is of a slow request.
    pub fn is_on(&self) -> bool {
        self.engine.is_on()
    }

    /// The model file with what was learnt.
    pub fn model(&self) -> DeviceModel {
        self.engine.model()
    }

    fn advance(&mut self, now_ns: u64) -> Result<Time, Error> {
        if now_ns < self.latest.0 {
            return Err(Error::Input(format!("time {now_ns} ns is before {} ns", self.latest.0)));
        }
        self.latest = Time(now_ns);
        Ok(self.latest)
    }

    fn request(&self, id: u64, operation: &str, lba: u64, sectors: u32) -> Result<Request, Error> {
        let operation = match operation {
            "read" => Operation::Read,
            "write" => Operation::Write,
            _ => {
                return Err(Error::Input(format!("operation {operation:?}; one of \"read\", \"write\"")));
            }
        };
        let is_inside = lba.checked_add(u64::from(sectors)).is_some_and(|end| end <= self.sectors);
        if sectors == 0 || !is_inside {
            return Err(Error::Input(format!(
                "{sectors} sectors at LBA {lba} of a device of {} sectors",
                self.sectors
            )));
        }
        Ok(Request::new(RequestId(id), operation, Lba(lba), sectors))
    }
}
