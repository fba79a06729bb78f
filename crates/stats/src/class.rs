//! How requests are grouped: by operation, by size, and into the classes
//! results speak of.

use std::{fmt, str::FromStr};

use flashkeel_engine::Operation;
use serde::{Deserialize, Serialize, Serializer};

/// Every operation's name, in the order of [`Operation`].
pub(crate) const OPERATION_NAMES: &[&str] = &["read", "write", "trim", "flush", "write_zeroes", "demote"];

/// Number of operations.
pub(crate) const OPERATIONS: usize = OPERATION_NAMES.len();

/// A class of request size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeClass(u8);

impl SizeClass {
    /// Number of size classes.
    pub const COUNT: usize = 5;

    const MAX_BYTES: [u64; Self::COUNT - 1] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];

    /// The class of a request of `bytes`.
    #[inline]
    pub fn of(bytes: u64) -> SizeClass {
        SizeClass(Self::MAX_BYTES.iter().map(|&max| u8::from(bytes > max)).sum())
    }

    /// The largest size in the class, in bytes; none for the last class.
    pub fn max_bytes(self) -> Option<u64> {
        Self::MAX_BYTES.get(self.index()).copied()
    }

    /// The class whose largest size is `max_bytes`.
    pub(crate) fn up_to(max_bytes: Option<u64>) -> Option<SizeClass> {
        Self::all().find(|class| class.max_bytes() == max_bytes)
    }

    /// Every class, smallest first.
    pub fn all() -> impl Iterator<Item = SizeClass> {
        (0..Self::COUNT as u8).map(SizeClass)
    }

    /// Whether a read of this class is a small read: up to 64 KiB.
    #[inline]
    pub fn is_small(self) -> bool {
        self.0 < 3
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The disjoint groups that classes are made of, finer where a class needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub(crate) enum Group {
    SmallRead,
    LargeRead,
    Write,
    Trim,
    Flush,
    /// Of no class.
    Other,
}

impl Group {
    pub(crate) const ALL: [Group; 6] =
        [Group::SmallRead, Group::LargeRead, Group::Write, Group::Trim, Group::Flush, Group::Other];
    pub(crate) const COUNT: usize = Self::ALL.len();

    #[inline]
    pub(crate) fn of(operation: Operation, size: SizeClass) -> Group {
        match operation {
            Operation::Read if size.is_small() => Group::SmallRead,
            Operation::Read => Group::LargeRead,
            Operation::Write => Group::Write,
            Operation::Trim => Group::Trim,
            Operation::Flush => Group::Flush,
            Operation::WriteZeroes | Operation::Demote => Group::Other,
        }
    }
}

/// A class of requests as results name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every read.
    Read,
    /// Every write.
    Write,
    /// Reads up to 64 KiB.
    SmallRead,
    /// Every TRIM.
    Trim,
    /// Every flush.
    Flush,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 5] = [Class::Read, Class::Write, Class::SmallRead, Class::Trim, Class::Flush];

    /// The name used in results.
    pub fn label(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::Write => "write",
            Class::SmallRead => "small_read",
            Class::Trim => "trim",
            Class::Flush => "flush",
        }
    }

    /// Whether requests of this operation and size belong to the class.
    pub(crate) fn contains(self, operation: usize, size: SizeClass) -> bool {
        match self {
            Class::SmallRead => operation == Operation::Read as usize && size.is_small(),
            Class::Read => operation == Operation::Read as usize,
            Class::Write => operation == Operation::Write as usize,
            Class::Trim => operation == Operation::Trim as usize,
            Class::Flush => operation == Operation::Flush as usize,
        }
    }

    /// The groups that make up the class.
    pub(crate) fn groups(self) -> &'static [Group] {
        match self {
            Class::Read => &[Group::SmallRead, Group::LargeRead],
            Class::Write => &[Group::Write],
            Class::SmallRead => &[Group::SmallRead],
            Class::Trim => &[Group::Trim],
            Class::Flush => &[Group::Flush],
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Class::ALL.into_iter().find(|class| class.label() == text).ok_or_else(|| {
            let names = Class::ALL.map(Class::label).join(", ");
            format!("unknown class {text:?}, expected one of {names}")
        })
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_the_groups_of_what_it_contains() {
        use Operation::{Demote, Flush, Read, Trim, Write, WriteZeroes};
        for operation in [Read, Write, Trim, Flush, WriteZeroes, Demote] {
            for bytes in [4_096, 65_536, 65_537, 1 << 20] {
                let size = SizeClass::of(bytes);
                let group = Group::of(operation, size);
                for class in Class::ALL {
                    assert_eq!(class.contains(operation as usize, size), class.groups().contains(&group));
                }
            }
        }
    }
}
