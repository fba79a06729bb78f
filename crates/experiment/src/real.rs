//! What happened to the real drives of a run or a probe.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use flashkeel_blockdev::{Fault, World};
use flashkeel_engine::Outside;
use flashkeel_host::device::Size;

use crate::Error;

/// What a run is told of a device in whose time it was measured.
pub(crate) const NOTE: &str = "a real drive is in it: times are those of the wall clock, the digest is of \
                               this run alone, and no other run gives the same";

/// The real drives among what was opened, for those who have it served.
pub struct RealDrives {
    world: World,
    size: Size,
    /// Faults of which somebody has been told.
    told: usize,
    /// Requests of clients that had failed before anything went wrong on a drive.
    failed: u64,
}

impl RealDrives {
    pub(crate) fn of(world: World, size: Size) -> RealDrives {
        RealDrives { world, size, told: 0, failed: 0 }
    }

    /// What can be read once a request to one of them has ended.
    ///
    /// # Errors
    /// If an export is among them, or there are too many open files.
    pub fn heard(&self) -> Result<OwnedFd, Error> {
        self.world.heard().map_err(|error| Error::Input(format!("it cannot be served: {error}")))
    }

    /// Whether so many of them have failed that it is the end, where so many requests of
    /// clients have failed: one does it, but for copies, of which another serves.
    pub fn have_failed(&mut self, failed: u64) -> bool {
        self.world.look();
        if self.world.fault().is_none() {
            self.failed = failed;
            return false;
        }
        self.size.needs_drives || failed > self.failed
    }

    /// Whether what is written may be on none of them when serving ends.
    pub fn forget(&self) -> bool {
        self.size.in_memory
    }

    /// What has gone wrong since this was last asked, while serving goes on: a sentence each.
    pub fn news(&mut self) -> Vec<String> {
        let faults = self.world.faults();
        let told = std::mem::replace(&mut self.told, faults.len());
        faults[told..]
            .iter()
            .map(|fault| format!("{}; what has copies is served from others", why(fault)))
            .collect()
    }

    /// What serving them ended with.
    ///
    /// # Errors
    /// If one of them has failed: what happened, and what was written where.
    pub fn end(&self) -> Result<(), Error> {
        let faults = self.world.faults();
        if self.size.needs_drives || faults.is_empty() {
            return end(Some(&self.world), Ok(()));
        }
        let all: Vec<&str> = faults.iter().map(why).collect();
        let lack = "what was written since may be on other copies alone";
        Err(Error::Failure(format!("{}; {lack}{}", all.join("; "), written(&self.world))))
    }
}

fn why(fault: &Fault) -> &str {
    match fault {
        Fault::Refused(why) | Fault::Failed(why) => why,
    }
}

/// The world as whoever drives listens to it, whose time begins now.
pub(crate) fn outside(world: &mut Option<World>) -> Option<&mut dyn Outside> {
    world.as_mut().map(|world| {
        world.restart();
        world as &mut dyn Outside
    })
}

/// Breaks off where something went wrong on a real drive.
pub(crate) fn watch(world: Option<&World>) -> ControlFlow<()> {
    if let Some(world) = world {
        world.look();
    }
    match world.and_then(World::fault) {
        Some(_) => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    }
}

/// What it ended with, if something went wrong on a real drive, or it was broken off
/// after something had been written.
///
/// # Errors
/// Those of `done`, with what was written where.
pub(crate) fn end<T>(world: Option<&World>, done: Result<T, Error>) -> Result<T, Error> {
    let Some(world) = world else { return done };
    world.look();
    match (world.fault(), done) {
        (Some(Fault::Refused(why)), _) => Err(Error::Input(why)),
        (Some(Fault::Failed(why)), _) => Err(Error::Failure(format!("{why}{}", written(world)))),
        (None, Err(Error::Interrupted)) => Err(Error::Broken(format!("interrupted{}", written(world)))),
        (None, Err(Error::Broken(why))) => Err(Error::Broken(format!("{why}{}", written(world)))),
        (None, Err(Error::Failure(why))) => Err(Error::Failure(format!("{why}{}", written(world)))),
        (None, done) => done,
    }
}

/// What has been written where, behind what happened.
fn written(world: &World) -> String {
    let told = world.touched().into_iter().map(|touched| match touched.range {
        Some((first, last)) => {
            let (path, bytes) = (touched.path, touched.bytes);
            format!("; {bytes} bytes were written to {path}, between bytes {first} and {last}")
        }
        None => format!("; nothing was written to {}", touched.path),
    });
    told.collect()
}
