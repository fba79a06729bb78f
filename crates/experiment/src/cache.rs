//! The steady-state cache: preconditioned devices, kept on disk by content.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use flashkeel_device::{DeviceConfig, Layout, Ssd};
use flashkeel_engine::reason;

/// Identifies the file format.
const MAGIC: &[u8; 8] = b"FKSTATE2";
/// Bytes of a key.
const KEY: usize = 32;
/// Bytes of files that are read and written at once, where less is asked for.
const BUFFER: usize = 64 << 10;
/// Keys of the device that only matter once time passes, or a request comes:
/// preconditioning is untimed, so devices that differ in these start alike.
const TIMED_ONLY: &[&str] = &[
    "buffer",
    "controller",
    "gc.pages_in_flight",
    "host_link",
    "power",
    "read_path",
    "scheduler",
    "suspension",
    "throttle",
    "timing",
    "window",
];
/// Oldest files go when all together take more than this.
const LIMIT_BYTES: u64 = 8 << 30;
/// What a file is called while it is written.
const PARTIAL: &str = "partial";
/// A file that was written to so lately may be another machine's, whose
/// processes are not seen here.
const FRESH: Duration = Duration::from_secs(60);
/// No file takes so long to write, whoever writes it.
const STALE: Duration = Duration::from_secs(3_600);

/// A folder of preconditioned devices.
///
/// A file holds the magic, its key, the state, and a checksum (CRC-32) over all of
/// that, which is computed on the way into the tables. It appears under its name only
/// when it is complete. A file that is damaged is built anew, with a note on standard
/// error; no result depends on the cache.
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The cache in `folder`, which need not exist.
    pub fn new(folder: &Path) -> Cache {
        Cache { folder: folder.to_owned() }
    }

    /// The device in its steady state, if it is kept.
    pub fn load(&self, config: &DeviceConfig, layout: &Layout, seed: u64) -> Option<Ssd> {
        let path = self.path(config, seed);
        // What a killed run has left is nobody's, and nobody's concern if it stays.
        let _ = self.sweep();
        let result =
            File::open(&path).and_then(|file| read(file, &key(config, seed), Ssd::new(layout, seed)));
        match result {
            Ok(ssd) => {
                // Marks the file as used, for the sake of `trim` only.
                let _ =
                    File::options().append(true).open(&path).and_then(|f| f.set_modified(SystemTime::now()));
                Some(ssd)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                note(&path, &format!("{}; preconditioning again", reason(&error)));
                None
            }
        }
    }

    /// Keeps a device's steady state. A failure is noted, never fatal.
    pub fn store(&self, config: &DeviceConfig, seed: u64, ssd: &Ssd) {
        let path = self.path(config, seed);
        // A run at a time is a thread's.
        let (thread, process) = (thread::current().id(), std::process::id());
        let partial = path.with_extension(format!("{thread:?}.{process}.{PARTIAL}"));
        let result = fs::create_dir_all(&self.folder)
            .and_then(|()| write(&partial, &key(config, seed), ssd))
            .and_then(|()| fs::rename(&partial, &path))
            .and_then(|()| self.trim(&path, LIMIT_BYTES));
        if let Err(error) = result {
            let _ = fs::remove_file(&partial);
            note(&path, &format!("{}; the steady state is not kept", reason(&error)));
        }
    }

    fn path(&self, config: &DeviceConfig, seed: u64) -> PathBuf {
        self.folder.join(format!("{}.state", blake3::Hash::from(key(config, seed)).to_hex()))
    }

    /// Deletes what runs that no longer are had begun to write.
    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != PARTIAL) {
                continue;
            }
            let idle = fs::metadata(&path)?.modified()?.elapsed().unwrap_or_default();
            // NAME.THREAD.PROCESS.partial
            let process = path.file_stem().and_then(|stem| Path::new(stem).extension());
            let is_alive = process.is_some_and(|process| Path::new("/proc").join(process).exists());
            if idle > STALE || idle > FRESH && !is_alive {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Deletes the files unused for longest until the rest fits the limit.
    fn trim(&self, newest: &Path, limit_bytes: u64) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "state") || path == newest {
                continue;
            }
            if let Some(metadata) = unless_gone(fs::metadata(&path))? {
                files.push((metadata.modified()?, path, metadata.len()));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(.., bytes)| bytes).sum::<u64>() + fs::metadata(newest)?.len();
        for (_, path, bytes) in files {
            if total <= limit_bytes {
                break;
            }
            unless_gone(fs::remove_file(path))?;
            total -= bytes;
        }
        Ok(())
    }
}

/// What was done to a file; none where another run has deleted it meanwhile.
fn unless_gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

fn note(path: &Path, message: &str) {
    // Where nobody can be told, the run goes on all the same.
    let _ = writeln!(io::stderr(), "flashkeel: steady-state cache: {}: {message}", path.display());
}

/// Hash of everything the steady state depends on, the simulator's own source and
/// the order of bytes in a word included.
fn key(config: &DeviceConfig, seed: u64) -> [u8; KEY] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(env!("FLASHKEEL_SOURCE_HASH").as_bytes());
    hasher.update(&1u32.to_ne_bytes());
    hasher.update(&config.precondition.seed_in(seed).to_le_bytes());
    let mut value = serde_json::to_value(config).expect("a configuration is plain data");
    for key in TIMED_ONLY {
        let (table, key) = key.rsplit_once('.').unwrap_or(("", key));
        let table = if table.is_empty() { &mut value } else { &mut value[table] };
        table.as_object_mut().expect("a table").remove(key);
    }
    hasher.update(value.to_string().as_bytes());
    *hasher.finalize().as_bytes()
}

fn write(path: &Path, key: &[u8; KEY], ssd: &Ssd) -> io::Result<()> {
    let mut out = Summed::new(BufWriter::with_capacity(BUFFER, File::create(path)?));
    out.write_all(MAGIC)?;
    out.write_all(key)?;
    ssd.save(&mut out)?;
    let sum = out.sum.finalize();
    out.inner.write_all(&sum.to_le_bytes())?;
    // What a loss of power leaves incomplete has a wrong checksum; nothing waits for the disk.
    out.inner.flush()
}

fn read(file: File, key: &[u8; KEY], mut fresh: Ssd) -> io::Result<Ssd> {
    let damaged = |why: &str| io::Error::new(io::ErrorKind::InvalidData, format!("damaged: {why}"));
    let whole = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged("it ends early"),
        _ => error,
    };
    let mut input = Summed::new(BufReader::with_capacity(BUFFER, file));
    let mut head = [0; MAGIC.len() + KEY];
    input.read_exact(&mut head).map_err(whole)?;
    if head[..MAGIC.len()] != *MAGIC || head[MAGIC.len()..] != *key {
        return Err(damaged("it belongs to another device"));
    }
    fresh.restore(&mut input).map_err(whole)?;
    let sum = input.sum.finalize();
    let mut rest = Vec::new();
    input.inner.take(size_of_val(&sum) as u64 + 1).read_to_end(&mut rest)?;
    if rest != sum.to_le_bytes() {
        return Err(damaged("its checksum is wrong"));
    }
    Ok(fresh)
}

/// Adds up what passes through.
struct Summed<T> {
    inner: T,
    sum: crc32fast::Hasher,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Summed { inner, sum: crc32fast::Hasher::new() }
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.sum.update(&bytes[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A folder of files so many seconds old.
    fn folder(name: &str, files: &[(u64, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("flashkeel-cache-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (age_s, name) in files {
            fs::write(folder.join(name), [0; 100]).unwrap();
            let file = File::options().append(true).open(folder.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(*age_s)).unwrap();
        }
        folder
    }

    /// The names of what is left of it, which goes now.
    fn left(folder: &Path) -> Vec<String> {
        let mut left: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        fs::remove_dir_all(folder).unwrap();
        left
    }

    /// A drive as another has it in one key, if that is a drive.
    fn with(config: &DeviceConfig, other: &DeviceConfig, key: &str) -> Option<DeviceConfig> {
        let [mut value, other] = [config, other].map(|it| serde_json::to_value(it).unwrap());
        let pointer = format!("/{}", key.replace('.', "/"));
        let (table, name) = pointer.rsplit_once('/').unwrap();
        let table = value.pointer_mut(table).unwrap().as_object_mut().unwrap();
        match other.pointer(&pointer) {
            Some(wanted) => table.insert(name.into(), wanted.clone()),
            None => table.remove(name),
        };
        let config: DeviceConfig = serde_json::from_value(value).unwrap();
        config.validate().is_ok().then_some(config)
    }

    #[test]
    fn drives_of_one_key_have_one_state() {
        let state = |config: &DeviceConfig| {
            let mut ssd = Ssd::new(&config.validate().unwrap(), 7);
            let _ = ssd.precondition(&mut |_| std::ops::ControlFlow::Continue(()));
            let mut state = Vec::new();
            ssd.save(&mut state).unwrap();
            blake3::hash(&state)
        };
        fn policy<P: serde::de::DeserializeOwned>(value: serde_json::Value) -> P {
            serde_json::from_value(value).unwrap()
        }
        // With what strangers do not draw.
        let drives = |numbers: std::ops::Range<u64>| -> Vec<DeviceConfig> {
            let mut striped = flashkeel_device::stranger(0);
            striped.geometry = flashkeel_device::GeometryConfig {
                channels: 4,
                blocks_per_plane: 300,
                pages_per_block: 64,
                ..striped.geometry
            };
            striped.partition_bits = Vec::new();
            striped.allocation = policy(json!("striped"));
            striped.redundancy = policy(json!("logical"));
            numbers.map(flashkeel_device::stranger).chain([striped]).collect()
        };
        let mut others = drives(100..106);
        for other in &mut others {
            other.window = policy(json!("periodic"));
            other.throttle = policy(json!({ "policy": "static-cap", "rate": "1MB/s" }));
            other.read_path = policy(json!("gc-tolerant"));
            other.gc.pages_in_flight = 37;
            other.controller.slots_per_chip = 3;
        }
        let mut tried = std::collections::BTreeSet::new();
        for (number, config) in drives(0..6).iter().enumerate() {
            let wanted = state(config);
            for &name in TIMED_ONLY {
                let mut others = others.iter().filter_map(|other| with(config, other, name));
                let Some(other) = others.find(|other| other != config) else { continue };
                assert_eq!(key(&other, 7), key(config, 7), "drive {number}, {name}");
                assert_eq!(state(&other), wanted, "drive {number}, {name}");
                tried.insert(name);
            }
        }
        assert_eq!(tried.len(), TIMED_ONLY.len(), "only {tried:?} were other ones");
    }

    #[test]
    fn the_files_unused_for_longest_go_first() {
        let files = [(30, "a.state"), (10, "b.state"), (20, "c.state"), (0, "d.state"), (40, "note.txt")];
        let folder = folder("trim", &files);
        Cache::new(&folder).trim(&folder.join("d.state"), 250).unwrap();
        assert_eq!(left(&folder), ["b.state", "d.state", "note.txt"]);
    }

    #[test]
    fn what_a_killed_run_has_left_goes_and_what_is_being_written_stays() {
        let own = std::process::id();
        // No process has a number as large.
        let killed = 1u64 << 40;
        let names = [
            format!("a.{killed}.partial"),
            format!("b.{killed}.partial"),
            format!("c.ThreadId(7).{own}.partial"),
            format!("d.{own}.partial"),
        ];
        let files =
            [(120, &*names[0]), (5, &names[1]), (120, &names[2]), (7_200, &names[3]), (9_999, "e.state")];
        let folder = folder("sweep", &files);
        Cache::new(&folder).sweep().unwrap();
        assert_eq!(left(&folder), [&*names[1], &names[2], "e.state"]);
    }
}
