//! Times of transcripts: ISO 8601 in, UTC out.

use crate::text::cut;

/// A time in UTC as `YYYY-MM-DDTHH:MM:SS+00:00`, with six digits of the second where they are not zero. Where the text as a
/// whole is no time, its first 23 characters may be one; without an offset it is UTC.
pub fn utc(text: &str) -> Option<String> {
    parse(text).or_else(|| parse(cut(text, 23).0)).and_then(show)
}

/// Microseconds since 1970.
fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let year = digits(bytes, &mut at, 4)?;
    let extended = bytes.get(at) == Some(&b'-');
    at += usize::from(extended);
    let month = digits(bytes, &mut at, 2)?;
    if extended {
        expect(bytes, &mut at, b'-')?;
    }
    let day = digits(bytes, &mut at, 2)?;
    let days = days_since_1970(year, month, day)?;
    if at == bytes.len() {
        return Some(days * 86_400_000_000);
    }
    // Any one character stands between the date and the time.
    at += text.get(at..)?.chars().next()?.len_utf8();
    let (time, at) = time_of_day(bytes, at)?;
    let offset = match bytes.get(at) {
        None => 0,
        Some(b'Z' | b'z') if at + 1 == bytes.len() => 0,
        Some(sign @ (b'+' | b'-')) => {
            let (offset, end) = time_of_day(bytes, at + 1)?;
            if end != bytes.len() {
                return None;
            }
            if *sign == b'-' { -offset } else { offset }
        }
        Some(_) => return None,
    };
    Some(days * 86_400_000_000 + time - offset)
}

/// Hours, and perhaps minutes, seconds and a fraction, with or without colons: in microseconds, and where they end.
fn time_of_day(bytes: &[u8], mut at: usize) -> Option<(i64, usize)> {
    let hour = digits(bytes, &mut at, 2)?;
    let mut parts = [0, 0];
    let mut fraction = 0;
    let extended = bytes.get(at) == Some(&b':');
    let mut given = 0;
    for part in &mut parts {
        match bytes.get(at) {
            Some(b':') if extended => at += 1,
            Some(b'0'..=b'9') if !extended => {}
            _ => break,
        }
        *part = digits(bytes, &mut at, 2)?;
        given += 1;
    }
    if given == 2 && matches!(bytes.get(at), Some(b'.' | b',')) {
        let start = at + 1;
        let end = start + bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if start == end {
            return None;
        }
        // What is finer than a microsecond is cut off.
        fraction =
            (0..6).fold(0, |sum, i| sum * 10 + bytes[start..end].get(i).map_or(0, |digit| i64::from(digit - b'0')));
        at = end;
    }
    if hour > 23 || parts.iter().any(|&part| part > 59) {
        return None;
    }
    Some((((hour * 60 + parts[0]) * 60 + parts[1]) * 1_000_000 + fraction, at))
}

fn digits(bytes: &[u8], at: &mut usize, count: usize) -> Option<i64> {
    let digits = bytes.get(*at..*at + count)?;
    *at += count;
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

fn expect(bytes: &[u8], at: &mut usize, byte: u8) -> Option<()> {
    (bytes.get(*at) == Some(&byte)).then(|| *at += 1)
}

/// The civil calendar (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1 || !(1..=longest).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

/// None outside of the years 1 to 9999.
fn show(micros: i64) -> Option<String> {
    let days = micros.div_euclid(86_400_000_000) + 719_468;
    let time = micros.rem_euclid(86_400_000_000);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    if !(1..=9999).contains(&year) {
        return None;
    }
    let (seconds, fraction) = (time / 1_000_000, time % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:06}") };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}+00:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, expected) in [
            ("2026-03-01T09:00:02Z", Some("2026-03-01T09:00:02+00:00")),
            ("2026-03-01T09:00:02.250Z", Some("2026-03-01T09:00:02.250000+00:00")),
            ("2026-03-01T09:00:02.000Z", Some("2026-03-01T09:00:02+00:00")),
            ("2026-03-01T09:00:02.1234567Z", Some("2026-03-01T09:00:02.123456+00:00")),
            ("2026-03-01 09:00:02", Some("2026-03-01T09:00:02+00:00")),
            ("2026-03-01T00:30:00+02:00", Some("2026-02-28T22:30:00+00:00")),
            ("2024-02-29T23:30:00-01:30", Some("2024-03-01T01:00:00+00:00")),
            ("20260301T090002Z", Some("2026-03-01T09:00:02+00:00")),
            ("2026-03-01", Some("2026-03-01T00:00:00+00:00")),
            ("2026-03-01T09", Some("2026-03-01T09:00:00+00:00")),
            ("2026-03-01T09:00:02.250 and more", Some("2026-03-01T09:00:02.250000+00:00")),
            ("1969-12-31T23:59:59.5Z", Some("1969-12-31T23:59:59.500000+00:00")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00+00:00")),
            ("0001-01-01T00:00:00+01:00", None),
            ("9999-12-31T23:59:59-01:00", None),
            ("2025-02-29T00:00:00Z", None),
            ("2026-13-01", None),
            ("2026-03-01T24:00:00", None),
            ("2026-03-01Té", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(utc(text).as_deref(), expected, "{text}");
        }
    }
}
