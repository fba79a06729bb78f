//! What devices are made with: seeds, and SSDs in their steady state.

use std::ops::ControlFlow;

use flashkeel_blockdev::{Access, World};
use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_engine::{Keeping, Predictor, Stream, Time};
use flashkeel_ssdcheck::DeviceModel;

use super::Device;
use crate::claim::Claim;
use crate::predictor::PredictorConfig;

/// Why a device was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmade {
    /// It cannot be, for the reason given.
    Refused(String),
    /// Whoever waits for it gave up.
    Interrupted,
}

impl From<String> for Unmade {
    fn from(reason: String) -> Unmade {
        Unmade::Refused(reason)
    }
}

/// Makes an SSD in its steady state from its settings and seed.
pub type Preconditioner<'a> = dyn FnMut(&DeviceConfig, u64) -> Result<Ssd, Unmade> + 'a;

/// Told the fraction of a probe that is done; may stop it.
pub type Probing<'a> = dyn FnMut(f64) -> ControlFlow<()> + 'a;

/// Says where the next pages are kept that are in no SSD.
pub type Keepers<'a> = dyn FnMut() -> Keeping + 'a;

/// What becomes of bytes that are in no SSD.
pub enum Contents {
    /// There are none, unless somebody asks for them.
    None,
    /// They are in memory.
    InMemory,
    /// They are kept.
    Kept(Keeping),
}

/// Hands out what the devices put together to one are made with.
pub struct Maker<'a> {
    seed: u64,
    /// How many of each kind have been made.
    made: Vec<(&'static str, usize)>,
    /// Of those who share what is made.
    claims: Vec<Claim>,
    /// Where real drives are opened, and what may be done to them.
    world: Option<(World, Access)>,
    /// When what is made is found, if it has been before.
    found: Option<Time>,
    keepers: Option<&'a mut Keepers<'a>>,
    /// Whether what is made holds only what others keep.
    is_spare: bool,
    /// What probes have found of devices, in the order in which those are predicted.
    models: Vec<DeviceModel>,
    /// How many of them have got their predictors.
    predicted: usize,
    /// Who watches probes, if anybody.
    probing: Option<&'a mut Probing<'a>>,
    precondition: &'a mut Preconditioner<'a>,
}

impl<'a> Maker<'a> {
    /// Everything random follows from `seed`.
    pub fn new(seed: u64, precondition: &'a mut Preconditioner<'a>) -> Maker<'a> {
        Maker {
            seed,
            made: Vec::new(),
            claims: vec![Claim::default()],
            world: None,
            found: None,
            keepers: None,
            is_spare: false,
            models: Vec::new(),
            predicted: 0,
            probing: None,
            precondition,
        }
    }

    /// What is made holds what it held before a restart at `now`, whatever was on its way then.
    pub fn find(&mut self, now: Time) {
        self.found = Some(now);
    }

    /// When what is made is found, if it has been before.
    pub fn found(&self) -> Option<Time> {
        self.found
    }

    /// What is made keeps its pages: those that are in no SSD in these.
    pub fn keep_in(&mut self, keepers: &'a mut Keepers<'a>) {
        self.keepers = Some(keepers);
    }

    /// What becomes of the bytes of what is made, if they are in no SSD.
    pub fn contents(&mut self) -> Contents {
        match &mut self.keepers {
            None => Contents::None,
            Some(_) if self.is_spare => Contents::InMemory,
            Some(keepers) => Contents::Kept(keepers()),
        }
    }

    /// Makes something that holds only what others keep.
    pub fn spare<T>(&mut self, make: impl FnOnce(&mut Maker<'a>) -> T) -> T {
        let outer = std::mem::replace(&mut self.is_spare, true);
        let made = make(self);
        self.is_spare = outer;
        made
    }

    /// These were found by probes when the same was made before: it is not probed again.
    pub fn know(&mut self, models: Vec<DeviceModel>) {
        self.models = models;
    }

    /// Whoever waits for probes watches them so.
    pub fn watch(&mut self, probing: &'a mut Probing<'a>) {
        self.probing = Some(probing);
    }

    /// What probes have found.
    pub fn models(&self) -> &[DeviceModel] {
        &self.models
    }

    /// A predictor for `device`, which has not served anything yet and gets at most `depth`
    /// requests at a time.
    ///
    /// # Errors
    /// If the device cannot be predicted, or whoever watches stops the probe.
    pub fn predictor(
        &mut self,
        config: &PredictorConfig,
        device: &(dyn Device + 'static),
        depth: usize,
    ) -> Result<Box<dyn Predictor>, Unmade> {
        let policy = config.policy();
        if let Some(predictor) = policy.read(device)? {
            return Ok(predictor);
        }
        let sectors = device.limits().sectors;
        if self.models.get(self.predicted).is_none_or(|model| model.sectors != sectors) {
            self.models.truncate(self.predicted);
            let probing = &mut self.probing;
            let told = &mut |fraction| match probing {
                Some(probing) => probing(fraction),
                None => ControlFlow::Continue(()),
            };
            self.models.push(policy.probe(device, told)?);
        }
        self.predicted += 1;
        Ok(policy.build(&self.models[self.predicted - 1], device, depth))
    }

    /// What is made is shared among tenants with such claims; at least one.
    pub fn share_among(&mut self, claims: Vec<Claim>) {
        self.claims = claims;
    }

    /// Real drives may be made, for whoever listens to this world.
    pub fn open_in(&mut self, world: &World, access: Access) {
        self.world = Some((world.clone(), access));
    }

    /// Where real drives are opened, and what may be done to them; `None` where there may
    /// be none.
    pub fn world(&self) -> Option<(&World, Access)> {
        self.world.as_ref().map(|(world, access)| (world, *access))
    }

    /// The claims of those who share it.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// The seed of the next one of a kind; the first has the seed itself.
    pub fn seed_for(&mut self, kind: &'static str) -> u64 {
        let index = match self.made.iter_mut().find(|(made, _)| *made == kind) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.made.push((kind, 0));
                0
            }
        };
        seed_of(self.seed, kind, index)
    }

    /// An SSD in its steady state.
    ///
    /// # Errors
    /// If whoever waits for it gave up.
    pub fn ssd(&mut self, config: &DeviceConfig) -> Result<Ssd, Unmade> {
        let seed = self.seed_for("ssd");
        (self.precondition)(config, seed)
    }

    /// Makes something with seeds of its own.
    pub fn apart<T>(&mut self, seed: u64, make: impl FnOnce(&mut Maker<'a>) -> T) -> T {
        let outer = (std::mem::replace(&mut self.seed, seed), std::mem::take(&mut self.made));
        let made = make(self);
        (self.seed, self.made) = outer;
        made
    }
}

/// The seed of one of several of a kind, such as `device`; the first has the
/// run's.
pub fn seed_of(seed: u64, kind: &str, index: usize) -> u64 {
    match index {
        0 => seed,
        _ => Stream::new(seed, &format!("{kind} {index}")).word(),
    }
}
