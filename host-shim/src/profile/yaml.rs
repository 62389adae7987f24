//! The YAML of a profile: its shape, and what is said where it has another one.

use super::{Fault, ProfileError, limits::Overrides};
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::{Error, MessageFormatter, Options, Spanned, UserMessageFormatter, options::MergeKeyPolicy};
use std::path::Path;

/// How deep a profile may nest.
const MAX_DEPTH: usize = 64;
/// How many values it may have, those counted again that an alias stands for.
const MAX_VALUES: usize = 50_000;
/// How many aliases it may have.
const MAX_ALIASES: usize = 100;

/// One entry as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) id: Spanned<String>,
    pub(super) name: Spanned<String>,
    pub(super) config: Option<Spanned<Map<String, Value>>>,
    pub(super) sha256: Option<Spanned<String>>,
    pub(super) grants: Option<Vec<Spanned<String>>>,
    pub(super) limits: Option<Overrides>,
}

/// The line where a value stands.
pub(super) fn line<T>(value: &Spanned<T>) -> u64 {
    value.referenced.line()
}

/// Reads the entries. `path` is where they come from, for errors.
pub(super) fn read(text: &str, path: &Path) -> Result<Vec<Written>, ProfileError> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        let line = error.location().map(|location| location.line());
        ProfileError::new(path, line, Fault::Yaml(sentence(&error)))
    })
}

/// Strict, and within bounds: aliases are few, so that nothing grows when they are put in.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_VALUES,
            max_aliases: MAX_ALIASES,
            max_total_scalar_bytes: 4 * super::MAX_BYTES,
        },
        merge_keys: MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    }
}

/// What is wrong, and what would be right. Where the library's words do for users of a profile, they stay.
fn sentence(error: &Error) -> String {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => sentence(error),
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("there is no key {:?} here: the keys are {}", super::excerpt(field), expected.join(", "))
        }
        Error::SerdeMissingField { field, .. } => {
            format!("this entry has no {field}: each one needs an id and a name")
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {:?} stands here twice: leave one of the two out", super::excerpt(key))
        }
        Error::MergeKeyNotAllowed { .. } => "`<<` has no meaning in a profile: write the keys out".into(),
        Error::Unexpected { expected: "sequence start", .. } => "here should be a list, such as `- …`".into(),
        Error::Unexpected { expected: "mapping start", .. } => "here should be a mapping, such as `key: value`".into(),
        Error::Unexpected { expected: "string scalar", .. } => "here should be a text".into(),
        Error::NullIntoString { .. } => {
            "here should be a text, and there is nothing: quote what is meant as one".into()
        }
        Error::MultipleDocuments { .. } => "a second document begins here: a profile is one".into(),
        Error::Budget { .. } => {
            format!("a profile has at most {MAX_DEPTH} levels, {MAX_VALUES} values and {MAX_ALIASES} aliases")
        }
        Error::Message { msg, .. } => msg.clone(),
        other => format!("this cannot be read ({})", UserMessageFormatter.format_message(other).escape_debug()),
    }
}
