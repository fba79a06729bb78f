//! Devices whose data is kept in a file.

use std::io::ErrorKind;
use std::path::Path;

use flashkeel_device::Ssd;
use flashkeel_engine::Time;
use flashkeel_host::device::Device;
use flashkeel_store::{Header, Opened, Refused, Store};

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
    /// [`Error::Input`] if it is not one SSD, or the file is of something else: it is left
    /// as it is. [`Error::Interrupted`] if `progress` stops it.
    pub fn stored(
        &self,
        path: &Path,
        seed: u64,
        wake: Box<dyn Fn() + Send>,
        cache_dir: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<Stored, Error> {
        let kept = |reason: &str| Error::Input(format!("{} keeps no data of this: {reason}", path.display()));
        if self.stack.is_some() {
            return Err(kept("it is a stack, and only that of one SSD is found again after a restart"));
        }
        let layout = self.device.validate().map_err(Error::Input)?;
        let mut ssd = Ssd::new(&layout, seed);
        let header = Header::new(ssd.sectors() * 512, &ssd.media().map_err(|reason| kept(&reason))?);
        let refused = |refused: Refused| match refused {
            Refused::Failed(error) if error.kind() == ErrorKind::Interrupted => Error::Interrupted,
            refused => Error::Input(format!("{}: {refused}", path.display())),
        };
        let read = &mut |fraction| progress("scan", fraction);
        match Store::open(path, &header, Some(wake), read).map_err(refused)? {
            Opened::New(mut store) => {
                ssd = steady_state(&self.device, seed, cache_dir, progress)?;
                ssd.keep_data_in(store.media());
                store.complete().map_err(refused)?;
                Ok(Stored { device: Box::new(ssd), store, now: Time::ZERO })
            }
            Opened::Old(store, found, now) => {
                ssd.recover(now, store.media().into_iter().zip(found).collect());
                Ok(Stored { device: Box::new(ssd), store, now })
            }
        }
    }
}
