//! Loads the plugins of a profile and attaches them.

use super::{Entry, Fault, Profile, ProfileError, Source};
use crate::{Attached, Error, Grants, Host, Limits, Plugin, Session, components};
use std::{
    borrow::Cow,
    collections::{HashMap, hash_map},
    io,
    path::PathBuf,
};

/// A plugin of a profile that was loaded, with what the profile says of it.
#[derive(Clone)]
pub struct ProfilePlugin {
    id: String,
    plugin: Plugin,
    config: String,
    grants: Grants,
    profile: PathBuf,
    /// Where its configuration stands.
    line: u64,
}

impl Profile {
    /// Loads every plugin, in order, each within its own limits. What the profile does not say is as `host` has it.
    ///
    /// # Errors
    ///
    /// A component that is not there, is no plugin of this host or is not the one that was pinned; a grant of a type that
    /// its plugin does not declare; two plugins with tools of one name.
    pub async fn load(&self, host: &Host) -> Result<Vec<ProfilePlugin>, ProfileError> {
        let mut plugins = Vec::with_capacity(self.entries.len());
        let mut tools: HashMap<String, &Entry> = HashMap::new();
        for entry in &self.entries {
            let plugin = self.load_one(entry, host).await?;
            for tool in plugin.tools() {
                match tools.entry(tool.name.clone()) {
                    hash_map::Entry::Vacant(free) => _ = free.insert(entry),
                    hash_map::Entry::Occupied(taken) => {
                        let first = taken.get();
                        let fault = Fault::ToolTwice {
                            tool: tool.name.clone(),
                            first: first.id.clone(),
                            line: first.lines.id,
                            second: entry.id.clone(),
                        };
                        return Err(self.error(entry.lines.id, fault));
                    }
                }
            }
            plugins.push(ProfilePlugin {
                id: entry.id.clone(),
                grants: self.grants(entry, &plugin)?,
                plugin,
                config: entry.config.clone(),
                profile: self.path.clone(),
                line: entry.lines.config,
            });
        }
        Ok(plugins)
    }

    async fn load_one(&self, entry: &Entry, host: &Host) -> Result<Plugin, ProfileError> {
        let host = host.with_limits(entry.limits(host.limits()));
        let component = entry.source.read(host.limits()).map_err(|e| {
            let fault = Fault::Name { name: super::excerpt(&entry.name).into(), reason: e.to_string() };
            self.error(entry.lines.name, fault)
        })?;
        let loaded = match &entry.sha256 {
            Some(sha256) => host.load_pinned(&component, sha256).await,
            None => host.load(&component).await,
        };
        loaded.map_err(|error| {
            let line = match error {
                Error::WrongHash { .. } => entry.lines.sha256,
                _ => entry.lines.name,
            };
            self.error(line, Fault::NotLoaded { name: super::excerpt(&entry.name).into(), error })
        })
    }

    fn grants(&self, entry: &Entry, plugin: &Plugin) -> Result<Grants, ProfileError> {
        let Some(grants) = &entry.grants else { return Ok(Grants::Declared) };
        let info = plugin.info();
        let declared = Grants::Only(info.custom_types.clone());
        match grants.iter().zip(&entry.lines.grants).find(|(grant, _)| !declared.cover(grant)) {
            None => Ok(Grants::Only(grants.clone())),
            Some((grant, line)) => {
                let grant = super::excerpt(grant).into();
                let fault = Fault::Grant { grant, plugin: info.name.clone(), declared: info.custom_types.clone() };
                Err(self.error(*line, fault))
            }
        }
    }

    fn error(&self, line: u64, fault: Fault) -> ProfileError {
        ProfileError::new(&self.path, line, fault)
    }
}

impl Source {
    fn read(&self, limits: &Limits) -> io::Result<Cow<'static, [u8]>> {
        match self {
            Source::Bundled(name) => {
                let (_, bytes) = components::find(name).ok_or(io::ErrorKind::NotFound)?;
                Ok(Cow::Borrowed(bytes))
            }
            Source::File(path) => components::read(path, limits).map(Cow::Owned),
        }
    }
}

impl ProfilePlugin {
    /// The id of its entry.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The plugin.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// Its configuration, as JSON text.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// What it is granted.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Attaches it to a session, with its configuration and its grants.
    ///
    /// # Errors
    ///
    /// [`Fault::Attach`], in the line of the configuration: the plugin does not take it.
    pub async fn attach(&self, session: &Session) -> Result<Attached, ProfileError> {
        let attached = session.attach(&self.plugin, &self.config, self.grants.clone()).await;
        attached.map_err(|error| ProfileError::new(&self.profile, self.line, Fault::Attach(error)))
    }
}
