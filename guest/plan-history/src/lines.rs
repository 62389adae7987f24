//! Lines out of chunks, in bounded memory.

use crate::{skipped::Skipped, source::File};
use std::ops::ControlFlow;

/// Bytes of a chunk.
pub const CHUNK: u32 = 1 << 20;
/// The longest line, in bytes. What is longer is passed over without being held.
pub const MAX_LINE: usize = 16 << 20;
/// Where reading of one file stops, in bytes.
pub const MAX_FILE: u64 = 1 << 30;

/// Hands every line of a file that is not blank to `take`, without its end, until `take` breaks off. What was read before
/// an error of the storage counts; what is passed over is counted in `skipped`.
pub fn read(file: &mut impl File, skipped: &mut Skipped, take: impl FnMut(&[u8], &mut Skipped) -> ControlFlow<()>) {
    read_within(file, skipped, MAX_LINE, MAX_FILE, take);
}

fn read_within(
    file: &mut impl File,
    skipped: &mut Skipped,
    max_line: usize,
    max_file: u64,
    mut take: impl FnMut(&[u8], &mut Skipped) -> ControlFlow<()>,
) {
    let mut line = Carried { bytes: Vec::new(), too_long: false, max: max_line };
    let mut left = max_file;
    loop {
        // One byte more than is left tells whether the file ends there.
        let limit = u64::from(CHUNK).min(left + 1) as u32;
        let chunk = match file.read(limit) {
            Ok(chunk) if chunk.is_empty() => break,
            Ok(chunk) if chunk.len() as u64 > left => {
                skipped.cut += 1;
                return;
            }
            Ok(chunk) => chunk,
            // The line that was begun is lost with the rest.
            Err(_) => {
                skipped.cut += 1;
                return;
            }
        };
        left -= chunk.len() as u64;
        let mut rest = &chunk[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if line.end(&rest[..end], skipped, &mut take).is_break() {
                return;
            }
            rest = &rest[end + 1..];
        }
        line.extend(rest);
    }
    // The last line needs no end.
    let _ = line.end(&[], skipped, &mut take);
}

/// The beginning of a line whose end has not come yet.
struct Carried {
    bytes: Vec<u8>,
    too_long: bool,
    max: usize,
}

impl Carried {
    fn extend(&mut self, more: &[u8]) {
        if self.bytes.len() + more.len() > self.max {
            self.too_long = true;
            self.bytes = Vec::new();
        } else if !self.too_long {
            // A line of many megabytes gets its room at once: growing step by step would leave holes of half its size.
            if self.bytes.len() + more.len() > self.bytes.capacity().max(2 * CHUNK as usize) {
                self.bytes.reserve_exact(self.max - self.bytes.len());
            }
            self.bytes.extend_from_slice(more);
        }
    }

    /// The line ends with `last`.
    fn end(
        &mut self,
        last: &[u8],
        skipped: &mut Skipped,
        take: &mut impl FnMut(&[u8], &mut Skipped) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.too_long || self.bytes.len() + last.len() > self.max {
            *self = Carried { bytes: Vec::new(), too_long: false, max: self.max };
            skipped.long_lines += 1;
            return ControlFlow::Continue(());
        }
        let flow = if self.bytes.is_empty() {
            take_line(last, skipped, take)
        } else {
            self.bytes.extend_from_slice(last);
            take_line(&self.bytes, skipped, take)
        };
        self.bytes.clear();
        // The room of a line of many megabytes is given back.
        self.bytes.shrink_to(CHUNK as usize);
        flow
    }
}

fn take_line(
    line: &[u8],
    skipped: &mut Skipped,
    take: &mut impl FnMut(&[u8], &mut Skipped) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if line.iter().all(u8::is_ascii_whitespace) { ControlFlow::Continue(()) } else { take(line, skipped) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{
        Part, Transcripts,
        memory::{Memory, Stored},
    };
    use proptest::prelude::*;

    fn lines(bytes: &[u8], chunk: usize, fails_after: Option<usize>, max_file: u64) -> (Vec<String>, Skipped) {
        let stored = Stored { transcripts: vec![bytes.to_vec()], fails_after, ..Stored::default() };
        let memory = Memory { sessions: vec![stored], chunk, ..Memory::default() };
        let mut file = memory.open("0", Part::Transcript(0)).expect("it is there");
        let mut skipped = Skipped::default();
        let mut lines = Vec::new();
        read_within(&mut file, &mut skipped, 10, max_file, |line, _| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            if line == b"stop" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (lines, skipped)
    }

    #[test]
    fn lines_of_every_kind() {
        for chunk in [1, 2, 3, 7, 100] {
            for (bytes, expected, long, cut) in [
                ("", &[][..], 0, 0),
                ("a\n\n \r\nb\r\nc", &["a", "b\r", "c"], 0, 0),
                ("1234567890\n12345678901\nx", &["1234567890", "x"], 1, 0),
                ("12345678901", &[], 1, 0),
                ("\u{c}\n1234567890123456789012\n\n", &[], 1, 0),
                ("a\nstop\nb", &["a", "stop"], 0, 0),
            ] {
                let (lines, skipped) = lines(bytes.as_bytes(), chunk, None, 1_000);
                assert_eq!(lines, expected, "{bytes:?} by {chunk}");
                assert_eq!((skipped.long_lines, skipped.cut), (long, cut), "{bytes:?} by {chunk}");
            }
        }
    }

    #[test]
    fn what_was_read_before_an_error_counts() {
        let (lines, skipped) = lines(b"a\nbc\nd", 1, Some(5), 1_000);
        assert_eq!((lines, skipped.cut), (vec!["a".to_owned(), "bc".to_owned()], 1));
    }

    #[test]
    fn reading_stops_at_the_limit() {
        for (max_file, expected, cut) in
            [(6, &["a", "bc", "d"][..], 0), (7, &["a", "bc", "d"], 0), (5, &["a", "bc"], 1)]
        {
            let (lines, skipped) = lines(b"a\nbc\nd", 1, None, max_file);
            assert_eq!(
                (lines, skipped.cut),
                (expected.iter().map(|line| (*line).to_owned()).collect(), cut),
                "{max_file}"
            );
        }
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..80), chunk in 1usize..20) {
            let whole = lines(&bytes, 0, None, 1_000);
            prop_assert_eq!(lines(&bytes, chunk, None, 1_000), whole);
        }
    }
}
