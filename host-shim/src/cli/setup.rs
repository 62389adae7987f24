//! The host, the plugin and the session that commands work with.

use super::Failure;
use clap::Args;
use etcetera::BaseStrategy;
use plan_execute_host::{
    Attached, Compiler, Grants, Host, Plugin, Session, components,
    journal::{
        Journal,
        pi::{OpenError, PiSession},
    },
};
use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The hidden command that compiles a component which nobody vouches for.
pub(super) const COMPILE: &str = "compile-component";

/// Which component to run.
#[derive(Args)]
pub(super) struct ComponentOption {
    /// Run this component instead of the built-in plan tools. It gets the custom types that it declares.
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
}

impl ComponentOption {
    /// Loads it for the one call that this process makes.
    pub(super) async fn load(&self) -> Result<Plugin, Failure> {
        self.load_into(host(false)?).await
    }

    async fn load_into(&self, host: Host) -> Result<Plugin, Failure> {
        match &self.component {
            None => Ok(host.load(components::PLAN_EXECUTE).await?),
            Some(file) => {
                let bytes = components::read(file, host.limits()).map_err(|e| unreadable(file, &e))?;
                host.load(&bytes).await.map_err(|e| Failure::Host(format!("{} was not loaded: {e}", file.display())))
            }
        }
    }
}

/// Which plugins to run.
#[derive(Args)]
pub(super) struct PluginsOption {
    #[command(flatten)]
    component: ComponentOption,
    /// Run the plugins of this profile: a YAML list of entries with the keys id, name (plan-execute, or the path of a
    /// component), config, sha256, grants and limits.
    #[cfg(feature = "profiles")]
    #[arg(long, value_name = "FILE", conflicts_with = "component")]
    profile: Option<PathBuf>,
}

/// The plugins that a command works with, in order. No two of them have tools of one name.
pub(super) enum Plugins {
    One(Plugin),
    #[cfg(feature = "profiles")]
    Several(Host, Vec<plan_execute_host::profile::ProfilePlugin>),
}

impl PluginsOption {
    /// Loads them for the one call that this process makes, if it makes any.
    pub(super) async fn load(&self) -> Result<Plugins, Failure> {
        self.load_into(host(false)?).await
    }

    /// Loads them for a process that goes on.
    #[cfg(feature = "mcp")]
    pub(super) async fn load_for_many_calls(&self) -> Result<Plugins, Failure> {
        self.load_into(host(true)?).await
    }

    async fn load_into(&self, host: Host) -> Result<Plugins, Failure> {
        #[cfg(feature = "profiles")]
        if let Some(profile) = &self.profile {
            let profile = plan_execute_host::profile::Profile::read(profile)?;
            let plugins = profile.load(&host).await?;
            return Ok(Plugins::Several(host, plugins));
        }
        Ok(Plugins::One(self.component.load_into(host).await?))
    }
}

impl Plugins {
    /// Each plugin, with the id of its entry where it is of a profile.
    pub(super) fn list(&self) -> Vec<(Option<&str>, &Plugin)> {
        match self {
            Plugins::One(plugin) => vec![(None, plugin)],
            #[cfg(feature = "profiles")]
            Plugins::Several(_, plugins) => plugins.iter().map(|plugin| (Some(plugin.id()), plugin.plugin())).collect(),
        }
    }

    /// Opens a session and attaches them to it, in order.
    pub(super) async fn attach(&self, journal: impl Journal) -> Result<(Session, Vec<Attached>), Failure> {
        match self {
            Plugins::One(plugin) => {
                let attached = attach(plugin, journal).await?;
                Ok((attached.session().clone(), vec![attached]))
            }
            #[cfg(feature = "profiles")]
            Plugins::Several(host, plugins) => {
                let session = host.open(journal).await?;
                let mut attached = Vec::with_capacity(plugins.len());
                for plugin in plugins {
                    attached.push(plugin.attach(&session).await?);
                }
                Ok((session, attached))
            }
        }
    }
}

/// A component that cannot be read.
pub(super) fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::Host(format!("the component {} cannot be read ({error})", file.display()))
}

/// `pooling`: one call needs one instance and no pool of them.
pub(super) fn host(pooling: bool) -> Result<Host, Failure> {
    let mut builder = Host::builder().pooling(pooling);
    if let Ok(folders) = etcetera::choose_base_strategy() {
        builder = builder.cache(folders.cache_dir().join("plan-execute"));
    }
    if let Ok(program) = env::current_exe() {
        builder = builder.compiler(Compiler { program, arguments: vec![COMPILE.into()] });
    }
    Ok(builder.build()?)
}

/// Which session to work on.
#[derive(Args)]
pub(super) struct SessionOption {
    /// The session: a session file of the Pi coding agent, or a session in a database, as sqlite:FILE#NAME or
    /// postgres://USER@HOST/DATABASE#NAME.
    #[arg(long, value_name = "SESSION")]
    session: OsString,
    /// Stand on this entry instead of the newest one.
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
}

/// The session that a command works on.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) journal: Arc<dyn Journal>,
    /// The session file, where it is one.
    file: Option<PiSession>,
}

impl SessionOption {
    /// Opens it and moves to the leaf.
    pub(super) async fn open(&self) -> Result<Opened, Failure> {
        self.find(false).await
    }

    /// Opens or makes it, and moves to the leaf.
    pub(super) async fn open_or_create(&self) -> Result<Opened, Failure> {
        self.find(true).await
    }

    async fn find(&self, create: bool) -> Result<Opened, Failure> {
        let opened = match database(&self.session) {
            Some(address) => Opened { journal: session_in_database(address, create).await?, file: None },
            None => {
                let file = session_file(Path::new(&self.session), create).await?;
                Opened { journal: Arc::new(file.clone()), file: Some(file) }
            }
        };
        if let Some(leaf) = &self.leaf {
            opened.journal.branch(Some(leaf)).await.map_err(|e| Failure::Host(e.to_string()))?;
        }
        Ok(opened)
    }

    /// Where the session is, when that is another place than the user named: a new file in a folder.
    pub(super) fn made_elsewhere<'a>(&self, opened: &'a Opened) -> Option<&'a Path> {
        opened.file.as_ref().map(PiSession::path).filter(|path| *path != Path::new(&self.session))
    }
}

async fn session_file(path: &Path, create: bool) -> Result<PiSession, Failure> {
    let opened = match create {
        true => PiSession::open_or_create(path).await,
        false => PiSession::open(path).await,
    };
    opened.map_err(|error| match error {
        OpenError::Missing(_) | OpenError::Folder(_) => Failure::Host(format!("{error} (--create)")),
        error => Failure::Host(error.to_string()),
    })
}

/// The address of a database, where this is one.
pub(super) fn database(session: &OsStr) -> Option<&str> {
    let text = session.to_str()?;
    ["sqlite:", "postgres:", "postgresql:"].iter().any(|scheme| text.starts_with(scheme)).then_some(text)
}

#[cfg(feature = "sql")]
async fn session_in_database(address: &str, create: bool) -> Result<Arc<dyn Journal>, Failure> {
    use plan_execute_host::journal::sql::{Database, SqlError};

    let Some((url, name)) = address.rsplit_once('#').filter(|(_, name)| !name.is_empty()) else {
        return Err(Failure::Usage(
            "a database holds many sessions: name one behind its address, as in sqlite:plans.db#NAME".into(),
        ));
    };
    let failed = |error: SqlError| match error {
        SqlError::NoFile(_) | SqlError::NoSession(_) | SqlError::NoSchema => {
            Failure::Host(format!("{error} (--create)"))
        }
        error => Failure::Host(error.to_string()),
    };
    let database = Database::open(url, create).await.map_err(failed)?;
    let session = match database.session(name).await {
        Err(SqlError::NoSession(_)) if create => match database.create(name).await {
            // Someone else was faster.
            Err(SqlError::NameTaken(_)) => database.session(name).await,
            created => created,
        },
        found => found,
    };
    Ok(Arc::new(session.map_err(failed)?))
}

#[cfg(not(feature = "sql"))]
async fn session_in_database(_: &str, _: bool) -> Result<Arc<dyn Journal>, Failure> {
    Err(Failure::Usage("this program was built without databases: name a session file".into()))
}

/// Attaches a plugin to a session, without configuration, with the custom types that it declares.
pub(super) async fn attach(plugin: &Plugin, journal: impl Journal) -> Result<Attached, Failure> {
    let session = plugin.host().open(journal).await?;
    Ok(session.attach(plugin, "{}", Grants::Declared).await?)
}

/// Loads a component and attaches it to a session that is there.
pub(super) async fn open(component: &ComponentOption, session: &SessionOption) -> Result<(Opened, Attached), Failure> {
    let plugin = component.load().await?;
    let session = session.open().await?;
    let tools = attach(&plugin, Arc::clone(&session.journal)).await?;
    Ok((session, tools))
}

/// How many damaged lines are named. The others are counted.
const NAMED: usize = 5;

/// The lines of a session file that could not be read, a sentence for each.
pub(super) fn damage(session: &Opened) -> Vec<String> {
    let Some(session) = &session.file else { return Vec::new() };
    let damage = session.damage();
    let file = session.path().display();
    let mut notes: Vec<String> = damage
        .lines
        .iter()
        .take(NAMED)
        .map(|line| format!("line {line} of {file} is damaged and was passed over"))
        .collect();
    let unnamed = damage.count - notes.len() as u64;
    if unnamed > 0 {
        notes.push(format!("{unnamed} more lines of {file} are damaged and were passed over"));
    }
    notes
}
