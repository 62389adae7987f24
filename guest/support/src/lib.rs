//! What two or more of the plan components share.
//!
//! Nothing here knows a plan, a tool or WIT: the modules read and write data that other programs made.
//!
//! * [`loose`]: reads the JSON data model and remembers what was wrong instead of stopping at it.
//! * [`payload`]: the two encodings of a journal payload.
//! * [`text`]: text as JavaScript trims, measures and escapes it.
//! * [`tool`]: how a tool is described to a model.

pub mod loose;
pub mod payload;
pub mod text;
pub mod tool;
