//! Lets hostile plugins of every kind loose on a host, and prints what came of it: `cargo run --example hostile`.
//!
//! `PLAN_EXECUTE_FAULTS` says how often: 50 calls for each, and 200 of them where it is not set.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

use conformance::{arena::Arena, faults_or, resources::Resources};
use std::time::Duration;

/// What came of the plugins of one group.
#[derive(Default)]
struct Row {
    group: &'static str,
    kinds: usize,
    calls: usize,
    errors: usize,
    next: usize,
    worked: usize,
}

#[tokio::main]
async fn main() {
    let calls = 50 * faults_or(200);
    let mut arena = Arena::new(Duration::from_millis(100)).await;
    let mut rows: Vec<Row> = Vec::new();
    for kind in &arena.kinds {
        match rows.last_mut() {
            Some(row) if row.group == kind.group => row.kinds += 1,
            _ => rows.push(Row { group: kind.group, kinds: 1, ..Row::default() }),
        }
    }
    for kind in 0..arena.kinds.len() {
        arena.strike(kind).await;
    }
    let before = Resources::now();
    for i in 0..calls {
        let kind = i % arena.kinds.len();
        let struck = arena.strike(kind).await;
        let Some(row) = rows.iter_mut().find(|row| row.group == arena.kinds[kind].group) else { continue };
        row.calls += 1;
        row.errors += usize::from(struck.error.is_ok());
        row.next += struck.next.len();
        row.worked += struck.next.iter().filter(|next| next.is_ok()).count();
        for fault in [struck.error].into_iter().chain(struck.next).filter_map(Result::err) {
            eprintln!("{fault}");
        }
    }
    let after = Resources::now();
    println!("| kinds of hostile plugins | calls | the typed error | next calls | that worked |");
    println!("| --- | --- | --- | --- | --- |");
    let mut total = Row { group: "all", ..Row::default() };
    for row in rows {
        print(&row);
        total.kinds += row.kinds;
        total.calls += row.calls;
        total.errors += row.errors;
        total.next += row.next;
        total.worked += row.worked;
    }
    print(&total);
    if let Some((before, after)) = before.zip(after) {
        println!();
        println!("| of the host | after one round | after all calls |");
        println!("| --- | --- | --- |");
        println!("| resident memory | {} KiB | {} KiB |", before.memory, after.memory);
        println!("| open files | {} | {} |", before.files, after.files);
        println!("| threads | {} | {} |", before.threads, after.threads);
    }
}

fn print(Row { group, kinds, calls, errors, next, worked }: &Row) {
    println!("| {group}: {kinds} | {calls} | {errors} | {next} | {worked} |");
}
