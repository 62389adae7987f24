//! What the conformance tests share: the host, the plugin, the fixtures, and components written for a test.

pub mod fixtures;
pub mod wat_plugin;

use plan_execute_host::{
    Attached, Grants, Host, Limits, Plugin, Session, ToolError, components,
    journal::{Journal, Memory},
};
use serde_json::Value;
use std::path::PathBuf;

/// A host with other limits than the default ones. Compiled code is kept in the build's temporary folder.
///
/// # Panics
///
/// Where there is no engine.
pub fn host_with(change: impl FnOnce(&mut Limits)) -> Host {
    let mut limits = Limits::default();
    change(&mut limits);
    let cache = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tmp/compiled");
    Host::builder().limits(limits).cache(cache).build().expect("an engine")
}

/// The PostgreSQL server to test on, which `.ci/with-postgres` starts. Without one, what needs it is skipped.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
pub fn postgres() -> Option<String> {
    let url = std::env::var("PLAN_EXECUTE_POSTGRES").ok();
    if url.is_none() {
        eprintln!("skipped: PLAN_EXECUTE_POSTGRES names no server");
    }
    url
}

/// A host with the default limits.
pub fn host() -> Host {
    host_with(|_| {})
}

/// The plan tools.
///
/// # Panics
///
/// Where they do not load.
pub async fn plan_tools(host: &Host) -> Plugin {
    host.load(components::PLAN_EXECUTE).await.expect("the component loads")
}

/// The plan tools on a session, with all that they declare.
///
/// # Panics
///
/// Where they cannot be attached.
pub async fn plan_session(host: &Host, journal: impl Journal) -> Attached {
    let plugin = plan_tools(host).await;
    attach(&plugin, &host.open(journal).await.expect("the journal answers")).await
}

/// A plugin on a session, with all that it declares.
///
/// # Panics
///
/// Where it cannot be attached.
pub async fn attach(plugin: &Plugin, session: &Session) -> Attached {
    session.attach(plugin, "{}", Grants::Declared).await.expect("it takes an empty configuration")
}

/// The plan tools on an empty session in memory.
pub async fn in_memory() -> (Memory, Attached) {
    let memory = Memory::default();
    let tools = plan_session(&host(), memory.clone()).await;
    (memory, tools)
}

/// Calls a tool: its text as JSON, or its error.
///
/// # Panics
///
/// Where the host has an error, or the text is no JSON.
pub async fn call(tools: &Attached, tool: &str, arguments: &str) -> Result<Value, ToolError> {
    let answer = tools.call(tool, arguments).await.expect("the host has no error");
    answer.map(|result| {
        assert_eq!(result.text, result.details);
        serde_json::from_str(&result.text).expect("JSON")
    })
}

/// Calls a tool that must refuse: the code and the message of its error.
///
/// # Panics
///
/// Where it does not.
pub async fn refusal(tools: &Attached, tool: &str, arguments: &str) -> (String, String) {
    let error = call(tools, tool, arguments).await.expect_err("a refusal");
    (error.code, error.message)
}

/// Arguments of `plan_create` for so many steps, each waiting for the one before.
pub fn chain(steps: usize) -> String {
    let titles: Vec<String> = (1..=steps).map(|i| format!("Step {i}")).collect();
    let dependencies: Vec<Value> = (2..=steps).map(|i| serde_json::json!({"step": i, "dependsOn": [i - 1]})).collect();
    serde_json::json!({"title": "Chain", "steps": titles, "dependencies": dependencies}).to_string()
}
