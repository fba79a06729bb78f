//! The devices a trace names, numbered in the order they are met.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Basis;

/// What a synthesised trace calls its host or file.
pub(crate) const SYNTHETIC: &str = "synthetic";

/// Whether the name of a file says that its trace is synthetic, for formats
/// without a place for it.
pub(crate) fn says_synthetic(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains(SYNTHETIC))
}

/// Most devices one trace may have.
const LIMIT: usize = 65_536;

/// Names of devices; the index of a name is its number in every record.
#[derive(Default)]
pub(crate) struct Devices {
    names: Vec<Box<[u8]>>,
    numbers: BTreeMap<Box<[u8]>, u32>,
    last: usize,
    /// A name put together, kept for its room.
    joined: Vec<u8>,
}

impl Devices {
    /// A table of one device without a name of its own.
    pub(crate) fn single() -> Self {
        Devices::one(b"0")
    }

    /// A table of the one device of a trace that says elsewhere that it was synthesised.
    pub(crate) fn synthetic() -> Self {
        Devices::one(SYNTHETIC.as_bytes())
    }

    fn one(name: &[u8]) -> Self {
        let mut single = Devices::default();
        single.index(name).expect("a first device is always taken");
        single
    }

    /// The number of the device of this name, new or known.
    #[inline]
    pub(crate) fn index(&mut self, name: &[u8]) -> Result<u32, String> {
        if self.names.get(self.last).is_some_and(|last| **last == *name) {
            return Ok(self.last as u32);
        }
        self.find(name)
    }

    /// The number of the device whose name is these two with a point between them.
    #[inline]
    pub(crate) fn index_of_two(&mut self, first: &[u8], second: &[u8]) -> Result<u32, String> {
        let is_last = self.names.get(self.last).is_some_and(|last| {
            last.len() == first.len() + 1 + second.len()
                && last[..first.len()] == *first
                && last[first.len()] == b'.'
                && last[first.len() + 1..] == *second
        });
        if is_last {
            return Ok(self.last as u32);
        }
        let mut name = std::mem::take(&mut self.joined);
        name.clear();
        name.extend_from_slice(first);
        name.push(b'.');
        name.extend_from_slice(second);
        let found = self.find(&name);
        self.joined = name;
        found
    }

    fn find(&mut self, name: &[u8]) -> Result<u32, String> {
        self.last = match self.numbers.get(name) {
            Some(&known) => known as usize,
            None if self.names.len() == LIMIT => {
                return Err(format!("more than {LIMIT} devices; is this column the device?"));
            }
            None => {
                self.numbers.insert(name.into(), self.names.len() as u32);
                self.names.push(name.into());
                self.names.len() - 1
            }
        };
        Ok(self.last as u32)
    }

    /// The name of device `index`.
    pub(crate) fn name(&self, index: u32) -> String {
        String::from_utf8_lossy(&self.names[index as usize]).into_owned()
    }

    /// Every name, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        (0..self.names.len() as u32).map(|index| self.name(index)).collect()
    }

    /// Whether the devices met so far are of a trace that says it was
    /// synthesised.
    pub(crate) fn basis(&self) -> Basis {
        let is_synthetic = |name: &[u8]| {
            let rest = name.strip_prefix(SYNTHETIC.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
        };
        if self.names.iter().any(|name| is_synthetic(name)) { Basis::Synthetic } else { Basis::Trace }
    }

    /// Whether device `index` has this name.
    #[inline]
    pub(crate) fn is(&self, index: u32, name: &str) -> bool {
        *self.names[index as usize] == *name.as_bytes()
    }
}
