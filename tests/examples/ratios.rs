//! Prints the README's table of ratios out of the last benchmark run. `tests/bench` calls it.
//!
//! Standard input: the figures of the JavaScript run, as JSON.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use serde_json::Value;
use std::{
    fs,
    io::{Read, stdin},
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut javascript = String::new();
    stdin().read_to_string(&mut javascript)?;
    let javascript: Value = serde_json::from_str(&javascript)?;
    let us = |name: &str| median(name).map(|ns| ns / 1_000.0);
    let ratio = |a: f64, b: f64| format!("{:.2} ×", a / b);
    println!("| what | measured | beside | ratio | target |");
    println!("| --- | --- | --- | --- | --- |");
    let row = |what: &str, measured: String, beside: String, ratio: String, target: &str| {
        println!("| {what} | {measured} | {beside} | {ratio} | {target} |");
    };
    let (component, native) = (us("plan_get/component")?, us("plan_get/native")?);
    row(
        "`plan_get`, 50 steps, on a fresh instance, against the rules called natively",
        format!("{component:.1} µs"),
        format!("{native:.1} µs"),
        ratio(component, native),
        "at most 2.5 ×",
    );
    let queued = us("plan_get/queued")?;
    row(
        "the same as a harness makes it: queued, on an instance that took its configuration",
        format!("{queued:.1} µs"),
        format!("{native:.1} µs"),
        ratio(queued, native),
        "",
    );
    for (name, journal) in [("memory", "in memory"), ("pi", "session file")] {
        let (many, few) = (us(&format!("plan_get/{name}_1000000"))?, us(&format!("plan_get/{name}_10"))?);
        row(
            &format!("the same at 1,000,000 entries against 10, {journal}"),
            format!("{many:.1} µs"),
            format!("{few:.1} µs"),
            ratio(many, few),
            "at most 1.2 ×",
        );
    }
    let (durable, by_hand) = (us("plan_advance/durable")?, us("plan_advance/by hand")?);
    row(
        "a durable `plan_advance` against open, append, sync, close by hand",
        format!("{durable:.0} µs"),
        format!("{by_hand:.0} µs"),
        ratio(durable, by_hand),
        "at most 1.5 ×",
    );
    let in_memory = us("plan_advance/in memory")?;
    row(
        "what of that is not the disk: the same in memory",
        format!("{in_memory:.0} µs"),
        String::new(),
        String::new(),
        "",
    );
    let memory = fs::read_to_string(target().join("tmp/benches/memory.txt"))?;
    let (open, read) = (us("open/session")?, us("open/read")?);
    row(
        &format!(
            "opening a session file of 1,000,000 entries against reading it; it takes {} MiB of memory",
            memory.trim()
        ),
        format!("{:.0} ms", open / 1_000.0),
        format!("{:.0} ms", read / 1_000.0),
        ratio(open, read),
        "at most 3 ×",
    );
    let process = us("process/call plan_get")?;
    row(
        "`plan-execute call plan_get …` as a whole process, second run",
        format!("{:.1} ms", process / 1_000.0),
        String::new(),
        String::new(),
        "under 30 ms",
    );
    let bytes = plan_execute_host::components::PLAN_EXECUTE.len();
    row("the component", format!("{} KiB", bytes / 1024), String::new(), String::new(), "under 400 KiB");
    for entries in [10, 10_000, 1_000_000] {
        let ours = us(&format!("plan_get/pi_{entries}"))?;
        let theirs = figure(&javascript["judge"][entries.to_string()])?;
        row(
            &format!("`plan_get` on a session file of {entries} entries against plain JavaScript on Pi's own manager"),
            format!("{ours:.1} µs"),
            format!("{theirs:.1} µs"),
            ratio(ours, theirs),
            "",
        );
    }
    for (kind, name) in [("sqlite", "SQLite"), ("postgresql", "PostgreSQL")] {
        let (durable, bare) = (us(&format!("sql {kind}/durable"))?, us(&format!("sql {kind}/bare"))?);
        row(
            &format!("a durable `plan_advance` in {name} against a bare transaction that inserts the same bytes"),
            format!("{durable:.0} µs"),
            format!("{bare:.0} µs"),
            ratio(durable, bare),
            "at most 1.5 ×",
        );
        let latest = |entries: usize| us(&format!("sql {kind}/latest_{entries}"));
        let (many, few) = (latest(1_000_000)?, latest(10)?);
        row(
            &format!("the newest plan in {name} at 1,000,000 entries against 10"),
            format!("{many:.0} µs"),
            format!("{few:.0} µs"),
            ratio(many, few),
            "at most 1.2 ×",
        );
    }
    for entries in [10, 10_000, 1_000_000] {
        let figures = &javascript["package"][entries.to_string()];
        let (ours, plain) = (figure(&figures["component"])?, figure(&figures["plain"])?);
        let target = if entries == 10 { "at most 1.5 ×, and flat" } else { "" };
        row(
            &format!(
                "`plan_get` of the npm package in Pi at {entries} entries against the same tool in plain JavaScript"
            ),
            format!("{ours:.1} µs"),
            format!("{plain:.1} µs"),
            ratio(ours, plain),
            target,
        );
    }
    // The server's call reads the session file, like the one beside it.
    let (served, alone) = (us("mcp/plan_get")?, us("plan_get/pi_10")?);
    row(
        "`plan_get` over MCP against the same call without the server",
        format!("{served:.1} µs"),
        format!("{alone:.1} µs"),
        format!("{:.0} µs more", served - alone),
        "under 150 µs more",
    );
    row(
        "from starting the MCP server to its first list of tools",
        format!("{:.1} ms", us("mcp/start")? / 1_000.0),
        String::new(),
        String::new(),
        "under 50 ms",
    );
    Ok(())
}

/// A figure of the JavaScript run.
fn figure(value: &Value) -> Result<f64, Box<dyn std::error::Error>> {
    Ok(value.as_f64().ok_or("a figure of the JavaScript run is missing")?)
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target")
}

/// The median of a benchmark, in nanoseconds.
fn median(name: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let file = target().join("criterion").join(name).join("new/estimates.json");
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let estimates: Value = serde_json::from_str(&text)?;
    Ok(estimates["median"]["point_estimate"].as_f64().ok_or("no median")?)
}
