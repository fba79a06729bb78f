//! `fixed`: the parts on devices that are named need not hurry, as these are known to be
//! quicker than the others.

use flashkeel_engine::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Devices, Urgency, fit};

/// Settings of `fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// Numbers of the quick devices, from 0 on. A request that goes to none but these
    /// hurries everywhere.
    pub quick: Vec<usize>,
}

impl Build for Fixed {
    fn build(&self, devices: usize) -> Result<Option<Box<dyn Urgency>>, String> {
        fit(devices)?;
        match self.quick.iter().find(|&&device| device >= devices) {
            Some(device) => {
                Err(format!("urgency.quick: there is no device {device}, but {devices} of them, from 0 on"))
            }
            None => Ok(Some(Box::new(Named {
                quick: self.quick.iter().fold(0, |quick, &device| quick | 1 << device),
            }))),
        }
    }

    fn validate(&self) -> Result<(), String> {
        if self.quick.is_empty() { Err("quick is empty; name a device".into()) } else { Ok(()) }
    }
}

#[derive(Clone)]
struct Named {
    quick: Devices,
}

impl Urgency for Named {
    fn unhurried(&mut self, _operation: Operation, devices: Devices) -> Devices {
        if devices & !self.quick == 0 { 0 } else { devices & self.quick }
    }
}
