//! Profiles: which plugins run in a session, each with its configuration, its grants and its limits.
//!
//! A profile is a YAML list, as Pi Harness has them:
//!
//! ```yaml
//! - id: plan
//!   name: "@pi-harness/plugin-plan-execute" # or plan-execute
//!   config: {}
//! - id: notes
//!   name: plugins/notes.wasm
//!   sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//!   config: {folder: inbox}
//!   grants: [demo/notes]
//!   limits: {memory: 64 MiB, compute: 5 s}
//! ```
//!
//! | key | what it says |
//! | --- | --- |
//! | `id` | The entry's own name: 1 to 64 of the characters A-Z, a-z, 0-9, `-`, `_` and `.`; no two entries have the same. |
//! | `name` | A bundled component (see [`components`]), or the path of one, from the profile's folder. Write `./plan-execute` for a file of that name. |
//! | `config` | Optional: a mapping, which the plugin gets as JSON. It gets `{}` where there is none. |
//! | `sha256` | Optional: what the component's SHA-256 must be. A component that is pinned so is compiled in this process; any other one that is not bundled, in the [compiler process](crate::HostBuilder::compiler). |
//! | `grants` | Optional: the custom types that the plugin may read and append. Each must be one that it declares, or below one. It is granted all that it declares where this key is missing, and nothing by `[]`. |
//! | `limits` | Optional: where the plugin's limits differ from the [host's](crate::Limits). |
//!
//! The keys of `limits` are the fields of [`Limits`], with `-` for `_`, but `operation` (it is the session's), `instances` and
//! `waiting` (which all plugins share). Sizes are numbers of bytes or have a unit (`64 MiB`, `2 MB`), times have one (`500 ms`, `2 min`),
//! and all others are whole numbers. A profile may raise limits as well as lower them: whoever writes it decides.
//!
//! Plugins of one profile run side by side. Two of them cannot have tools of the same name; they may be granted the same
//! custom type, and then see each other's entries. An unknown key, a repeated one, and whatever else is not as above is an
//! error that names the line.
//!
//! A profile has at most 1 MiB, 64 levels, 50,000 values and 100 aliases.
//!
//! # Example
//!
//! ```
//! use plan_execute_host::{Host, journal::Memory, profile::Profile};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("plugins.yaml");
//! # std::fs::write(&file, "- id: plan\n  name: plan-execute\n  limits: {appends: 1}\n")?;
//! let host = Host::new()?;
//! let plugins = Profile::read(&file)?.load(&host).await?;
//!
//! let session = host.open(Memory::default()).await?;
//! let mut attached = Vec::new();
//! for plugin in &plugins {
//!     attached.push(plugin.attach(&session).await?);
//! }
//! let tools = attached.iter().find(|attached| attached.plugin().tool("plan_get").is_some()).expect("it is there");
//! assert_eq!(tools.call("plan_get", "{}").await?.expect_err("nothing is planned").code, "no-plan");
//! # Ok(())
//! # }
//! ```

mod error;
mod limits;
mod load;
mod yaml;

pub use error::{Fault, ProfileError};
pub use load::ProfilePlugin;

use crate::{Limits, components};
use limits::Overrides;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};
use yaml::{Written, line};

/// The largest profile, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// A profile that was read: every entry is well formed. Whether its plugins can be had shows when they are
/// [loaded](Profile::load).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    path: PathBuf,
    entries: Vec<Entry>,
}

/// One plugin of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Unique in the profile.
    pub id: String,
    /// The component, as it is written.
    pub name: String,
    /// Where that is.
    pub source: Source,
    /// The configuration, as JSON text: an object.
    pub config: String,
    /// The SHA-256 that the component must have: 64 hex digits.
    pub sha256: Option<String>,
    /// The custom types that are granted; none where the plugin gets those that it declares.
    pub grants: Option<Vec<String>>,
    limits: Overrides,
    lines: Lines,
}

/// Where a component is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In this crate, under this name in [`components::SERVED`].
    Bundled(&'static str),
    /// In a file.
    File(PathBuf),
}

/// The lines where values of an entry stand, for errors.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lines {
    id: u64,
    name: u64,
    config: u64,
    sha256: u64,
    grants: Vec<u64>,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    ///
    /// See [`Fault`]. No component is looked at yet.
    pub fn read(path: impl AsRef<Path>) -> Result<Profile, ProfileError> {
        let path = path.as_ref();
        let bytes = components::read_at_most(path, MAX_BYTES as u64 + 1)
            .map_err(|e| ProfileError::new(path, None, Fault::Unreadable(e.to_string())))?;
        if bytes.len() > MAX_BYTES {
            return Err(ProfileError::new(path, None, Fault::TooLarge(MAX_BYTES)));
        }
        let text = String::from_utf8(bytes).map_err(|e| {
            let (before, _) = e.as_bytes().split_at(e.utf8_error().valid_up_to());
            let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            ProfileError::new(path, line, Fault::Yaml("this is no UTF-8".into()))
        })?;
        Profile::parse(&text, path)
    }

    /// Takes the text of a profile. `path` is where it comes from: its folder is where the paths in it begin, and errors name
    /// it.
    ///
    /// # Errors
    ///
    /// See [`Fault`].
    pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<Profile, ProfileError> {
        let path = path.as_ref();
        if text.len() > MAX_BYTES {
            return Err(ProfileError::new(path, None, Fault::TooLarge(MAX_BYTES)));
        }
        let written = yaml::read(text, path)?;
        if written.is_empty() {
            return Err(ProfileError::new(path, None, Fault::Empty));
        }
        let mut ids = HashMap::new();
        let mut entries = Vec::with_capacity(written.len());
        for written in written {
            let entry = Entry::new(written, path)?;
            if let Some(first) = ids.insert(entry.id.clone(), entry.lines.id) {
                let fault = Fault::IdTwice { id: entry.id, first };
                return Err(ProfileError::new(path, entry.lines.id, fault));
            }
            entries.push(entry);
        }
        Ok(Profile { path: path.into(), entries })
    }

    /// Where it comes from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Entry {
    /// Judges what is written. `profile` is where it is.
    fn new(written: Written, profile: &Path) -> Result<Entry, ProfileError> {
        let Written { id, name, config, sha256, grants, limits } = written;
        let lines = Lines {
            id: line(&id),
            name: line(&name),
            config: config.as_ref().map_or(line(&id), line),
            sha256: sha256.as_ref().map_or(line(&name), line),
            grants: grants.iter().flatten().map(line).collect(),
        };
        if !is_id(&id.value) {
            return Err(ProfileError::new(profile, lines.id, Fault::Id(excerpt(&id.value).into())));
        }
        if let Some(sha256) = &sha256
            && !is_sha256(&sha256.value)
        {
            return Err(ProfileError::new(profile, lines.sha256, Fault::Sha256));
        }
        let source = match components::find(&name.value) {
            Some((name, _)) => Source::Bundled(name),
            None => Source::File(profile.parent().unwrap_or(Path::new("")).join(&name.value)),
        };
        Ok(Entry {
            id: id.value,
            name: name.value,
            source,
            config: config.map_or_else(|| "{}".into(), |config| serde_json::Value::from(config.value).to_string()),
            sha256: sha256.map(|sha256| sha256.value),
            grants: grants.map(|grants| grants.into_iter().map(|grant| grant.value).collect()),
            limits: limits.unwrap_or_default(),
            lines,
        })
    }

    /// The limits of this plugin, on a host with the limits `host`.
    pub fn limits(&self, host: &Limits) -> Limits {
        self.limits.on(host)
    }
}

fn is_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The beginning of what somebody wrote, as long as an error has room for it.
fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(80)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn parse(text: &str) -> Result<Profile, ProfileError> {
        Profile::parse(text, "folder/p.yaml")
    }

    fn error(text: &str) -> String {
        match parse(text) {
            Ok(profile) => panic!("{text:?} was taken: {profile:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_a_profile_says() {
        let profile = parse(
            "# Plugins\n- id: plan\n  name: '@pi-harness/plugin-plan-execute'\n- id: Notes_1.x\n  name: plugins/notes.wasm\n  \
             config: {folder: in, deep: [1, 1.5, null, yes, {a: true}], big: 18446744073709551615}\n  \
             sha256: 0000000000000000000000000000000000000000000000000000000000000000\n  grants: [demo/a, demo/b/c]\n  \
             limits:\n    memory: 64 MiB\n    compute: 5 s\n    table-elements: 7\n",
        )
        .expect("a profile");
        let [plan, notes] = profile.entries() else { panic!("{profile:?}") };
        assert_eq!((plan.id.as_str(), plan.config.as_str()), ("plan", "{}"));
        assert_eq!(plan.source, Source::Bundled("plan-execute"));
        assert_eq!((&plan.sha256, &plan.grants), (&None, &None));
        assert_eq!(plan.limits(&Limits::default()), Limits::default());
        assert_eq!(notes.source, Source::File("folder/plugins/notes.wasm".into()));
        assert_eq!(notes.config, r#"{"folder":"in","deep":[1,1.5,null,"yes",{"a":true}],"big":18446744073709551615}"#);
        assert_eq!(notes.sha256.as_deref(), Some("0".repeat(64).as_str()));
        assert_eq!(notes.grants.as_deref(), Some(&["demo/a".to_owned(), "demo/b/c".to_owned()][..]));
        let mut limits = Limits::default();
        (limits.memory, limits.compute, limits.table_elements) = (64 << 20, std::time::Duration::from_secs(5), 7);
        assert_eq!(notes.limits(&Limits::default()), limits);
    }

    #[test]
    fn other_ways_to_write_it() {
        for text in [
            "- {id: a, name: plan-execute}",
            "[{\"id\": \"a\", \"name\": \"plan-execute\"}]",
            "---\r\n- id: a\r\n  name: plan-execute\r\n...\r\n",
            "\u{feff}- id: a\n  name: plan-execute\n",
            "- id: &x a\n  name: plan-execute\n  config:\n  grants:\n  limits:\n  sha256:\n",
            "- id: 1\n  name: true\n  grants: []\n  limits: {}\n",
        ] {
            if let Err(error) = parse(text) {
                panic!("{text:?}: {error}");
            }
        }
        let shared = "- id: a\n  name: x\n  config: &c {k: v}\n- id: b\n  name: y\n  config: *c\n";
        assert_eq!(parse(shared).expect("an alias").entries()[1].config, r#"{"k":"v"}"#);
        // A path that is absolute stays so; a profile without a folder is in the working folder.
        let source =
            |text: &str, path: &str| Profile::parse(text, path).expect("a profile").entries()[0].source.clone();
        assert_eq!(source("- {id: a, name: /x/y.wasm}", "folder/p.yaml"), Source::File("/x/y.wasm".into()));
        assert_eq!(source("- {id: a, name: y.wasm}", "p.yaml"), Source::File("y.wasm".into()));
        assert_eq!(source("- {id: a, name: ./plan-execute}", "p.yaml"), Source::File("./plan-execute".into()));
    }

    #[test]
    fn faults_name_their_line() {
        let long = "x".repeat(65);
        let cases = [
            (
                "",
                "p.yaml: the profile names no plugin: write a list of entries, such as `- {id: plan, name: plan-execute}`",
            ),
            (
                "# nothing\n",
                "p.yaml: the profile names no plugin: write a list of entries, such as `- {id: plan, name: plan-execute}`",
            ),
            (
                "- id: a\n  nmae: b\n",
                "p.yaml:2: there is no key \"nmae\" here: the keys are id, name, config, sha256, grants, limits",
            ),
            ("- id: a\n", "p.yaml:1: this entry has no name: each one needs an id and a name"),
            ("- {id: a, name: b}\n- name: b\n", "p.yaml:2: this entry has no id: each one needs an id and a name"),
            ("- id: a\n  name: b\n  id: c\n", "p.yaml:3: the key \"id\" stands here twice: leave one of the two out"),
            (
                "- id: a\n  name: b\n  config:\n    k: 1\n    k: 2\n",
                "p.yaml:5: the key \"k\" stands here twice: leave one of the two out",
            ),
            (
                "- id: a\n  name: b\n- id: b\n  name: b\n- id: a\n  name: c\n",
                "p.yaml:5: the id \"a\" stands in line 1 already: give each entry an id of its own",
            ),
            (
                "- id: ''\n  name: b\n",
                "p.yaml:1: the id \"\" is not 1 to 64 of the characters A-Z, a-z, 0-9, `-`, `_` and `.`",
            ),
            (
                "-\n  id: a b\n  name: b\n",
                "p.yaml:2: the id \"a b\" is not 1 to 64 of the characters A-Z, a-z, 0-9, `-`, `_` and `.`",
            ),
            (
                "- id: \"a\\nb\"\n  name: b\n",
                "p.yaml:1: the id \"a\\nb\" is not 1 to 64 of the characters A-Z, a-z, 0-9, `-`, `_` and `.`",
            ),
            (
                &format!("- id: {long}\n  name: b\n"),
                &format!(
                    "p.yaml:1: the id \"{long}\" is not 1 to 64 of the characters A-Z, a-z, 0-9, `-`, `_` and `.`"
                ),
            ),
            (
                "- id: ~\n  name: b\n",
                "p.yaml:1: here should be a text, and there is nothing: quote what is meant as one",
            ),
            ("- id: [a]\n  name: b\n", "p.yaml:1: here should be a text"),
            ("id: a\nname: b\n", "p.yaml:1: here should be a list, such as `- …`"),
            ("- a\n", "p.yaml:1: here should be a mapping, such as `key: value`"),
            ("- id: a\n  name: b\n  config: [1]\n", "p.yaml:3: here should be a mapping, such as `key: value`"),
            (
                "- id: a\n  name: b\n  config:\n    x: .nan\n",
                "p.yaml:4: this cannot be read (value `.nan` is not a finite number)",
            ),
            ("- id: a\n  name: b\n  grants: x\n", "p.yaml:3: here should be a list, such as `- …`"),
            ("- id: a\n  name: b\n  grants:\n  - x\n  - [y]\n", "p.yaml:5: here should be a text"),
            (
                "- id: a\n  name: b\n  sha256: abc\n",
                "p.yaml:3: this is no SHA-256: write its 64 hex digits, as `sha256sum FILE` prints them",
            ),
            ("- id: a\n  name: b\n  limits: 5\n", "p.yaml:3: here should be a mapping, such as `key: value`"),
            (
                "- id: a\n  name: b\n  limits:\n    memory: lots\n",
                "p.yaml:4: \"lots\" is no size: write a number of bytes, or one with its unit, such as 64 MiB",
            ),
            (
                "- id: a\n  name: b\n  limits:\n    memory: 1\n    compute: 5\n",
                "p.yaml:5: \"5\" is no time: write one that is longer than none, with its unit, such as 500 ms or 2 min",
            ),
            (
                "- id: a\n  name: b\n  limits:\n    appends: -1\n",
                "p.yaml:4: \"-1\" is no number: write a whole one, such as 16",
            ),
            (
                "- id: a\n  name: b\n  limits:\n    instances: 1\n",
                "p.yaml:4: there is no key \"instances\" here: the keys are memory, core-instances, memories, tables, table-elements, compute, call, operations, appends, handles, payload, payload-read, crossing, arguments, result, tools, tool-definitions, component, compile, compile-memory, compiled",
            ),
            (
                "- &d\n  id: a\n  name: b\n- <<: *d\n  id: b\n",
                "p.yaml:4: `<<` has no meaning in a profile: write the keys out",
            ),
            ("- id: a\n  name: !x b\n", "p.yaml:2: this cannot be read (unsupported tag `!x`)"),
            ("- id: a\n  name: *x\n", "p.yaml:2: this cannot be read (reference to unknown value)"),
            ("- id: a\n  name: b\n---\n- id: b\n", "p.yaml:4: a second document begins here: a profile is one"),
            ("- id: a\n\tname: b\n", "p.yaml:1: this cannot be read (while scanning a plain scalar, found a tab)"),
            ("- {id: a\n", "p.yaml:1: this cannot be read (unclosed bracket \\'{\\')"),
        ];
        for (text, sentence) in cases {
            assert_eq!(error(text), format!("folder/{sentence}"), "{text:?}");
        }
    }

    /// What would grow or nest without end is refused within bounds, in one short sentence.
    #[test]
    fn bombs() {
        let entry = |config: &str| format!("- id: a\n  name: b\n  config:\n    x: {config}\n");
        let mut laughs = "&a [x,x,x,x,x,x,x,x,x]".to_owned();
        for (before, after) in ('a'..'j').zip('b'..='j') {
            let nine = [format!("*{before}").as_str(); 9].join(",");
            laughs.push_str(&format!(", &{after} [{nine}]"));
        }
        let text = "y".repeat(500_000);
        let copies = format!("[&t {text}, {}]", vec!["*t"; 100].join(","));
        for text in [
            entry(&format!("[{laughs}]")),
            entry(&copies),
            entry(&format!("[&t x, {}]", vec!["*t"; 1_000].join(","))),
            entry(&format!("{}{}", "[".repeat(100), "]".repeat(100))),
            entry(&vec!["- "; 1_000].concat()),
            entry(&format!("[{}]", "0,".repeat(100_000))),
            "[".repeat(MAX_BYTES),
            "- ".repeat(MAX_BYTES / 2),
            "{a: ".repeat(MAX_BYTES / 4),
            "&a ".repeat(MAX_BYTES / 3),
            "a".repeat(MAX_BYTES),
            "\n".repeat(MAX_BYTES),
            "a".repeat(MAX_BYTES + 1),
        ] {
            let error = error(&text);
            assert!(error.len() < 400 && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn files_that_are_no_profile() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("p.yaml");
        let read = |content: &[u8]| {
            fs::write(&path, content).expect("it can be written");
            Profile::read(&path).expect_err("no profile")
        };
        let error = read(b"- id: a\n  name: \xff\n");
        assert_eq!((error.line, *error.fault), (Some(2), Fault::Yaml("this is no UTF-8".into())));
        assert_eq!(*read(&vec![b' '; MAX_BYTES + 1]).fault, Fault::TooLarge(MAX_BYTES));
        assert_eq!(*read(&vec![0xff; MAX_BYTES + 1]).fault, Fault::TooLarge(MAX_BYTES));
        for missing in [folder.path().join("none"), folder.path().into()] {
            let error = Profile::read(&missing).expect_err("no profile");
            assert!(matches!(*error.fault, Fault::Unreadable(_)) && error.line.is_none(), "{error}");
        }
    }
}
