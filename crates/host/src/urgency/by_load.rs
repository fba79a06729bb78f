//! `by-load`: a device's parts need not hurry as long as they end but a share of their
//! requests even so. A device that was quick and is loaded, or whose network is, ends more,
//! and its parts hurry again; after a while that is longer each time it is tried anew.

use flashkeel_engine::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Devices, Urgency, fit};

/// Settings of `by-load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ByLoad {
    /// Share of the requests with a part that need not hurry which may end with it, above
    /// 0 and below 1.
    pub late: f64,
}

impl Default for ByLoad {
    /// Ours.
    fn default() -> Self {
        ByLoad { late: 0.05 }
    }
}

impl Build for ByLoad {
    fn build(&self, devices: usize) -> Result<Option<Box<dyn Urgency>>, String> {
        fit(devices)?;
        let most = (self.late * f64::from(TRIAL)) as u32;
        Ok(Some(Box::new(Tried { devices: vec![[Trial::default(); 2]; devices], most })))
    }

    fn validate(&self) -> Result<(), String> {
        if self.late > 0.0 && self.late < 1.0 {
            return Ok(());
        }
        Err(format!("late is {}; it must lie above 0 and below 1", self.late))
    }
}

/// Requests by which a device is judged.
const TRIAL: u32 = 256;

/// How often as many requests may hurry at most before it is tried anew.
const LONGEST_WAIT: u32 = 64;

/// How a device does.
#[derive(Clone, Copy)]
struct Trial {
    /// Requests of which its part hurries until it is tried whether it need.
    wait: u32,
    /// The wait after the next trial that goes wrong, in trials.
    next_wait: u32,
    /// Requests in this trial, and those that ended with its part.
    ended: u32,
    late: u32,
}

impl Default for Trial {
    fn default() -> Self {
        Trial { wait: 0, next_wait: 1, ended: 0, late: 0 }
    }
}

#[derive(Clone)]
struct Tried {
    /// Of each, of reads and of writes. All else is rare, and hurries.
    devices: Vec<[Trial; 2]>,
    /// Requests of a trial that may end late.
    most: u32,
}

/// Where [`Tried`] has an operation.
fn kind(operation: Operation) -> Option<usize> {
    match operation {
        Operation::Read => Some(0),
        Operation::Write => Some(1),
        _ => None,
    }
}

/// Numbers of the devices, from the lowest on.
fn each(mut devices: Devices) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let device = (devices != 0).then(|| devices.trailing_zeros() as usize)?;
        devices &= devices - 1;
        Some(device)
    })
}

impl Urgency for Tried {
    fn unhurried(&mut self, operation: Operation, devices: Devices) -> Devices {
        let Some(kind) = kind(operation) else { return 0 };
        each(devices).fold(0, |unhurried, device| {
            let wait = &mut self.devices[device][kind].wait;
            let is_on = *wait == 0;
            *wait = wait.saturating_sub(1);
            unhurried | u64::from(is_on) << device
        })
    }

    fn ended(&mut self, operation: Operation, unhurried: Devices, last: usize) {
        let Some(kind) = kind(operation) else { return };
        for device in each(unhurried) {
            let trial = &mut self.devices[device][kind];
            // What is back after the end of its trial says nothing of the next one.
            if trial.wait > 0 {
                continue;
            }
            trial.ended += 1;
            trial.late += u32::from(device == last);
            if trial.late > self.most {
                *trial = Trial {
                    wait: trial.next_wait * TRIAL,
                    next_wait: (trial.next_wait * 2).min(LONGEST_WAIT),
                    ..Trial::default()
                };
            } else if trial.ended == TRIAL {
                *trial = Trial { next_wait: (trial.next_wait / 2).max(1), ..Trial::default() };
            }
        }
    }
}
