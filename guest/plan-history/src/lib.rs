//! Plan histories out of the transcripts of coding agents: `plan_history` and `plan_body`.
//!
//! Everything here but `component` is plain Rust that knows nothing of WebAssembly: it compiles natively, where its tests
//! run. A transcript goes through these modules:
//!
//! * [`source`]: what the operations need of the host: sessions, and files as chunks.
//! * [`scan`]: whether a transcript can hold a plan at all, without reading it.
//! * [`lines`]: lines out of chunks, in bounded memory. [`json`]: what is of use in a line.
//! * [`agents`]: the lines and signals of each agent.
//! * [`record`]: numbered events, plans and answers of a session. [`answer`]: what a user said of a plan.
//! * [`history`] and [`body`]: the two operations. [`section`], [`title`], [`time`]: what they say of a plan.
//! * [`redact`]: masks secrets in what is given out. [`skipped`]: what was passed over.
//! * [`tools`], [`arguments`], [`error`], [`config`]: the operations as tools.
//! * `schema` (in tests): the types behind the files in `schemas/`.

pub mod agents;
pub mod answer;
pub mod arguments;
pub mod body;
pub mod config;
pub mod error;
pub mod history;
pub mod json;
pub mod lines;
pub mod record;
pub mod redact;
pub mod scan;
#[cfg(test)]
mod schema;
pub mod section;
pub mod skipped;
pub mod source;
#[cfg(test)]
mod tests;
pub mod text;
pub mod time;
pub mod title;
pub mod tools;

#[cfg(target_arch = "wasm32")]
mod component;
