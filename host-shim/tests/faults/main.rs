//! Faults of the real kind, on the real command: processes that are killed, disks that are full, servers that stop.
//!
//! `PLAN_EXECUTE_FAULTS` says how many faults of each kind are made: 10 otherwise. `tests/faults` makes 200 and prints the table.

#![cfg(all(feature = "mcp", feature = "sql", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disk;
mod killed;
mod ledger;
mod place;
mod postgres;
mod worker;
