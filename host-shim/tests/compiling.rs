//! Components that are made to be hard to compile, with the compiler process that the command uses.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, unreachable_pub, reason = "other tests use the rest of it")]
#[path = "../../tests/src/wat_plugin.rs"]
mod wat_plugin;

use plan_execute_host::{Compiler, Error, Host, Limit, Limits};
use std::{fs, path::Path, time::Duration};
use wat_plugin::{WatPlugin, with_module};

/// A component with one long function, each part of which depends on all that came before. Compiling it takes minutes.
fn slow() -> Vec<u8> {
    let part = "(if (local.get $i)
        (then (local.set $j (i32.add (local.get $j) (local.get $i))))
        (else (local.set $i (i32.mul (local.get $j) (local.get $i)))))";
    WatPlugin { call_tool: part.repeat(250_000), ..WatPlugin::default() }.build()
}

/// A component of a few kilobytes whose compiled code holds so many megabytes: a memory of 16 MiB for each 16 of them, with one byte
/// at its beginning and one at its end.
fn swelling(megabytes: usize) -> Vec<u8> {
    let memories: String = (0..megabytes / 16)
        .map(|i| {
            format!(
                "(memory 256) (data (memory {i}) (i32.const 0) \"a\") (data (memory {i}) (i32.const 16777000) \"z\")"
            )
        })
        .collect();
    with_module(WatPlugin::default().build(), &format!("(module {memories})"), 0)
}

fn host(cache: &Path, change: impl FnOnce(&mut Limits)) -> Host {
    let mut limits = Limits::default();
    change(&mut limits);
    let compiler =
        Compiler { program: assert_cmd::cargo::cargo_bin("plan-execute"), arguments: vec!["compile-component".into()] };
    Host::builder().limits(limits).cache(cache).compiler(compiler).build().unwrap()
}

/// The processes that this one has started and that are there still, ended or not.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let parent =
        |stat: &str| stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1).map(str::to_owned));
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| parent(stat).as_deref() == Some(&own))
        .collect()
}

/// One test, since it looks at all the processes that it has started.
#[tokio::test]
async fn is_stopped_at_its_limits_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let nothing_left = || children().is_empty() && fs::read_dir(&cache).unwrap().count() == 0;
    let (slow, swelling) = (slow(), swelling(320));
    assert!(swelling.len() < 20_000, "{} bytes", swelling.len());
    type Change = fn(&mut Limits);
    let cases: [(&str, &[u8], Change, Limit); 3] = [
        ("time", &slow, |l| l.compile = Duration::from_secs(1), Limit::Compile(Duration::from_secs(1))),
        ("size", &swelling, |l| l.compiled = 64 << 20, Limit::Compiled(64 << 20)),
        ("memory", &swelling, |l| l.compile_memory = 128 << 20, Limit::CompileMemory(128 << 20)),
    ];
    for (name, component, change, limit) in cases {
        let host = host(&cache, change);
        for _ in 0..2 {
            let error = host.load(component).await.err();
            assert!(matches!(&error, Some(Error::Limit { limit: found, .. }) if *found == limit), "{name}: {error:?}");
            assert!(error.unwrap().to_string().contains(&limit.to_string()), "{name}");
            assert!(nothing_left(), "{name}: {:?}", children());
        }
    }
    // Whoever does not wait any longer leaves no process either.
    let host = host(&cache, |_| {});
    let waited = tokio::time::timeout(Duration::from_secs(1), host.load(&slow)).await;
    assert!(waited.is_err());
    while !children().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(nothing_left());
    // The next component is compiled, and kept.
    host.load(&WatPlugin::default().build()).await.unwrap();
    assert!(children().is_empty());
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
}
