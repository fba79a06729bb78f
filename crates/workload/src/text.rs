//! Fields of a line, parsed without allocation; what is wrong with one is a
//! sentence that names it.

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
        let is_digits = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        self.refuse(match text {
            [b'-', rest @ ..] if is_digits(rest) => format!("{} is negative", quote(text)),
            _ if is_digits(text) => format!("{} is too large", quote(text)),
            _ => format!("{} is not a whole number", quote(text)),
        })
    }
}

/// A whole number of decimal digits that fits 64 bits.
#[inline]
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// The non-empty fields of a line separated by spaces or tabs.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

/// Exactly `N` fields, or a sentence that names what was expected.
#[inline]
pub(crate) fn exactly<'a, const N: usize>(
    mut fields: impl Iterator<Item = &'a [u8]>,
    line: &[u8],
    separator: Separator,
    names: &[&str; N],
) -> Result<[&'a [u8]; N], String> {
    let mut found = [&[] as &[u8]; N];
    for (index, slot) in found.iter_mut().enumerate() {
        match fields.next() {
            Some(field) => *slot = field,
            None => return Err(wrong_number(line, separator, names, index)),
        }
    }
    match fields.count() {
        0 => Ok(found),
        more => Err(wrong_number(line, separator, names, N + more)),
    }
}

#[cold]
fn wrong_number(line: &[u8], separator: Separator, names: &[&str], found: usize) -> String {
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
    Space,
    Comma,
    Semicolon,
}

impl Separator {
    pub(crate) const ALL: [Separator; 3] = [Separator::Space, Separator::Comma, Separator::Semicolon];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Separator::Space => "spaces",
            Separator::Comma => "commas",
            Separator::Semicolon => "semicolons",
        }
    }

    fn split(self, line: &[u8]) -> impl Iterator<Item = &[u8]> {
        line.split(move |&byte| match self {
            Separator::Space => matches!(byte, b' ' | b'\t'),
            Separator::Comma => byte == b',',
            Separator::Semicolon => byte == b';',
        })
        .filter(|field| !field.is_empty())
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
