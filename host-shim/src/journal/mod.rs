//! What a session journal is, and the journals that come with this crate.
//!
//! A journal is an append-only tree of entries. The *leaf* is the entry that the session stands on; the *branch* is the
//! path from the root to the leaf. Plugins see custom entries alone; a journal may hold many other kinds.
//!
//! # Writing a journal
//!
//! Implement [`Journal`] for whatever your harness keeps its sessions in. The host does the rest: it queues calls, checks
//! payloads and grants, sets time limits, and keeps every later call out after a write of unknown outcome. What it needs of
//! you is said at each method; these three points carry the whole:
//!
//! * [`append`](Journal::append) checks the position and writes in **one** atomic step.
//! * An append that did not succeed either left nothing behind for certain, or it answers [`AppendError::Failed`]. When in
//!   doubt, it is `Failed`: a plan that was acknowledged and lost, or refused and kept, is what nobody forgives.
//! * [`latest`](Journal::latest) does not walk the branch. [`Tree`] keeps the index that this takes.
//!
//! With the feature `testing` there is a suite that checks all of this, `conformance`, and a double that fails on command around
//! any journal, `fault`.
//!
//! Each method may be cancelled (its future dropped) except `append`, which the host always lets end.

#[cfg(feature = "testing")]
pub mod conformance;
#[cfg(feature = "testing")]
pub mod fault;
mod guard;
mod memory;
mod names;
mod payload;
pub mod pi;
#[cfg(feature = "sql")]
pub mod sql;
mod tree;

pub(crate) use guard::Guard;
pub use memory::Memory;
pub use payload::{CheckedPayload, Encoding, Payload};
pub use tree::{ParentCycle, Tree};

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Names one opening of one session. No two in a process are equal.
///
/// A journal makes a new one whenever what it knows of the session stems from a new look at the storage: when it is opened,
/// and when it finds the storage replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opening(u64);

impl Opening {
    /// One that never was before.
    #[expect(clippy::new_without_default, reason = "each is another one, so there is no default")]
    pub fn new() -> Opening {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Opening(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A place in a session: one entry, in one opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The session's own id: the same after reopening, another one for a fork.
    pub session_id: Arc<str>,
    /// The opening.
    pub opening: Opening,
    /// The entry; none before the first.
    pub leaf: Option<Arc<str>>,
}

impl Position {
    /// The session id, `#`, and a number never used twice in this process.
    pub fn token(&self) -> String {
        format!("{}#{}", self.session_id, self.opening.0)
    }
}

/// One custom entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Unique within the session.
    pub id: String,
    /// When it was appended, in milliseconds since 1970 (UTC); none where the journal does not tell.
    pub timestamp_ms: Option<u64>,
    /// Its data.
    pub payload: Payload,
}

/// What an acknowledged append is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Kept in memory; lost when the process ends.
    Memory,
    /// On storage, as safe as that storage ever makes it.
    Stored,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Memory => "memory",
            Durability::Stored => "stored",
        })
    }
}

/// The entry that an append made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Unique within the session.
    pub id: String,
    /// When, in milliseconds since 1970 (UTC).
    pub timestamp_ms: u64,
    /// What the acknowledgement is worth.
    pub durability: Durability,
}

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Another session is open now, or this one was opened again.
    #[error("the session changed")]
    SessionChanged,
    /// The leaf moved.
    #[error("the branch changed")]
    BranchChanged,
    /// An append of this opening ended with unknown outcome. A journal never answers this; its host does.
    #[error("a write failed and it is unknown what was kept ({0}); the session must be reopened")]
    ReopenRequired(String),
    /// The host did not grant this custom type. A journal never answers this; its host does.
    #[error("{0}")]
    Denied(String),
    /// No such entry on the branch.
    #[error("{0}")]
    NotFound(String),
    /// The storage did not answer; nothing is known to be lost.
    #[error("{0}")]
    Unavailable(String),
    /// Anything else, such as a branch that the storage holds in no usable form.
    #[error("{0}")]
    Other(String),
}

/// Why an append did not succeed. After every case but [`AppendError::Failed`] nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Another session is open now, or this one was opened again.
    #[error("the session changed")]
    SessionChanged,
    /// The leaf moved.
    #[error("the branch changed")]
    BranchChanged,
    /// An append of this opening ended with unknown outcome. A journal never answers this; its host does.
    #[error("a write failed and it is unknown what was kept ({0}); the session must be reopened")]
    ReopenRequired(String),
    /// The host did not grant this custom type. A journal never answers this; its host does.
    #[error("{0}")]
    Denied(String),
    /// The payload is larger than this many bytes.
    #[error("the payload is larger than {0} bytes")]
    TooLarge(u32),
    /// Not exactly one value in an encoding that the journal takes.
    #[error("{0}")]
    InvalidPayload(String),
    /// The storage is down, full, or took the write back: nothing was written, for certain.
    #[error("{0}")]
    Unavailable(String),
    /// The write began and its outcome is unknown.
    #[error("{0}")]
    Failed(String),
    /// Anything else; nothing was written.
    #[error("{0}")]
    Other(String),
}

impl From<ReadError> for AppendError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::SessionChanged => AppendError::SessionChanged,
            ReadError::BranchChanged => AppendError::BranchChanged,
            ReadError::ReopenRequired(reason) => AppendError::ReopenRequired(reason),
            ReadError::Denied(reason) => AppendError::Denied(reason),
            ReadError::Unavailable(reason) => AppendError::Unavailable(reason),
            ReadError::NotFound(reason) | ReadError::Other(reason) => AppendError::Other(reason),
        }
    }
}

/// A session journal.
///
/// See the [module](self) for what a new one must keep to.
#[async_trait::async_trait]
pub trait Journal: Send + Sync + 'static {
    /// What an acknowledged append is worth.
    fn durability(&self) -> Durability;

    /// The encoding that plugins should append in. Another one may be refused as [`AppendError::InvalidPayload`].
    fn preferred_encoding(&self) -> Encoding;

    /// Where the session stands, after a look at the storage.
    ///
    /// The leaf starts at the session's newest entry. [`branch`](Journal::branch) and appends move it, and entries that
    /// someone else added move it to the newest entry. A storage that was replaced is another [`Opening`].
    ///
    /// # Errors
    ///
    /// [`ReadError::Unavailable`] or [`ReadError::Other`].
    async fn position(&self) -> Result<Position, ReadError>;

    /// The newest entry of this type on the branch that ends at `at`, wherever the leaf is now. The cost does not depend on
    /// the length of the branch.
    ///
    /// # Errors
    ///
    /// [`ReadError::SessionChanged`] where `at` is of another opening; [`ReadError::Unavailable`] or [`ReadError::Other`].
    async fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError>;

    /// Where the session stands, and the newest entry of this type on the branch that ends at `at` if that is still the place
    /// (none otherwise). A call begins with it; a journal that can answer both with one look at the storage should.
    ///
    /// # Errors
    ///
    /// Those of [`position`](Journal::position) and [`latest`](Journal::latest).
    async fn position_and_latest(
        &self,
        at: &Position,
        custom_type: &str,
    ) -> Result<(Position, Option<Entry>), ReadError> {
        let position = self.position().await?;
        let entry = if position == *at { self.latest(at, custom_type).await? } else { None };
        Ok((position, entry))
    }

    /// Entries of this type on the branch that ends at `at`, newest first, older than the entry `before` where one is given.
    /// At most `limit` of them (0 counts as 1) and about 1 MiB, and none only at the end.
    ///
    /// # Errors
    ///
    /// Those of [`latest`](Journal::latest), and [`ReadError::NotFound`] where `before` is no such entry.
    async fn entries(
        &self,
        at: &Position,
        custom_type: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError>;

    /// Appends one entry below `at`, if that is still where the session stands, and moves the leaf to it.
    ///
    /// The check and the write are one atomic step, also against other processes. Whatever happens, the future ends: the
    /// host stops waiting after [`Limits::operation`](crate::Limits::operation), yet never drops it.
    ///
    /// # Errors
    ///
    /// Any but `ReopenRequired` and `Denied`. Only after [`AppendError::Failed`] may something have been kept.
    async fn append(&self, at: &Position, custom_type: &str, payload: &CheckedPayload)
    -> Result<Appended, AppendError>;

    /// Moves the leaf to this entry, or before the first. Nothing is written until the next append.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotFound`], [`ReadError::Unavailable`] or [`ReadError::Other`].
    async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError>;

    /// Forgets everything and opens the session from its storage again. What the storage holds counts.
    ///
    /// # Errors
    ///
    /// [`ReadError::Unavailable`] or [`ReadError::Other`].
    async fn reopen(&self) -> Result<Position, ReadError>;
}

#[async_trait::async_trait]
impl<J: Journal + ?Sized> Journal for Arc<J> {
    fn durability(&self) -> Durability {
        (**self).durability()
    }
    fn preferred_encoding(&self) -> Encoding {
        (**self).preferred_encoding()
    }
    async fn position(&self) -> Result<Position, ReadError> {
        (**self).position().await
    }
    async fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
        (**self).latest(at, custom_type).await
    }
    async fn position_and_latest(
        &self,
        at: &Position,
        custom_type: &str,
    ) -> Result<(Position, Option<Entry>), ReadError> {
        (**self).position_and_latest(at, custom_type).await
    }
    async fn entries(
        &self,
        at: &Position,
        custom_type: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        (**self).entries(at, custom_type, before, limit).await
    }
    async fn append(
        &self,
        at: &Position,
        custom_type: &str,
        payload: &CheckedPayload,
    ) -> Result<Appended, AppendError> {
        (**self).append(at, custom_type, payload).await
    }
    async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
        (**self).branch(entry).await
    }
    async fn reopen(&self) -> Result<Position, ReadError> {
        (**self).reopen().await
    }
}

/// About how many bytes of payloads one page of entries holds.
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;

/// Now, in milliseconds since 1970 (UTC).
pub(crate) fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}
