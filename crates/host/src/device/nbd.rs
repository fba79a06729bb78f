//! `nbd`: an export of a network block device server, in the time of the wall clock.

use flashkeel_blockdev::Export;
use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Build, Device, Maker, Size, Unmade};
use crate::part::Part;

/// An export of a network block device server. It is read only, unless whoever runs says
/// that its data may be destroyed, which no document can say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NbdConfig {
    /// Where it is: nbd://HOST\[:PORT\]/EXPORT or nbd+unix:///EXPORT?socket=PATH.
    pub uri: String,
    /// Requests that it is given at a time, 1 to 4096.
    #[serde(default = "queue_depth")]
    #[schemars(range(min = 1, max = 4096))]
    pub queue_depth: u16,
}

fn queue_depth() -> u16 {
    128
}

impl Build for NbdConfig {
    fn check(&self) -> Result<Size, String> {
        if !(1..=4096).contains(&self.queue_depth) {
            return Err(format!("queue_depth is {}; 1 to 4096", self.queue_depth));
        }
        let bytes = Export::find(&self.uri).map_err(|why| format!("uri: {}: {why}", self.uri))?;
        Ok(Size::real(bytes / 512, u32::from(self.queue_depth)))
    }

    fn has_drives(&self) -> bool {
        true
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        let refuse = |why: String| Unmade::Refused(format!("{}: {why}", self.uri));
        let Some((world, access)) = maker.world() else {
            return Err(refuse("a real drive, which is only run, probed and predicted".into()));
        };
        let export = Export::open(world, &self.uri, access, self.queue_depth).map_err(refuse)?;
        Ok(Box::new(export))
    }
}

impl Device for Export {
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>) {
        parts.push(self);
    }

    /// It always does.
    fn keep_data(&mut self) {}

    fn reset_counters(&mut self, _now: Time) {
        Export::reset_counters(self);
    }
}

impl Part for Export {
    fn kind(&self) -> &'static str {
        "nbd"
    }

    fn report(&self) -> Value {
        let (read, written) = Export::bytes(self);
        json!({ "uri": self.uri(), "bytes_read": read, "bytes_written": written })
    }

    fn counters(&self) -> Vec<u64> {
        let (read, written) = Export::bytes(self);
        vec![read, written]
    }
}
