//! What can be wrong with a profile.

use crate::Error;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// What is wrong with a profile, and in which line: `plugins.yaml:3: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    /// The profile, as it was named.
    pub path: PathBuf,
    /// The line, from 1; none where it is the file as a whole.
    pub line: Option<u64>,
    /// What is wrong.
    pub fault: Box<Fault>,
}

impl ProfileError {
    pub(super) fn new(path: &Path, line: impl Into<Option<u64>>, fault: Fault) -> ProfileError {
        ProfileError { path: path.into(), line: line.into(), fault: Box::new(fault) }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.fault)
    }
}

impl std::error::Error for ProfileError {}

/// What is wrong, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file cannot be read.
    #[error("the profile cannot be read ({0})")]
    Unreadable(String),
    /// The file is too large.
    #[error("the profile is larger than {0} bytes: keep what plugins work on out of it")]
    TooLarge(usize),
    /// It is no YAML, or not of the shape of a profile.
    #[error("{0}")]
    Yaml(String),
    /// It has no entry.
    #[error("the profile names no plugin: write a list of entries, such as `- {{id: plan, name: plan-execute}}`")]
    Empty,
    /// An id breaks the rules.
    #[error("the id {0:?} is not 1 to 64 of the characters A-Z, a-z, 0-9, `-`, `_` and `.`")]
    Id(String),
    /// Two entries have one id.
    #[error("the id {id:?} stands in line {first} already: give each entry an id of its own")]
    IdTwice {
        /// The id.
        id: String,
        /// The line of the entry that has it first.
        first: u64,
    },
    /// A hash is none.
    #[error("this is no SHA-256: write its 64 hex digits, as `sha256sum FILE` prints them")]
    Sha256,
    /// There is no such component.
    #[error("{name:?} is neither a bundled component ({}) nor a file that can be read ({reason})", bundled())]
    Name {
        /// The name.
        name: String,
        /// Why the file cannot be read.
        reason: String,
    },
    /// The component is no plugin of this host, or not the one that was pinned.
    #[error("{name:?} was not loaded: {error}")]
    NotLoaded {
        /// The name of the component.
        name: String,
        /// Why.
        error: Error,
    },
    /// A grant is of no type that the plugin declares.
    #[error("the plugin {plugin} does not declare the custom type {grant:?}: it declares {}", list(declared))]
    Grant {
        /// What was to be granted.
        grant: String,
        /// The plugin.
        plugin: String,
        /// What it declares.
        declared: Vec<String>,
    },
    /// Two plugins have tools of one name, and a model could not say which it means.
    #[error("the entries {:?} (line {line}) and {second:?} both have a tool {tool}: leave one of them out", first)]
    ToolTwice {
        /// The tool.
        tool: String,
        /// The id of the entry that has it first.
        first: String,
        /// The line of that entry.
        line: u64,
        /// The id of the other one.
        second: String,
    },
    /// The plugin cannot be attached; most often, it does not take its configuration.
    #[error("{0}")]
    Attach(Error),
}

fn bundled() -> String {
    use crate::components::{OTHER_NAMES, SERVED};
    let names = SERVED.iter().map(|(name, _)| *name).chain(OTHER_NAMES.iter().map(|(name, _)| *name));
    names.collect::<Vec<_>>().join(", ")
}

fn list(types: &[String]) -> String {
    if types.is_empty() { "none".into() } else { types.join(", ") }
}
