//! Session files of Pi, with what the real Pi makes of them.

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// One session file.
pub struct Fixture {
    /// The name of its folder.
    pub name: String,
    /// The session file. It must not be written to: see [`Fixture::copy`].
    pub file: PathBuf,
    /// What the real Pi makes of it.
    pub expected: Value,
}

impl Fixture {
    /// A copy of the session file that may be changed.
    ///
    /// # Panics
    ///
    /// Where it cannot be made.
    pub fn copy(&self, folder: &Path) -> PathBuf {
        let copy = folder.join("session.jsonl");
        fs::write(&copy, fs::read(&self.file).expect("the fixture is there")).expect("the folder can be written");
        copy
    }
}

/// The folder of the fixtures.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pi-session")
}

/// One fixture by its name.
///
/// # Panics
///
/// Where there is none.
pub fn fixture(name: &str) -> Fixture {
    let folder = folder().join(name);
    let expected = fs::read_to_string(folder.join("expected.json")).expect("the fixture is there");
    Fixture { name: name.into(), file: folder.join("session.jsonl"), expected: tolerant(&expected) }
}

/// All of them.
///
/// # Panics
///
/// Where they are not there.
pub fn all() -> Vec<Fixture> {
    let index = fs::read_to_string(folder().join("index.json")).expect("the fixtures are there");
    let index: Vec<Value> = serde_json::from_str(&index).expect("JSON");
    index.iter().map(|entry| fixture(entry["name"].as_str().expect("a name"))).collect()
}

/// Reads JSON in which lone surrogates may stand: they become U+FFFD.
fn tolerant(json: &str) -> Value {
    let mut text = String::new();
    let mut rest = json;
    while let Some(at) = rest.find("\\u") {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        let unit = |text: &str| text.strip_prefix("\\u").and_then(|t| u32::from_str_radix(t.get(..4)?, 16).ok());
        let even = before.len() - before.trim_end_matches('\\').len();
        match (even % 2 == 0).then(|| unit(escape)).flatten() {
            Some(0xd800..0xdc00) if matches!(escape.get(6..).and_then(unit), Some(0xdc00..0xe000)) => {
                text.push_str(&escape[..12]);
                rest = &escape[12..];
            }
            Some(0xd800..0xe000) => {
                text.push('\u{fffd}');
                rest = &escape[6..];
            }
            _ => {
                text.push_str(&escape[..2]);
                rest = &escape[2..];
            }
        }
    }
    text.push_str(rest);
    serde_json::from_str(&text).expect("JSON")
}
