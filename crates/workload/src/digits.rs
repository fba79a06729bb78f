//! Decimal digits as numbers, eight at a time.

/// A byte in each of eight.
const EACH: u64 = 0x0101_0101_0101_0101;
const ZEROS: u64 = EACH * b'0' as u64;
const TENS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

#[inline]
pub(crate) fn one(byte: u8) -> Option<u64> {
    let digit = byte.wrapping_sub(b'0');
    (digit < 10).then_some(digit.into())
}

/// At most seven digits.
#[inline]
pub(crate) fn few(text: &[u8]) -> Option<u64> {
    let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) else {
        return text.iter().try_fold(0, |value, &byte| Some(value * 10 + one(byte)?));
    };
    // Four and the rest, which overlap, behind zeros.
    let missing = 8 * (8 - text.len());
    let first = u64::from(u32::from_le_bytes(*first)) << missing & u64::from(u32::MAX);
    let last = u64::from(u32::from_le_bytes(*last)) << 32;
    eight(last | first | ZEROS & low(missing))
}

/// From eight digits to nineteen.
#[inline]
pub(crate) fn many(text: &[u8]) -> Option<u64> {
    let (mut value, mut rest) = (0, text);
    while let Some((digits, behind)) = rest.split_first_chunk() {
        value = value * 100_000_000 + eight(u64::from_le_bytes(*digits))?;
        rest = behind;
    }
    if rest.is_empty() {
        return Some(value);
    }
    // What is left, behind zeros in place of the digits before it.
    let before = low(8 * (8 - rest.len()));
    let last = u64::from_le_bytes(*text.last_chunk()?);
    Some(value * TENS[rest.len()] + eight(last & !before | ZEROS & before)?)
}

/// As many ones, from the lowest on, of fewer than 64.
#[inline]
fn low(bits: usize) -> u64 {
    (1 << bits) - 1
}

/// Eight digits, the first of them lowest: neighbours are put together, then pairs,
/// then fours.
#[inline]
fn eight(word: u64) -> Option<u64> {
    const UPPER: u64 = EACH * 0xf0;
    // Six more than a digit above nine is in the next sixteen.
    if word & UPPER != ZEROS || word.wrapping_add(EACH * 6) & UPPER != ZEROS {
        return None;
    }
    let pairs = (word - ZEROS).wrapping_mul(10 << 8 | 1) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(100 << 16 | 1) >> 16;
    Some((fours & 0x0000_ffff_0000_ffff).wrapping_mul(10_000 << 32 | 1) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_read_as_it_is_written() {
        let digits = "1029384756019283746";
        for length in 1..=19 {
            let (text, value) = (&digits.as_bytes()[..length], digits[..length].parse().ok());
            assert_eq!(if length < 8 { few(text) } else { many(text) }, value, "{length}");
        }
    }

    #[test]
    fn no_other_byte_is_a_digit_anywhere() {
        for length in 1..=19 {
            for at in 0..length {
                for byte in 0..=255u8 {
                    let mut text = b"1959595959595959595"[..length].to_vec();
                    text[at] = byte;
                    let found = if length < 8 { few(&text) } else { many(&text) };
                    assert_eq!(found.is_some(), byte.is_ascii_digit(), "{text:?}");
                }
            }
        }
    }
}
