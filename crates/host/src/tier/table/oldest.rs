//! The oldest member of a list, by stamps instead of links.
//!
//! A list that is linked through its members needs two links each, and touching one
//! touches its neighbours. A stamp that says when a member came needs half of that
//! and touches nothing else. The oldest is found by a tree over groups of frames
//! that knows a bound for each: no member of the group is older. Stamps only rise,
//! so that a bound holds until it is looked at; then it is made exact.

use std::ops::Range;

/// Frames of a group, and groups of the next.
const GROUP: usize = 64;
/// No member.
const NONE: u32 = u32::MAX;

/// The stamps of the frames of a group, [`u32::MAX`] for those that are no members.
pub(super) type Stamps = [u32; GROUP];

/// Bounds for the stamps of a list's members.
#[derive(Clone)]
pub(super) struct Oldest {
    /// From groups of frames up to a single bound.
    levels: Vec<Vec<u32>>,
    /// The member that was found last, which is the oldest while it keeps its stamp.
    found: Option<(u32, u32)>,
}

impl Oldest {
    /// Over so many frames, none of which is a member.
    pub fn new(frames: u32) -> Oldest {
        let mut levels = vec![vec![NONE; (frames as usize).div_ceil(GROUP).max(1)]];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            levels.push(vec![NONE; last.len().div_ceil(GROUP)]);
        }
        Oldest { levels, found: None }
    }

    /// A frame has become a member, with a stamp above all others.
    #[inline]
    pub fn add(&mut self, frame: u32, stamp: u32) {
        let mut at = frame as usize;
        for level in &mut self.levels {
            at /= GROUP;
            if level[at] <= stamp {
                return;
            }
            level[at] = stamp;
        }
    }

    /// The oldest member of so many frames; `stamps` writes the stamps of some of them, a group
    /// at most.
    pub fn find(&mut self, frames: usize, stamps: impl Fn(Range<usize>, &mut Stamps)) -> Option<u32> {
        let mut group = [NONE; GROUP];
        if let Some((frame, stamp)) = self.found {
            stamps(frame as usize..frame as usize + 1, &mut group);
            if group[0] == stamp {
                return Some(frame);
            }
        }
        loop {
            let mut at = 0;
            for level in self.levels.iter().rev() {
                let start = at * GROUP;
                at = start + first_least(&level[start..(start + GROUP).min(level.len())]);
            }
            if self.levels[0][at] == NONE {
                return None;
            }
            let start = at * GROUP;
            let end = (start + GROUP).min(frames);
            stamps(start..end, &mut group);
            let inside = &group[..end - start];
            let least = first_least(inside);
            let stamp = inside[least];
            if stamp == self.levels[0][at] {
                let frame = (start + least) as u32;
                self.found = Some((frame, stamp));
                return Some(frame);
            }
            self.correct(at, stamp);
        }
    }

    /// The bound of a group has turned out to be another.
    fn correct(&mut self, mut at: usize, bound: u32) {
        self.levels[0][at] = bound;
        for level in 1..self.levels.len() {
            at /= GROUP;
            let below = &self.levels[level - 1];
            let group = at * GROUP..((at + 1) * GROUP).min(below.len());
            let bound = below[group].iter().copied().min().unwrap_or(NONE);
            if std::mem::replace(&mut self.levels[level][at], bound) == bound {
                return;
            }
        }
    }

    /// No frame is a member.
    pub fn clear(&mut self) {
        self.found = None;
        self.levels.iter_mut().for_each(|level| level.fill(NONE));
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.len() * size_of::<u32>()).sum()
    }
}

/// Where the first of the least values is; two passes, of which both go several at a time.
fn first_least(values: &[u32]) -> usize {
    let least = values.iter().copied().min().unwrap_or(NONE);
    values.iter().position(|&value| value == least).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn the_oldest_is_found_whoever_comes_and_goes() {
        for frames in [1usize, 63, 64, 65, 5000] {
            let mut random = Stream::new(frames as u64, "oldest");
            let mut members = vec![None; frames];
            let mut oldest = Oldest::new(frames as u32);
            for stamp in 0..20_000u32 {
                let frame = random.below(frames as u64) as usize;
                if random.chance(0.3) {
                    members[frame] = None;
                } else {
                    members[frame] = Some(stamp);
                    oldest.add(frame as u32, stamp);
                }
                if random.chance(0.2) {
                    let found = oldest.find(frames, |range, stamps| {
                        for (stamp, member) in stamps.iter_mut().zip(&members[range]) {
                            *stamp = member.unwrap_or(NONE);
                        }
                    });
                    let first = members.iter().flatten().min();
                    assert_eq!(found.and_then(|frame| members[frame as usize]).as_ref(), first);
                }
            }
        }
    }
}
