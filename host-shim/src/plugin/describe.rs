//! What a plugin says of itself, and whether that keeps to the rules of the interface.

use super::{
    Host, Interfaces, Plugin, PluginState,
    call::{CallState, MAX_NAME, is_type_name},
    run::Call,
};
use crate::{Error, Kept, Limit, error::shorten, journal::Encoding, sandbox::Loaded};
use semver::Version;
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
    // A name that is none may be any text, so it is shown with what would act on a terminal made visible.
    let wrong = |fault: String| Error::Description { plugin: shorten(&name, 64).escape_debug().to_string(), fault };
    if !is_kebab(&name) {
        return Err(wrong("its name is not kebab-case of at most 64 characters".into()));
    }
    if let Err(error) = Version::parse(&info.version) {
        let version = shorten(&info.version, 64);
        return Err(wrong(format!("its version {version:?} is not a semantic version: {error}")));
    }
    is_object(&info.config_schema).map_err(|e| wrong(format!("its configuration schema is {e}")))?;
    if let Some(custom_type) = info.custom_types.iter().find(|custom_type| !is_type_name(custom_type)) {
        let custom_type = shorten(custom_type, 64);
        return Err(wrong(format!(
            "it declares the custom type {custom_type:?}, and one has 1 to {MAX_NAME} bytes without control characters"
        )));
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
        for (what, line) in [("label", &tool.label), ("prompt snippet", &tool.prompt_snippet)] {
            if line.contains(char::is_control) {
                return Err(wrong(format!("the {what} of the tool {} is not one line of plain text", tool.name)));
            }
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

/// Is it the text of a JSON object? It is read without being kept: as values it could take fifty times its length.
fn is_object(json: &str) -> Result<(), String> {
    let mut value = serde_json::Deserializer::from_str(json);
    serde_transcode::transcode(&mut value, &mut serde_json::Serializer::new(std::io::sink()))
        .and_then(|()| value.end())
        .map_err(|error| format!("no JSON ({error})"))?;
    if json.trim_start().starts_with('{') { Ok(()) } else { Err("no JSON object".into()) }
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
}
