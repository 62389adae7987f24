//! `plan-execute plugin`: what a component is, before it is used.

use super::{
    Failure,
    setup::{host, unreadable},
    terminal,
    view::{Paint, hanging, title},
};
use clap::{Args, Subcommand};
use plan_execute_host::{
    Limits, PluginInfo, components,
    inspect::{Inspection, inspect, sha256},
};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    path::PathBuf,
};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Plugin {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print what a component imports, exports, declares and weighs, and whether it can be loaded.
    Check(Check),
}

#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute plugin check plugin.wasm
  plan-execute plugin check plugin.wasm --json

The exit status is 0 where the component can be loaded with the limits of a plugin that has none of its own in a profile,
and 3 otherwise.")]
struct Check {
    /// The component.
    #[arg(value_name = "FILE")]
    component: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The largest file that is looked at, in bytes: larger than any that can be loaded without other limits.
const MAX_BYTES: usize = 256 * 1024 * 1024;

impl Plugin {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Check(check) => check.run().await,
        }
    }
}

impl Check {
    async fn run(self) -> Result<(), Failure> {
        let host = host(false)?;
        let name = self.component.display().to_string();
        let mut generous = Limits::default();
        generous.component = MAX_BYTES;
        let component = components::read(&self.component, &generous).map_err(|e| unreadable(&self.component, &e))?;
        if component.len() > MAX_BYTES {
            return Err(Failure::Host(format!("{name} is larger than {MAX_BYTES} bytes, which no component is")));
        }
        let loaded = host.load(&component).await.map_err(|error| error.to_string());
        let report = Report {
            bytes: component.len(),
            sha256: sha256(&component),
            inside: inspect(&component).ok(),
            plugin: loaded.as_ref().ok().map(|plugin| {
                let tools = plugin.tools().iter().map(|tool| tool.name.as_str()).collect();
                (plugin.info(), tools)
            }),
            fault: loaded.as_ref().err().map(String::as_str),
        };
        if self.json {
            writeln!(io::stdout().lock(), "{}", report.to_json(&name))?;
        } else {
            let mut out = terminal::stdout();
            for line in report.render(&name, terminal::width()) {
                writeln!(out, "{line}")?;
            }
        }
        match report.fault {
            None => Ok(()),
            Some(fault) => Err(Failure::Host(format!("{name} cannot be loaded: {fault}"))),
        }
    }
}

struct Report<'a> {
    bytes: usize,
    sha256: String,
    /// Nothing where it is no component.
    inside: Option<Inspection>,
    /// What it says of itself, and the names of its tools. Nothing where it cannot be loaded.
    plugin: Option<(&'a PluginInfo, Vec<&'a str>)>,
    fault: Option<&'a str>,
}

impl Report<'_> {
    fn render(&self, name: &str, width: usize) -> Vec<String> {
        let mut lines = hanging("", &title(name), width, Paint::Heading);
        let mut say = |label: &str, text: &str| {
            lines.extend(hanging(&format!("  {label:<13}"), &title(text), width, Paint::Plain));
        };
        say("loads", if self.fault.is_none() { "yes" } else { "no" });
        if let Some((info, tools)) = &self.plugin {
            say("plugin", &format!("{} {}", info.name, info.version));
            say("custom types", &list(&info.custom_types.iter().map(String::as_str).collect::<Vec<_>>()));
            say("tools", &list(tools));
        }
        say("size", &format!("{} bytes", self.bytes));
        say("sha256", &self.sha256);
        let Some(inside) = &self.inside else { return lines };
        let needs = &inside.needs;
        let needs = [
            format!("memory {} bytes", needs.memory),
            format!("memories {}", needs.memories),
            format!("tables {}", needs.tables),
            format!("table-elements {}", needs.table_elements),
            format!("core-instances {}", needs.core_instances),
        ];
        say("needs", &needs.join(", "));
        // One in each line: they are long.
        let mut say_each = |label: &str, names: Vec<&str>| {
            for (i, name) in names.into_iter().enumerate() {
                say(if i == 0 { label } else { "" }, name);
            }
        };
        say_each("imports", inside.imports.iter().map(String::as_str).collect());
        say_each("not offered", inside.not_offered().collect());
        say_each("exports", inside.exports.iter().map(String::as_str).collect());
        say_each("missing", inside.missing().collect());
        lines
    }

    fn to_json(&self, name: &str) -> Value {
        let plugin = self.plugin.as_ref().map(|(info, tools)| {
            json!({
                "name": info.name,
                "version": info.version,
                "customTypes": info.custom_types,
                // It was found to be JSON when the plugin was loaded.
                "configSchema": serde_json::from_str::<Value>(&info.config_schema).unwrap_or_default(),
                "tools": tools,
            })
        });
        let inside = self.inside.as_ref();
        let needs = inside.map(|inside| inside.needs).map(|needs| {
            json!({
                "memory": needs.memory,
                "memories": needs.memories,
                "tables": needs.tables,
                "tableElements": needs.table_elements,
                "coreInstances": needs.core_instances,
            })
        });
        json!({
            "file": name,
            "loads": self.fault.is_none(),
            "fault": self.fault,
            "plugin": plugin,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "imports": inside.map(|inside| &inside.imports),
            "notOffered": inside.map(|inside| inside.not_offered().collect::<Vec<_>>()),
            "exports": inside.map(|inside| &inside.exports),
            "missing": inside.map(|inside| inside.missing().collect::<Vec<_>>()),
            "needs": needs,
        })
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
