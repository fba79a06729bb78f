//! `file`: a file or a block device of this machine, in the time of the wall clock.

use std::path::PathBuf;

use flashkeel_blockdev::{Drive, find};
use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Build, Device, Maker, Size, Unmade};
use crate::part::Part;

/// A file or a block device. It is read only, unless whoever runs says that its data may
/// be destroyed, which no document can say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    /// Where it is: a regular file or a block device. What a file has beyond a multiple of
    /// 4 KiB is not used.
    pub path: PathBuf,
    /// Requests that it is given at a time, 1 to 4096.
    #[serde(default = "queue_depth")]
    #[schemars(range(min = 1, max = 4096))]
    pub queue_depth: u16,
}

fn queue_depth() -> u16 {
    128
}

impl Build for FileConfig {
    fn check(&self) -> Result<Size, String> {
        if !(1..=4096).contains(&self.queue_depth) {
            return Err(format!("queue_depth is {}; 1 to 4096", self.queue_depth));
        }
        let found = find(&self.path).map_err(|why| format!("path: {}: {why}", self.path.display()))?;
        Ok(Size::real(found.bytes / 512, u32::from(self.queue_depth)))
    }

    fn has_drives(&self) -> bool {
        true
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        let refuse = |why: String| Unmade::Refused(format!("{}: {why}", self.path.display()));
        let Some((world, access)) = maker.world() else {
            return Err(refuse("a real drive, which is only run, probed, predicted and served".into()));
        };
        let drive = Drive::open(world, &self.path, access, self.queue_depth).map_err(refuse)?;
        Ok(Box::new(drive))
    }
}

impl Device for Drive {
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>) {
        parts.push(self);
    }

    /// It always does.
    fn keep_data(&mut self) {}

    fn reset_counters(&mut self, _now: Time) {
        Drive::reset_counters(self);
    }
}

impl Part for Drive {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn report(&self) -> Value {
        let (read, written) = Drive::bytes(self);
        json!({ "path": self.path(), "bytes_read": read, "bytes_written": written })
    }

    fn counters(&self) -> Vec<u64> {
        let (read, written) = Drive::bytes(self);
        vec![read, written]
    }
}
