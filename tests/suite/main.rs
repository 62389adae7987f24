//! The real components under wasmtime, on the real journals.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
mod component;
mod failures;
mod history;
mod journals;
mod limits;
mod model;
mod pi_fixtures;
mod pi_sharing;
mod pi_writing;
mod queue;
mod sql_faults;
mod transcripts;
mod transfer;
