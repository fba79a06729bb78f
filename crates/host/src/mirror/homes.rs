//! Which device each copy is on: one on each NVM set of each device.

/// Where a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    pub device: usize,
    /// The NVM set of the device, and where that begins, in sectors.
    pub set: usize,
    pub base: u64,
}

/// Where each copy and spare is.
#[derive(Clone, Debug)]
pub(super) struct Homes(Vec<Home>);

impl Homes {
    /// Of copies of so many sectors, on devices of so many sets each.
    pub fn new(sets: &[u32], sectors: u64) -> Homes {
        let on = |(device, &sets): (usize, &u32)| {
            (0..sets as usize).map(move |set| Home { device, set, base: set as u64 * sectors })
        };
        Homes(sets.iter().enumerate().flat_map(on).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn of(&self, copy: usize) -> Home {
        self.0[copy]
    }

    /// The copy on an NVM set of a device.
    pub fn at(&self, device: usize, set: usize) -> Option<usize> {
        self.0.iter().position(|home| (home.device, home.set) == (device, set))
    }

    /// The copies on a device, a bit each.
    pub fn on(&self, device: usize) -> u8 {
        let here = |(copy, home): (usize, &Home)| u8::from(home.device == device) << copy;
        self.0.iter().enumerate().map(here).sum()
    }
}
