//! The components that come with this crate, as bytes.
//!
//! They are trusted as the crate itself is: [`Host::load`](crate::Host::load) compiles them in its own process.

/// The plan tools `plan_create`, `plan_advance` and `plan_get`, and the interface `plans`.
pub const PLAN_EXECUTE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plan-execute.wasm"));

/// The tools `plan_history` and `plan_body`, which read the transcripts of coding agents.
pub const PLAN_HISTORY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plan-history.wasm"));

/// Every component of this crate, by the name that profiles use.
pub const ALL: [(&str, &[u8]); 2] = [("plan-execute", PLAN_EXECUTE), ("plan-history", PLAN_HISTORY)];

/// Is this one of them, byte for byte?
pub(crate) fn is_bundled(bytes: &[u8]) -> bool {
    ALL.iter().any(|(_, bundled)| *bundled == bytes)
}
