//! `plan-execute tools`: what a component offers to a model.

use super::{
    Failure,
    setup::PluginsOption,
    terminal,
    view::{Paint, hanging, title},
};
use clap::Args;
use plan_execute_host::{ExecutionMode, Plugin, ToolDefinition};
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute tools
  plan-execute tools --json | jq '.[].inputSchema'
  plan-execute tools --profile plugins.yaml

With a profile, the tools of each entry stand below its id; with --json, each tool has it as `plugin`.")]
pub(super) struct Tools {
    /// Print one JSON array with everything, the schemas included.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    plugins: PluginsOption,
}

impl Tools {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let plugins = self.plugins.load().await?;
        let plugins = plugins.list();
        if self.json {
            let mut list = Vec::new();
            for (id, plugin) in plugins {
                list.extend(plugin.tools().iter().map(|tool| to_json(tool, id)));
            }
            terminal::print_json(&Value::from(list))?;
            return Ok(());
        }
        let width = terminal::width();
        let mut out = terminal::stdout();
        for (id, plugin) in plugins {
            let lines = id.map(|id| heading(id, plugin, width)).unwrap_or_default();
            for line in lines.into_iter().chain(plugin.tools().iter().flat_map(|tool| render(tool, width))) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }
}

/// What stands above the tools of one plugin of a profile.
fn heading(id: &str, plugin: &Plugin, width: usize) -> Vec<String> {
    let info = plugin.info();
    let tools = if plugin.tools().is_empty() { ", without tools" } else { "" };
    hanging("", &title(&format!("# {id}: {} {}{tools}", info.name, info.version)), width, Paint::Faint)
}

fn render(tool: &ToolDefinition, width: usize) -> Vec<String> {
    let mut lines = hanging("", &title(&format!("{} ({})", tool.name, tool.label)), width, Paint::Heading);
    lines.extend(hanging("  ", &title(&tool.description), width, Paint::Plain));
    lines.extend(hanging("  ", &traits(tool), width, Paint::Faint));
    lines
}

/// What a harness may know about calling it.
fn traits(tool: &ToolDefinition) -> String {
    let mut traits = vec![if tool.read_only { "reads only" } else { "writes" }];
    if tool.destructive {
        traits.push("can replace what was there");
    }
    if tool.idempotent {
        traits.push("twice is the same as once");
    }
    traits.push(match tool.execution_mode {
        ExecutionMode::Sequential => "one call at a time",
        ExecutionMode::Parallel => "several calls at a time",
    });
    traits.join(", ")
}

/// `plugin`: the id of its entry, where it is of a profile.
fn to_json(tool: &ToolDefinition, plugin: Option<&str>) -> Value {
    // They were found to be JSON when the plugin was loaded.
    let schema = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let mut json = json!({
        "name": tool.name,
        "label": tool.label,
        "description": tool.description,
        "promptSnippet": tool.prompt_snippet,
        "inputSchema": schema(&tool.input_schema),
        "outputSchema": schema(&tool.output_schema),
        "executionMode": match tool.execution_mode {
            ExecutionMode::Sequential => "sequential",
            ExecutionMode::Parallel => "parallel",
        },
        "readOnly": tool.read_only,
        "destructive": tool.destructive,
        "idempotent": tool.idempotent,
    });
    if let Some(plugin) = plugin {
        json["plugin"] = plugin.into();
    }
    json
}
