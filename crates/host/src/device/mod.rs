//! The device axis: what serves requests, alone or put together of others.
//!
//! One file per kind. To add one: write the file, add its line to the list.

mod composed;
mod maker;

use dyn_clone::DynClone;
use flashkeel_config::{ConfigError, Node};
use flashkeel_engine::{Leaf, Span, Time};

pub(crate) use composed::Composed;
pub use maker::{Contents, Keepers, Maker, Probing, Unmade, seed_of};
pub use mirror::MirrorConfig;
pub use ssd::put_capacity;
pub use tier::TieredConfig;

use crate::claim::Claim;
use crate::coordinator::Foresight;
use crate::part::Part;

flashkeel_config::axis! {
    /// What serves requests: a device, or several put together to one.
    pub enum DeviceKind as "device" by key: Build {
        /// An SSD.
        Ssd(DeviceConfig) in ssd = "ssd",
        /// A non-volatile memory device, such as an Optane SSD.
        Nvm(NvmConfig) in nvm = "nvm",
        /// Memory of the host: fast, and lost with the power.
        Dram(DramConfig) in dram = "dram",
        /// An upper device in front of a lower one, which takes some of its writes.
        Tier(TieredConfig) in tier = "tier",
        /// Two or more devices with the same data.
        Mirror(MirrorConfig) in mirror = "mirror",
        /// A device whose deterministic windows hosts share by counts.
        Coordinator(CoordinatorConfig) in coordinator = "coordinator",
        /// A device that knows no windows, with deterministic ones that software imposes.
        Windowed(WindowedConfig) in windowed = "windowed",
        /// A file or a block device of this machine, in the time of the wall clock.
        File(FileConfig) in file = "file",
        /// An export of a network block device server, in the time of the wall clock.
        Nbd(NbdConfig) in nbd = "nbd",
        /// A device behind a network.
        Network(NetworkConfig) in network = "network",
        /// A whole stack over devices of its own, as one device.
        Stack(StackConfig) in stack = "stack",
    }
}

/// The kinds that are in every report, whether there are any of them or not.
pub(crate) const REPORTED: [&str; 3] = ["ssd", "nvm", "tier"];

/// What whoever puts devices together has to know before they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Capacity in 512-byte sectors.
    pub sectors: u64,
    /// Requests that it takes at most; `None` for any number.
    pub queue_depth: Option<u32>,
    /// Memory that the tables of its flash take on the machine that simulates it.
    pub memory_bytes: u64,
    /// Whether what is written to it is lost with the power.
    pub is_volatile: bool,
    /// NVM sets that it is made of: 1 for a device without.
    pub sets: u32,
    /// Whether there are deterministic windows, and who has a say in them.
    pub windows: HasWindows,
    /// What an erase of flash takes whose windows are commanded.
    pub erase: Option<Span>,
    /// Reads of 4 KiB that its flash serves in a second at most, where there is flash.
    pub reads_per_s: Option<u64>,
    /// Whether something has to know requests before they come.
    pub foresees: bool,
    /// Whether there is a real drive in it, whose time is that of the wall clock.
    pub is_real: bool,
    /// Whether it fails as soon as one of the real drives in it does, and not only when all
    /// copies do.
    pub needs_drives: bool,
    /// Whether what is written to it may be on no real drive, or in the upper device of a
    /// tier, which alone knows what that holds.
    pub in_memory: bool,
    /// Whether it is known to take only whole pages of 4 KiB.
    pub takes_pages: bool,
    /// Sectors of its devices that belong to nobody's volume.
    pub left_sectors: u64,
}

/// Deterministic windows, as whoever is above sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HasWindows {
    /// None that anybody is told of.
    None,
    /// Of each NVM set, by command.
    Commanded {
        /// How long one may last, if there is a limit.
        longest: Option<Span>,
    },
    /// Of one copy after the other, by themselves: it is told when one begins, and no sooner
    /// than after this time comes the next.
    InTurn(Span),
}

impl Size {
    /// Of a device made of no others, without windows, flash or sets.
    pub fn plain(sectors: u64, queue_depth: u32) -> Size {
        Size { sectors, queue_depth: Some(queue_depth), in_memory: true, ..Size::over([]) }
    }

    /// Of a real drive.
    pub fn real(sectors: u64, queue_depth: u32) -> Size {
        let plain = Size::plain(sectors, queue_depth);
        Size { is_real: true, needs_drives: true, in_memory: false, ..plain }
    }

    /// Refuses a time for background work, given at `key`, in which no block is erased.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn has_time_to_erase(&self, key: &str, rest: Span) -> Result<(), String> {
        match self.erase.filter(|&erase| rest < erase) {
            Some(erase) => Err(format!(
                "{key} is {rest}, in which no block could be erased; at least {erase}, the time that an erase \
                 takes (timing.erase)"
            )),
            None => Ok(()),
        }
    }

    /// Refuses a part of whatever is here, given at `key`, if a coordinator in it has to know
    /// what hosts read, but gets only what is left of that by the other parts.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn gets_all_reads(&self, key: &str) -> Result<(), String> {
        if !self.foresees {
            return Ok(());
        }
        Err(format!(
            "{key}: a coordinator in it foresees all reads of its hosts (demand = \"exact\"), but some go \
             elsewhere; use demand = \"smoothed\""
        ))
    }

    /// Of something put together of others, but for its sectors: none yet.
    pub fn over<'a>(others: impl IntoIterator<Item = &'a Size>) -> Size {
        let none = Size {
            sectors: 0,
            queue_depth: None,
            memory_bytes: 0,
            is_volatile: false,
            sets: 1,
            windows: HasWindows::None,
            erase: None,
            reads_per_s: None,
            foresees: false,
            is_real: false,
            needs_drives: false,
            in_memory: false,
            takes_pages: false,
            left_sectors: 0,
        };
        others.into_iter().fold(none, |all, each| Size {
            memory_bytes: all.memory_bytes + each.memory_bytes,
            is_volatile: all.is_volatile || each.is_volatile,
            foresees: all.foresees || each.foresees,
            is_real: all.is_real || each.is_real,
            needs_drives: all.needs_drives || each.needs_drives,
            in_memory: all.in_memory || each.in_memory,
            takes_pages: all.takes_pages || each.takes_pages,
            ..all
        })
    }
}

/// Makes a device from its settings.
pub trait Build {
    /// Puts presets, and what the experiment says of its device (`ground`),
    /// under the settings written at `key`.
    ///
    /// # Errors
    /// If they name something that is not there.
    fn expand(_settings: &mut Node, _key: &str, _ground: Option<&Node>) -> Result<(), ConfigError>
    where
        Self: Sized,
    {
        Ok(())
    }

    /// Checks the settings as a whole.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn check(&self) -> Result<Size, String>;

    /// Whether there is a real drive in it, which only the outside knows.
    fn has_drives(&self) -> bool {
        self.within().iter().any(|(_, device)| device.policy().has_drives())
    }

    /// The same, for the axis, which does it when it is read. Whoever reads what was written
    /// asks nothing of the world: real drives are looked at before they are used.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        if self.has_drives() { Ok(()) } else { self.check().map(drop) }
    }

    /// The devices that it is made of, each by its key.
    fn within(&self) -> Vec<(String, &DeviceKind)> {
        Vec::new()
    }

    /// Refuses it for hosts with such claims.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn suits(&self, claims: &[Claim]) -> Result<(), String> {
        self.within()
            .into_iter()
            .try_for_each(|(key, device)| device.suits(claims).map_err(|message| format!("{key}.{message}")))
    }

    /// Refuses it where real drives may only be read, if it writes to one by itself.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn only_reads(&self) -> Result<(), String> {
        Ok(())
    }

    /// The device in the state it starts in. Its settings have been checked.
    ///
    /// # Errors
    /// If it cannot be made after all, or whoever waits for it gave up.
    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade>;
}

impl DeviceKind {
    /// Checks the device as a whole.
    ///
    /// # Errors
    /// A sentence that begins with the key, which begins with the kind.
    pub fn check(&self) -> Result<Size, String> {
        self.policy().check().map_err(|message| format!("{}.{message}", self.name()))
    }

    /// Refuses the device for hosts with such claims.
    ///
    /// # Errors
    /// A sentence that begins with the key, which begins with the kind.
    pub fn suits(&self, claims: &[Claim]) -> Result<(), String> {
        self.policy().suits(claims).map_err(|message| format!("{}.{message}", self.name()))
    }

    /// Refuses the device where real drives may only be read, if something in it writes to one by
    /// itself, whatever the device is asked.
    ///
    /// # Errors
    /// A sentence that begins with the key, which begins with the kind.
    pub fn only_reads(&self) -> Result<(), String> {
        let within = self.policy().within();
        let each = |(key, device): (String, &DeviceKind)| {
            device.only_reads().map_err(|message| format!("{key}.{message}"))
        };
        let checked = self.policy().only_reads().and_then(|()| within.into_iter().try_for_each(each));
        checked.map_err(|message| format!("{}.{message}", self.name()))
    }

    /// The device in the state it starts in.
    ///
    /// # Errors
    /// As for [`Build::build`].
    pub fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        self.policy().build(maker)
    }
}

/// A leaf that can be copied, and has parts that can be read off.
pub trait Device: Leaf + DynClone + Send {
    /// Appends what it is made of and what counts something: itself, or what is
    /// below it and then itself.
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>);

    /// From now on what is stored holds bytes: zeros, until others are written.
    /// For tests and servers; it costs memory and time. The device must be at rest.
    fn keep_data(&mut self);

    /// Starts counting anew in every part, as at the end of a warm-up, which is now.
    fn reset_counters(&mut self, now: Time);

    /// From now on notes what each chip does in a window of time.
    fn watch(&mut self, _from: Time, _to: Time) {}

    /// What hosts will read, for policies that go by it.
    fn foresee(&mut self, _foresight: &Foresight) {}

    /// What is held in policies; `None` where there are none.
    fn held(&self) -> Option<Held> {
        None
    }
}

dyn_clone::clone_trait_object!(Device);

/// What the policies of a device hold at this moment, those of devices in it
/// included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Requests waiting.
    pub requests: u64,
    /// Pages in the upper devices of tiers.
    pub upper_pages: u64,
}

impl Held {
    /// The sum of this and whatever the devices below hold.
    pub fn over<'a>(self, devices: impl Iterator<Item = &'a Box<dyn Device>>) -> Held {
        devices.filter_map(|device| device.held()).fold(self, |sum, each| Held {
            requests: sum.requests + each.requests,
            upper_pages: sum.upper_pages + each.upper_pages,
        })
    }
}
