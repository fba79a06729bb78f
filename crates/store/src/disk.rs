//! What a store is written to.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FlockOperation};

use crate::Refused;

/// Bytes by their place. Writes are seen by all reads after them; they outlast a loss of
/// power once [`sync`](Self::sync) has returned.
pub trait Disk: Send + Sync {
    /// Fills `bytes` with what is at `offset`.
    ///
    /// # Errors
    /// If that cannot be read, or ends before.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// If they cannot be written, or not all of them.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes durable whatever has been written before.
    ///
    /// # Errors
    /// If it cannot be.
    fn sync(&self) -> io::Result<()>;

    /// How long it is.
    ///
    /// # Errors
    /// If the system does not say.
    fn bytes(&self) -> io::Result<u64>;

    /// Looks whether it is there for whoever opens it next, with `least` bytes: while it is open
    /// it is written and read whatever has become of it.
    ///
    /// # Errors
    /// What has become of it, a sentence.
    fn look(&self, least: u64) -> io::Result<()>;
}

impl Disk for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data().inspect_err(|_| {
            // What could not be written passes for clean: the next server would find it here,
            // and take it for what is on the disk.
            let _ = rustix::fs::fadvise(self, 0, None, Advice::DontNeed);
        })
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn look(&self, least: u64) -> io::Result<()> {
        let found = self.metadata()?;
        if found.nlink() == 0 {
            return Err(io::Error::other("it was found deleted"));
        }
        match found.len() {
            bytes if bytes < least => {
                Err(io::Error::other(format!("it was found cut short, to {bytes} bytes of {least}")))
            }
            _ => Ok(()),
        }
    }
}

/// What is found at a path.
pub(crate) enum Place {
    /// Nothing, or an empty file: a new one that will be there, under a name of its own
    /// until it is whole.
    New(File, Naming),
    /// A file.
    Old(File),
}

/// A new file that has not its name yet.
pub(crate) struct Naming {
    now: PathBuf,
    then: PathBuf,
}

impl Naming {
    /// Gives it its name, unless something has come to be there meanwhile. Of two servers that
    /// begin the same file at a time one has the lock of an empty one there, and then of what
    /// has taken its place.
    pub fn finish(mut self) -> Result<(), Refused> {
        let empty = OpenOptions::new().write(true).create(true).truncate(false).open(&self.then)?;
        lock(&empty)?;
        if !is_at(&empty, &self.then) || empty.metadata()?.len() > 0 {
            return Err(Refused::Unfit("something else has been put there meanwhile".into()));
        }
        fs::rename(&self.now, &self.then)?;
        self.now = PathBuf::new();
        Ok(File::open(folder(&self.then))?.sync_all()?)
    }
}

impl Drop for Naming {
    /// What has not become whole is of no use to anybody.
    fn drop(&mut self) {
        if self.now != Path::new("") {
            let _ = fs::remove_file(&self.now);
        }
    }
}

/// Opens the file at a path, or begins a new one, of which nobody else makes use.
pub(crate) fn open(path: &Path) -> Result<Place, Refused> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(Refused::Unfit("it is not a file".into()));
        }
        Ok(found) if found.len() > 0 => {
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            lock(&file)?;
            return Ok(Place::Old(file));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    // The new one may be read and written by whoever could read and write that.
    let permissions = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(empty) => Some(empty.metadata()?.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let path = &led(path);
    let name = path.file_name().ok_or_else(|| Refused::Unfit("it names no file".into()))?;
    let name = name.to_string_lossy();
    remove_left_behind(path, &name);
    let now = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let file = match OpenOptions::new().read(true).write(true).create_new(true).open(&now) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(in_use()),
        made => made?,
    };
    lock(&file)?;
    // Somebody may have taken it for left behind before it was locked.
    if !is_at(&file, &now) {
        return Err(in_use());
    }
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
    Ok(Place::New(file, Naming { now, then: path.to_owned() }))
}

/// Removes what servers have left that were killed before it was whole: nobody has it locked. What
/// cannot be removed is in nobody's way.
fn remove_left_behind(path: &Path, name: &str) {
    let begins = format!(".{name}.");
    let is_of_a_server = |found: &OsStr| {
        let found = found.to_string_lossy();
        let number = found.strip_prefix(&begins).and_then(|rest| rest.strip_suffix(".new"));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for entry in fs::read_dir(folder(path)).into_iter().flatten().flatten() {
        let found = path.with_file_name(entry.file_name());
        if is_of_a_server(&entry.file_name())
            && let Ok(file) = File::open(&found)
            && lock(&file).is_ok()
            // Whoever had the lock may just have given the file its name.
            && is_at(&file, &found)
        {
            let _ = fs::remove_file(found);
        }
    }
}

/// Whether a file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(found)) => (held.dev(), held.ino()) == (found.dev(), found.ino()),
        _ => false,
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

fn in_use() -> Refused {
    Refused::Unfit("another server is using it".into())
}

/// Where symbolic links lead: what is new is made there, and they stay. That they go round in
/// circles has been found out before.
fn led(path: &Path) -> PathBuf {
    let mut place = path.to_owned();
    while let Ok(target) = fs::read_link(&place) {
        place = place.with_file_name("").join(target);
    }
    place
}

fn lock(file: &File) -> Result<(), Refused> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(in_use()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsString;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn links_lead_to_what_is_made() {
        let folder = std::env::temp_dir().join(format!("flashkeel-links-{}", std::process::id()));
        fs::create_dir_all(folder.join("disk")).expect("a folder");
        for (name, is_empty_file) in [("missing.data", false), ("empty.data", true)] {
            let (first, second) = (folder.join(format!("{name}.1")), folder.join(format!("{name}.2")));
            std::os::unix::fs::symlink(&second, &first).expect("a link");
            std::os::unix::fs::symlink(Path::new("disk").join(name), &second).expect("a link");
            let there = folder.join("disk").join(name);
            if is_empty_file {
                File::create(&there).expect("a file");
            }
            let Ok(Place::New(file, naming)) = open(&first) else { panic!("nothing is there") };
            Disk::write_at(&file, b"data", 0).expect("it can be written");
            assert!(naming.finish().is_ok());
            assert_eq!(fs::read(&there).expect("it is there"), b"data");
            assert!(fs::symlink_metadata(&first).expect("it is there").is_symlink());
        }
        assert_eq!(fs::read_dir(folder.join("disk")).expect("a folder").count(), 2);
        fs::remove_dir_all(folder).expect("it is ours");
    }

    #[test]
    fn what_was_left_behind_before_it_was_whole_is_removed_unless_somebody_is_at_it() {
        let folder = std::env::temp_dir().join(format!("flashkeel-left-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("drive.data");
        let Ok(Place::New(file, naming)) = open(&path) else { panic!("nothing is there") };
        assert!(matches!(open(&path), Err(Refused::Unfit(_))));
        // A process that is killed closes its files, and removes nothing.
        drop(file);
        fs::write(&naming.now, "half").expect("it can be written");
        // Most often the next has another number.
        let other = folder.join(".drive.data.1.new");
        fs::copy(&naming.now, &other).expect("it can be written");
        fs::copy(&naming.now, folder.join(".drive.data.old.new")).expect("it can be written");
        std::mem::forget(naming);
        let Ok(Place::New(file, naming)) = open(&path) else { panic!("nothing is there") };
        assert_eq!(file.metadata().expect("a file").len(), 0);
        assert!(naming.finish().is_ok());
        let found = fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.file_name());
        assert_eq!(
            found.collect::<BTreeSet<_>>(),
            [".drive.data.old.new", "drive.data"].map(OsString::from).into()
        );
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn an_empty_file_stays_whose_it_was() {
        let folder = std::env::temp_dir().join(format!("flashkeel-mode-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("drive.data");
        File::create(&path)
            .and_then(|file| file.set_permissions(Permissions::from_mode(0o600)))
            .expect("a file");
        let Ok(Place::New(_, naming)) = open(&path) else { panic!("nothing is there") };
        assert!(naming.finish().is_ok());
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn what_has_come_to_be_there_meanwhile_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("flashkeel-naming-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("drive.data");
        let Ok(Place::New(_, naming)) = open(&path) else { panic!("nothing is there") };
        fs::write(&path, "somebody's").expect("it can be written");
        assert!(matches!(naming.finish(), Err(Refused::Unfit(_))));
        assert_eq!(fs::read(&path).expect("it is there"), b"somebody's");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn of_two_that_begin_the_same_file_one_gives_way() {
        let folder = std::env::temp_dir().join(format!("flashkeel-two-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("drive.data");
        let Ok(Place::New(file, naming)) = open(&path) else { panic!("nothing is there") };
        let other = Naming { now: folder.join("other"), then: path.clone() };
        File::create(&other.now).expect("a file");
        assert!(naming.finish().is_ok());
        // It looked before there was anything.
        assert!(matches!(other.finish(), Err(Refused::Unfit(_))));
        assert!(is_at(&file, &path));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
