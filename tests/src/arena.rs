//! A session on which hostile plugins are let loose, one after another, beside plugins that mean well.

use crate::{
    attach, chain, host_with,
    hostile::{HARM, Hostile, Outcome, Stage, kinds},
    plan_tools,
    wat_plugin::WatPlugin,
};
use plan_execute_host::{Attached, Error, Grants, Host, Plugin, Session, journal::pi::PiSession};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{fs, path::PathBuf, time::Duration};
use tempfile::TempDir;

/// Where another session is begun, in bytes of its file.
const LONG: usize = 1 << 20;

/// The host, the kinds of hostile plugins, and the session that they work on.
pub struct Arena {
    /// The kinds.
    pub kinds: Vec<Hostile>,
    host: Host,
    shared: Shared,
}

/// A session in a file of Pi, with two plugins that mean well.
struct Shared {
    _folder: TempDir,
    file: PathBuf,
    session: Session,
    plans: Attached,
    harmless: Attached,
}

/// What came of letting a plugin loose.
pub struct Struck {
    /// Was it the one error that was expected, and was nothing written but what it says?
    pub error: Result<(), String>,
    /// Did the next call of each plugin work?
    pub next: Vec<Result<(), String>>,
}

impl Arena {
    /// An arena in which endless loops end after `compute`.
    ///
    /// # Panics
    ///
    /// Where the plugins that mean well do not work.
    pub async fn new(compute: Duration) -> Arena {
        let host = host_with(|limits| {
            limits.compute = compute;
            // So that a flood of slow operations ends before the compute time does.
            limits.operations = 1_000;
            // So that each slot of the pool soon holds what any of the plugins left in it.
            limits.instances = 4;
        });
        Arena { kinds: kinds(host.limits()), shared: Shared::new(&host).await, host }
    }

    /// Lets a plugin of this kind loose, and calls every plugin after it.
    ///
    /// # Panics
    ///
    /// Where the session file is gone.
    pub async fn strike(&mut self, kind: usize) -> Struck {
        if self.shared.lines().len() > LONG {
            self.shared = Shared::new(&self.host).await;
        }
        let (kind, shared) = (&self.kinds[kind], &self.shared);
        let before = shared.lines();
        let (outcome, plugin) = self.let_loose(kind).await;
        let error = kind.judge(&outcome).and_then(|()| kind.saved(&outcome, &before, &shared.lines()));
        let mut next = vec![shared.plans_work().await, works(&shared.harmless).await];
        if let Some(plugin) = plugin {
            // The very plugin does what it is asked for, where it is asked for something harmless.
            next.push(match shared.session.attach(&plugin, "{}", Grants::Declared).await {
                Ok(attached) => works(&attached).await,
                Err(error) => Err(error.to_string()),
            });
        }
        Struck { error, next }
    }

    /// Returns what the host made of it, and the plugin, where it is one.
    async fn let_loose(&self, kind: &Hostile) -> (Outcome, Option<Plugin>) {
        let plugin = match load(&self.host, &kind.component).await {
            Ok(plugin) => plugin,
            Err(error) => return (Err(error), None),
        };
        let config = if kind.stage == Stage::Attach { HARM } else { "{}" };
        let outcome = match self.shared.session.attach(&plugin, config, Grants::Declared).await {
            Ok(attached) => attached.call("run", HARM).await,
            Err(error) => Err(error),
        };
        (outcome, Some(plugin))
    }
}

impl Hostile {
    /// Does the error say what was added to the session file, and was nothing else?
    fn saved(&self, outcome: &Outcome, before: &str, after: &str) -> Result<(), String> {
        let kept = match outcome {
            Err(Error::Limit { kept, .. } | Error::Trap { kept, .. }) => kept.clone(),
            _ => Default::default(),
        };
        let added = after.strip_prefix(before).ok_or_else(|| format!("{}: the session file was changed", self.name))?;
        let added: Vec<Value> = added.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
        let ids: Vec<&str> = added.iter().filter_map(|line| line["id"].as_str()).collect();
        let own = added.iter().all(|line| line["type"] == "custom" && line["customType"] == "demo/type");
        if !own || ids != kept.entries || ids.len() != self.saves || added.len() != self.saves || kept.unknown {
            return Err(format!("{}: the error says {kept:?}, and {added:?} was added", self.name));
        }
        Ok(())
    }
}

impl Shared {
    async fn new(host: &Host) -> Shared {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("session.jsonl");
        let journal = PiSession::open_or_create(&file).await.expect("a new session");
        let session = host.open(journal).await.expect("the journal answers");
        let plans = attach(&plan_tools(host).await, &session).await;
        plans.call("plan_create", &chain(2)).await.expect("the host has no error").expect("a plan");
        let plugin = load(host, &WatPlugin::default().build()).await.expect("it means well");
        let harmless = attach(&plugin, &session).await;
        Shared { _folder: folder, file, session, plans, harmless }
    }

    /// What the session file holds.
    fn lines(&self) -> String {
        fs::read_to_string(&self.file).expect("the session file is there")
    }

    /// Do the plan tools change the plan, and read it?
    async fn plans_work(&self) -> Result<(), String> {
        for status in ["done", "pending"] {
            let arguments = format!(r#"{{"step":1,"status":"{status}"}}"#);
            for (tool, arguments) in [("plan_advance", arguments.as_str()), ("plan_get", "{}")] {
                let plan = self.plans.call(tool, arguments).await.map_err(|e| e.to_string())?;
                let plan = plan.map_err(|e| e.message)?.text;
                if !plan.contains(&format!(r#""status":"{status}""#)) {
                    return Err(format!("{tool} answered {plan}"));
                }
            }
        }
        Ok(())
    }
}

async fn load(host: &Host, component: &[u8]) -> Result<Plugin, Error> {
    host.load_pinned(component, &hex::encode(Sha256::digest(component))).await
}

/// Does the tool `run` answer?
async fn works(plugin: &Attached) -> Result<(), String> {
    match plugin.call("run", "{}").await {
        Ok(Ok(answer)) if answer.text == "{}" => Ok(()),
        other => Err(format!("{}: {other:?}", plugin.plugin().info().name)),
    }
}
