//! The host, the plugin and the session that commands work with.

use super::Failure;
use clap::Args;
use etcetera::BaseStrategy;
use plan_execute_host::{
    Attached, Compiler, Grants, Host, Limits, Plugin, components,
    journal::{
        Journal,
        pi::{OpenError, PiSession},
    },
};
use std::{
    env,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
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

    /// Loads it for a process that goes on.
    #[cfg(feature = "mcp")]
    pub(super) async fn load_for_many_calls(&self) -> Result<Plugin, Failure> {
        self.load_into(host(true)?).await
    }

    async fn load_into(&self, host: Host) -> Result<Plugin, Failure> {
        match &self.component {
            None => Ok(host.load(components::PLAN_EXECUTE).await?),
            Some(file) => {
                let bytes = read_component(file, host.limits()).map_err(Failure::Host)?;
                host.load(&bytes).await.map_err(|e| Failure::Host(format!("{} was not loaded: {e}", file.display())))
            }
        }
    }
}

/// `pooling`: one call needs one instance and no pool of them.
fn host(pooling: bool) -> Result<Host, Failure> {
    let mut builder = Host::builder().pooling(pooling);
    if let Ok(folders) = etcetera::choose_base_strategy() {
        builder = builder.cache(folders.cache_dir().join("plan-execute"));
    }
    if let Ok(program) = env::current_exe() {
        builder = builder.compiler(Compiler { program, arguments: vec![COMPILE.into()] });
    }
    Ok(builder.build()?)
}

fn read_component(file: &Path, limits: &Limits) -> Result<Vec<u8>, String> {
    let unreadable = |e: &dyn std::fmt::Display| format!("the component {} cannot be read ({e})", file.display());
    let metadata = file.metadata().map_err(|e| unreadable(&e))?;
    if !metadata.is_file() {
        return Err(unreadable(&"it is no regular file"));
    }
    // A byte more than allowed, so that the host sees it is too large.
    let mut bytes = Vec::new();
    let most = limits.component as u64 + 1;
    File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(|e| unreadable(&e))?;
    Ok(bytes)
}

/// Which session to work on.
#[derive(Args)]
pub(super) struct SessionOption {
    /// The session file of the Pi coding agent.
    #[arg(long, value_name = "FILE")]
    session: PathBuf,
    /// Stand on this entry instead of the newest one.
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
}

impl SessionOption {
    /// What was named: a file, or a folder to make one in.
    pub(super) fn path(&self) -> &Path {
        &self.session
    }

    /// Opens it and moves to the leaf.
    pub(super) async fn open(&self) -> Result<PiSession, Failure> {
        self.stand(PiSession::open(&self.session).await).await
    }

    /// Opens or makes it, and moves to the leaf.
    pub(super) async fn open_or_create(&self) -> Result<PiSession, Failure> {
        self.stand(PiSession::open_or_create(&self.session).await).await
    }

    async fn stand(&self, opened: Result<PiSession, OpenError>) -> Result<PiSession, Failure> {
        let session = opened.map_err(|error| match error {
            OpenError::Missing(_) | OpenError::Folder(_) => Failure::Host(format!("{error} (--create)")),
            error => Failure::Host(error.to_string()),
        })?;
        if let Some(leaf) = &self.leaf {
            session.branch(Some(leaf)).await.map_err(|e| Failure::Host(e.to_string()))?;
        }
        Ok(session)
    }
}

/// Attaches a plugin to a session, without configuration, with the custom types that it declares.
pub(super) async fn attach(plugin: &Plugin, session: &PiSession) -> Result<Attached, Failure> {
    let session = plugin.host().open(session.clone()).await?;
    Ok(session.attach(plugin, "{}", Grants::Declared).await?)
}

/// Loads a component and attaches it to a session that is there.
pub(super) async fn open(
    component: &ComponentOption,
    session: &SessionOption,
) -> Result<(PiSession, Attached), Failure> {
    let plugin = component.load().await?;
    let session = session.open().await?;
    let tools = attach(&plugin, &session).await?;
    Ok((session, tools))
}

/// How many damaged lines are named. The others are counted.
const NAMED: usize = 5;

/// The lines of a session file that could not be read, a sentence for each.
pub(super) fn damage(session: &PiSession) -> Vec<String> {
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
