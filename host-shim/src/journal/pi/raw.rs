//! A session file as it stands, entry by entry: for moving it elsewhere and back without changing a byte.

use super::{
    entry_line,
    file::{Found, OpenError, load},
    header::NewSession,
    line::{self, Brief, Content},
};
use crate::journal::Payload;
use jiff::Timestamp;
use std::path::Path;

/// A session file, taken apart. Put together again in this order it is the same file.
pub(crate) struct RawSession {
    /// The session's id.
    pub(crate) id: String,
    /// Everything up to the end of the header.
    pub(crate) header: Vec<u8>,
    /// The entries, in the order of the file.
    pub(crate) entries: Vec<RawEntry>,
    /// What follows the last of them, such as a torn line.
    pub(crate) tail: Vec<u8>,
    /// The entry that the session stands on.
    pub(crate) leaf: Option<String>,
}

/// One entry that can be found by its id, with whatever lines before it cannot: damaged ones, entries without an id, and those
/// whose id another one took later.
pub(crate) struct RawEntry {
    pub(crate) id: String,
    /// What it names as its parent.
    pub(crate) parent: Option<String>,
    /// The number of its parent, where that is there.
    pub(crate) parent_number: Option<usize>,
    pub(crate) custom_type: Option<String>,
    pub(crate) timestamp_ms: Option<u64>,
    pub(crate) bytes: Vec<u8>,
}

/// Why a session file cannot be taken apart.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RawError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the session file {0} is empty: there is nothing to take")]
    Empty(String),
    #[error("the session file has the format version {0}: open it once with Pi, which brings it to version 3")]
    Version(f64),
    #[error("the session file {0} was written to while it was read: try again")]
    Changed(String),
    #[error("the parents of entry {0} of the session file run in a circle: a database cannot hold that")]
    Circle(String),
}

/// Takes a session file apart.
pub(crate) fn read(path: &Path) -> Result<RawSession, RawError> {
    let io = |error| OpenError::io(path, error);
    let length = std::fs::metadata(path).map_err(io)?.len();
    let Found::Session(mut loaded) = load(path)? else { return Err(RawError::Empty(path.display().to_string())) };
    if loaded.header.is_linear() {
        return Err(RawError::Version(loaded.header.version));
    }
    let bytes = std::fs::read(path).map_err(io)?;
    if bytes.len() as u64 != length {
        return Err(RawError::Changed(path.display().to_string()));
    }
    let after_line =
        |from: usize| bytes[from..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |at| from + at + 1);
    let mut end = after_line(loaded.header_offset() as usize);
    let header = bytes[..end].to_vec();
    let mut entries = Vec::with_capacity(loaded.tree.len());
    let mut numbers = vec![None; loaded.tree.len()];
    let mut nodes = Vec::new();
    for node in 0..loaded.tree.len() as u32 {
        let (offset, length) = loaded.place(node);
        let text = line::decode(bytes.get(offset as usize..offset as usize + length).unwrap_or_default());
        let Some(id) = loaded.tree.id(node).filter(|id| loaded.tree.find(id) == Some(node)) else { continue };
        let Content::Object(line) = line::parse(&text) else { continue };
        let next = after_line(offset as usize + length);
        numbers[node as usize] = Some(entries.len());
        nodes.push(node);
        entries.push(RawEntry {
            parent: Brief::of(&line).parent_id().map(str::to_owned),
            parent_number: None,
            custom_type: line.custom_type().map(|custom_type| custom_type.into_owned()),
            timestamp_ms: line.timestamp_ms(),
            bytes: bytes[end..next].to_vec(),
            id: id.to_owned(),
        });
        end = next;
    }
    for (entry, node) in entries.iter_mut().zip(nodes) {
        if loaded.tree.check_branch(node).is_err() {
            return Err(RawError::Circle(entry.id.clone()));
        }
        entry.parent_number = loaded.tree.parent(node).and_then(|parent| numbers[parent as usize]);
    }
    let leaf = loaded.leaf.as_deref().map(str::to_owned);
    Ok(RawSession { id: loaded.header.id.clone(), header, entries, tail: bytes[end..].to_vec(), leaf })
}

/// The data of a custom entry out of its bytes; `None` where they hold none.
pub(crate) fn data(bytes: &[u8]) -> Option<Payload> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let last = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let text = line::decode(&bytes[last..]);
    match line::parse(&text) {
        Content::Object(line) => Some(Payload::json(line.data())),
        _ => None,
    }
}

/// The line of a custom entry as Pi writes it. `data` is JSON on one line.
pub(crate) fn custom_line(custom_type: &str, data: &str, id: &str, parent: Option<&str>, timestamp_ms: u64) -> Vec<u8> {
    let time = timestamp_ms.try_into().ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
    entry_line(custom_type, data, id, parent, time)
}

/// The header line of a session that never was in a file.
pub(crate) fn header_line(id: &str, created_ms: u64) -> String {
    let created = created_ms.try_into().ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
    NewSession::of(id.to_owned(), created).header_line()
}
