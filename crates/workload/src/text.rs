//! Fields of a line, parsed without allocation; what is wrong with one is a
//! sentence that names it.

use crate::digits;

/// A field of a line: its position from 1 and its name.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub position: usize,
    pub name: &'static str,
}

impl Field {
    pub(crate) const fn new(position: usize, name: &'static str) -> Self {
        Field { position, name }
    }

    /// The sentence that refuses this field.
    pub(crate) fn refuse(self, why: impl std::fmt::Display) -> String {
        format!("field {} ({}): {why}", self.position, self.name)
    }

    /// A whole number that is not negative.
    #[inline]
    pub(crate) fn number(self, text: &[u8]) -> Result<u64, String> {
        number(text).ok_or_else(|| self.explain(text))
    }

    #[cold]
    fn explain(self, text: &[u8]) -> String {
        self.refuse(match text {
            [b'-', rest @ ..] if is_whole(rest) => format!("{} is negative", quote(text)),
            _ if is_whole(text) => format!("{} is too large", quote(text)),
            _ => format!("{} is not a whole number", quote(text)),
        })
    }
}

/// A whole number of decimal digits that fits 64 bits.
#[inline]
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    match text.len() {
        0 => None,
        1..8 => digits::few(text),
        // As many digits fit, whatever they are.
        8..20 => digits::many(text),
        _ => {
            text.iter().try_fold(0u64, |value, &byte| value.checked_mul(10)?.checked_add(digits::one(byte)?))
        }
    }
}

/// The non-empty fields of a line separated by spaces or tabs.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

/// A number with or without decimals, times `scale`, rounded down: none where
/// it is no such number, some none where 64 bits do not hold it.
#[inline]
pub(crate) fn scaled(text: &[u8], scale: u64) -> Option<Option<u64>> {
    if let Some(whole) = number(text) {
        return Some(whole.checked_mul(scale));
    }
    let dot = text.iter().position(|&byte| byte == b'.');
    let (whole, decimals) = match dot {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    // A point needs a digit on one side of it.
    if whole.is_empty() && decimals.is_empty() || !whole.is_empty() && !is_whole(whole) {
        return None;
    }
    if !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Eighteen decimals are more than any unit has parts.
    let decimals = &decimals[..decimals.len().min(18)];
    let part =
        u128::from(number(decimals).unwrap_or(0)) * u128::from(scale) / 10u128.pow(decimals.len() as u32);
    let whole = if whole.is_empty() { Some(0) } else { number(whole) };
    Some(whole.and_then(|whole| whole.checked_mul(scale)?.checked_add(u64::try_from(part).ok()?)))
}

/// Whether a text is decimal digits.
pub(crate) fn is_whole(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// The sentence about a line that has `found` fields and should have others.
#[cold]
pub(crate) fn wrong_number(line: &[u8], separator: Separator, names: &[&str], found: usize) -> String {
    let mut message = format!(
        "expected {} fields separated by {} ({}), found {found}",
        names.len(),
        separator.name(),
        names.join(", ")
    );
    if let Some(other) = Separator::ALL
        .into_iter()
        .find(|other| *other != separator && other.split(line).count() == names.len())
    {
        message += &format!("; this line is separated by {}", other.name());
    } else {
        message += &format!(": {}", quote(line));
    }
    message
}

/// What separates the fields of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    /// Any number of spaces and tabs.
    Space,
    Comma,
    Semicolon,
    /// One tab.
    Tab,
}

impl Separator {
    /// Tabs before spaces, which are tabs too.
    pub(crate) const ALL: [Separator; 4] =
        [Separator::Tab, Separator::Space, Separator::Comma, Separator::Semicolon];

    /// What it is called in a description of columns.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Separator::Space => "space",
            Separator::Comma => "comma",
            Separator::Semicolon => "semicolon",
            Separator::Tab => "tab",
        }
    }

    pub(crate) fn name(self) -> String {
        format!("{}s", self.word())
    }

    /// Puts the fields of a line into `fields`, without blanks and the quotation marks of CSV
    /// (RFC 4180) around them; returns how many there are, those beyond its length too.
    #[inline]
    pub(crate) fn fields<'a>(self, line: &'a [u8], fields: &mut [&'a [u8]]) -> usize {
        let byte = match self {
            Separator::Space => return spaced(line, fields),
            Separator::Comma => b',',
            Separator::Semicolon => b';',
            Separator::Tab => b'\t',
        };
        let (mut count, mut start) = (0, 0);
        let mut take = |field: &'a [u8]| {
            if let Some(place) = fields.get_mut(count) {
                *place = trim(field);
            }
            count += 1;
        };
        let end = |start: usize| match line.get(start) {
            Some(b'"') => behind_quoted(byte, line, start),
            _ => next(byte, line, start),
        };
        while let Some(end) = end(start) {
            take(&line[start..end]);
            start = end + 1;
        }
        take(&line[start..]);
        count
    }

    fn split(self, line: &[u8]) -> impl Iterator<Item = &[u8]> {
        line.split(move |&byte| match self {
            Separator::Space => matches!(byte, b' ' | b'\t'),
            Separator::Comma => byte == b',',
            Separator::Semicolon => byte == b';',
            Separator::Tab => byte == b'\t',
        })
        .filter(|field| !field.is_empty())
    }
}

/// Where a byte is next in a line, from a place on. Each field is looked through from its own
/// beginning: its length in words is foreseen well, as a column's hardly changes, which how
/// fields lie in the words of their line is not.
#[inline]
fn next(byte: u8, line: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(word) = line[at..].first_chunk() {
        let found = where_equal(u64::from_le_bytes(*word), byte);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    line[at..].iter().position(|&last| last == byte).map(|behind| at + behind)
}

/// Where a separator is next behind a field in quotation marks, which may have others in it, and
/// quotation marks too, each twice.
#[inline(never)]
fn behind_quoted(byte: u8, line: &[u8], start: usize) -> Option<usize> {
    let mut is_inside = false;
    let found = line[start..].iter().position(|&each| {
        is_inside ^= each == b'"';
        each == byte && !is_inside
    });
    // A mark that nothing closes is one like any other byte.
    if is_inside { next(byte, line, start) } else { found.map(|behind| start + behind) }
}

/// The highest bit of each of eight bytes that is this one.
#[inline]
fn where_equal(word: u64, byte: u8) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const LOW: u64 = EACH * 0x7f;
    let other = word ^ (EACH * u64::from(byte));
    !(((other & LOW) + LOW) | other | LOW)
}

/// The fields between spaces and tabs.
#[inline]
fn spaced<'a>(line: &'a [u8], fields: &mut [&'a [u8]]) -> usize {
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t');
    let (mut count, mut at) = (0, 0);
    loop {
        while at < line.len() && is_blank(line[at]) {
            at += 1;
        }
        let start = at;
        while at < line.len() && !is_blank(line[at]) {
            at += 1;
        }
        if start == at {
            return count;
        }
        if let Some(place) = fields.get_mut(count) {
            *place = &line[start..at];
        }
        count += 1;
    }
}

/// A field without what is around it.
#[inline]
fn trim(field: &[u8]) -> &[u8] {
    match field {
        [b' ' | b'\t' | b'"', ..] | [.., b' ' | b'\t'] => bare(field),
        _ => field,
    }
}

/// A field without blanks and quotation marks around it.
#[inline(never)]
fn bare(field: &[u8]) -> &[u8] {
    match field.trim_ascii() {
        [b'"', inner @ .., b'"'] => inner.trim_ascii(),
        field => field,
    }
}

/// Text of a message: quoted, escaped, at most 40 characters.
pub(crate) fn quote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Names from a file, the first twenty of them, each of at most 40 characters.
pub(crate) fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const MOST: usize = 20;
    let more = names.len().saturating_sub(MOST);
    let short = |name: &str| match name.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    };
    let shown: Vec<String> = names.take(MOST).map(short).collect();
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// The complete lines at the beginning of a file, without their ends.
pub(crate) fn lines(head: &[u8], limit: usize) -> impl Iterator<Item = &[u8]> {
    head.split(|&byte| byte == b'\n').map(trim_end).filter(|line| !line.is_empty()).take(limit)
}

/// A line without a carriage return and blanks at its end.
#[inline]
pub(crate) fn trim_end(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r' | b' ' | b'\t'] = line {
        line = rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_parts_of_a_unit() {
        for (text, expected) in [
            ("1.5", 1_500_000_000),
            ("1456095145.133076000", 1_456_095_145_133_076_000),
            ("0.0000000019", 1),
            (".5", 500_000_000),
            ("7.", 7_000_000_000),
            ("3", 3_000_000_000),
        ] {
            assert_eq!(scaled(text.as_bytes(), 1_000_000_000), Some(Some(expected)), "{text}");
        }
        assert_eq!(scaled(b"99999999999.5", 1_000_000_000), Some(None));
        assert_eq!(scaled(b"99999999999999999999", 1), Some(None));
        for text in ["", ".", "1.5.2", "-1.5", "1e3", "x", "1.x"] {
            assert_eq!(scaled(text.as_bytes(), 1), None, "{text}");
        }
    }

    #[test]
    fn fields_are_found_wherever_they_end() {
        let mut random = flashkeel_engine::Stream::new(1, "fields");
        for _ in 0..20_000 {
            let length = random.below(200);
            let one = |random: &mut flashkeel_engine::Stream| match random.below(6) {
                0 => b',',
                1 => [0, 0x2c ^ 0x80, 0xff, b'+'][random.below(4) as usize],
                _ => b'0' + random.below(10) as u8,
            };
            let line: Vec<u8> = (0..length).map(|_| one(&mut random)).collect();
            let mut fields = [&[] as &[u8]; 24];
            let count = Separator::Comma.fields(&line, &mut fields);
            let expected: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
            assert_eq!(count, expected.len());
            let kept = count.min(fields.len());
            assert_eq!(fields[..kept], expected[..kept]);
        }
    }

    #[test]
    fn quotation_marks_are_around_fields_and_not_part_of_them() {
        let of = |separator: Separator, line: &str| -> Vec<String> {
            let mut fields = [&[] as &[u8]; 8];
            let count = separator.fields(line.as_bytes(), &mut fields);
            fields[..count].iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect()
        };
        assert_eq!(of(Separator::Comma, r#""1","a,b",Read, "4" ,"""#), ["1", "a,b", "Read", "4", ""]);
        assert_eq!(of(Separator::Semicolon, r#""a;""b"";c";2;"""#), [r#"a;""b"";c"#, "2", ""]);
        assert_eq!(of(Separator::Tab, "\"a\tb\"\t 7"), ["a\tb", "7"]);
        // A mark within a field, or one that nothing closes, is like any other byte.
        assert_eq!(of(Separator::Comma, r#"5" disk,"6,7"#), [r#"5" disk"#, "\"6", "7"]);
    }

    #[test]
    fn numbers_are_whole_and_fit() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "18446744073709551616", "-1", "+1", "1.5", "0x10", " 1"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
        let field = Field::new(3, "lba");
        assert_eq!(field.number(b"-7").unwrap_err(), "field 3 (lba): \"-7\" is negative");
        assert_eq!(field.number(b"x").unwrap_err(), "field 3 (lba): \"x\" is not a whole number");
        assert!(field.number(b"99999999999999999999").unwrap_err().ends_with("is too large"));
    }
}
