//! Drives in real time.

use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use flashkeel_experiment::{Cause, Device, Error, RealDrives, Stored, Target, read_off, watch};
use flashkeel_serve::nbd::{Export, LONGEST_NAME};
use flashkeel_serve::{
    Address, BOUNDS_NS, Counted, Kept, Late, Server, Settings, Snapshot, Tally, Time, Watch, Window,
    listen_at, reason,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use pyo3::{exceptions::PyException, prelude::*};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    errors::{InputError, exception},
    functions::json,
    progress::watched,
};

/// What is served, and how.
#[derive(Deserialize)]
struct Service {
    seed: u64,
    listen: String,
    name: String,
    read_only: bool,
    time_scale: f64,
    /// Where what is written is kept, if it is to outlast the server.
    data: Option<PathBuf>,
}

/// Serve a target, given as JSON, as an NBD export until interrupted; say as JSON what was
/// served. `ready` is called with the address, the size and a window on it once clients are
/// answered, `say` with what
/// concerns those who serve.
#[pyfunction]
#[pyo3(signature = (target_json, service_json, ready, say, cache_dir=None, progress=None))]
pub fn serve_nbd(
    py: Python<'_>,
    target_json: &str,
    service_json: &str,
    ready: Py<PyAny>,
    say: Py<PyAny>,
    cache_dir: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let not_resolved = |error| InputError::new_err(format!("not resolved: {error}"));
    let target: Target = serde_json::from_str(target_json).map_err(not_resolved)?;
    let service: Service = serde_json::from_str(service_json).map_err(not_resolved)?;
    let Service { seed, listen, name, read_only, time_scale, data } = service;
    let refused = |error: std::io::Error| InputError::new_err(format!("{listen}: {}", reason(&error)));
    if name.len() > LONGEST_NAME {
        let length = name.len();
        return Err(InputError::new_err(format!("--name: {length} bytes, of at most {LONGEST_NAME}")));
    }
    let server = Server::bind(&address(&listen)?).map_err(refused)?;
    let cache_dir = cache_dir.as_deref();
    let wake = server.waker();
    let (mut device, kept, real) = watched(py, progress, |reporter| {
        let report = &mut |phase, fraction| reporter.report(phase, fraction);
        let Some(path) = &data else {
            let mut opened = target.open(seed, cache_dir, report)?;
            opened.device.keep_data();
            let real = opened.real();
            return Ok((opened.device, None, real));
        };
        let Stored { device, store, now } = target.stored(path, seed, wake, cache_dir, report)?;
        Ok((device, Some(Kept { store, from: now }), None))
    })?;
    if real.is_some() && time_scale != 1.0 {
        return Err(InputError::new_err("--time-scale: a real drive keeps its own time"));
    }
    let outside = real.as_ref().map(RealDrives::heard).transpose().map_err(exception)?;
    let limits = device.limits();
    let export = Export {
        description: if real.is_some() { "a real drive behind flashkeel" } else { "simulated by flashkeel" }
            .into(),
        name,
        bytes: limits.sectors * 512,
        block_bytes: limits.block_sectors * 512,
        preferred_bytes: limits.preferred_sectors * 512,
        is_read_only: read_only || real.is_some() && !target.destroys,
    };
    let place = server.address().map_err(refused)?;
    let serving = Serving { window: server.window() };
    // Whoever interrupts it as soon as it says so hears what was served, too.
    let interrupted = match ready.call1(py, (uri(&place, &export.name), export.bytes, serving)) {
        Err(error) if !error.is_instance_of::<PyException>(py) => Some(error),
        told => told.map(|_| None)?,
    };
    if !export.is_read_only && real.as_ref().is_some_and(RealDrives::forget) {
        let lost =
            "What simulated devices hold alone, or the upper device of a tier, is lost when serving ends";
        say.call1(py, (lost,))?;
    }
    let settings = Settings { export, time_scale };
    let begin = kept.as_ref().map_or(Time::ZERO, |kept| kept.from);
    watch(&mut *device, begin);
    let mut caller = Caller { say, interrupted, read_off: begin, real };
    let served = py.detach(|| server.run(device, kept, outside, &settings, &mut caller));
    caller.real.map_or(Ok(()), |real| real.end()).map_err(exception)?;
    let served = served.map_err(|error| {
        let why = reason(&error);
        exception(Error::Failure(match &data {
            Some(path) => format!("{}: {why}; nothing was acknowledged since", path.display()),
            None => why,
        }))
    })?;
    Ok(json(json!({
        "clients": served.clients,
        "faults": served.faults,
        "requests": served.requests,
        "late": late(served.late),
        "synced": late(served.synced),
        "bounds_ns": BOUNDS_NS,
    })))
}

/// Listen at a socket in the file system, in the place of a server that was killed; return
/// the number of the file, which is the caller's to close.
#[pyfunction]
pub fn listen_unix(path: PathBuf) -> PyResult<i32> {
    let refused = |error| InputError::new_err(format!("{}: {}", path.display(), reason(&error)));
    listen_at(&path).map(IntoRawFd::into_raw_fd).map_err(refused)
}

/// A window on a drive that is being served, for other threads.
#[pyclass(frozen, module = "flashkeel._core")]
pub struct Serving {
    window: Window,
}

#[pymethods]
impl Serving {
    /// Return what is counted since the start, and the device's gauges, as JSON; nothing once
    /// serving has ended.
    fn state(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.window.look(false)).map(|snapshot| json(state(&snapshot)))
    }

    /// Return what was measured in the last minute, as the run of a result in JSON; nothing
    /// once serving has ended.
    fn recent(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| Some(json(json!(self.window.look(true)?.recent.as_ref()?.summary()?))))
    }
}

/// A snapshot in JSON. Latencies are counted by the cause that owned most of a request, in
/// classes up to `bounds_ns` and one above; lateness in the same.
fn state(snapshot: &Snapshot) -> Value {
    let named = |ns: &[u64]| -> serde_json::Map<String, Value> {
        let causes = Cause::ALL.iter().map(|cause| cause.label().to_owned());
        causes.zip(ns.iter().map(|&ns| json!(ns))).collect()
    };
    let tally = |tally: &Tally| {
        let seen =
            Cause::ALL.iter().zip(&tally.latencies).filter(|(_, counts)| counts.iter().any(|&n| n > 0));
        let latencies: serde_json::Map<_, _> =
            seen.map(|(cause, counts)| (cause.label().to_owned(), json!(counts))).collect();
        json!({
            "count": tally.count,
            "failed": tally.failed,
            "bytes": tally.bytes,
            "latencies": latencies,
            "took_ns": named(&tally.took_ns),
            "owned_ns": named(&tally.owned_ns),
        })
    };
    let operations: serde_json::Map<_, _> =
        NAMES.iter().zip(&*snapshot.tallies).map(|(name, each)| (String::from(*name), tally(each))).collect();
    json!({
        "now_ns": snapshot.now.0,
        "time_scale": snapshot.time_scale,
        "clients": snapshot.clients,
        "bounds_ns": BOUNDS_NS,
        "operations": operations,
        "late": late(snapshot.late),
        "synced": late(snapshot.synced),
        "device": serde_json::from_str::<Value>(&snapshot.device).unwrap_or_default(),
    })
}

/// What operations are called, in the order in which they are counted.
const NAMES: [&str; Counted::ALL.len()] = ["read", "write", "flush", "discard"];

/// Whoever called the server.
struct Caller {
    say: Py<PyAny>,
    interrupted: Option<PyErr>,
    /// When the device was last read off.
    read_off: Time,
    real: Option<RealDrives>,
}

impl Caller {
    fn is_interrupted(&mut self) -> bool {
        self.interrupted = self.interrupted.take().or_else(|| Python::attach(|py| py.check_signals().err()));
        self.interrupted.is_some()
    }
}

impl Watch<Box<dyn Device>> for Caller {
    fn reads_off(&mut self, device: &mut Box<dyn Device>, now: Time) -> String {
        json(read_off(&mut **device, std::mem::replace(&mut self.read_off, now), now))
    }

    /// Being interrupted is how serving ends, and the failure of a real drive.
    fn stops(&mut self, failed: u64) -> bool {
        if let Some(real) = &mut self.real {
            if real.have_failed(failed) {
                return true;
            }
            let news = real.news();
            news.iter().for_each(|sentence| self.says(sentence));
        }
        self.is_interrupted()
    }

    fn says(&mut self, sentence: &str) {
        // An interrupt that has come would keep it from being said; one that comes meanwhile
        // counts too.
        self.is_interrupted();
        let cut_short = Python::attach(|py| {
            let error = self.say.call1(py, (sentence,)).err()?;
            // Where nobody can be told any more, clients are served all the same.
            (!error.is_instance_of::<PyException>(py)).then_some(error)
        });
        self.interrupted = self.interrupted.take().or(cut_short);
    }
}

fn late(late: Late) -> Value {
    json!({
        "count": late.count,
        "p50_ns": late.p50_ns,
        "p99_ns": late.p99_ns,
        "p99_9_ns": late.p99_9_ns,
        "p99_99_ns": late.p99_99_ns,
        "max_ns": late.max_ns,
        "counts": late.counts,
    })
}

/// The address that `unix:PATH` or `HOST:PORT` names.
fn address(listen: &str) -> PyResult<Address> {
    if let Some(path) = listen.strip_prefix("unix:").filter(|path| !path.is_empty()) {
        return Ok(Address::Unix(path.into()));
    }
    listen.parse().map(Address::Tcp).map_err(|_| {
        InputError::new_err(format!(
            "--listen {listen}: write unix:PATH or ADDRESS:PORT, such as 127.0.0.1:10809; names are not looked up"
        ))
    })
}

/// What would not stand for itself in a URI (RFC 3986, 2.3, and the slash).
const APART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// How clients name it.
fn uri(address: &Address, name: &str) -> String {
    let encoded = |bytes| percent_encode(bytes, APART);
    let name = encoded(name.as_bytes());
    match address {
        Address::Unix(path) => format!("nbd+unix:///{name}?socket={}", encoded(path.as_os_str().as_bytes())),
        Address::Tcp(address) => format!("nbd://{address}/{name}"),
    }
}
