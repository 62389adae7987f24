//! The header of a session file, and the name that Pi gives a file.

use super::line::Line;
use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use serde::Serialize;
use std::{borrow::Cow, env};
use uuid::Uuid;

/// What a header says of its session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub(super) id: String,
    pub(super) version: f64,
}

impl Header {
    /// Reads a header; `None` where the line is none that Pi takes.
    pub(super) fn read(line: &Line<'_>) -> Option<Header> {
        if !line.is_header() {
            return None;
        }
        line.id().map(|id| Header { id: id.into_owned(), version: line.version() })
    }

    /// In version 1 entries have neither ids nor parents: each follows the one before.
    pub(super) fn is_linear(&self) -> bool {
        self.version < 2.0
    }

    /// What must be done before entries can be appended, or nothing.
    pub(super) fn why_read_only(&self) -> Option<String> {
        match self.version {
            2.0 | 3.0 => None,
            version if version < 3.0 => Some(format!(
                "the session file has the format version {version}, to which nothing can be appended: open it once with Pi, which brings it to version 3"
            )),
            version => Some(format!(
                "the session file has the format version {version}, newer than the 3 that this program can append to: use a newer one"
            )),
        }
    }
}

/// A session that has no file yet, or an empty one.
#[derive(Debug, Clone)]
pub(super) struct NewSession {
    pub(super) id: String,
    created: Timestamp,
}

impl NewSession {
    pub(super) fn new() -> NewSession {
        NewSession { id: Uuid::now_v7().to_string(), created: Timestamp::now() }
    }

    /// One that was made elsewhere.
    #[cfg(feature = "sql")]
    pub(super) fn of(id: String, created: Timestamp) -> NewSession {
        NewSession { id, created }
    }

    /// The name that Pi gives the file of this session.
    pub(super) fn file_name(&self) -> String {
        format!("{}_{}.jsonl", iso(self.created).replace([':', '.'], "-"), self.id)
    }

    /// The header's line, with its line feed.
    pub(super) fn header_line(&self) -> String {
        #[derive(Serialize)]
        struct HeaderLine<'a> {
            r#type: &'a str,
            version: u32,
            id: &'a str,
            timestamp: String,
            cwd: Cow<'a, str>,
        }
        let cwd = env::current_dir().unwrap_or_else(|_| "/".into());
        let line = HeaderLine {
            r#type: "session",
            version: 3,
            id: &self.id,
            timestamp: iso(self.created),
            cwd: cwd.to_string_lossy(),
        };
        let mut text = serde_json::to_string(&line).expect("plain data");
        text.push('\n');
        text
    }
}

/// A time as `Date.prototype.toISOString` writes it.
pub(super) fn iso(time: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
    PRINTER.timestamp_to_string(&time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_times_as_pi_writes_them() {
        let created: Timestamp = "2026-01-02T03:04:05.006Z".parse().expect("a time");
        let session = NewSession { id: "019b7ca9-f038-72f4-8368-18c821c01543".into(), created };
        assert_eq!(session.file_name(), "2026-01-02T03-04-05-006Z_019b7ca9-f038-72f4-8368-18c821c01543.jsonl");
        let line = session.header_line();
        assert!(
            line.starts_with(r#"{"type":"session","version":3,"id":"019b7ca9-f038-72f4-8368-18c821c01543","timestamp":"2026-01-02T03:04:05.006Z","cwd":"/"#),
            "{line}"
        );
        assert!(line.ends_with("\"}\n"));
        assert_eq!(iso("2026-01-02T03:04:05.1239Z".parse().expect("a time")), "2026-01-02T03:04:05.123Z");
        assert_eq!(iso("2026-01-02T03:04:05Z".parse().expect("a time")), "2026-01-02T03:04:05.000Z");
    }
}
