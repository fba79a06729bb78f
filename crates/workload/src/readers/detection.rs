//! Which format a file is of, by its first lines or records.

use super::{FORMATS, Format, FormatName, columns};
use crate::names;
use crate::text::{Separator, lines, quote};
use crate::{Location, WorkloadError};

/// The format that most of the first lines or records are of.
pub(crate) fn detect(file: &str, head: &[u8]) -> Result<&'static Format, WorkloadError> {
    let known = || FormatName::all().collect::<Vec<_>>().join(", ");
    match &best_matches(file, head)[..] {
        [format] => return Ok(format),
        [] => {}
        several => {
            let shapes: Vec<String> =
                several.iter().map(|format| format!("{} ({})", format.name, format.shape)).collect();
            let message =
                format!("it may be of several formats, and format = \"…\" says which: {}", shapes.join("; "));
            return Err(WorkloadError::file(file, message));
        }
    }
    let first = lines(head, 1).next().unwrap_or_default();
    if !is_text(head) {
        let message = format!("neither text nor a known binary format; known are {}", known());
        return Err(WorkloadError::file(file, message));
    }
    if let Some(message) = misnamed(file, head) {
        return Err(WorkloadError::at(file, Location::Line(1), format!("no known trace format: {message}")));
    }
    let mut message = format!("no known trace format; it begins with {}", quote(first));
    if let Some((format, how)) = near(file, head) {
        message += &format!("; this looks like {} {how}, which has {}", format.name, format.shape);
    } else {
        message += &format!("; known are {}", known());
        if Separator::ALL.iter().any(|separator| separator.fields(first, &mut []) > 2) {
            message += &format!("; columns = \"{}\" describes others", columns::EXAMPLE);
        }
    }
    Err(WorkloadError::at(file, Location::Line(1), message))
}

/// What a first line that names columns does not name, where lines below it look like a trace or
/// other names are known.
fn misnamed(file: &str, head: &[u8]) -> Option<String> {
    let (_, names) = names::header(head)?;
    let begins_number =
        |name: &String| name.starts_with(|first: char| first.is_ascii_digit() || "-.".contains(first));
    if names.len() < 3 || names.iter().any(begins_number) {
        return None;
    }
    let but = shaped(file, head);
    let known = names.iter().filter(|name| names::meaning(name).is_some()).count();
    let missing = columns::by_names(head)?.err().filter(|_| but.is_some() || known > 1)?;
    Some(format!(
        "{missing}{}; known are operation, offset or lba, bytes or sectors, time_us (or in _ns, _ms, _s); \
         columns = \"{}\" describes others",
        but.unwrap_or_default(),
        columns::EXAMPLE
    ))
}

/// The end of a message on a first line that names columns: what the lines below it may be.
pub(super) fn shaped(file: &str, head: &[u8]) -> Option<String> {
    let end = head.iter().position(|&byte| byte == b'\n')?;
    let Format { name, shape, .. } = best_matches(file, &head[end + 1..]).first()?;
    Some(format!("; if its lines are those of {name} ({shape}), format = \"{name}\" says so"))
}

/// Whether a message may quote it.
fn is_text(head: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c);
    !head.iter().take(512).any(is_control)
        && std::str::from_utf8(&head[..head.len().min(512)]).map_or_else(
            // A character may be cut at the end.
            |error| error.error_len().is_none(),
            |_| true,
        )
}

/// The formats that most of the first lines or records are of.
fn best_matches(file: &str, head: &[u8]) -> Vec<&'static Format> {
    let mut best = Vec::new();
    let mut most = 1;
    for format in FORMATS {
        let matches = (format.matches)(file, head);
        if matches > most {
            best.clear();
            most = matches;
        }
        if matches == most {
            best.push(format);
        }
    }
    best
}

/// Gives a line as it is without something.
type TakeOff = fn(&[u8]) -> Vec<u8>;

/// What other programs and people put around lines and fields, and how a line is without it.
const AROUND: [(&str, TakeOff); 4] = [
    ("with comments between its lines", without_comment),
    ("with its fields in single quotation marks", |line| without(line, b"'")),
    ("with blanks between its fields", |line| without(line, b" \t")),
    ("with a separator behind the last field", without_last),
];

/// A format that would match if its fields were written as it wants, and how they are.
fn near(file: &str, head: &[u8]) -> Option<(&'static Format, String)> {
    if let Some((format, separator)) = other_separator(file, head) {
        return Some((format, format!("separated by {}", separator.name())));
    }
    AROUND.iter().find_map(|(how, take_off)| {
        let lines = head.split(|&byte| byte == b'\n').map(take_off).filter(|line| !line.is_empty());
        let lines: Vec<Vec<u8>> = lines.collect();
        best_matches(file, &lines.join(&b'\n')).first().map(|format| (*format, (*how).to_owned()))
    })
}

fn without(line: &[u8], bytes: &[u8]) -> Vec<u8> {
    line.iter().copied().filter(|byte| !bytes.contains(byte)).collect()
}

fn without_comment(line: &[u8]) -> Vec<u8> {
    if line.starts_with(b"#") { Vec::new() } else { line.to_vec() }
}

fn without_last(line: &[u8]) -> Vec<u8> {
    let line = line.trim_ascii_end();
    line.strip_suffix(b",").or_else(|| line.strip_suffix(b";")).unwrap_or(line).to_vec()
}

/// A format that would match if its fields were separated as it wants.
fn other_separator(file: &str, head: &[u8]) -> Option<(&'static Format, Separator)> {
    let bytes_of = |separator| match separator {
        Separator::Space => b' ',
        Separator::Comma => b',',
        Separator::Semicolon => b';',
        Separator::Tab => b'\t',
    };
    for found in Separator::ALL {
        for wanted in Separator::ALL {
            let is_found = |byte: u8| byte == bytes_of(found) || found == Separator::Space && byte == b'\t';
            let changed: Vec<u8> =
                head.iter().map(|&byte| if is_found(byte) { bytes_of(wanted) } else { byte }).collect();
            if found != wanted
                && let Some(format) = best_matches(file, &changed).first()
            {
                return Some((format, found));
            }
        }
    }
    None
}
