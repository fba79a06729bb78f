//! Drives in real time.

use std::path::PathBuf;

use flashkeel_experiment::{Error, Target};
use flashkeel_serve::nbd::Export;
use flashkeel_serve::{Address, Server, Settings};
use pyo3::prelude::*;
use serde_json::json;

use crate::{
    errors::{InputError, exception},
    functions::json,
    progress::watched,
};

/// Serve a target, given as JSON, as an NBD export until interrupted; say as JSON what was
/// served. `ready` is called with the address once clients are answered.
#[pyfunction]
#[pyo3(signature = (target_json, seed, listen, name, read_only, time_scale, ready, cache_dir=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "each is an option of the command")]
pub fn serve_nbd(
    py: Python<'_>,
    target_json: &str,
    seed: u64,
    listen: &str,
    name: &str,
    read_only: bool,
    time_scale: f64,
    ready: Py<PyAny>,
    cache_dir: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let target: Target = serde_json::from_str(target_json)
        .map_err(|error| InputError::new_err(format!("not a resolved target: {error}")))?;
    let refused = |error: std::io::Error| InputError::new_err(format!("{listen}: {error}"));
    let server = Server::bind(&address(listen)?).map_err(refused)?;
    let mut device = watched(py, progress, |reporter| {
        target.build(seed, cache_dir.as_deref(), &mut |phase, fraction| reporter.report(phase, fraction))
    })?;
    device.keep_data();
    let limits = device.limits();
    let export = Export {
        name: name.to_owned(),
        description: format!("flashkeel {name} (simulated)"),
        bytes: limits.sectors * 512,
        block_bytes: limits.block_sectors * 512,
        preferred_bytes: limits.preferred_sectors * 512,
        is_read_only: read_only,
    };
    let place = server.address().map_err(refused)?;
    ready.call1(py, (uri(&place, name), export.bytes))?;
    let settings = Settings { export, time_scale };
    let mut interrupted = None;
    let served = py.detach(|| {
        server.run(device, &settings, || {
            interrupted = Python::attach(|py| py.check_signals().err());
            interrupted.is_some()
        })
    });
    // Being interrupted is how serving ends.
    let served = served.map_err(|error| exception(Error::Failure(error.to_string())))?;
    let late = served.late;
    Ok(json(json!({
        "clients": served.clients,
        "faults": served.faults,
        "requests": served.requests,
        "late": {
            "count": late.count,
            "p50_ns": late.p50_ns,
            "p99_ns": late.p99_ns,
            "p99_9_ns": late.p99_9_ns,
            "p99_99_ns": late.p99_99_ns,
            "max_ns": late.max_ns,
        },
    })))
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
