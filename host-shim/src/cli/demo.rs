//! `plan-execute demo`: what the plan tools do, on a session that is thrown away.

use super::{
    Failure,
    setup::{ComponentOption, attach},
    terminal::{error_json, visible},
};
use clap::Args;
use plan_execute_host::{
    Attached, Plugin,
    journal::{Journal, pi::PiSession},
};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Demo {
    #[command(flatten)]
    component: ComponentOption,
}

impl Demo {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let plugin = self.component.load().await?;
        let folder = tempfile::tempdir().map_err(|e| Failure::Host(format!("there is no temporary folder ({e})")))?;
        let mut demo = Walk::start(&plugin, folder.path()).await?;

        demo.say("A plan of three steps; publishing waits for the other two.")?;
        let draft = r#"{"title":"Release 1.0","steps":["Run the tests","Write the notes","Publish"],"dependencies":[{"step":3,"dependsOn":[1,2]}]}"#;
        demo.call("plan_create", draft).await?;
        let first = demo.leaf().await?;

        demo.say("Publishing first is refused, and the refusal says what would be right.")?;
        demo.call("plan_advance", r#"{"step":3,"status":"in_progress"}"#).await?;

        demo.say("The steps in order.")?;
        demo.call("plan_advance", r#"{"step":1,"status":"done"}"#).await?;
        demo.call("plan_advance", r#"{"step":2,"status":"skipped"}"#).await?;
        demo.call("plan_advance", r#"{"step":3,"status":"in_progress"}"#).await?;
        let long_way = demo.leaf().await?;

        demo.say("Back to the first entry: a branch of its own, on which nothing is done yet.")?;
        demo.branch(&first).await?;
        demo.call("plan_get", "{}").await?;
        demo.call("plan_advance", r#"{"step":2,"status":"in_progress"}"#).await?;

        demo.say(
            "Opened again from the file, the session stands on its newest entry; the other branch is still there.",
        )?;
        demo.reopen().await?;
        demo.call("plan_get", "{}").await?;
        demo.branch(&long_way).await?;
        demo.call("plan_get", "{}").await
    }
}

/// A walk through one session.
struct Walk<'a> {
    plugin: &'a Plugin,
    file: PathBuf,
    session: PiSession,
    tools: Attached,
}

impl<'a> Walk<'a> {
    async fn start(plugin: &'a Plugin, folder: &Path) -> Result<Walk<'a>, Failure> {
        let session = PiSession::open_or_create(folder).await.map_err(|e| Failure::Host(e.to_string()))?;
        let tools = attach(plugin, session.clone()).await?;
        print(&format!("Session: {}", session.path().display()))?;
        Ok(Walk { plugin, file: session.path().into(), session, tools })
    }

    fn say(&self, text: &str) -> Result<(), Failure> {
        print(&format!("\n# {text}"))
    }

    async fn call(&mut self, tool: &str, arguments: &str) -> Result<(), Failure> {
        print(&format!("> {tool} {arguments}"))?;
        match self.tools.call(tool, arguments).await? {
            Ok(result) => print(&result.text),
            Err(error) => print(&error_json(&error, &[])),
        }
    }

    async fn leaf(&self) -> Result<String, Failure> {
        let position = self.session.position().await.map_err(|e| Failure::Host(e.to_string()))?;
        Ok(position.leaf.map(|leaf| leaf.to_string()).unwrap_or_default())
    }

    async fn branch(&mut self, entry: &str) -> Result<(), Failure> {
        print(&format!("> (branch at the entry {entry})"))?;
        self.tools.session().branch(Some(entry)).await.map_err(|e| Failure::Host(e.to_string()))?;
        Ok(())
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        print("> (open the file again)")?;
        self.session = PiSession::open(&self.file).await.map_err(|e| Failure::Host(e.to_string()))?;
        self.tools = attach(self.plugin, self.session.clone()).await?;
        Ok(())
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", visible(text, &stdout))?;
    Ok(())
}
