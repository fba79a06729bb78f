//! The digest: one word that two runs share only if they did the same.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The finished hash of a run; written as 16 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub u64);

/// A running 64-bit hash over words, in order.
///
/// Its arithmetic is fixed here, so that digests can be compared between
/// versions. It guards against accidents, not against an adversary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hasher(u64);

impl Hasher {
    pub(crate) const EMPTY: Hasher = Hasher(0x9e37_79b9_7f4a_7c15);

    #[inline]
    pub(crate) fn absorb(&mut self, word: u64) {
        // Each step is a bijection of the state, so no word taken in is lost.
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }

    pub(crate) fn finish(self) -> Digest {
        // The finaliser of MurmurHash3 (Appleby): the last words reach every bit.
        let mut x = self.0;
        x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Digest(x ^ (x >> 33))
    }
}

impl Digest {
    /// The digest of this run followed by `other`: what pooled runs carry.
    pub fn followed_by(self, other: Digest) -> Digest {
        let mut hasher = Hasher::EMPTY;
        hasher.absorb(self.0);
        hasher.absorb(other.0);
        hasher.finish()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(&text, 16) {
            Ok(value) if hex => Ok(Digest(value)),
            _ => Err(D::Error::custom(format!("{text:?} is not a digest: 16 hex digits"))),
        }
    }
}
