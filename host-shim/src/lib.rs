//! Runs sandboxed plan plugins on the session journal of any agent runtime.
//!
//! WIP
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod components;
mod error;
pub mod journal;
mod limits;
mod plugin;
mod sandbox;

pub use error::{Error, Kept};
pub use limits::{Limit, Limits};
pub use plugin::*;
pub use sandbox::{Compiler, compile_standard_input};
