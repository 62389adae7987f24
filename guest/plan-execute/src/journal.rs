//! What the operations need of a session journal: the interface `session-journal` in plain Rust.

use plan_guest_support::payload::Encoding;

/// One custom entry on the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Unique within the session.
    pub id: String,
    /// How [`Entry::bytes`] are encoded.
    pub encoding: Encoding,
    /// Exactly one value.
    pub bytes: Vec<u8>,
}

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// Another session is open now, or this one was opened again.
    SessionChanged,
    /// The leaf moved after the call was queued.
    BranchChanged,
    /// An append of this opening ended with unknown outcome.
    ReopenRequired(String),
    /// The host did not grant the custom type.
    Denied(String),
    /// The storage did not answer.
    Unavailable(String),
    /// Anything else.
    Other(String),
}

/// Why an append did not succeed. After every case but [`AppendError::Failed`] nothing was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendError {
    /// Nothing was written, for a reason that reading has too.
    Refused(ReadError),
    /// The payload is larger than this many bytes.
    TooLarge(u32),
    /// The write began and its outcome is unknown.
    Failed(String),
}

/// The branch at the moment when a call was queued.
pub trait Branch {
    /// Names one opening of one session, never reused.
    fn session_token(&self) -> String;

    /// The encoding to append in.
    fn preferred_encoding(&self) -> Encoding;

    /// The newest entry of this type on the branch. The first call checks the session and the branch.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    fn latest(&self, custom_type: &str) -> Result<Option<Entry>, ReadError>;

    /// Appends one entry below the leaf, atomically with the check of the session and the branch.
    ///
    /// # Errors
    ///
    /// See [`AppendError`].
    fn append(&self, custom_type: &str, encoding: Encoding, bytes: Vec<u8>) -> Result<(), AppendError>;
}
