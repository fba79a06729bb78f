//! Devices whose data is kept in a file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use flashkeel_device::{DeviceConfig, Found, Page, Place, Ssd};
use flashkeel_engine::{FoundPages, Keeping, LOGICAL_PAGE_SECTORS, SECTOR_BYTES, Time, reason};
use flashkeel_host::StackConfig;
use flashkeel_host::device::{Build, Device, DeviceKind, Maker, MirrorConfig, Probing, TieredConfig, Unmade};
use flashkeel_ssdcheck::DeviceModel;
use flashkeel_store::{Header, Opened, Refused, SectionShape, Store, Watch};
use serde_json::{Value, json};

use crate::run::{Progress, steady_state};
use crate::{Error, Target};

/// A device, and what keeps its data.
pub struct Stored {
    /// The device.
    pub device: Box<dyn Device>,
    /// What keeps its data.
    pub store: Store,
    /// How far its time has come.
    pub now: Time,
}

impl Target {
    /// The device as the file at `path` has it; where there is none, the device in its
    /// steady state, as [`build`](Self::build) makes it, in a new file. `wake` is called,
    /// from another thread, whenever something has been synchronised.
    ///
    /// # Errors
    /// [`Error::Input`] if something in it keeps no data, or the file is of something else: it
    /// is left as it is. [`Error::Interrupted`] if `progress` stops it.
    pub fn stored(
        &self,
        path: &Path,
        seed: u64,
        wake: Box<dyn Fn() + Send>,
        cache_dir: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<Stored, Error> {
        let open = |header: &Header, watch: &mut Watch<'_>| Store::open(path, header, Some(wake), watch);
        self.stored_in(&path.display().to_string(), seed, open, cache_dir, progress)
    }

    /// The same in whatever `open` opens, which has this name.
    ///
    /// # Errors
    /// As for [`stored`](Self::stored).
    pub fn stored_in(
        &self,
        name: &str,
        seed: u64,
        open: impl FnOnce(&Header, &mut Watch<'_>) -> Result<Opened, Refused>,
        cache_dir: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<Stored, Error> {
        let kept = |reason: String| Error::Input(format!("{name} keeps no data of this: {reason}"));
        let mut drives = Drives::default();
        match self.stack() {
            Some(stack) => drives.add_stack(&stack),
            None => drives.add_ssd(&self.device),
        }
        .map_err(kept)?;
        let size = self.size()?;
        let Drives { parts, places, addresses, .. } = drives;
        let placement = if places.is_empty() { String::new() } else { json!(places).to_string() };
        let follow = addresses.iter().all(String::is_empty);
        let addresses = if follow { String::new() } else { json!(addresses).to_string() };
        let header = Header::new(size.sectors * SECTOR_BYTES, parts.concat(), &placement, &addresses);
        let header = header.map_err(kept)?;
        let refused = |refused: Refused| match refused {
            Refused::Failed(error) if error.kind() == ErrorKind::Interrupted => Error::Interrupted,
            Refused::Failed(error)
                if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) =>
            {
                Error::Failure(format!("{name}: {}", reason(&error)))
            }
            refused => Error::Input(format!("{name}: {refused}")),
        };
        let opened = open(&header, progress).map_err(refused)?;
        let progress = RefCell::new(progress);
        let probing = &mut |fraction| (progress.borrow_mut())("probe", fraction);
        match opened {
            Opened::New(mut store) => {
                let sections = RefCell::new(Sections::of(&parts, Vec::new()));
                let device = self.made_of(seed, &store, &sections, None, probing, &mut |config, seed| {
                    let mut ssd = steady_state(config, seed, cache_dir, &mut **progress.borrow_mut())?;
                    let mut told = 0;
                    let watch = &mut |fraction| {
                        // What is made durable cannot be interrupted: 16 MiB at a time, about.
                        told += 1;
                        if told % 32 == 0 {
                            store.sync();
                        }
                        (progress.borrow_mut())("write", fraction)
                    };
                    let media = store.media(sections.borrow_mut().next());
                    match ssd.keep_data_in(media, watch) {
                        ControlFlow::Continue(()) => Ok(ssd),
                        ControlFlow::Break(()) => Err(Unmade::Interrupted),
                    }
                })?;
                store.complete().map_err(refused)?;
                Ok(Stored { device, store, now: Time::ZERO })
            }
            Opened::Old(mut store, found, now) => {
                let sections = RefCell::new(Sections::of(&parts, found));
                let device =
                    self.made_of(seed, &store, &sections, Some(now), probing, &mut |config, seed| {
                        let mut ssd = Ssd::new(&config.validate()?, seed);
                        let range = sections.borrow_mut().next();
                        let found = range.clone().map(|section| sections.borrow_mut().found(section));
                        ssd.recover(now, store.media(range).into_iter().zip(found).collect());
                        Ok(ssd)
                    })?;
                store.complete().map_err(refused)?;
                Ok(Stored { device, store, now })
            }
        }
    }

    /// The device of the SSDs that `make` makes, and of what else there is in a store: all of it
    /// new, or found after a restart at a time.
    fn made_of(
        &self,
        seed: u64,
        store: &Store,
        sections: &RefCell<Sections>,
        from: Option<Time>,
        probing: &mut Probing<'_>,
        make: &mut dyn FnMut(&DeviceConfig, u64) -> Result<Ssd, Unmade>,
    ) -> Result<Box<dyn Device>, Unmade> {
        let mut keepers = || -> Keeping {
            let mut sections = sections.borrow_mut();
            let section = sections.next().start;
            // The newest of a page comes last.
            let pages = |(place, page): (Place, Option<Box<Page>>)| (place.lpn.0, page);
            let newest: BTreeMap<u32, Option<Box<Page>>> =
                sections.found(section).held.into_iter().map(pages).collect();
            let mut found = FoundPages::default();
            for (page, bytes) in newest {
                match bytes {
                    Some(bytes) => found.whole.push((page, bytes)),
                    None => drop(found.damaged.insert(page)),
                }
            }
            Keeping { keeper: store.keeper(section), found, now: from.unwrap_or(Time::ZERO) }
        };
        let mut maker = Maker::new(seed, make);
        maker.keep_in(&mut keepers);
        maker.watch(probing);
        // What is no list of models is of another version: it is found anew.
        let known = store.text().and_then(|text| serde_json::from_slice(&text).ok());
        let known: Vec<DeviceModel> = known.unwrap_or_default();
        maker.know(known.clone());
        if let Some(now) = from {
            maker.find(now);
        }
        let device = self.assemble(seed, &mut maker)?;
        if maker.models() != known {
            store.write_text(json!(maker.models()).to_string().as_bytes());
        }
        Ok(device)
    }
}

/// The sections of a file, which belong to whatever has them in the order in which it is made.
struct Sections {
    /// How many each has.
    counts: std::vec::IntoIter<usize>,
    next: usize,
    found: Vec<Found>,
}

impl Sections {
    fn of(parts: &[Vec<SectionShape>], found: Vec<Found>) -> Sections {
        let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
        Sections { counts: counts.into_iter(), next: 0, found }
    }

    /// Those of the next.
    fn next(&mut self) -> Range<usize> {
        let first = self.next;
        self.next += self.counts.next().expect("those of which the shapes were asked");
        first..self.next
    }

    /// What has been found in one; nothing in a new file.
    fn found(&mut self, section: usize) -> Found {
        self.found.get_mut(section).map(std::mem::take).unwrap_or_default()
    }
}

/// What holds data in a target, in the order in which it is made.
#[derive(Default)]
struct Drives {
    /// The sections of each.
    parts: Vec<Vec<SectionShape>>,
    /// How it is put together: where volumes lie on the devices of each stack, unless its one
    /// device says that, and the like.
    places: Vec<Value>,
    /// What each SSD says of its addresses.
    addresses: Vec<String>,
    /// Whether it holds only what others keep.
    is_spare: bool,
}

impl Drives {
    fn add_ssd(&mut self, config: &DeviceConfig) -> Result<(), String> {
        // Its shape is that of any other with these settings.
        let ssd = Ssd::new(&config.validate()?, 0);
        self.parts.push(ssd.media().into_iter().map(SectionShape::from).collect());
        self.addresses.push(ssd.addresses());
        Ok(())
    }

    /// Adds something of so many pages, of which that many are kept at most.
    fn add_pages(&mut self, kind: &str, pages: u64, most: u64) -> Result<(), String> {
        if !self.is_spare {
            let number = |pages: u64| u32::try_from(pages).map_err(|_| format!("its {kind} is too large"));
            self.parts.push(vec![SectionShape::of_pages(number(pages)?, number(most)?)]);
            self.places.push(json!({ kind: most }));
        }
        Ok(())
    }

    fn add_tier(&mut self, tier: &TieredConfig) -> Result<(), String> {
        let pages = tier.lower.check()?.sectors / LOGICAL_PAGE_SECTORS;
        let frames = tier.frames(tier.upper.check()?.sectors);
        self.add(&tier.lower)?;
        let is_spare = std::mem::replace(&mut self.is_spare, true);
        self.add(&tier.upper)?;
        self.is_spare = is_spare;
        self.add_pages("tier", pages, frames)
    }

    fn add_stack(&mut self, stack: &StackConfig) -> Result<(), String> {
        if stack.devices.len() > 1 || stack.volumes.name() != "linear" {
            let sizes = stack.devices.iter().map(|device| Ok(device.check()?.sectors));
            let sectors = sizes.collect::<Result<Vec<u64>, String>>()?;
            self.places.push(json!({ "volumes": stack.volumes, "sectors": sectors }));
        }
        stack.devices.iter().try_for_each(|device| self.add(device))
    }

    fn add_mirror(&mut self, mirror: &MirrorConfig) -> Result<(), String> {
        self.places.push(json!({
            "mirror": mirror.devices.len(),
            "spares": mirror.spares.len(),
            "ranges": mirror.ranges,
        }));
        mirror.all().try_for_each(|(_, device)| self.add(device))?;
        let pages = mirror.check()?.sectors / LOGICAL_PAGE_SECTORS;
        self.add_pages("copies", pages, pages)
    }

    /// Adds those in a device.
    ///
    /// # Errors
    /// Why what it holds is not found again after a restart.
    fn add(&mut self, device: &DeviceKind) -> Result<(), String> {
        let reason = match device {
            DeviceKind::Ssd(config) => return self.add_ssd(config),
            DeviceKind::Stack(stack) => return self.add_stack(stack),
            DeviceKind::Network(network) => return self.add(&network.device),
            DeviceKind::Windowed(windowed) => return self.add(&windowed.device),
            DeviceKind::Coordinator(coordinator) => return self.add(&coordinator.device),
            DeviceKind::Mirror(mirror) => return self.add_mirror(mirror),
            DeviceKind::Tier(tier) => return self.add_tier(tier),
            DeviceKind::Nvm(_) | DeviceKind::Dram(_) => {
                let pages = device.check()?.sectors / LOGICAL_PAGE_SECTORS;
                return self.add_pages("memory", pages, pages);
            }
            DeviceKind::File(_) | DeviceKind::Nbd(_) => {
                "it has a real drive in it, whose data are on that drive; the file and the drive would be of \
                 different ages as soon as one of them is used without the other"
            }
        };
        Err(reason.into())
    }
}
