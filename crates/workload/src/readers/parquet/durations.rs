//! Which columns hold durations. Parquet has no type for them: they are whole numbers in it, and
//! pandas, polars and whoever else writes by Arrow leave Arrow's own schema beside the columns, which
//! says what a whole one is: a message of FlatBuffers in base64, under the key `ARROW:schema`
//! (Arrow's `Schema.fbs` and `Message.fbs`).
//!
//! Of that no more is read than it takes, and nothing where an offset leads out of it.

use parquet::file::metadata::FileMetaData;

const KEY: &str = "ARROW:schema";
/// What comes before the length of a message.
const CONTINUES: u32 = u32::MAX;
/// Fields of the tables, by their places in Arrow's definition, and values of two of them.
const MESSAGE_HEADER_TYPE: usize = 1;
const MESSAGE_HEADER: usize = 2;
const IS_SCHEMA: u8 = 1;
const SCHEMA_FIELDS: usize = 1;
const FIELD_NAME: usize = 0;
const FIELD_TYPE_TYPE: usize = 2;
const FIELD_TYPE: usize = 3;
const IS_DURATION: u8 = 18;
const DURATION_UNIT: usize = 0;
/// Nanoseconds of the units, in their order, and which one is not written down.
const UNITS: [u64; 4] = [1_000_000_000, 1_000_000, 1_000, 1];
const MILLISECONDS: usize = 1;

/// The names of the columns that hold durations, and nanoseconds of a whole one.
pub(super) fn durations(metadata: &FileMetaData) -> Vec<(String, u64)> {
    let all = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let schema = all.iter().find(|entry| entry.key == KEY).and_then(|entry| entry.value.as_deref());
    schema.and_then(decode).and_then(|message| of_message(&message)).unwrap_or_default()
}

fn of_message(message: &[u8]) -> Option<Vec<(String, u64)>> {
    let is_framed = message.first_chunk().is_some_and(|first| u32::from_le_bytes(*first) == CONTINUES);
    let buffer = Buffer(message.get(if is_framed { 8 } else { 4 }..)?);
    let message = buffer.follow(0)?;
    if buffer.byte(buffer.field(message, MESSAGE_HEADER_TYPE)?)? != IS_SCHEMA {
        return None;
    }
    let schema = buffer.follow(buffer.field(message, MESSAGE_HEADER)?)?;
    let fields = buffer.follow(buffer.field(schema, SCHEMA_FIELDS)?)?;
    let mut found = Vec::new();
    for index in 1..=buffer.word(fields)? {
        let field = buffer.follow(fields.checked_add(index.checked_mul(4)?)?)?;
        let kind = buffer.field(field, FIELD_TYPE_TYPE).and_then(|at| buffer.byte(at));
        if kind != Some(IS_DURATION) {
            continue;
        }
        let duration = buffer.follow(buffer.field(field, FIELD_TYPE)?)?;
        let unit = match buffer.field(duration, DURATION_UNIT) {
            Some(at) => buffer.half(at)?,
            None => MILLISECONDS,
        };
        let name = buffer.text(buffer.follow(buffer.field(field, FIELD_NAME)?)?)?;
        found.push((name.to_owned(), *UNITS.get(unit)?));
    }
    Some(found)
}

/// A FlatBuffer: places in it are counted from its beginning.
struct Buffer<'a>(&'a [u8]);

impl<'a> Buffer<'a> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn half(&self, at: usize) -> Option<usize> {
        self.0.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes).into())
    }

    fn word(&self, at: usize) -> Option<usize> {
        self.0.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize)
    }

    /// What an offset at a place points at.
    fn follow(&self, at: usize) -> Option<usize> {
        at.checked_add(self.word(at)?)
    }

    /// Where a field of a table is; none where its value is the one that it has by default.
    fn field(&self, table: usize, number: usize) -> Option<usize> {
        let back = self.0.get(table..)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))?;
        let index = usize::try_from(i64::try_from(table).ok()? - i64::from(back)).ok()?;
        let place = 4 + 2 * number;
        if place >= self.half(index)? {
            return None;
        }
        let offset = self.half(index.checked_add(place)?)?;
        if offset == 0 { None } else { table.checked_add(offset) }
    }

    fn text(&self, at: usize) -> Option<&'a str> {
        let (start, length) = (at.checked_add(4)?, self.word(at)?);
        std::str::from_utf8(self.0.get(start..start.checked_add(length)?)?).ok()
    }
}

/// The bytes of a text in base64; none where there is another character in it.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As arrow-rs writes it of `time_of_s` to `time_of_ns`.
    const OF_EACH: &str = "/////xgBAAAQAAAAAAAKAAwACgAJAAQACgAAABAAAAAAAQQACAAIAAAABAAIAAAABAAAAAQAAACw\
        AAAAbAAAADgAAAAEAAAAcP///xQAAAAMAAAAAAABEhAAAAAAAAAAXv///wAAAwAKAAAAdGltZV9vZl9ucwAAoP///xQAAAAMAAAA\
        AAABEhAAAAAAAAAAjv///wAAAgAKAAAAdGltZV9vZl91cwAA0P///xgAAAAMAAAAAAABEhAAAAAAAAAABAAEAAQAAAAKAAAAdGlt\
        ZV9vZl9tcwAAEAAUABAADgAPAAQAAAAIABAAAAAcAAAADAAAAAAAARIYAAAAAAAAAAAABgAIAAYABgAAAAAAAAAJAAAAdGltZV9v\
        Zl9zAAAA";

    #[test]
    fn durations_are_found_with_their_units() {
        let found = decode(OF_EACH).and_then(|message| of_message(&message)).unwrap();
        let expected = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        assert_eq!(found, expected.map(|(unit, ns)| (format!("time_of_{unit}"), ns)));
    }

    #[test]
    fn what_leads_out_of_the_schema_is_none() {
        let whole = decode(OF_EACH).unwrap();
        for end in 0..whole.len() {
            of_message(&whole[..end]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                of_message(&changed);
            }
        }
        assert_eq!(decode("AB-C"), None);
    }
}
