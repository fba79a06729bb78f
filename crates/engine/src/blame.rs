//! The blame ledger: every nanosecond of a request's latency has one owner.

use crate::{Span, Time};

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $label:literal $($work:ident)?),+ $(,)?) => {
        /// Who owned a stretch of a request's latency.
        ///
        /// At each instant the owner is the first unmet need in the order
        /// admission, buffer, map, free block, scheduler, chip, channel.
        /// Causes up to `SchedulerHold` stand first: see [`Waits`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Cause { $($(#[$doc])* $name),+ }

        impl Cause {
            /// Every cause, in ledger order.
            pub const ALL: &'static [Cause] = &[$(Cause::$name),+];
            /// Number of causes.
            pub const COUNT: usize = Cause::ALL.len();

            /// The name used in results: lower case with underscores.
            pub const fn label(self) -> &'static str {
                match self { $(Cause::$name => $label),+ }
            }

            /// Whose work is behind it.
            const fn work(self) -> Work {
                match self { $(Cause::$name => causes!(@work $($work)?)),+ }
            }
        }
    };
    (@work) => { Work::Asked };
    (@work collection) => { Work::Collection };
    (@work background) => { Work::Background };
}

/// Whose work is behind a cause.
#[derive(Clone, Copy)]
enum Work {
    /// That of a request, or nobody's.
    Asked,
    /// That of garbage collection.
    Collection,
    /// That of another task that no request asked for.
    Background,
}

// A cause that stands for a task's work says so behind its name.
causes! {
    /// The flash array and the channel working for this very request.
    OwnFlash = "own_flash",
    /// Chip or channel busy with another host read.
    BehindHostRead = "behind_host_read",
    /// Chip or channel busy with another host write.
    BehindHostWrite = "behind_host_write",
    /// Chip or channel busy with a read of garbage collection.
    BehindGcRead = "behind_gc_read" collection,
    /// Chip or channel busy with a program of garbage collection.
    BehindGcProgram = "behind_gc_program" collection,
    /// Chip or channel busy with pages that garbage collection moves within
    /// their chip.
    BehindGcMove = "behind_gc_move" collection,
    /// Chip busy with an erase.
    BehindErase = "behind_erase" collection,
    /// Chip or channel busy with a read or program of a map page, also of its checkpoint.
    BehindMap = "behind_map",
    /// Chip or channel busy with parity.
    BehindParity = "behind_parity",
    /// Chip or channel busy with read scrubbing.
    BehindScrub = "behind_scrub" background,
    /// Chip or channel busy with wear levelling.
    BehindWearLevelling = "behind_wear_levelling" background,
    /// Chip busy with folding of the SLC cache.
    BehindFold = "behind_fold" background,
    /// Rebuilding a page from the rest of its stripe, or waiting behind that.
    Reconstruction = "reconstruction",
    /// Own program or erase suspended, or a chip suspending or resuming one.
    Suspension = "suspension",
    /// Held back by the scheduler although its chip had a free slot.
    SchedulerHold = "scheduler_hold",
    /// The controller's look-up and generation delays, and service from memory.
    Controller = "controller",
    /// Transfer over the host link, and waiting for it.
    HostLink = "host_link",
    /// An NVM device working for this very request.
    Nvm = "nvm",
    /// NVM device busy with other requests.
    BehindNvm = "behind_nvm",
    /// Waiting for the map page that translates the request.
    MapLoad = "map_load",
    /// Waiting for other writes to fill the flash page.
    Aggregation = "aggregation",
    /// Waiting for room in the write buffer while nothing is being flushed.
    BufferFull = "buffer_full",
    /// Waiting for garbage collection to free a block.
    NoFreeBlock = "no_free_block" collection,
    /// Held at the device's front door by its throttle.
    Throttle = "throttle",
    /// Waiting for a sleeping device to wake.
    WakeUp = "wake_up",
    /// Held back by the host so that a flush keeps its place in the order.
    Barrier = "barrier",
    /// Waiting on the host: in its scheduler, or outside a device that was at
    /// its queue depth.
    HostQueue = "host_queue",
    /// With another copy of a mirror, which had failed or not answered when this one
    /// was asked, or behind another change of the same pages.
    OtherCopy = "other_copy",
    /// Held back for a window: by a mirror until another copy has begun a deterministic
    /// one, because those that have can take no more, or by a coordinator until a host may
    /// read again.
    Window = "window",
    /// On its way to a target, or waiting for that direction of the network.
    NetworkRequest = "network_request",
    /// On its way back, or waiting for that.
    NetworkResponse = "network_response",
    /// With something outside, such as a real drive, whose time nobody here
    /// can tell apart.
    Outside = "outside",
}

// Measured: a 33rd cause, and so a ledger of more than 256 bytes, cost 150 to 170
// instructions a request.
const _: () = assert!(Cause::COUNT <= 32);

impl Cause {
    /// Whether garbage collection is behind this cause.
    pub const fn is_gc(self) -> bool {
        matches!(self.work(), Work::Collection)
    }

    /// Whether work that no request asked for is behind this cause.
    pub const fn is_background(self) -> bool {
        !matches!(self.work(), Work::Asked)
    }
}

/// Entries of a ledger: the causes, and zeros up to whole vector registers, so
/// that whole-ledger operations need no scalar rest.
const ENTRIES: usize = Cause::COUNT.next_multiple_of(Ledger::GROUP);

/// What a wait for a chip, a channel or the scheduler is charged to: the first
/// causes only, so that taking note of a wait does not touch a whole ledger.
pub type Waits = [u64; (Cause::SchedulerHold as usize + 1).next_multiple_of(4)];

/// Adds each of `theirs` to one of `mine`, modulo 2^64.
#[inline(always)]
pub fn add_each<const N: usize>(mine: &mut [u64; N], theirs: &[u64; N]) {
    change_each(mine, theirs, u64::wrapping_add);
}

/// Takes each of `theirs` off one of `mine`, modulo 2^64.
#[inline(always)]
pub fn subtract_each<const N: usize>(mine: &mut [u64; N], theirs: &[u64; N]) {
    change_each(mine, theirs, u64::wrapping_sub);
}

/// A group is read before any of it is written, so that a vector instruction does it
/// at once.
#[inline(always)]
fn change_each<const N: usize>(mine: &mut [u64; N], theirs: &[u64; N], change: fn(u64, u64) -> u64) {
    const { assert!(N.is_multiple_of(Ledger::GROUP)) };
    for (mine, theirs) in mine.as_chunks_mut().0.iter_mut().zip(theirs.as_chunks().0) {
        let ([a, b, c, d], [e, f, g, h]) = (*mine, *theirs);
        *mine = [change(a, e), change(b, f), change(c, g), change(d, h)];
    }
}

/// Nanoseconds per [`Cause`]. A request's ledger sums to its latency exactly.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ledger([u64; ENTRIES]);

impl Ledger {
    /// Causes in a group: as many as a vector register takes.
    pub const GROUP: usize = 4;

    /// The empty ledger.
    pub const ZERO: Ledger = Ledger([0; ENTRIES]);

    /// Charges `span` to `cause`, modulo 2^64.
    #[inline]
    pub fn charge(&mut self, cause: Cause, span: Span) {
        let entry = &mut self.0[cause as usize];
        *entry = entry.wrapping_add(span.0);
    }

    /// The part that waits are charged to.
    #[inline]
    pub fn waits(&mut self) -> &mut Waits {
        self.0.first_chunk_mut().expect("a ledger is longer")
    }

    /// Adds what a wait was charged with.
    #[inline]
    pub fn add_waits(&mut self, waits: &Waits) {
        add_each(self.waits(), waits);
    }

    /// Charges the time from `from` to `to` to `cause`.
    #[inline]
    pub fn charge_between(&mut self, cause: Cause, from: Time, to: Time) {
        self.charge(cause, to.since(from));
    }

    /// Nanoseconds charged to `cause`.
    #[inline]
    pub fn ns(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// Sum over all causes.
    #[inline]
    pub fn total(&self) -> Span {
        // Several sums beside one another: each waits for nothing but itself.
        let mut sums = [0; Ledger::GROUP];
        self.groups().iter().for_each(|group| add_each(&mut sums, group));
        Span(sums.iter().sum())
    }

    /// Adds every entry of `other`, modulo 2^64.
    #[inline(always)]
    pub fn add(&mut self, other: &Ledger) {
        add_each(&mut self.0, &other.0);
    }

    /// Takes off every entry of `other`, modulo 2^64: a later
    /// [`add`](Ledger::add) of something larger leaves the difference.
    #[inline(always)]
    pub fn subtract(&mut self, other: &Ledger) {
        subtract_each(&mut self.0, &other.0);
    }

    /// Gives what one cause owns to another.
    #[inline]
    pub fn reassign(&mut self, from: Cause, to: Cause) {
        self.0[to as usize] += std::mem::take(&mut self.0[from as usize]);
    }

    /// Takes the first `span` off a flash operation's ledger: its needs are met
    /// in a known order, the controller's delay first, its own work last.
    pub fn drop_start(&mut self, span: Span) {
        let mut left = span.0;
        let late = |cause: &&Cause| matches!(cause, Cause::OwnFlash);
        let early = [Cause::Controller, Cause::NoFreeBlock, Cause::SchedulerHold];
        let waits = Cause::ALL.iter().filter(|cause| !late(cause));
        for cause in early.iter().chain(waits).chain(Cause::ALL.iter().filter(late)) {
            let entry = &mut self.0[*cause as usize];
            let taken = left.min(*entry);
            *entry -= taken;
            left -= taken;
        }
    }

    /// Whether garbage collection delayed this request at all.
    #[inline]
    pub fn has_gc(&self) -> bool {
        self.gc_ns() > 0
    }

    /// For how long garbage collection delayed it.
    #[inline]
    pub fn gc_ns(&self) -> u64 {
        const GC: u64 = {
            let mut mask = 0;
            let mut i = 0;
            while i < Cause::COUNT {
                if Cause::ALL[i].is_gc() {
                    mask |= 1 << i;
                }
                i += 1;
            }
            mask
        };
        (0..Cause::COUNT).filter(|i| GC >> i & 1 == 1).fold(0, |sum, i| sum.wrapping_add(self.0[i]))
    }

    /// Nanoseconds of each cause, in ledger order and in groups; the last one is
    /// filled up with zeros.
    #[inline]
    pub fn groups(&self) -> &[[u64; Ledger::GROUP]] {
        self.0.as_chunks().0
    }

    /// (cause, nanoseconds) pairs, in ledger order, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::ALL.iter().map(|&cause| (cause, self.ns(cause)))
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger::ZERO
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.iter().filter(|(_, ns)| *ns > 0).map(|(cause, ns)| (cause.label(), ns)))
            .finish()
    }
}
