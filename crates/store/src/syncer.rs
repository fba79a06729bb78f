//! Who makes durable what has been written, while others go on.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use flashkeel_engine::Time;

use crate::Disk;
use crate::error::same;
use crate::layout::EPOCHS;
use crate::records::{Epoch, Record};

/// How often it is looked whether the disk is still there, where nothing is synchronised.
const LOOK: Duration = Duration::from_millis(100);

/// What is called from another thread whenever an epoch has ended, or something has failed.
pub(crate) type Wake = Box<dyn Fn() + Send>;

/// Ends epochs, in a thread of its own or at once.
pub(crate) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    disk: Arc<dyn Disk>,
    /// How long it is at least.
    bytes: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// The last epoch that is to be ended.
    wanted: Epoch,
    /// The last that has been.
    synced: u32,
    /// What has failed: no epoch is begun any more. The system tells of what it could not write
    /// once, and forgets it, so that the next synchronisation would pass for a good one.
    failed: Option<io::Error>,
    is_over: bool,
}

impl Syncer {
    /// Of a disk of so many bytes at least, after so many epochs have ended. Without `wake` it
    /// works at once.
    pub fn new(disk: Arc<dyn Disk>, bytes: u64, synced: u32, wake: Option<Wake>) -> Syncer {
        let wanted = Epoch { number: synced, now: Time::ZERO };
        let state = Mutex::new(State { wanted, synced, failed: None, is_over: false });
        let shared = Arc::new(Shared { disk, bytes, state, changed: Condvar::new() });
        let thread = wake.map(|wake| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work(&*wake))
        });
        Syncer { shared, thread }
    }

    /// Begins to end an epoch: everything of it has been written. After a failure none is.
    pub fn begin(&self, epoch: Epoch) {
        let mut state = self.shared.lock();
        if state.failed.is_some() {
            return;
        }
        state.wanted = epoch;
        drop(state);
        match self.thread {
            Some(_) => self.shared.changed.notify_all(),
            None => self.shared.end(epoch),
        }
    }

    /// Whether epochs end while whoever begins that waits.
    pub fn is_waited_for(&self) -> bool {
        self.thread.is_none()
    }

    /// Whether an epoch is being ended.
    pub fn is_busy(&self) -> bool {
        let state = self.shared.lock();
        state.failed.is_none() && state.synced < state.wanted.number
    }

    /// The last epoch that has ended.
    pub fn synced(&self) -> u32 {
        self.shared.lock().synced
    }

    /// Waits until an epoch that is being ended has.
    pub fn wait(&self, epoch: u32) {
        let state = self.shared.lock();
        let waits = |state: &mut State| state.failed.is_none() && state.synced < epoch;
        drop(self.shared.changed.wait_while(state, waits));
    }

    /// What has failed.
    pub fn failure(&self) -> Option<io::Error> {
        self.shared.lock().failed.as_ref().map(same)
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    fn fail(&mut self, error: io::Error) {
        self.failed.get_or_insert(error);
        // Nothing is known to have been made durable, and nothing will be.
        self.wanted.number = self.synced;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn work(&self, wake: &dyn Fn()) {
        loop {
            let state = self.lock();
            let idles = |state: &mut State| !state.is_over && state.synced >= state.wanted.number;
            let waited = self.changed.wait_timeout_while(state, LOOK, idles);
            let (state, waited) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
            if state.is_over {
                return;
            }
            let epoch = state.wanted;
            let has_failed = state.failed.is_some();
            drop(state);
            if !waited.timed_out() {
                self.end(epoch);
            } else if has_failed || self.look() {
                continue;
            }
            wake();
        }
    }

    /// Whether the disk is still there.
    fn look(&self) -> bool {
        self.disk.look(self.bytes).map_err(|error| self.lock().fail(error)).is_ok()
    }

    fn end(&self, epoch: Epoch) {
        // The record is of use only where it says what is so: it comes after.
        let record = EPOCHS[epoch.number as usize % EPOCHS.len()];
        let ended = self.disk.sync().and_then(|()| self.disk.write_at(&epoch.encode(0), record));
        // What nobody can open any more is not durable.
        let ended = ended.and_then(|()| self.disk.look(self.bytes));
        let mut state = self.lock();
        match ended {
            Ok(()) => state.synced = epoch.number,
            Err(error) => state.fail(error),
        }
        drop(state);
        self.changed.notify_all();
    }
}
