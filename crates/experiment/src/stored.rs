//! Devices whose data is kept in a file.

use std::io::ErrorKind;
use std::path::Path;

use flashkeel_device::{DeviceConfig, MediumShape, Ssd};
use flashkeel_engine::{SECTOR_BYTES, Time};
use flashkeel_host::StackConfig;
use flashkeel_host::device::{Device, DeviceKind, Maker, MirrorConfig, Unmade};
use flashkeel_store::{Header, Opened, Refused, Store};
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
    /// [`Error::Input`] if it is not made of SSDs alone, or the file is of something else: it
    /// is left as it is. [`Error::Interrupted`] if `progress` stops it.
    pub fn stored(
        &self,
        path: &Path,
        seed: u64,
        wake: Box<dyn Fn() + Send>,
        cache_dir: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<Stored, Error> {
        let kept =
            |reason: String| Error::Input(format!("{} keeps no data of this: {reason}", path.display()));
        let mut drives = Drives::default();
        match self.stack() {
            Some(stack) => drives.add_stack(&stack),
            None => drives.add_ssd(&self.device),
        }
        .map_err(kept)?;
        let size = self.check().map_err(|(_, message)| Error::Input(message))?;
        let Drives { shapes, places, .. } = drives;
        let placement = if places.is_empty() { String::new() } else { json!(places).to_string() };
        let header = Header::new(size.sectors * SECTOR_BYTES, &shapes.concat(), &placement).map_err(kept)?;
        let refused = |refused: Refused| match refused {
            Refused::Failed(error) if error.kind() == ErrorKind::Interrupted => Error::Interrupted,
            refused => Error::Input(format!("{}: {refused}", path.display())),
        };
        let read = &mut |fraction| progress("scan", fraction);
        let opened = Store::open(path, &header, Some(wake), read).map_err(refused)?;
        // In the order in which they are made, each has its part of the file.
        let mut parts = shapes.iter().map(Vec::len);
        let mut part = || parts.next().expect("those of which the shapes were asked");
        match opened {
            Opened::New(mut store) => {
                let mut media = store.media().into_iter();
                let device = self.made_of(seed, false, &mut |config, seed| {
                    let mut ssd = steady_state(config, seed, cache_dir, progress)?;
                    ssd.keep_data_in(media.by_ref().take(part()).collect());
                    Ok(ssd)
                })?;
                store.complete().map_err(refused)?;
                Ok(Stored { device, store, now: Time::ZERO })
            }
            Opened::Old(store, found, now) => {
                let mut media = store.media().into_iter().zip(found);
                let device = self.made_of(seed, true, &mut |config, seed| {
                    let mut ssd = Ssd::new(&config.validate()?, seed);
                    ssd.recover(now, media.by_ref().take(part()).collect());
                    Ok(ssd)
                })?;
                Ok(Stored { device, store, now })
            }
        }
    }

    /// The device of the SSDs that `make` makes, or has found.
    fn made_of(
        &self,
        seed: u64,
        is_found: bool,
        make: &mut dyn FnMut(&DeviceConfig, u64) -> Result<Ssd, Unmade>,
    ) -> Result<Box<dyn Device>, Unmade> {
        let mut maker = Maker::new(seed, make);
        if is_found {
            maker.find();
        }
        self.assemble(seed, &mut maker)
    }
}

/// The SSDs in a target, in the order in which they are made.
#[derive(Default)]
struct Drives {
    /// How large the media of each have to be.
    shapes: Vec<Vec<MediumShape>>,
    /// Where volumes lie on the devices of each stack, unless its one device says that.
    places: Vec<Value>,
    /// How many of them have blocks that retire.
    retiring: usize,
}

/// Why there may be nobody who probes.
fn would_probe(who: &str, key: &str) -> String {
    format!(
        "{who} would probe it, which takes a drive without data; {key} = {{ policy = \"ssdcheck\", model = \
         FILE }} takes what flashkeel probe --out found of one"
    )
}

impl Drives {
    fn add_ssd(&mut self, config: &DeviceConfig) -> Result<(), String> {
        self.retiring += usize::from(config.retirement.name() != "none");
        // Its shape is that of any other with these settings.
        self.shapes.push(Ssd::new(&config.validate()?, 0).media());
        Ok(())
    }

    fn add_stack(&mut self, stack: &StackConfig) -> Result<(), String> {
        if stack.probes() {
            return Err(would_probe("its scheduler's predictor", "stack.predictor"));
        }
        if stack.devices.len() > 1 || stack.volumes.name() != "linear" {
            let sizes = stack.devices.iter().map(|device| Ok(device.check()?.sectors));
            let sectors = sizes.collect::<Result<Vec<u64>, String>>()?;
            self.places.push(json!({ "volumes": stack.volumes, "sectors": sectors }));
        }
        stack.devices.iter().try_for_each(|device| self.add(device))
    }

    fn add_mirror(&mut self, mirror: &MirrorConfig) -> Result<(), String> {
        if mirror.probes() {
            return Err(would_probe("its mirror's predictor", "its predictor"));
        }
        let name = mirror.acknowledge.name();
        if name != "all" {
            return Err(format!(
                "its mirror has acknowledge = {name:?}, and which of its copies is behind is not kept; with \
                 \"all\" none is"
            ));
        }
        let before = self.retiring;
        self.places.push(json!({
            "mirror": mirror.devices.len(),
            "spares": mirror.spares.len(),
            "ranges": mirror.ranges,
        }));
        mirror.all().try_for_each(|(_, device)| self.add(device))?;
        if self.retiring > before {
            return Err(
                "its mirror is over drives that wear out, and which of its copies takes no writes any \
                        more is not kept"
                    .into(),
            );
        }
        Ok(())
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
            DeviceKind::Tier(_) => "it has a tier, and which pages are in its upper device is not kept",
            DeviceKind::Nvm(_) | DeviceKind::Dram(_) => "it has memory in it, and only SSDs are kept",
            DeviceKind::File(_) | DeviceKind::Nbd(_) => "it has a real drive in it, which keeps its own",
        };
        Err(reason.into())
    }
}
