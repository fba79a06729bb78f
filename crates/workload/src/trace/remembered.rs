//! Where the devices of traces lie, and their requests, remembered for as long as their
//! files stay what they are: a run is checked before it begins, and others of the same trace
//! may follow.

use std::sync::{Arc, Mutex, PoisonError};

use flashkeel_engine::{Span, units::Bytes};

use super::Trace;
use super::kept::MOST_BYTES;
use super::pass::Shape;
use super::place::AddressMap;
use crate::input::version;
use crate::readers::trace_files;
use crate::{Context, Stopped, Watch};

/// Most that are remembered, as long as their requests take no more than [`MOST_BYTES`].
const MOST: usize = 8;

static FOUND: Mutex<Vec<(Key, Arc<AddressMap>)>> = Mutex::new(Vec::new());

/// All that a layout follows from.
#[derive(Clone, PartialEq)]
struct Key {
    trace: Trace,
    /// Of each file of it, of which blktrace has one for each CPU.
    versions: Vec<[i64; 7]>,
    device_sectors: u64,
    requests: Option<u64>,
    duration: Option<Span>,
    block: Bytes,
}

/// [`AddressMap::find`], at most once while nothing has changed.
pub(super) fn find(
    trace: &Trace,
    shape: &Shape,
    context: &Context,
    watch: &mut Watch<'_>,
) -> Result<Arc<AddressMap>, Stopped> {
    // Of a pipe nothing is remembered.
    let versions = trace_files(&trace.path).iter().map(|path| version(path)).collect();
    let Some(versions) = versions else {
        return AddressMap::find(trace, shape, context, watch).map(Arc::new);
    };
    let &Context { device_sectors, requests, duration, block, .. } = context;
    let key = Key { trace: trace.clone(), versions, device_sectors, requests, duration, block };
    let known = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = known().iter().find(|(known, _)| *known == key) {
        return Ok(found.clone());
    }
    let found = Arc::new(AddressMap::find(trace, shape, context, watch)?);
    let mut known = known();
    known.push((key, found.clone()));
    let bytes = |(_, map): &(Key, Arc<AddressMap>)| map.kept.as_ref().map_or(0, |kept| kept.bytes);
    while known.len() > MOST || known.iter().map(bytes).sum::<usize>() > MOST_BYTES {
        known.remove(0);
    }
    Ok(found)
}
