//! `series`: a recorded series of bytes written.

use std::path::{Path, PathBuf};

use flashkeel_config::did_you_mean;
use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Demand, Load};
use crate::input::Input;
use crate::names::{MOST, separator};
use crate::text::{Field, Separator, listed, quote};
use crate::{Location, Stopped, Watch, WorkloadError};

/// A CSV file, plain or compressed, whose first line names its columns:
/// `window`, numbers of successive windows of time, and `write_bytes`, the bytes
/// written in each; if several series share the file, `workload`, the name of
/// each. Other columns are not used. A window that is left out between two of a series had no
/// writes; the series lasts from its own first window to its own last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The file.
    pub path: PathBuf,
    /// Name of the series, if the file has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Length of a window; 30min if not given.
    #[serde(default = "half_an_hour")]
    pub interval: Span,
}

fn half_an_hour() -> Span {
    Span::from_secs(1_800)
}

/// Longest series, in windows: a year by the minute.
const MOST_WINDOWS: u64 = 366 * 1_440;

impl Series {
    /// Names of the series of a file, in order of appearance; empty where its
    /// only one has no name.
    ///
    /// # Errors
    /// If the file cannot be read or a line of it is wrong.
    pub fn names(path: &Path) -> Result<Vec<String>, WorkloadError> {
        let mut names: Vec<String> = Vec::new();
        each_line(path, |name, _, _| {
            meet(&mut names, name);
            Ok(())
        })?;
        Ok(names)
    }
}

impl Load for Series {
    fn load_watched(&self, _seed: u64, _watch: &mut Watch<'_>) -> Result<Demand, Stopped> {
        if self.interval == Span::ZERO {
            return Err(WorkloadError::key("traffic.interval", "a window lasts longer than 0ns").into());
        }
        let file = self.path.display().to_string();
        // A pipe gives its lines once, so which series counts has to be known line by line.
        let (mut names, mut written) = (Vec::new(), Vec::new());
        let (mut first, mut missing) = (None, 0);
        each_line(&self.path, |name, window, bytes| {
            meet(&mut names, name);
            if name != self.workload.as_deref().or(names.first().map(String::as_str)) {
                return Ok(());
            }
            let next = *first.get_or_insert(window) + written.len() as u64;
            if window < next {
                return Err(format!("window {window} comes again, or late: after {}", next - 1));
            }
            if window - first.unwrap_or(0) >= MOST_WINDOWS {
                return Err(format!("window {window}; a series has at most {MOST_WINDOWS}"));
            }
            missing += window - next;
            written.extend((next..window).map(|_| 0.0));
            written.push(bytes as f64);
            Ok(())
        })?;
        match &self.workload {
            None if names.len() > 1 => {
                let each = listed(names.iter().map(String::as_str));
                let message = format!("{} series share the file, {each}; say which by workload", names.len());
                return Err(WorkloadError::file(&file, message).into());
            }
            Some(name) if !names.contains(name) => {
                let hint = did_you_mean(name, names.iter().map(String::as_str));
                let each = listed(names.iter().map(String::as_str));
                let message = format!("no series is named {name:?}; there are {each}{hint}");
                return Err(WorkloadError::file(&file, message).into());
            }
            _ => {}
        }
        if written.is_empty() {
            return Err(WorkloadError::file(&file, "it has no windows").into());
        }
        let mut notes = Vec::new();
        if missing > 0 {
            let (are, count) = if missing == 1 { (" is", "counts") } else { ("s are", "count") };
            notes.push(format!("{missing} window{are} not in the series and {count} as without writes"));
        }
        Ok(Demand { interval: self.interval, written, is_synthetic: false, recorded: None, notes })
    }
}

/// Adds the name of a line where it is new.
fn meet(names: &mut Vec<String>, name: Option<&str>) {
    if let Some(name) = name
        && names.last().is_none_or(|last| last != name)
        && !names.iter().any(|known| known == name)
    {
        names.push(name.to_owned());
    }
}

/// Hands name, window and bytes of each line to `see`.
fn each_line(
    path: &Path,
    mut see: impl FnMut(Option<&str>, u64, u64) -> Result<(), String>,
) -> Result<(), WorkloadError> {
    let mut input = Input::open(path)?;
    let file = input.file.clone();
    let at = |line, message| WorkloadError::at(&file, Location::Line(line), message);
    let mut columns: Option<Columns> = None;
    while let Some((number, line)) = input.line()? {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let Some(columns) = &columns else {
            columns = Some(Columns::find(line).map_err(|message| at(number, message))?);
            continue;
        };
        columns
            .read(line)
            .and_then(|(name, window, bytes)| see(name, window, bytes))
            .map_err(|m| at(number, m))?;
    }
    Ok(())
}

/// Where the columns are.
struct Columns {
    separator: Separator,
    names: Vec<String>,
    workload: Option<usize>,
    window: usize,
    write_bytes: usize,
}

impl Columns {
    fn find(header: &[u8]) -> Result<Columns, String> {
        let separator = separator(header).unwrap_or(Separator::Comma);
        let mut fields = [&[] as &[u8]; MOST];
        let count = separator.fields(header, &mut fields);
        if count > MOST {
            return Err(format!("{count} columns; at most {MOST} are read"));
        }
        let names: Vec<String> =
            fields[..count].iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let find = |wanted: &str| names.iter().position(|name| *name == wanted);
        let need = |wanted: &str| {
            find(wanted).ok_or_else(|| {
                let hint = did_you_mean(wanted, names.iter().map(String::as_str));
                format!("the first line has to name a column {wanted:?}, but is {}{hint}", quote(header))
            })
        };
        let (workload, window, write_bytes) = (find("workload"), need("window")?, need("write_bytes")?);
        Ok(Columns { separator, names, workload, window, write_bytes })
    }

    fn read<'a>(&self, line: &'a [u8]) -> Result<(Option<&'a str>, u64, u64), String> {
        let mut fields = [&[] as &[u8]; MOST];
        let count = self.separator.fields(line, &mut fields);
        if count != self.names.len() {
            return Err(format!("{count} fields, where the first line names {}", self.names.len()));
        }
        let name = match self.workload {
            None => None,
            Some(at) => Some(std::str::from_utf8(fields[at]).map_err(|_| {
                Field::new(at + 1, "workload").refuse(format!("{} is not text", quote(fields[at])))
            })?),
        };
        let window = Field::new(self.window + 1, "window").number(fields[self.window])?;
        let bytes = Field::new(self.write_bytes + 1, "write_bytes").number(fields[self.write_bytes])?;
        Ok((name, window, bytes))
    }
}
