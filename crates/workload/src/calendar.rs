//! Times of a calendar: ISO 8601 and RFC 3339, as `2024-03-01T12:00:00.25Z`.

use crate::text::quote;

/// Days before each month of a year that begins in March, which a leap day ends.
const DAYS_BEFORE: [u64; 12] = [306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275];

/// Nanoseconds from the beginning of 1970 to a date and time of day; `T` or a blank stands between
/// them, seconds and their decimals may be left out, and without a zone it is that of UTC. None
/// where it is no such time, or lies before 1970 or beyond 64 bits.
#[cold]
pub(crate) fn calendar_ns(text: &[u8]) -> Option<u64> {
    let (date, rest) = text.split_at_checked(10)?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *date else { return None };
    let (year, month, day) = (digits(&[y1, y2, y3, y4])?, digits(&[m1, m2])?, digits(&[d1, d2])?);
    let (b'T' | b't' | b' ', rest) = rest.split_first()? else { return None };
    let (hour, rest) = pair(rest)?;
    let (minute, mut rest) = pair(rest.strip_prefix(b":")?)?;
    let (mut second, mut part_ns) = (0, 0);
    if let Some(behind) = rest.strip_prefix(b":") {
        (second, rest) = pair(behind)?;
        if let [b'.' | b',', behind @ ..] = rest {
            let count = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let nine: Vec<u8> = behind[..count].iter().copied().chain([b'0'; 9]).take(9).collect();
            part_ns = digits(&nine).filter(|_| count > 0)?;
            rest = &behind[count..];
        }
    }
    let zone_s = zone_s(rest)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    // A second may be a leap second, which begins the next minute.
    if !(1..=12).contains(&month) || !(1..=last).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years from March on have their leap day at their end.
    let years = if month > 2 { year } else { year.checked_sub(1)? };
    let days =
        years * 365 + years / 4 - years / 100 + years / 400 + DAYS_BEFORE[month as usize - 1] + day - 1;
    const BEFORE_1970: u64 = 719_468;
    let seconds = days.checked_sub(BEFORE_1970)? * 86_400 + hour * 3600 + minute * 60 + second;
    seconds.checked_add_signed(-zone_s)?.checked_mul(1_000_000_000)?.checked_add(part_ns)
}

/// Why a text is no time of a calendar, which a column of this name, without a unit, has.
#[cold]
pub(crate) fn no_calendar_time(text: &[u8], name: &str) -> String {
    format!(
        "{} is no time such as 2024-03-01T12:00:00.25; of numbers the name says the unit, as {name}_us",
        quote(text)
    )
}

/// Seconds by which a zone is ahead of UTC.
fn zone_s(text: &[u8]) -> Option<i64> {
    let (sign, rest) = match text.trim_ascii() {
        b"" | b"Z" | b"z" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = pair(rest)?;
    let minutes = match rest.strip_prefix(b":").unwrap_or(rest) {
        b"" => 0,
        minutes => pair(minutes).filter(|(_, rest)| rest.is_empty())?.0,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60) as i64)
}

/// Two digits, and what is behind them.
fn pair(text: &[u8]) -> Option<(u64, &[u8])> {
    let (two, rest) = text.split_at_checked(2)?;
    Some((digits(two)?, rest))
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0, |value, &byte| Some(value * 10 + crate::digits::one(byte)?))
}

#[cfg(test)]
mod tests {
    use super::calendar_ns;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01T00:00", 0),
            ("1970-01-01 00:00:01Z", 1),
            ("2000-02-29T12:00:00", 951_825_600),
            ("2000-03-01t00:00:00z", 951_868_800),
            ("2024-03-01T12:00:00+00:00", 1_709_294_400),
            ("2024-03-01 17:30:00+0530", 1_709_294_400),
            ("2024-03-01T07:00:00-05", 1_709_294_400),
            ("2024-12-31T23:59:59", 1_735_689_599),
            ("2016-12-31T23:59:60Z", 1_483_228_800),
            ("2100-03-01T00:00:00", 4_107_542_400),
        ] {
            assert_eq!(calendar_ns(text.as_bytes()), Some(seconds * 1_000_000_000), "{text}");
        }
        for (text, part_ns) in [(".5", 500_000_000), (",000001Z", 1_000), (".0000000019+00:00", 1)] {
            let text = format!("1970-01-01T00:00:00{text}");
            assert_eq!(calendar_ns(text.as_bytes()), Some(part_ns), "{text}");
        }
    }

    #[test]
    fn what_is_in_no_calendar_is_none() {
        for text in [
            "",
            "2024",
            "2024-03-01",
            "2024-03-01T",
            "2024-03-01T12",
            "2024-13-01T00:00",
            "2023-02-29T00:00",
            "2024-03-01T24:00",
            "2024-03-01T12:60",
            "2024-03-01T12:00:61",
            "2024-03-01T12:00:00.",
            "2024-03-01T12:00:00+1",
            "2024-03-01T12:00:00+00:00x",
            "2024-03-01T12:00:00 CET",
            "1969-12-31T23:59:59",
            "1970-01-01T00:00:00+01:00",
            "9999-01-01T00:00",
            "01.03.2024 12:00:00",
        ] {
            assert_eq!(calendar_ns(text.as_bytes()), None, "{text}");
        }
    }
}
