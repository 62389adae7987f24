//! The lines of a session file, without holding more of it than a few pieces and the longest line.
//!
//! A long file is read by a thread of its own, ahead of whoever takes the lines apart.

use super::line;
use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

/// The longest line that Pi can read: the longest string of its engine, in bytes at least.
pub(super) const MAX_LINE: usize = 512 * 1024 * 1024;
/// How much is read at once.
const PIECE: usize = 256 * 1024;
/// From this length on a thread reads ahead.
const LONG: u64 = 4 * 1024 * 1024;
/// How many pieces it is ahead.
const AHEAD: usize = 4;

/// Why the next line cannot be had.
pub(super) enum LineError {
    Io(io::Error),
    TooLong,
}

/// One line as it stands in the file.
pub(super) struct RawLine<'a> {
    pub(super) offset: u64,
    /// Without the line feed.
    pub(super) bytes: &'a [u8],
    /// The same, where the whole piece is UTF-8.
    text: Option<&'a str>,
    /// Is there a line feed?
    pub(super) ended: bool,
}

impl<'a> RawLine<'a> {
    /// The line's text. Bytes that are no UTF-8 become U+FFFD, in this line alone.
    pub(super) fn text(&self) -> Cow<'a, str> {
        self.text.map_or_else(|| line::decode(self.bytes), Cow::Borrowed)
    }
}

/// Hands out the lines of a file.
pub(super) struct Lines {
    source: Source,
    piece: Piece,
    /// How much of the piece was handed out.
    start: usize,
    /// Where in the file that is.
    at: u64,
    /// Did the last line that was handed out have a line feed?
    pub(super) last_ended: bool,
}

enum Source {
    Here(Reader),
    /// Everything was read.
    Over,
    /// At the end comes a `None`: a thread that ends without it has broken down.
    Thread(Receiver<Result<Option<Piece>, LineError>>),
}

/// Whole lines; the last piece of a file may end without a line feed.
enum Piece {
    Text(String),
    Bytes(Vec<u8>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Text(text) => text.as_bytes(),
            Piece::Bytes(bytes) => bytes,
        }
    }
}

impl Lines {
    /// The lines from `offset` on.
    pub(super) fn new(file: &File, offset: u64) -> io::Result<Lines> {
        let left = file.metadata()?.len().saturating_sub(offset);
        let long = left >= LONG;
        let mut file = file.try_clone()?;
        file.seek(SeekFrom::Start(offset))?;
        // Enough for all that is left of a short file.
        let rest = Vec::with_capacity(usize::try_from(left + 1).map_or(PIECE, |left| left.min(PIECE)));
        let mut reader = Reader { file, rest };
        let source = if long {
            let (pieces, source) = sync_channel(AHEAD);
            thread::Builder::new().name("plan-execute reader".into()).spawn(move || {
                // Until the end, or until nobody wants more.
                loop {
                    let piece = reader.next();
                    let last = !matches!(piece, Ok(Some(_)));
                    if pieces.send(piece).is_err() || last {
                        break;
                    }
                }
            })?;
            Source::Thread(source)
        } else {
            Source::Here(reader)
        };
        Ok(Lines { source, piece: Piece::Bytes(Vec::new()), start: 0, at: offset, last_ended: true })
    }

    /// Lines that stand at `offset` and need not be read.
    pub(super) fn of(text: String, offset: u64) -> Lines {
        Lines { source: Source::Over, piece: Piece::Text(text), start: 0, at: offset, last_ended: true }
    }

    /// Is so much left that other threads can help?
    pub(super) fn is_long(&self) -> bool {
        matches!(self.source, Source::Thread(_))
    }

    /// Where the next line begins.
    pub(super) fn offset(&self) -> u64 {
        self.at
    }

    pub(super) fn next(&mut self) -> Result<Option<RawLine<'_>>, LineError> {
        if self.start == self.piece.bytes().len() {
            let next = match &mut self.source {
                Source::Over => None,
                Source::Here(reader) => reader.next()?,
                Source::Thread(pieces) => {
                    pieces.recv().unwrap_or_else(|_| Err(LineError::Io(io::Error::other("reading broke off"))))?
                }
            };
            match next {
                Some(piece) => (self.piece, self.start) = (piece, 0),
                None => {
                    self.source = Source::Over;
                    return Ok(None);
                }
            }
        }
        let (start, rest) = (self.start, &self.piece.bytes()[self.start..]);
        let (length, ended) = memchr::memchr(b'\n', rest).map_or((rest.len(), false), |found| (found, true));
        let offset = self.at;
        self.start += length + usize::from(ended);
        self.at += (self.start - start) as u64;
        self.last_ended = ended;
        let bytes = &self.piece.bytes()[start..start + length];
        let text = match &self.piece {
            Piece::Text(text) => Some(&text[start..start + length]),
            Piece::Bytes(_) => None,
        };
        Ok(Some(RawLine { offset, bytes, text, ended }))
    }
}

/// Reads pieces of whole lines.
struct Reader {
    file: File,
    /// The beginning of a line that was read already.
    rest: Vec<u8>,
}

impl Reader {
    fn next(&mut self) -> Result<Option<Piece>, LineError> {
        let mut bytes = std::mem::take(&mut self.rest);
        loop {
            let before = bytes.len();
            let read = (&self.file).take(PIECE as u64).read_to_end(&mut bytes).map_err(LineError::Io)?;
            if let Some(found) = memchr::memrchr(b'\n', &bytes[before..]) {
                self.rest = bytes.split_off(before + found + 1);
                break;
            }
            if read == 0 {
                break;
            }
            if bytes.len() >= MAX_LINE {
                return Err(LineError::TooLong);
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(String::from_utf8(bytes).map_or_else(|error| Piece::Bytes(error.into_bytes()), Piece::Text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Every file comes out as it went in, whatever the length of its lines and wherever reading begins.
    #[test]
    fn lines_come_out_as_they_went_in() {
        let long = "x".repeat(PIECE * 2 + 7);
        let many: String = (0..400_000).map(|i| format!("line {i}\n")).collect();
        for content in [
            Vec::new(),
            b"\n".to_vec(),
            b"a".to_vec(),
            b"a\n\nb".to_vec(),
            b"a\xff\nb\n".to_vec(),
            format!("{long}\n{long}\nend").into_bytes(),
            many.clone().into_bytes(),
            [many.as_bytes(), b"\xf0\x9f", long.as_bytes()].concat(),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&content).unwrap();
            for offset in [0, content.len() as u64 / 2] {
                let mut lines = Lines::new(&file, offset).unwrap();
                let mut out = Vec::new();
                while let Ok(Some(line)) = lines.next() {
                    assert_eq!(line.offset, offset + out.len() as u64);
                    assert_eq!(line.text(), String::from_utf8_lossy(line.bytes));
                    out.extend_from_slice(line.bytes);
                    out.extend(line.ended.then_some(b'\n'));
                }
                assert!(out == content[offset as usize..], "{} bytes from {offset}", content.len());
                assert_eq!(lines.offset(), content.len() as u64);
                assert!(matches!(lines.next(), Ok(None)), "the end is the end");
            }
        }
    }
}
