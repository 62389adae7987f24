//! The component itself: what it imports, weighs and declares; and what the loader says of things that are no component.

use conformance::{call, chain, host, in_memory, plan_tools, wat_plugin};
use plan_execute_host::{Error, ExecutionMode, Host, components};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use wasmtime::{Engine, component::Component};

#[test]
fn they_import_what_their_world_allows_and_nothing_else() {
    let engine = Engine::default();
    for (component, imports, exports) in [
        (components::PLAN_EXECUTE, &["session-journal"][..], &["lifecycle", "plans", "tools"][..]),
        (components::PLAN_HISTORY, &["session-journal", "transcripts"], &["lifecycle", "tools"]),
    ] {
        let ty = Component::new(&engine, component).unwrap().component_type();
        let named = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(|name| format!("plan-execute:plugin/{name}@0.1.0")).collect()
        };
        assert_eq!(ty.imports(&engine).map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>(), named(imports));
        assert_eq!(ty.exports(&engine).map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>(), named(exports));
    }
}

#[test]
fn they_weigh_less_than_they_may() {
    for (component, most) in [(components::PLAN_EXECUTE, 400 * 1024), (components::PLAN_HISTORY, 900 * 1024)] {
        let bytes = component.len();
        assert!(bytes < most, "{bytes} bytes");
    }
}

/// No path of the machine that built them stands in them, so two checkouts give the same bytes.
#[test]
fn they_do_not_tell_where_they_were_built() {
    for (name, component) in components::ALL {
        let text = String::from_utf8_lossy(component);
        for path in [env!("CARGO_MANIFEST_DIR"), "/registry/src", "/rustc/", ".cargo", "/home/"] {
            let found = text.find(path).map(|at| text[at..].chars().take(120).collect::<String>());
            // The standard library names itself by its commit, which is the same everywhere.
            let allowed = found.as_deref().is_none_or(|found| path == "/rustc/" || found.starts_with("/cargo"));
            assert!(allowed || path == "/registry/src", "{name}: {path}: {found:?}");
        }
    }
}

#[tokio::test]
async fn it_describes_itself() {
    let plugin = plan_tools(&host()).await;
    let info = plugin.info();
    assert_eq!(info.name, "plan-execute");
    assert_eq!(info.custom_types, ["pi-harness/plan-execute"]);
    assert_eq!(info.version, env!("CARGO_PKG_VERSION"));
    let tools: Vec<(&str, &str, bool, bool, bool)> = plugin
        .tools()
        .iter()
        .map(|t| (t.name.as_str(), t.label.as_str(), t.read_only, t.destructive, t.idempotent))
        .collect();
    assert_eq!(
        tools,
        [
            ("plan_create", "Create plan", false, true, true),
            ("plan_advance", "Advance plan", false, false, true),
            ("plan_get", "Get plan", true, false, true),
        ]
    );
    for tool in plugin.tools() {
        assert_eq!(tool.execution_mode, ExecutionMode::Sequential);
        assert!(!tool.description.is_empty() && !tool.prompt_snippet.contains('\n'));
    }
}

#[tokio::test]
async fn every_result_fits_its_schema() {
    let (_, tools) = in_memory().await;
    let schema = |tool: &str| -> Value {
        let definition = tools.plugin().tools().iter().find(|t| t.name == tool).unwrap();
        serde_json::from_str(&definition.output_schema).unwrap()
    };
    for (tool, arguments) in [
        ("plan_create", chain(50)),
        ("plan_advance", r#"{"step":1,"status":"skipped"}"#.into()),
        ("plan_get", "{}".into()),
        ("plan_create", r#"{"title":"T","steps":["a"],"dependencies":[{"step":1,"dependsOn":[]}]}"#.into()),
        ("plan_get", "{}".into()),
    ] {
        let result = call(&tools, tool, &arguments).await.unwrap();
        assert!(jsonschema::is_valid(&schema(tool), &result), "{result}");
    }
}

#[tokio::test]
async fn what_is_no_plugin_is_told_apart() {
    let host = host();
    let whole = components::PLAN_EXECUTE;
    let other_version = |from: &[u8], to: &[u8]| {
        let mut bytes = whole.to_vec();
        while let Some(at) = bytes.windows(from.len()).position(|window| window == from) {
            bytes[at..at + from.len()].copy_from_slice(to);
        }
        bytes
    };
    let import = r#"(component (import "wasi:cli/environment@0.2.0" (instance)))"#;
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("nothing", vec![], "no WebAssembly component"),
        ("text", b"(component)".to_vec(), "no WebAssembly component"),
        ("a core module", b"\0asm\x01\0\0\0".to_vec(), "core module"),
        ("another format", b"\0asm\x0e\0\x01\0".to_vec(), "unknown version"),
        ("cut short", whole[..whole.len() / 2].to_vec(), "damaged"),
        ("cut in the preamble", whole[..6].to_vec(), "unknown version"),
        (
            "an empty component",
            wat::parse_str("(component)").unwrap(),
            "does not export plan-execute:plugin/lifecycle@0.1.0",
        ),
        ("an import", wat::parse_str(import).unwrap(), "imports wasi:cli/environment@0.2.0, which no plugin gets"),
        (
            "another journal",
            other_version(b"session-journal@0.1.0", b"session-journal@0.2.0"),
            "needs plan-execute:plugin/session-journal@0.2.0, and this host has plan-execute:plugin/session-journal@0.1.0",
        ),
        (
            "other tools",
            other_version(b"plugin/tools@0.1.0", b"plugin/tools@9.1.0"),
            "needs plan-execute:plugin/tools@9.1.0, and this host has plan-execute:plugin/tools@0.1.0",
        ),
    ];
    for (name, bytes, words) in cases {
        let hash = hex::encode(Sha256::digest(&bytes));
        let error =
            host.load_pinned(&bytes, &hash).await.err().unwrap_or_else(|| panic!("{name} was loaded")).to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_component_that_nobody_vouches_for_is_not_compiled_here() {
    let host = Host::new().unwrap();
    let bytes = wat_plugin::WatPlugin::default().build();
    let hash = hex::encode(Sha256::digest(&bytes));
    assert_eq!(host.load(&bytes).await.err(), Some(Error::NotPinned(hash.clone())));
    let wrong = "0".repeat(64);
    assert_eq!(
        host.load_pinned(&bytes, &wrong).await.err(),
        Some(Error::WrongHash { pinned: wrong, found: hash.clone() })
    );
    let plugin = host.load_pinned(&bytes, &hash.to_uppercase()).await.unwrap();
    assert_eq!(plugin.info().name, "wat-plugin");
}

#[tokio::test]
async fn an_export_that_is_not_there_is_an_error_when_it_is_asked_for() {
    let bytes = wat_plugin::WatPlugin::default().build();
    let host = host();
    let plugin = host.load_pinned(&bytes, &hex::encode(Sha256::digest(&bytes))).await.unwrap();
    let session = host.open(plan_execute_host::journal::Memory::default()).await.unwrap();
    let attached = conformance::attach(&plugin, &session).await;
    assert_eq!(call(&attached, "run", "{}").await.unwrap(), serde_json::json!({}));
    let error = attached.plans().err().unwrap();
    assert!(matches!(&error, Error::Export { interface: "plan-execute:plugin/plans@0.1.0", .. }), "{error}");
}

/// Wherever it is cut, it is refused with a sentence, and never taken for a whole one.
#[tokio::test]
async fn a_component_cut_at_any_length_is_refused() {
    let (host, whole) = (host(), wat_plugin::WatPlugin::default().build());
    let mut lengths: Vec<usize> = (0..whole.len()).step_by(7).collect();
    // And every one at the beginning and at the end.
    lengths.extend((0..16).chain(whole.len() - 16..whole.len()));
    for length in lengths {
        let bytes = &whole[..length];
        let error = host.load_pinned(bytes, &hex::encode(Sha256::digest(bytes))).await.err();
        // Cut between two sections, it is a component that lacks something.
        let typed = matches!(error, Some(Error::NotWasm | Error::Invalid(_) | Error::Export { .. }));
        assert!(typed, "cut at {length} of {}: {error:?}", whole.len());
        let text = error.unwrap().to_string();
        assert!(!text.contains(char::is_control) && text.len() < 2_000, "cut at {length}: {text:?}");
    }
}
