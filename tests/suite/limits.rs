//! Each limit, reached by a plugin that was made for it. The error names the plugin and the limit, and the next call works.

use conformance::{attach, call, chain, host_with, plan_session, plan_tools, wat_plugin::WatPlugin};
use plan_execute_host::{Attached, Compiler, Error, Host, Limit, Limits, Plugin, journal::Memory};
use sha2::{Digest, Sha256};
use std::time::Duration;

async fn load(host: &Host, plugin: &WatPlugin) -> Result<Plugin, Error> {
    let bytes = plugin.build();
    host.load_pinned(&bytes, &hex::encode(Sha256::digest(&bytes))).await
}

/// The plugin and the plan tools, on one session.
async fn beside_the_plan_tools(host: &Host, plugin: &WatPlugin) -> (Memory, Attached, Attached) {
    let memory = Memory::default();
    let session = host.open(memory.clone()).await.unwrap();
    let plugin = load(host, plugin).await.unwrap();
    (memory, attach(&plugin, &session).await, attach(&plan_tools(host).await, &session).await)
}

/// Calls the plugin's tool three times; each time it must reach `limit` and leave the plan tools alone.
async fn reaches(change: impl FnOnce(&mut Limits), plugin: WatPlugin, limit: Limit) {
    let host = host_with(change);
    let (_, hostile, plans) = beside_the_plan_tools(&host, &plugin).await;
    call(&plans, "plan_create", &chain(2)).await.unwrap();
    for _ in 0..3 {
        let error = hostile.call("run", "{}").await.expect_err("the limit is reached");
        let Error::Limit { plugin, limit: found, .. } = &error else { panic!("{limit}: {error}") };
        assert_eq!((plugin.as_str(), found), ("wat-plugin", &limit), "{error}");
        assert!(error.to_string().contains("wat-plugin") && error.to_string().contains(&limit.to_string()), "{error}");
        call(&plans, "plan_get", "{}").await.unwrap();
    }
}

fn runs(call_tool: &str) -> WatPlugin {
    WatPlugin { call_tool: call_tool.into(), ..WatPlugin::default() }
}

const ENDLESS: &str = "(loop $again (br $again))";

#[tokio::test]
async fn compute_time() {
    let limit = Duration::from_millis(100);
    reaches(|limits| limits.compute = limit, runs(ENDLESS), Limit::Compute(limit)).await;
}

#[tokio::test]
async fn compute_time_in_every_export() {
    let host = host_with(|limits| limits.compute = Duration::from_millis(100));
    let reached = |error: Option<Error>| matches!(error, Some(Error::Limit { limit: Limit::Compute(_), .. }));
    assert!(reached(load(&host, &WatPlugin { info: ENDLESS.into(), ..WatPlugin::default() }).await.err()));
    assert!(reached(load(&host, &WatPlugin { list_tools: ENDLESS.into(), ..WatPlugin::default() }).await.err()));
    let plugin = load(&host, &WatPlugin { configure: ENDLESS.into(), ..WatPlugin::default() }).await.unwrap();
    let session = host.open(Memory::default()).await.unwrap();
    assert!(reached(session.attach(&plugin, "{}", plan_execute_host::Grants::Declared).await.err()));
}

/// An endless loop does not keep others from running, not even on one thread.
#[tokio::test(flavor = "current_thread")]
async fn a_plugin_that_computes_lets_others_run() {
    let host = host_with(|limits| limits.compute = Duration::from_millis(500));
    let hostile = load(&host, &runs(ENDLESS)).await.unwrap();
    let hostile = attach(&hostile, &host.open(Memory::default()).await.unwrap()).await;
    let plans = plan_session(&host, Memory::default()).await;
    let endless = hostile.queue("run", "{}").await.unwrap();
    tokio::pin!(endless);
    for _ in 0..5 {
        tokio::select! {
            _ = &mut endless => panic!("the loop ended before the plan tools were served"),
            answer = call(&plans, "plan_create", "{\"title\":\"T\",\"steps\":[\"a\"]}") => drop(answer.unwrap()),
        }
    }
    endless.await.unwrap_err();
}

#[tokio::test]
async fn stack() {
    let plugin = WatPlugin {
        definitions: "(func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))".into(),
        call_tool: "(drop (call $deep (i32.const 0)))".into(),
        ..WatPlugin::default()
    };
    reaches(|_| {}, plugin, Limit::Stack).await;
}

#[tokio::test]
async fn memory() {
    let grows = "(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable";
    reaches(|_| {}, runs(grows), Limit::Memory(16 << 20)).await;
    // A plugin that can do without goes on.
    let host = host_with(|_| {});
    let goes_on = "(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16)))))";
    let (_, plugin, _) = beside_the_plan_tools(&host, &runs(goes_on)).await;
    call(&plugin, "run", "{}").await.unwrap();
    // One that wants more from the start is not even instantiated.
    let error = load(&host, &WatPlugin { pages: Some((300, 300)), ..WatPlugin::default() }).await.err();
    assert!(matches!(error, Some(Error::Limit { limit: Limit::Memory(_), .. })), "{error:?}");
}

#[tokio::test]
async fn many_memories_and_tables() {
    let many = |what: &str, n: usize| WatPlugin { definitions: what.repeat(n), ..WatPlugin::default() };
    let host = host_with(|_| {});
    for (plugin, limit) in [
        (many("(memory 1 1)", 4), Limit::Memories(4)),
        (many("(table 1 funcref)", 33), Limit::Tables(32)),
        (many("(table 60000 funcref)", 2), Limit::TableElements(100_000)),
    ] {
        let error = load(&host, &plugin).await.err();
        assert!(matches!(&error, Some(Error::Limit { limit: found, .. }) if *found == limit), "{limit}: {error:?}");
    }
    let grows = WatPlugin {
        definitions: "(table $t 1 funcref)".into(),
        call_tool: "(if (i32.eq (i32.const -1) (table.grow $t (ref.null func) (i32.const 100000))) (then unreachable))"
            .into(),
        ..WatPlugin::default()
    };
    reaches(|_| {}, grows, Limit::TableElements(100_000)).await;
}

/// What a plugin's own maximum forbids does not count, and is no limit of the host.
#[tokio::test]
async fn growth_beyond_a_maximum_of_its_own() {
    let host = host_with(|_| {});
    let fails = |grow: &str| format!("(if (i32.ne (i32.const -1) {grow}) (then unreachable))").repeat(20);
    let works = |grow: &str| format!("(if (i32.eq (i32.const -1) {grow}) (then unreachable))");
    let (few, many) = ("(memory.grow (i32.const 8))", "(memory.grow (i32.const 200))");
    let (elements, more) =
        ("(table.grow $t (ref.null func) (i32.const 60))", "(table.grow $t (ref.null func) (i32.const 50000))");
    let plugin = |code: String| WatPlugin {
        definitions: "(table $t 1 60 funcref)".into(),
        pages: Some((2, 150)),
        call_tool: code,
        ..WatPlugin::default()
    };
    let code = fails(many) + &fails(elements) + &fails(more) + &works(few);
    let (_, tools, _) = beside_the_plan_tools(&host, &plugin(code.clone())).await;
    call(&tools, "run", "{}").await.unwrap();
    let (_, tools, _) = beside_the_plan_tools(&host, &plugin(code + " unreachable")).await;
    let error = tools.call("run", "{}").await.unwrap_err();
    assert!(matches!(error, Error::Trap { .. }), "{error}");
}

/// In the pool and without it, tables grow as far.
#[tokio::test]
async fn tables_grow_up_to_the_limit() {
    let host = host_with(|_| {});
    for further in ["", "(memory 1 1)"] {
        let plugin = WatPlugin {
            definitions: format!("(table $t 1 funcref) {further}"),
            call_tool:
                "(if (i32.eq (i32.const -1) (table.grow $t (ref.null func) (i32.const 99000))) (then unreachable))"
                    .into(),
            ..WatPlugin::default()
        };
        let (_, tools, _) = beside_the_plan_tools(&host, &plugin).await;
        call(&tools, "run", "{}").await.unwrap();
    }
}

#[tokio::test]
async fn core_instances() {
    let host = host_with(|limits| limits.core_instances = 1);
    let error = host.load(plan_execute_host::components::PLAN_EXECUTE).await.err();
    assert!(matches!(error, Some(Error::Limit { limit: Limit::CoreInstances(1), .. })), "{error:?}");
}

const TOKENS: &str = "(loop $again
    (call $token (local.get $branch) (i32.const 8192))
    (global.set $heap (i32.const 65536))
    (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20000))))";

#[tokio::test]
async fn operations() {
    reaches(|_| {}, runs(TOKENS), Limit::Operations(10_000)).await;
}

/// Appends `{}` so many times.
fn appends(times: u32) -> String {
    format!(
        "(loop $again
           (call $append (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 0) (i32.const 4096) (i32.const 2) (i32.const 8192))
           (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {times}))))"
    )
}

#[tokio::test]
async fn appends_and_what_was_kept_of_them() {
    let host = host_with(|_| {});
    let (memory, plugin, _) = beside_the_plan_tools(&host, &runs(&appends(17))).await;
    let error = plugin.call("run", "{}").await.unwrap_err();
    let Error::Limit { limit: Limit::Appends(16), kept, .. } = &error else { panic!("{error}") };
    let saved: Vec<String> = memory.custom_entries().into_iter().map(|(_, entry)| entry.id).collect();
    assert_eq!(kept.entries, saved);
    assert_eq!(saved.len(), 16);
    assert!(!kept.unknown && error.to_string().contains(&saved[15]), "{error}");
    let (memory, plugin, _) = beside_the_plan_tools(&host, &runs(&appends(16))).await;
    call(&plugin, "run", "{}").await.unwrap();
    assert_eq!(memory.custom_entries().len(), 16);
}

#[tokio::test]
async fn a_trap_after_an_append_says_what_was_kept() {
    let host = host_with(|_| {});
    let (memory, plugin, _) = beside_the_plan_tools(&host, &runs(&format!("{} unreachable", appends(1)))).await;
    let error = plugin.call("run", "{}").await.unwrap_err();
    let Error::Trap { kept, .. } = &error else { panic!("{error}") };
    assert_eq!(kept.entries, [memory.custom_entries()[0].1.id.clone()]);
    assert!(error.to_string().contains(&kept.entries[0]), "{error}");
}

/// A plugin with a resource of its own, which makes so many handles of it.
fn makes_handles(handles: u32) -> WatPlugin {
    WatPlugin {
        wit: Some(
            "package test:extra;
             interface things { resource thing; }
             world extra { include plan-execute:plugin/tool-plugin@0.1.0; export things; }",
        ),
        imports: r#"(import "[export]test:extra/things" "[resource-new]thing" (func $new (param i32) (result i32)))"#
            .into(),
        call_tool: format!(
            "(loop $again
               (drop (call $new (i32.const 1)))
               (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {handles}))))"
        ),
        ..WatPlugin::default()
    }
}

#[tokio::test]
async fn handles() {
    reaches(|_| {}, makes_handles(1_001), Limit::Handles(1_000)).await;
    let (_, plugin, _) = beside_the_plan_tools(&host_with(|_| {}), &makes_handles(900)).await;
    call(&plugin, "run", "{}").await.unwrap();
}

#[tokio::test]
async fn bytes_that_cross() {
    let large = "(call $append (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 0)
        (i32.const 65536) (i32.const 3000000) (i32.const 8192))";
    let plugin = || WatPlugin { call_tool: large.into(), pages: Some((64, 64)), ..WatPlugin::default() };
    reaches(|_| {}, plugin(), Limit::Crossing(2 << 20)).await;
    let plugin = WatPlugin { text_len: Some(3_000_000), pages: Some((64, 64)), ..WatPlugin::default() };
    reaches(|_| {}, plugin, Limit::Crossing(2 << 20)).await;
}

#[tokio::test]
async fn arguments() {
    let tools = plan_session(&host_with(|_| {}), Memory::default()).await;
    let error = tools.call("plan_create", &"x".repeat((1 << 20) + 1)).await.err();
    assert!(matches!(error, Some(Error::Limit { limit: Limit::Arguments(_), .. })), "{error:?}");
    // At the limit the plugin still reads them, however many items they hold.
    let items = format!("[{}1]", "1,".repeat((1 << 19) - 40));
    for arguments in [items.clone(), format!(r#"{{"title":"T","steps":{items}}}"#), "x".repeat(1 << 20)] {
        let refused = call(&tools, "plan_create", &arguments).await.unwrap_err();
        assert_eq!(refused.code, "invalid-arguments");
        assert!(refused.message.len() < 1_000, "{}", refused.message);
    }
}

#[tokio::test]
async fn results() {
    let plugin = WatPlugin { text_len: Some(1_040_000), pages: Some((64, 64)), ..WatPlugin::default() };
    reaches(|limits| limits.result = 1_000_000, plugin, Limit::Result(1_000_000)).await;
}

#[tokio::test]
async fn errors_are_cut_at_a_character() {
    // An error whose message is 1.5 million bytes of two-byte characters, from an odd place on.
    let plugin = WatPlugin {
        call_tool: "(call $drop (local.get $branch))
            (loop $again
              (i32.store16 offset=65536 (local.get $i) (i32.const 0xa9c3))
              (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 2))) (i32.const 1500000))))
            (i32.store8 (i32.const 65535) (i32.const 120))
            (i32.store8 (i32.const 2048) (i32.const 1))
            (i32.store (i32.const 2052) (i32.const 256)) (i32.store (i32.const 2056) (i32.const 3))
            (i32.store (i32.const 2060) (i32.const 65535)) (i32.store (i32.const 2064) (i32.const 1500001))
            (i32.store8 (i32.const 2068) (i32.const 0))
            (return (i32.const 2048))"
            .into(),
        pages: Some((64, 64)),
        ..WatPlugin::default()
    };
    let (_, plugin, _) = beside_the_plan_tools(&host_with(|_| {}), &plugin).await;
    let error = plugin.call("run", "{}").await.unwrap().unwrap_err();
    assert_eq!(error.code, "run");
    assert_eq!(error.message.len(), (1 << 20) - 1);
    assert!(error.message.starts_with('x') && error.message.ends_with('é'));
}

#[tokio::test]
async fn tools_and_their_definitions() {
    let host = host_with(|_| {});
    let tools = |tools| WatPlugin { tools: Some(tools), ..WatPlugin::default() };
    let error = load(&host, &tools(65)).await.err();
    assert!(matches!(error, Some(Error::Limit { limit: Limit::Tools(64), .. })), "{error:?}");
    let error = load(&host, &tools(2)).await.err();
    assert!(matches!(&error, Some(Error::Description { fault, .. }) if fault.contains("two tools")), "{error:?}");
    let named = |tool| WatPlugin { tool: Some(tool), ..WatPlugin::default() };
    for name in ["plan.get", "Run", ""] {
        let error = load(&host, &named(name)).await.err();
        assert!(matches!(&error, Some(Error::Description { fault, .. }) if fault.contains("tool name")), "{error:?}");
    }
    let host = host_with(|limits| limits.tool_definitions = 10);
    let error = load(&host, &tools(1)).await.err();
    assert!(matches!(error, Some(Error::Limit { limit: Limit::ToolDefinitions(10), .. })), "{error:?}");
}

/// A call that waits for an instance waits like any other.
#[tokio::test]
async fn calls_that_wait_for_an_instance_count_too() {
    let host = host_with(|limits| (limits.instances, limits.waiting) = (1, 2));
    let endless = load(&host, &runs(ENDLESS)).await.unwrap();
    let endless = attach(&endless, &host.open(Memory::default()).await.unwrap()).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(plan_session(&host, Memory::default()).await);
    }
    let running = endless.queue("run", "{}").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut waiting = Vec::new();
    for tools in &sessions[..2] {
        waiting.push(tools.queue("plan_create", &chain(1)).await.unwrap());
    }
    let refused = sessions[2].queue("plan_get", "{}").await.err();
    assert!(matches!(refused, Some(Error::Limit { limit: Limit::Waiting(2), .. })), "{refused:?}");
    running.await.unwrap_err();
    for call in waiting {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn instances_at_a_time() {
    let host = host_with(|limits| limits.instances = 1);
    let mut calls = Vec::new();
    for _ in 0..8 {
        let tools = plan_session(&host, Memory::default()).await;
        calls.push(tokio::spawn(async move { call(&tools, "plan_create", &chain(3)).await.map(|_| ()) }));
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn bytes_of_a_component() {
    let host = host_with(|limits| limits.component = 1_000);
    let error = host.load(plan_execute_host::components::PLAN_EXECUTE).await.err();
    assert!(matches!(error, Some(Error::Limit { limit: Limit::Component(1_000), .. })), "{error:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn time_for_compiling() {
    let limits = {
        let mut limits = Limits::default();
        limits.compile = Duration::from_millis(100);
        limits
    };
    let sleep = Compiler { program: "sleep".into(), arguments: vec!["60".into()] };
    let host = Host::builder().limits(limits.clone()).compiler(sleep).build().unwrap();
    let error = host.load(&WatPlugin::default().build()).await.err();
    assert!(matches!(error, Some(Error::Limit { limit: Limit::Compile(_), .. })), "{error:?}");
    for program in ["false", "no-such-program-at-all"] {
        let broken = Compiler { program: program.into(), arguments: vec![] };
        let host = Host::builder().compiler(broken).build().unwrap();
        let error = host.load(&WatPlugin::default().build()).await.err();
        assert!(matches!(error, Some(Error::Compile(_))), "{error:?}");
    }
}

/// What a compiler process got wrong once does not stay in the cache.
#[cfg(unix)]
#[tokio::test]
async fn useless_compiled_code_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = WatPlugin::default().build();
    let host = |compiler: Option<&str>| {
        let builder = Host::builder().cache(folder.path().join("cache"));
        match compiler {
            Some(program) => builder.compiler(Compiler { program: program.into(), arguments: vec![] }).build().unwrap(),
            None => builder.build().unwrap(),
        }
    };
    for program in ["true", "cat"] {
        assert!(host(Some(program)).load(&bytes).await.is_err(), "{program}");
    }
    host(None).load_pinned(&bytes, &hex::encode(Sha256::digest(&bytes))).await.unwrap();
    // That it is in the cache now does not make it trusted.
    assert!(matches!(host(None).load(&bytes).await.err(), Some(Error::NotPinned(_))));
    host(Some("false")).load(&bytes).await.unwrap();
}

#[tokio::test]
async fn names_of_custom_types() {
    // 300 bytes from 512 on: the type that was granted, and what stands behind it.
    let plugin = WatPlugin {
        definitions: format!("(data (i32.const 521) \"/{}\")", "x".repeat(400)),
        call_tool: "(call $append (local.get $branch) (i32.const 512) (i32.const 300) (i32.const 0) (i32.const 4096) (i32.const 2) (i32.const 8192))
            (if (i32.ne (i32.load8_u (i32.const 8192)) (i32.const 1)) (then unreachable))
            (if (i32.ne (i32.load8_u offset=8 (i32.const 8192)) (i32.const 3)) (then unreachable))"
            .into(),
        ..WatPlugin::default()
    };
    let (memory, plugin, _) = beside_the_plan_tools(&host_with(|_| {}), &plugin).await;
    call(&plugin, "run", "{}").await.unwrap();
    assert!(memory.custom_entries().is_empty());
}

/// The pool has fewer places than calls need here; the rest runs without it, under the same limits.
#[tokio::test]
async fn a_plugin_that_does_not_fit_into_the_pool_runs_without_it() {
    let host = host_with(|limits| limits.instances = 2);
    let wide = WatPlugin { definitions: "(memory 1 1)".into(), call_tool: appends(17), ..WatPlugin::default() };
    let (memory, plugin, _) = beside_the_plan_tools(&host, &wide).await;
    let error = plugin.call("run", "{}").await.unwrap_err();
    assert!(matches!(error, Error::Limit { limit: Limit::Appends(16), .. }), "{error}");
    assert_eq!(memory.custom_entries().len(), 16);
}

#[tokio::test]
async fn payloads_that_are_no_single_value_are_refused() {
    // The text at 3000 tries to be two lines; the plugin hands out what the journal answered: the case of the error.
    let plugin = WatPlugin {
        definitions: r#"(data (i32.const 3000) "{}\0a{\22type\22:\22custom\22}")"#.into(),
        call_tool: "(call $append (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 0) (i32.const 3000) (i32.const 20) (i32.const 8192))
            (if (i32.ne (i32.load8_u (i32.const 8192)) (i32.const 1)) (then unreachable))
            (if (i32.ne (i32.load8_u offset=8 (i32.const 8192)) (i32.const 5)) (then unreachable))"
            .into(),
        ..WatPlugin::default()
    };
    let (memory, plugin, _) = beside_the_plan_tools(&host_with(|_| {}), &plugin).await;
    call(&plugin, "run", "{}").await.unwrap();
    assert!(memory.custom_entries().is_empty());
}
