//! What happened to the real drives of a run or a probe.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use flashkeel_blockdev::{Fault, World};
use flashkeel_engine::Outside;

use crate::Error;

/// What a run is told of a device in whose time it was measured.
pub(crate) const NOTE: &str = "a real drive is in it: times are those of the wall clock, the digest is of \
                               this run alone, and no other run gives the same";

/// The real drives among what was opened, for those who have it served.
#[derive(Clone)]
pub struct RealDrives(World);

impl RealDrives {
    pub(crate) fn of(world: World) -> RealDrives {
        RealDrives(world)
    }

    /// What can be read once a request to one of them has ended.
    ///
    /// # Errors
    /// If an export is among them, or there are too many open files.
    pub fn heard(&self) -> Result<OwnedFd, Error> {
        self.0.heard().map_err(|error| Error::Input(format!("it cannot be served: {error}")))
    }

    /// Whether one of them has failed.
    pub fn have_failed(&self) -> bool {
        self.0.look();
        self.0.fault().is_some()
    }

    /// What serving them ended with.
    ///
    /// # Errors
    /// If one of them has failed: what happened, and what was written where.
    pub fn end(&self) -> Result<(), Error> {
        end(Some(&self.0), Ok(()))
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
