//! `plan-execute tools`: what a component offers to a model.

use super::{
    Failure,
    setup::ComponentOption,
    terminal,
    view::{Paint, hanging, title},
};
use clap::Args;
use plan_execute_host::{ExecutionMode, ToolDefinition};
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute tools
  plan-execute tools --json | jq '.[].inputSchema'")]
pub(super) struct Tools {
    /// Print one JSON array with everything, the schemas included.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    component: ComponentOption,
}

impl Tools {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let plugin = self.component.load().await?;
        if self.json {
            let list: Vec<Value> = plugin.tools().iter().map(to_json).collect();
            terminal::print_json(&Value::from(list))?;
            return Ok(());
        }
        let width = terminal::width();
        let mut out = terminal::stdout();
        for tool in plugin.tools() {
            let mut lines = hanging("", &title(&format!("{} ({})", tool.name, tool.label)), width, Paint::Heading);
            lines.extend(hanging("  ", &title(&tool.description), width, Paint::Plain));
            lines.extend(hanging("  ", &traits(tool), width, Paint::Faint));
            for line in lines {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }
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

fn to_json(tool: &ToolDefinition) -> Value {
    // They were found to be JSON when the plugin was loaded.
    let schema = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    json!({
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
    })
}
