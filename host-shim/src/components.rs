//! The components that come with this crate, as bytes; and others, out of files.
//!
//! Those of this crate are trusted as it is itself: [`Host::load`](crate::Host::load) compiles them in its own process.

use crate::Limits;
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The plan tools `plan_create`, `plan_advance` and `plan_get`, and the interface `plans`.
pub const PLAN_EXECUTE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plan-execute.wasm"));

/// The tools `plan_history` and `plan_body`, which read the transcripts of coding agents through the interface `transcripts`.
pub const PLAN_HISTORY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plan-history.wasm"));

/// Every component of this crate, by its name.
pub const ALL: [(&str, &[u8]); 2] = [("plan-execute", PLAN_EXECUTE), ("plan-history", PLAN_HISTORY)];

/// Those of [`ALL`] that the host of this crate can run, by the names that profiles use. [`PLAN_HISTORY`] is not among them: the
/// host does not offer `transcripts` yet.
pub const SERVED: [(&str, &[u8]); 1] = [("plan-execute", PLAN_EXECUTE)];

/// Other names that profiles may use, each with the one in [`SERVED`]: those of the plugins of Pi Harness that a component of
/// this crate takes the place of.
pub const OTHER_NAMES: [(&str, &str); 1] = [("@pi-harness/plugin-plan-execute", "plan-execute")];

/// The component of this name, or other name, with the name in [`SERVED`].
pub fn find(name: &str) -> Option<(&'static str, &'static [u8])> {
    let name = OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| name);
    SERVED.into_iter().find(|(known, _)| *known == name)
}

/// Reads a component out of a file; of one that is too large, a byte more than [`Limits::component`], so that a host refuses
/// it.
///
/// # Errors
///
/// There is no such file, it cannot be read, or it is no regular file.
pub fn read(file: &Path, limits: &Limits) -> io::Result<Vec<u8>> {
    read_at_most(file, limits.component as u64 + 1)
}

/// Reads a regular file as far as `most` bytes. Others, such as pipes, might never end.
pub(crate) fn read_at_most(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Is this one of them, byte for byte?
pub(crate) fn is_bundled(bytes: &[u8]) -> bool {
    ALL.iter().any(|(_, bundled)| *bundled == bytes)
}
