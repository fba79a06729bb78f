//! Flush commands, and writes that have to be durable before they are acknowledged: whether they empty
//! the drive's buffers. In a drive with capacitors they may do nothing.
//!
//! What they took tells, where something was buffered: hardly more than a write is handed over in, or as
//! long as flash takes.

use flashkeel_engine::{RequestId, Time};

/// Bound of what speaks for either.
const MOST: i8 = 8;
/// A flush command is taken to empty buffers until so much speaks against it, a durable write from so much
/// on that speaks for it.
const COMMANDS_FROM: i8 = -3;
const WRITES_FROM: i8 = 2;
/// What takes at least so many times as long as handing over a page writes flash.
const TIMES: u64 = 4;

/// So many are waited for: enough to tell, and of others nothing is kept.
const MOST_OUTSTANDING: usize = 64;

/// One that is outstanding.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: RequestId,
    submitted: Time,
    /// Whether it is a flush command.
    is_command: bool,
    /// Whether anything was buffered, and what it takes then if that stays where it is.
    tells: bool,
    base_ns: u64,
}

/// What they do on a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Flushes {
    outstanding: Vec<Asked>,
    /// What speaks for it that they empty buffers: durable writes, and flush commands.
    standing: [i8; 2],
}

impl Flushes {
    /// One has been submitted; `tells` if something is buffered, and nothing else makes it wait.
    pub fn submitted(&mut self, id: RequestId, now: Time, is_command: bool, tells: bool, base_ns: u64) {
        if self.outstanding.len() == MOST_OUTSTANDING {
            self.outstanding.remove(0);
        }
        self.outstanding.push(Asked { id, submitted: now, is_command, tells, base_ns });
    }

    /// A request has ended, which may be one of these.
    #[inline(never)]
    pub fn ended(&mut self, id: RequestId, now: Time) {
        let Some(index) = self.outstanding.iter().position(|asked| asked.id == id) else { return };
        let asked = self.outstanding.swap_remove(index);
        if asked.tells {
            let standing = &mut self.standing[usize::from(asked.is_command)];
            let is_long = now.since(asked.submitted).0 >= TIMES * asked.base_ns;
            *standing = (*standing + if is_long { 1 } else { -1 }).clamp(-MOST, MOST);
        }
    }

    /// Whether flush commands empty buffers.
    #[inline]
    pub fn commands_empty(&self) -> bool {
        self.standing[1] >= COMMANDS_FROM
    }

    /// Whether durable writes do.
    pub fn writes_empty(&self) -> bool {
        self.standing[0] >= WRITES_FROM
    }

    /// Nothing is outstanding any more.
    pub fn clear(&mut self) {
        self.outstanding.clear();
    }
}
