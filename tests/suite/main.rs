//! The real components under wasmtime, on the real journals.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
mod component;
mod failures;
mod faults;
mod history;
mod hostile;
mod journals;
#[path = "../../host-shim/tests/faults/ledger.rs"]
#[allow(dead_code, reason = "the tests of the real command need all of it")]
mod ledger;
mod limits;
mod model;
mod pi_fixtures;
mod pi_sharing;
mod pi_writing;
mod profiles;
mod queue;
mod slow;
mod sql_faults;
mod transcripts;
mod transfer;
