//! A session file as far as it was read: loading it, and going on from where reading stopped.

use super::{
    header::Header,
    line::{self, Content},
    lines::{LineError, Lines, MAX_LINE},
    records::{self, Batch, Kind, Record},
};
use crate::journal::{Opening, Tree};
use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Why a file cannot be used as a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such file.
    #[error("there is no session file {}: name one that is there, or ask for a new one", .0.display())]
    Missing(PathBuf),
    /// The folder that a new session file should stand in is missing.
    #[error("there is no folder {}: make it first, then the session in it", .0.display())]
    NoFolder(PathBuf),
    /// It is a folder.
    #[error("{} is a folder: name a session file, or ask for a new one in it", .0.display())]
    Folder(PathBuf),
    /// It is a device, a pipe or the like.
    #[error("{} is no regular file: name a session file", .0.display())]
    NotAFile(PathBuf),
    /// The system refused.
    #[error("the session file {} cannot be read ({error})", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Pi would refuse it too.
    #[error("{} is no session file of Pi (line {line} is not a session header): it was left as it is", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
        /// The line that should be the header.
        line: u64,
    },
    /// A line is longer than Pi can read.
    #[error("line {line} of {} is longer than {MAX_LINE} bytes, more than Pi can read", path.display())]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, error: io::Error) -> OpenError {
        match error.kind() {
            io::ErrorKind::NotFound => OpenError::Missing(path.into()),
            _ => OpenError::Io { path: path.into(), error },
        }
    }
}

/// How much of the last line is kept to recognise it.
const MARK: usize = 64 * 1024;
/// How many damaged lines are remembered by their numbers.
const MAX_DAMAGE: usize = 100;

/// The lines of a session file that could not be read. The rest of the file is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// Their numbers, from 1: the first hundred.
    pub lines: Vec<u64>,
    /// How many there are.
    pub count: u64,
}

/// A session file that holds a session, as far as it was read.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) opening: Opening,
    pub(super) header: Header,
    pub(super) tree: Tree,
    /// Where the session stands, by the id of the entry.
    pub(super) leaf: Option<Arc<str>>,
    pub(super) damage: Damage,
    identity: Identity,
    /// Where the line of each entry stands: offset and length.
    places: Vec<(u64, u32)>,
    /// What must still stand in the file for reading to go on.
    header_mark: Mark,
    last_mark: Mark,
    /// Up to here everything was taken.
    end: u64,
    /// The last line that was taken has no line feed yet.
    open_line: bool,
    lines: u64,
}

/// What the operating system knows a file by.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Identity {
        use std::os::unix::fs::MetadataExt;
        Identity(metadata.dev(), metadata.ino())
    }

    /// Elsewhere files have no such number; the header and the last line have to do.
    #[cfg(not(unix))]
    pub(super) fn of(_: &Metadata) -> Identity {
        Identity(0, 0)
    }
}

/// The end of a line, to recognise it by.
#[derive(Debug, Default, Clone)]
pub(super) struct Mark {
    offset: u64,
    bytes: Vec<u8>,
}

impl Mark {
    /// The end of `bytes`, which stand at `offset`.
    fn of(offset: u64, bytes: &[u8]) -> Mark {
        let mut mark = Mark::default();
        mark.set(offset, bytes);
        mark
    }

    /// The same, without new memory for each line.
    pub(super) fn set(&mut self, offset: u64, bytes: &[u8]) {
        let skipped = bytes.len().saturating_sub(MARK);
        self.offset = offset + skipped as u64;
        self.bytes.clear();
        self.bytes.extend_from_slice(&bytes[skipped..]);
    }

    fn stands_in(&self, file: &mut &File) -> io::Result<bool> {
        let mut found = vec![0; self.bytes.len()];
        file.seek(SeekFrom::Start(self.offset))?;
        match file.read_exact(&mut found) {
            Ok(()) => Ok(found == self.bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What is at a path.
pub(super) enum Found {
    /// A session.
    Session(Box<Loaded>),
    /// A file without a byte: a session that nobody wrote to yet.
    Empty,
}

/// Opens a regular file. Anything else might never answer.
pub(super) fn open_regular(path: &Path, append: bool) -> Result<File, OpenError> {
    let metadata = fs::metadata(path).map_err(|e| OpenError::io(path, e))?;
    if metadata.is_dir() {
        return Err(OpenError::Folder(path.into()));
    }
    if !metadata.is_file() {
        return Err(OpenError::NotAFile(path.into()));
    }
    File::options().read(true).append(append).open(path).map_err(|e| OpenError::io(path, e))
}

/// Loads what is at `path`.
pub(super) fn load(path: &Path) -> Result<Found, OpenError> {
    load_from(path, &open_regular(path, false)?)
}

/// Loads from an open file.
pub(super) fn load_from(path: &Path, file: &File) -> Result<Found, OpenError> {
    let io = |error| OpenError::io(path, error);
    let metadata = file.metadata().map_err(io)?;
    if metadata.len() == 0 {
        return Ok(Found::Empty);
    }
    let mut lines = Lines::new(file, 0).map_err(io)?;
    let mut skipped = (Damage::default(), 0);
    let (header, header_mark) = loop {
        // A damaged line before it, such as a header behind a byte order mark, is the likelier culprit.
        let first_damaged = skipped.0.lines.first().copied();
        let not_a_session = |line| OpenError::NotASession { path: path.into(), line: first_damaged.unwrap_or(line) };
        let Some(line) = lines.next().map_err(|e| e.at(path, skipped.1))? else {
            return Err(not_a_session(skipped.1.max(1)));
        };
        skipped.1 += 1;
        let text = line.text();
        match line::parse(&text) {
            Content::Object(object) => match Header::read(&object) {
                Some(header) => break (header, Mark::of(line.offset, line.bytes)),
                None => return Err(not_a_session(skipped.1)),
            },
            Content::Other => return Err(not_a_session(skipped.1)),
            Content::Damaged if line.ended => skipped.0.note(skipped.1),
            Content::Damaged | Content::Blank | Content::Nothing => {}
        }
    };
    let (damage, read) = skipped;
    let mut loaded = Loaded {
        opening: Opening::new(),
        header,
        tree: Tree::new(),
        leaf: None,
        damage,
        identity: Identity::of(&metadata),
        places: Vec::new(),
        last_mark: Mark::of(header_mark.offset, &header_mark.bytes),
        header_mark,
        end: lines.offset(),
        open_line: !lines.last_ended,
        lines: read,
    };
    loaded.take(&mut lines).map_err(|e| e.at(path, loaded.lines))?;
    Ok(Found::Session(Box::new(loaded)))
}

/// What going on found.
pub(super) enum GoneOn {
    /// The file goes on from where reading stopped, perhaps with new entries.
    Same,
    /// It is another file, or was written anew.
    Replaced,
}

impl Loaded {
    /// Goes on reading from where it stopped, if this is still the same file. New entries move the leaf to the newest.
    pub(super) fn go_on(&mut self, path: &Path, mut file: &File) -> Result<GoneOn, OpenError> {
        let io = |error| OpenError::io(path, error);
        let metadata = file.metadata().map_err(io)?;
        if Identity::of(&metadata) != self.identity
            || metadata.len() < self.end
            || !self.header_mark.stands_in(&mut file).map_err(io)?
            || !self.last_mark.stands_in(&mut file).map_err(io)?
        {
            return Ok(GoneOn::Replaced);
        }
        if metadata.len() == self.end {
            return Ok(GoneOn::Same);
        }
        let mut start = self.end;
        if self.open_line {
            // The line that had no line feed was taken as it stood. It still counts only where it ended there.
            let mut next = [0];
            file.seek(SeekFrom::Start(self.end)).map_err(io)?;
            file.read_exact(&mut next).map_err(io)?;
            if next != *b"\n" {
                return Ok(GoneOn::Replaced);
            }
            start += 1;
        }
        let mut lines = Lines::new(file, start).map_err(io)?;
        self.open_line = false;
        self.end = start;
        self.take(&mut lines).map_err(|e| e.at(path, self.lines))?;
        Ok(GoneOn::Same)
    }

    /// Takes whole lines that were just written to the file behind its first `size` bytes, without reading them again. Answers
    /// false, and takes nothing, where they do not follow what was taken so far.
    pub(super) fn take_written(&mut self, path: &Path, size: u64, mut bytes: Vec<u8>) -> Result<bool, OpenError> {
        if size != self.end {
            return Ok(false);
        }
        let mut start = size;
        if self.open_line {
            // The first byte ended it.
            bytes.remove(0);
            start += 1;
        }
        let Ok(text) = String::from_utf8(bytes) else { return Ok(false) };
        self.open_line = false;
        self.end = start;
        self.take(&mut Lines::of(text, start)).map_err(|e| e.at(path, self.lines))?;
        Ok(true)
    }

    /// Takes all further lines. A last line without a line feed is taken where it can be read; otherwise it is read again
    /// next time.
    fn take(&mut self, lines: &mut Lines) -> Result<(), LineError> {
        let before = self.tree.len();
        let taken = records::each(lines, |batch| self.take_batch(&batch));
        if self.tree.len() > before {
            let newest = self.tree.len() as u32 - 1;
            self.leaf = self.tree.id(newest).map(Into::into);
        }
        taken
    }

    fn take_batch(&mut self, batch: &Batch) {
        for record in &batch.records {
            if !record.ended && matches!(record.kind, Kind::Damaged | Kind::Blank) {
                break;
            }
            self.lines += 1;
            match record.kind {
                Kind::Entry => self.push(batch.names(record), record),
                Kind::Damaged => self.damage.note(self.lines),
                Kind::Blank | Kind::Nothing => {}
            }
            self.open_line = !record.ended;
            self.end = record.offset + u64::from(record.length) + u64::from(record.ended);
        }
        if let Some(mark) = &batch.mark {
            self.last_mark = mark.clone();
        }
    }

    fn push(&mut self, [id, parent, custom_type]: [Option<&str>; 3], record: &Record) {
        self.places.push((record.offset, record.length));
        if self.header.is_linear() {
            let before = self.tree.len().checked_sub(1).map(linear_id);
            let id = linear_id(self.tree.len());
            self.tree.push(Some(&id), before.as_deref(), custom_type);
        } else {
            // An empty id is none: no branch leads from it.
            self.tree.push(id.filter(|id| !id.is_empty()), parent, custom_type);
        }
    }

    /// Some place in the header's line.
    #[cfg(feature = "sql")]
    pub(super) fn header_offset(&self) -> u64 {
        self.header_mark.offset
    }

    /// Where the line of an entry stands: offset and length.
    pub(super) fn place(&self, node: u32) -> (u64, usize) {
        let (offset, length) = self.places[node as usize];
        (offset, length as usize)
    }

    /// How the next line must begin: with a line feed where the file does not end with one.
    pub(super) fn line_feed_needed(&self, size: u64, file: &File) -> io::Result<bool> {
        if size == self.end {
            return Ok(self.open_line);
        }
        let mut file = file;
        let mut last = [0];
        file.seek(SeekFrom::Start(size.saturating_sub(1)))?;
        file.read_exact(&mut last)?;
        Ok(last != *b"\n")
    }

    /// Is this the file that was read?
    pub(super) fn is_of(&self, metadata: &Metadata) -> bool {
        Identity::of(metadata) == self.identity
    }
}

/// The id of an entry in a session of version 1, where entries have none. Pi gives them new ones when it migrates.
fn linear_id(node: usize) -> String {
    format!("{node:08x}")
}

impl LineError {
    /// `before`: how many lines were read.
    fn at(self, path: &Path, before: u64) -> OpenError {
        match self {
            LineError::Io(error) => OpenError::io(path, error),
            LineError::TooLong => OpenError::LineTooLong { path: path.into(), line: before + 1 },
        }
    }
}

impl Damage {
    fn note(&mut self, line: u64) {
        self.count += 1;
        if self.lines.len() < MAX_DAMAGE {
            self.lines.push(line);
        }
    }
}
