//! Where transcripts come from: the interface `transcripts` in plain Rust.

/// Which sessions are asked for. A source may list more, and leaves out none that was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// Only sessions with this id, and those whose id the source does not know.
    pub session: Option<String>,
    /// Only sessions that hold one of these texts, the case of ASCII letters aside; all where there is none.
    pub containing: Vec<String>,
}

/// One session of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Names it in [`Transcripts::open`].
    pub key: String,
    /// `claude`, `codex`, `antigravity` or `pi`.
    pub agent: String,
    /// The session's id, where its place tells it.
    pub id: Option<String>,
}

/// Some sessions of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Names the place to go on from; none at the end.
    pub next: Option<String>,
    /// How many folders and files could not be looked into.
    pub unreadable: u32,
}

/// What a session consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The transcript, or one of several renderings of it, numbered from 0 in the order in which they are tried.
    Transcript(u32),
    /// The plan that the agent keeps in a file of the session.
    PlanFile,
}

/// Why nothing was listed or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// There is no such session or part.
    NotFound,
    /// It may not be read.
    Denied(String),
    /// The storage did not answer.
    Unavailable(String),
}

/// The transcripts of a machine.
pub trait Transcripts {
    /// One part of a session.
    type File: File;

    /// Lists sessions, a page at a time.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    fn list(&self, query: &Query, after: Option<&str>, limit: u32) -> Result<Page, Failure>;

    /// Opens one part of a session that was listed.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    fn open(&self, session: &str, part: Part) -> Result<Self::File, Failure>;
}

/// One part of a session, read from its beginning to its end.
pub trait File {
    /// The full path, as text to show.
    fn path(&self) -> String;

    /// The next bytes; none at the end.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After one nothing more is read.
    fn read(&mut self, limit: u32) -> Result<Vec<u8>, Failure>;
}

#[cfg(test)]
pub(crate) mod memory {
    //! Transcripts in memory, for tests.

    use super::*;
    use std::cell::Cell;

    /// A session in memory.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Stored {
        pub(crate) agent: &'static str,
        pub(crate) id: Option<String>,
        pub(crate) path: String,
        /// The renderings of the transcript.
        pub(crate) transcripts: Vec<Vec<u8>>,
        pub(crate) plan_file: Option<Vec<u8>>,
        /// After how many bytes reading fails.
        pub(crate) fails_after: Option<usize>,
        /// It cannot be opened.
        pub(crate) denied: bool,
    }

    /// Sessions in memory.
    #[derive(Debug, Default)]
    pub(crate) struct Memory {
        pub(crate) sessions: Vec<Stored>,
        /// Bytes of a chunk; 0: as many as are asked for.
        pub(crate) chunk: usize,
        pub(crate) page: usize,
        pub(crate) unreadable: u32,
        pub(crate) opened: Cell<usize>,
    }

    pub(crate) struct MemoryFile {
        path: String,
        bytes: Vec<u8>,
        at: usize,
        chunk: usize,
        fails_after: Option<usize>,
    }

    impl Transcripts for Memory {
        type File = MemoryFile;

        fn list(&self, query: &Query, after: Option<&str>, limit: u32) -> Result<Page, Failure> {
            let start: usize = after.map_or(0, |after| after.parse().expect("it is one of ours"));
            let size = if self.page == 0 { limit as usize } else { self.page };
            let wanted = |stored: &Stored| {
                let texts = stored.transcripts.iter().map(|bytes| String::from_utf8_lossy(bytes).to_lowercase());
                query.agent.as_ref().is_none_or(|agent| agent == stored.agent)
                    && query.session.as_ref().is_none_or(|id| stored.id.as_ref().is_none_or(|known| known == id))
                    && (query.containing.is_empty()
                        || texts
                            .into_iter()
                            .any(|text| query.containing.iter().any(|part| text.contains(&part.to_lowercase()))))
            };
            let page: Vec<usize> = (start..self.sessions.len()).take(size).collect();
            let next = page.last().map(|last| last + 1).filter(|next| *next < self.sessions.len());
            Ok(Page {
                sessions: page
                    .into_iter()
                    .filter(|&i| wanted(&self.sessions[i]))
                    .map(|i| Session {
                        key: i.to_string(),
                        agent: self.sessions[i].agent.to_owned(),
                        id: self.sessions[i].id.clone(),
                    })
                    .collect(),
                next: next.map(|next| next.to_string()),
                unreadable: if start == 0 { self.unreadable } else { 0 },
            })
        }

        fn open(&self, session: &str, part: Part) -> Result<MemoryFile, Failure> {
            self.opened.set(self.opened.get() + 1);
            let stored = &self.sessions[session.parse::<usize>().expect("it was listed")];
            if stored.denied {
                return Err(Failure::Denied("no rights".into()));
            }
            let bytes = match part {
                Part::Transcript(number) => stored.transcripts.get(number as usize),
                Part::PlanFile => stored.plan_file.as_ref(),
            };
            let bytes = bytes.cloned().ok_or(Failure::NotFound)?;
            Ok(MemoryFile {
                path: stored.path.clone(),
                bytes,
                at: 0,
                chunk: self.chunk,
                fails_after: stored.fails_after,
            })
        }
    }

    impl File for MemoryFile {
        fn path(&self) -> String {
            self.path.clone()
        }

        fn read(&mut self, limit: u32) -> Result<Vec<u8>, Failure> {
            if self.fails_after.is_some_and(|end| self.at >= end) {
                return Err(Failure::Unavailable("broken".into()));
            }
            let size = if self.chunk == 0 { limit as usize } else { self.chunk };
            let end = (self.at + size).min(self.bytes.len()).min(self.fails_after.unwrap_or(usize::MAX));
            let chunk = self.bytes[self.at..end].to_vec();
            self.at = end;
            Ok(chunk)
        }
    }
}
