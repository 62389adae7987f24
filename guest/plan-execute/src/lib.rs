//! The plan tools: `plan_create`, `plan_advance` and `plan_get`.
//!
//! Everything here but `component` is plain Rust that knows nothing of WebAssembly: it compiles natively, where its tests
//! run. A plan goes through these modules:
//!
//! * [`draft`]: what a caller proposes becomes a plan, or a list of faults.
//! * [`saved`]: what a journal entry holds becomes a plan, or the reason why not.
//! * [`plan`]: what a plan is, and how a step's status may change.
//! * [`dependencies`]: the graph of the steps.
//! * [`overview`]: what is ready, what is blocked; the one derivation for all views.
//! * [`planner`]: the operations on a branch, in the order of their checks; the latch after a failed write.
//! * [`tools`]: the same operations with JSON in and out.
//! * [`config`]: the plugin's configuration.
//! * `schema` (in tests): the types behind the files in `schemas/`.
//! * [`journal`]: what the operations need of a session journal.

pub mod config;
pub mod dependencies;
pub mod draft;
pub mod error;
pub mod journal;
pub mod overview;
pub mod plan;
pub mod planner;
pub mod saved;
#[cfg(test)]
mod schema;
pub mod tools;

#[cfg(target_arch = "wasm32")]
mod component;

/// The custom entry type that plans are saved under: the reference plugin's, so that a host can swap one for the other.
pub const CUSTOM_TYPE: &str = "pi-harness/plan-execute";
