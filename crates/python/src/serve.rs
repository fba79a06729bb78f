//! Drives in real time.

use std::path::PathBuf;

use flashkeel_experiment::{Error, Stored, Target};
use flashkeel_serve::nbd::Export;
use flashkeel_serve::{Address, Kept, Late, Server, Settings, Watch};
use pyo3::prelude::*;
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
/// served. `ready` is called with the address once clients are answered, `say` with what
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
    let refused = |error: std::io::Error| InputError::new_err(format!("{listen}: {error}"));
    let server = Server::bind(&address(&listen)?).map_err(refused)?;
    let cache_dir = cache_dir.as_deref();
    let (device, kept) = watched(py, progress, |reporter| {
        let report = &mut |phase, fraction| reporter.report(phase, fraction);
        let Some(path) = &data else {
            let mut device = target.build(seed, cache_dir, report)?;
            device.keep_data();
            return Ok((device, None));
        };
        let Stored { device, store, now } = target.stored(path, seed, server.waker(), cache_dir, report)?;
        Ok((device, Some(Kept { store, from: now })))
    })?;
    let limits = device.limits();
    let export = Export {
        description: format!("flashkeel {name} (simulated)"),
        name,
        bytes: limits.sectors * 512,
        block_bytes: limits.block_sectors * 512,
        preferred_bytes: limits.preferred_sectors * 512,
        is_read_only: read_only,
    };
    let place = server.address().map_err(refused)?;
    ready.call1(py, (uri(&place, &export.name), export.bytes))?;
    let settings = Settings { export, time_scale };
    let mut caller = Caller { say, interrupted: None };
    let served = py.detach(|| server.run(device, kept, &settings, &mut caller));
    let served = served.map_err(|error| {
        exception(Error::Failure(match &data {
            Some(path) => format!("{}: {error}; nothing was acknowledged since", path.display()),
            None => error.to_string(),
        }))
    })?;
    Ok(json(json!({
        "clients": served.clients,
        "faults": served.faults,
        "requests": served.requests,
        "late": late(served.late),
        "synced": late(served.synced),
    })))
}

/// Whoever called the server.
struct Caller {
    say: Py<PyAny>,
    interrupted: Option<PyErr>,
}

impl Watch for Caller {
    /// Being interrupted is how serving ends.
    fn stops(&mut self) -> bool {
        self.interrupted = self.interrupted.take().or_else(|| Python::attach(|py| py.check_signals().err()));
        self.interrupted.is_some()
    }

    fn says(&mut self, sentence: &str) {
        // An interrupt that has come would keep it from being said; one that comes meanwhile
        // counts too.
        self.stops();
        let said = Python::attach(|py| self.say.call1(py, (sentence,)).map(drop));
        self.interrupted = self.interrupted.take().or(said.err());
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
    })
}

/// The address that `unix:PATH` or `HOST:PORT` names.
fn address(listen: &str) -> PyResult<Address> {
    if let Some(path) = listen.strip_prefix("unix:") {
        return Ok(Address::Unix(path.into()));
    }
    listen.parse().map(Address::Tcp).map_err(|_| {
        InputError::new_err(format!(
            "--listen {listen}: write unix:PATH or ADDRESS:PORT, such as 127.0.0.1:10809"
        ))
    })
}

/// How clients name it.
fn uri(address: &Address, name: &str) -> String {
    match address {
        Address::Unix(path) => format!("nbd+unix:///{name}?socket={}", path.display()),
        Address::Tcp(address) => format!("nbd://{address}/{name}"),
    }
}
