//! What a plugin says of itself, and whether that keeps to the rules of the interface.

use super::{Host, Interfaces, Plugin, PluginState, call::CallState, run::Call};
use crate::{Error, Kept, Limit, journal::Encoding, sandbox::Loaded};
use std::{collections::BTreeSet, sync::Arc};

pub use super::bindings::exports::plan_execute::plugin::{
    lifecycle::PluginInfo,
    tools::{ExecutionMode, ToolDefinition},
};

/// How a plugin is called before it said its name.
const UNNAMED: &str = "(not loaded yet)";

/// Asks a loaded component for its description, and makes a plugin of it.
pub(super) async fn plugin(host: Host, loaded: Loaded<CallState, Interfaces>) -> Result<Plugin, Error> {
    let call = |name| Call { host: &host, loaded: &loaded, name, encoding: Encoding::Json, access: None };
    let info = call(UNNAMED).run(None, None, |running| {
        Box::pin(async move {
            let lifecycle = running.lifecycle()?;
            lifecycle.call_info(&mut running.store).await
        })
    });
    let info: PluginInfo = info.await?;
    let name: Arc<str> = info.name.as_str().into();
    let wrong = |fault: String| Error::Description { plugin: shorten(&name, 64), fault };
    if !is_kebab(&name) {
        return Err(wrong("its name is not kebab-case of at most 64 characters".into()));
    }
    is_object(&info.config_schema).map_err(|e| wrong(format!("its configuration schema is {e}")))?;
    if info.custom_types.iter().any(String::is_empty) {
        return Err(wrong("it declares a custom type without a name".into()));
    }
    let tools = call(&name).run(None, None, |running| {
        Box::pin(async move {
            let tools = running.tools()?;
            tools.call_list_tools(&mut running.store).await
        })
    });
    let tools: Vec<ToolDefinition> = tools.await?;
    let limits = host.limits();
    let limit = |limit| Error::Limit { plugin: name.to_string(), limit, kept: Kept::default() };
    if tools.len() > limits.tools {
        return Err(limit(Limit::Tools(limits.tools)));
    }
    if tools.iter().map(bytes).sum::<usize>() > limits.tool_definitions {
        return Err(limit(Limit::ToolDefinitions(limits.tool_definitions)));
    }
    let mut names = BTreeSet::new();
    for tool in &tools {
        if !is_tool_name(&tool.name) {
            return Err(wrong(format!(
                "the tool name {:?} does not match ^[a-z][a-z0-9_]{{0,63}}$",
                shorten(&tool.name, 64)
            )));
        }
        if !names.insert(&tool.name) {
            return Err(wrong(format!("it has two tools named {}", tool.name)));
        }
        for (what, schema) in [("input", &tool.input_schema), ("output", &tool.output_schema)] {
            is_object(schema).map_err(|e| wrong(format!("the {what} schema of the tool {} is {e}", tool.name)))?;
        }
    }
    Ok(Plugin(Arc::new(PluginState { host, loaded, name, info, tools })))
}

fn bytes(tool: &ToolDefinition) -> usize {
    [&tool.name, &tool.label, &tool.description, &tool.prompt_snippet, &tool.input_schema, &tool.output_schema]
        .into_iter()
        .map(String::len)
        .sum()
}

fn is_kebab(name: &str) -> bool {
    name.len() <= 64
        && name
            .split('-')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
}

fn is_tool_name(name: &str) -> bool {
    name.len() <= 64
        && name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn is_object(json: &str) -> Result<(), String> {
    match serde_json::from_str(json) {
        Ok(serde_json::Value::Object(_)) => Ok(()),
        Ok(_) => Err("no JSON object".into()),
        Err(error) => Err(format!("no JSON ({error})")),
    }
}

/// Cuts a text to at most `limit` bytes, at the edge of a character.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, tool, kebab) in [
            ("plan_get", true, false),
            ("plan", true, true),
            ("plan-execute", false, true),
            ("p2_", true, false),
            ("2p", false, true),
            ("_p", false, false),
            ("Plan", false, false),
            ("plan.get", false, false),
            ("plan--x", false, false),
            ("plan-", false, false),
            ("", false, false),
            ("ä", false, false),
        ] {
            assert_eq!((is_tool_name(name), is_kebab(name)), (tool, kebab), "{name}");
        }
        assert!(is_tool_name(&"a".repeat(64)));
        assert!(!is_tool_name(&"a".repeat(65)));
    }

    #[test]
    fn cuts_at_characters() {
        assert_eq!(shorten("aä", 2), "a");
        assert_eq!(shorten("aä", 3), "aä");
        assert_eq!(shorten("aä", 9), "aä");
        assert_eq!(shorten("ä", 0), "");
    }
}
