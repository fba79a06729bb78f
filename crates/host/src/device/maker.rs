//! What devices are made with: seeds, and SSDs in their steady state.

use flashkeel_blockdev::{Access, World};
use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_engine::Stream;

use crate::claim::Claim;

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

/// Hands out what the devices put together to one are made with.
pub struct Maker<'a> {
    seed: u64,
    /// How many of each kind have been made.
    made: Vec<(&'static str, usize)>,
    /// Of those who share what is made.
    claims: Vec<Claim>,
    /// Where real drives are opened, and what may be done to them.
    world: Option<(World, Access)>,
    /// Whether what is made has been before.
    is_found: bool,
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
            is_found: false,
            precondition,
        }
    }

    /// What is made holds what it held before a restart, whatever was on its way then.
    pub fn find(&mut self) {
        self.is_found = true;
    }

    /// Whether it does.
    pub fn is_found(&self) -> bool {
        self.is_found
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
