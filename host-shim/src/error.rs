//! What can go wrong around a plugin. What a tool itself refuses is a [`ToolError`](crate::ToolError) instead.

use crate::{Limit, journal::ReadError};

/// Why a plugin could not be loaded or attached, or a call brought no answer of the plugin.
///
/// Each sentence names the plugin where there is one. The next call works after every one of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no WebAssembly.
    #[error("this is no WebAssembly component: it does not begin as one")]
    NotWasm,
    /// The bytes are a core module.
    #[error("this is a core module, not a component: make a component of it with `wasm-tools component new`")]
    CoreModule,
    /// The component is cut short, damaged, or uses a feature that the host does not run.
    #[error("the component is damaged or uses what this host does not run ({0})")]
    Invalid(String),
    /// The component is not the one that was pinned.
    #[error("the component has the SHA-256 {found}, not the pinned {pinned}")]
    WrongHash {
        /// What was asked for.
        pinned: String,
        /// What it is.
        found: String,
    },
    /// The component is not pinned, and nothing was set up to compile such a one.
    #[error("the component is not pinned: pin its SHA-256 {0} if you trust it, or give the host a compiler process")]
    NotPinned(String),
    /// The compiler process did not do its work.
    #[error("the component could not be compiled ({0})")]
    Compile(String),
    /// The component imports something that no plugin gets.
    #[error("the component imports {import}, which no plugin gets: this host offers {offered} alone")]
    Import {
        /// What it imports.
        import: String,
        /// What there is.
        offered: &'static str,
    },
    /// The component was built for another version of the interface.
    #[error(
        "the component needs {wanted}, and this host has {offered}: use a component or a host of the other version"
    )]
    Version {
        /// What it needs or has.
        wanted: String,
        /// What the host has.
        offered: &'static str,
    },
    /// The component does not export an interface, or not in the form that the host knows.
    #[error("the component does not export {interface} as this host knows it ({reason})")]
    Export {
        /// The interface.
        interface: &'static str,
        /// What is missing or different.
        reason: String,
    },
    /// What the plugin says of itself breaks the rules of the interface.
    #[error("the plugin {plugin} describes itself wrongly ({fault})")]
    Description {
        /// The plugin's name, as far as it has one.
        plugin: String,
        /// What is wrong.
        fault: String,
    },
    /// The plugin does not take its configuration.
    #[error("the plugin {plugin} does not take its configuration ({reason})")]
    Config {
        /// The plugin.
        plugin: String,
        /// What the plugin says.
        reason: String,
    },
    /// A limit was reached.
    #[error("the plugin {plugin} reached a limit: {limit}{}", After(.kept))]
    Limit {
        /// The plugin.
        plugin: String,
        /// The limit.
        limit: Limit,
        /// What became of the appends of this call.
        kept: Kept,
    },
    /// The plugin broke down.
    #[error("the plugin {plugin} broke down ({reason}){}", After(.kept))]
    Trap {
        /// The plugin.
        plugin: String,
        /// What WebAssembly says.
        reason: String,
        /// What became of the appends of this call.
        kept: Kept,
    },
    /// The session could not be looked at.
    #[error("the session is not available: {0}")]
    Session(ReadError),
    /// The call was dropped before its turn came, or the runtime shuts down.
    #[error("the call of the plugin {plugin} was given up")]
    GivenUp {
        /// The plugin.
        plugin: String,
    },
    /// The host itself could not be set up.
    #[error("the WebAssembly engine cannot be set up ({0})")]
    Engine(String),
}

/// What became of the appends of a call that broke off. Entries that were appended stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The ids of the entries that were saved, in order.
    pub entries: Vec<String>,
    /// Was one more write under way, of which it is unknown whether it was kept? The session must be opened again then.
    pub unknown: bool,
}

/// Cuts a text of a plugin to at most `limit` bytes, at the edge of a character.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].to_owned()
}

struct After<'a>(&'a Kept);

impl std::fmt::Display for After<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.entries[..] {
            [] if self.0.unknown => {}
            [] => f.write_str("; nothing of this call was saved")?,
            [one] => write!(f, "; this call had already saved the entry {one}")?,
            several => write!(f, "; this call had already saved the entries {}", several.join(", "))?,
        }
        if self.0.unknown {
            f.write_str("; a write was under way, and it is unknown whether it was kept: reopen the session")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_characters() {
        assert_eq!(shorten("aä", 2), "a");
        assert_eq!(shorten("aä", 3), "aä");
        assert_eq!(shorten("aä", 9), "aä");
        assert_eq!(shorten("ä", 0), "");
    }
}
