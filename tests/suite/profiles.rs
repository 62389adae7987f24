//! Profiles with real plugins: what each gets, where its limits are, and what is said of a profile that is wrong.

use conformance::{call, chain, host, host_with, wat_plugin::WatPlugin};
use plan_execute_host::{
    Attached, Error, Grants, Host, Limit, Limits, components,
    inspect::{inspect, sha256},
    journal::{Memory, Payload},
    profile::{Profile, ProfileError},
};
use proptest::prelude::*;
use std::{fs, time::Duration};

/// A folder with a profile and components.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    /// Puts a component there; its hash.
    fn component(&self, name: &str, plugin: &WatPlugin) -> String {
        let bytes = plugin.build();
        fs::write(self.0.path().join(name), &bytes).unwrap();
        sha256(&bytes)
    }

    fn profile(&self, yaml: &str) -> Profile {
        let path = self.0.path().join("p.yaml");
        fs::write(&path, yaml).unwrap();
        Profile::read(path).unwrap()
    }

    async fn attach(&self, yaml: &str, host: &Host, memory: &Memory) -> Result<Vec<Attached>, ProfileError> {
        let plugins = self.profile(yaml).load(host).await?;
        let session = host.open(memory.clone()).await.unwrap();
        let mut attached = Vec::new();
        for plugin in &plugins {
            attached.push(plugin.attach(&session).await?);
        }
        Ok(attached)
    }

    /// What is said of the profile, from its line on.
    async fn error(&self, yaml: &str) -> String {
        let error = self.attach(yaml, &host(), &Memory::default()).await.err().unwrap_or_else(|| panic!("{yaml}"));
        let text = error.to_string();
        let start = format!("{}:", self.0.path().join("p.yaml").display());
        text.strip_prefix(&start).unwrap_or_else(|| panic!("{text}")).to_owned()
    }
}

/// A plugin with one tool, which appends `{}`.
fn appends(tool: &'static str) -> WatPlugin {
    let call_tool = "(call $append (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 0) (i32.const 4096) (i32.const 2) (i32.const 8192))";
    WatPlugin { tool: Some(tool), call_tool: call_tool.into(), ..WatPlugin::default() }
}

#[tokio::test]
async fn plugins_side_by_side() {
    let place = Place::new();
    let (hash, memory) = (place.component("a.wasm", &appends("note")), Memory::default());
    let yaml =
        format!("- id: notes\n  name: a.wasm\n  sha256: {}\n- id: plan\n  name: plan-execute\n", hash.to_uppercase());
    let attached = place.attach(&yaml, &host(), &memory).await.unwrap();
    let [notes, plan] = &attached[..] else { panic!() };
    assert_eq!((&*notes.plugin().info().name, &*plan.plugin().info().name), ("wat-plugin", "plan-execute"));
    assert!(notes.plugin().tool("note").is_some() && notes.plugin().tool("plan_get").is_none());
    // One queue: what one plugin appends carries the other's waiting calls along.
    let first = plan.queue("plan_create", &chain(2)).await.unwrap();
    let second = notes.queue("note", "{}").await.unwrap();
    let third = plan.queue("plan_advance", r#"{"step":1,"status":"done"}"#).await.unwrap();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    third.await.unwrap().unwrap();
    let types: Vec<String> = memory.custom_entries().into_iter().map(|(custom_type, _)| custom_type).collect();
    assert_eq!(types, ["pi-harness/plan-execute", "demo/type", "pi-harness/plan-execute"]);
}

#[tokio::test]
async fn faults_that_show_when_plugins_are_loaded() {
    let place = Place::new();
    let hash = place.component("a.wasm", &appends("note"));
    let twin = place.component("b.wasm", &WatPlugin { tool: Some("note"), ..WatPlugin::default() });
    fs::write(place.0.path().join("text.wasm"), "text").unwrap();
    let zeros = "0".repeat(64);
    let bundled = sha256(components::PLAN_EXECUTE);
    let cases = [
        (
            format!("- id: a\n  name: a.wasm\n  sha256: {zeros}\n"),
            format!("3: \"a.wasm\" was not loaded: the component has the SHA-256 {hash}, not the pinned {zeros}"),
        ),
        (
            format!("- id: a\n  name: plan-execute\n  config: {{}}\n  sha256: {zeros}\n"),
            format!(
                "4: \"plan-execute\" was not loaded: the component has the SHA-256 {bundled}, not the pinned {zeros}"
            ),
        ),
        (
            "- id: a\n  name: a.wasm\n".into(),
            format!(
                "2: \"a.wasm\" was not loaded: the component is not pinned: pin its SHA-256 {hash} if you trust it, or give the host a compiler process"
            ),
        ),
        (
            "- id: a\n  name: plan-exceute\n".into(),
            "2: \"plan-exceute\" is neither a bundled component (plan-execute, @pi-harness/plugin-plan-execute) nor a file that can be read (No such file or directory (os error 2))".into(),
        ),
        (
            "- id: a\n  name: text.wasm\n".into(),
            "2: \"text.wasm\" was not loaded: this is no WebAssembly component: it does not begin as one".into(),
        ),
        (
            "- id: a\n  name: plan-execute\n  grants:\n  - pi-harness/plan-execute/x\n  - pi-harness/plan\n".into(),
            "5: the plugin plan-execute does not declare the custom type \"pi-harness/plan\": it declares pi-harness/plan-execute".into(),
        ),
        (
            "- id: a\n  name: plan-execute\n- id: b\n  name: '@pi-harness/plugin-plan-execute'\n".into(),
            "3: the entries \"a\" (line 1) and \"b\" both have a tool plan_create: leave one of them out".into(),
        ),
        (
            format!(
                "- id: a\n  name: a.wasm\n  sha256: {hash}\n- id: x\n  name: plan-execute\n-\n  id: b\n  name: b.wasm\n  sha256: {twin}\n"
            ),
            "7: the entries \"a\" (line 1) and \"b\" both have a tool note: leave one of them out".into(),
        ),
        (
            "- id: a\n  name: plan-execute\n  config:\n    colour: red\n".into(),
            "4: the plugin plan-execute does not take its configuration (Unknown config keys: colour (plan-execute has none).)".into(),
        ),
        (
            "- id: a\n  name: plan-execute\n  limits:\n    memory: 1 KiB\n".into(),
            "2: \"plan-execute\" was not loaded: the plugin (not loaded yet) reached a limit: the memory of one call (1024 bytes); nothing of this call was saved".into(),
        ),
    ];
    for (yaml, sentence) in cases {
        assert_eq!(place.error(&yaml).await, sentence, "{yaml}");
    }
}

#[tokio::test]
async fn grants() {
    let place = Place::new();
    let hash = place.component("a.wasm", &appends("note"));
    for (grants, appended) in
        [("", 1), ("  grants: [demo/type]\n", 1), ("  grants: []\n", 0), ("  grants: [demo/type/x]\n", 0)]
    {
        let memory = Memory::default();
        let yaml = format!("- id: a\n  name: a.wasm\n  sha256: {hash}\n{grants}");
        let attached = place.attach(&yaml, &host(), &memory).await.unwrap();
        call(&attached[0], "note", "{}").await.unwrap();
        assert_eq!(memory.custom_entries().len(), appended, "{grants}");
    }
    // Two plugins may be granted one type, and each sees what the other wrote.
    let latest = "(call $latest (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 8192))
        (if (i32.eqz (i32.load8_u (i32.const 8200))) (then unreachable))";
    let reader = place.component("b.wasm", &WatPlugin { call_tool: latest.into(), ..WatPlugin::default() });
    let yaml = format!("- {{id: a, name: a.wasm, sha256: {hash}}}\n- {{id: b, name: b.wasm, sha256: {reader}}}\n");
    let attached = place.attach(&yaml, &host(), &Memory::default()).await.unwrap();
    assert!(matches!(attached[1].call("run", "{}").await, Err(Error::Trap { .. })), "there is nothing yet");
    call(&attached[0], "note", "{}").await.unwrap();
    call(&attached[1], "run", "{}").await.unwrap();
}

const ENDLESS: &str = "(loop $again (br $again))";

/// Limits of one plugin hold for it in all that it does, and for no other one.
#[tokio::test]
async fn lower_limits() {
    let place = Place::new();
    let short = "  limits: {compute: 50 ms}\n";
    for (name, plugin) in [
        ("info.wasm", WatPlugin { info: ENDLESS.into(), ..WatPlugin::default() }),
        ("list.wasm", WatPlugin { list_tools: ENDLESS.into(), ..WatPlugin::default() }),
        ("configure.wasm", WatPlugin { configure: ENDLESS.into(), ..WatPlugin::default() }),
    ] {
        let hash = place.component(name, &plugin);
        let error = place.error(&format!("- id: a\n  name: {name}\n  sha256: {hash}\n{short}")).await;
        assert!(error.contains("the compute time of one call (50ms)"), "{name}: {error}");
    }
    let endless = WatPlugin { call_tool: ENDLESS.into(), tool: Some("endless"), ..WatPlugin::default() };
    let (endless, note) = (place.component("e.wasm", &endless), place.component("n.wasm", &appends("note")));
    let yaml = format!(
        "- id: e\n  name: e.wasm\n  sha256: {endless}\n{short}- id: n\n  name: n.wasm\n  sha256: {note}\n  \
         limits: {{appends: 0}}\n- id: p\n  name: plan-execute\n  limits: {{payload: 500 B, arguments: 1 KiB}}\n"
    );
    let memory = Memory::default();
    let attached = place.attach(&yaml, &host(), &memory).await.unwrap();
    let [endless, note, plan] = &attached[..] else { panic!() };
    let limit = |error: Error| match error {
        Error::Limit { limit, .. } => limit,
        other => panic!("{other}"),
    };
    assert_eq!(limit(endless.call("endless", "{}").await.unwrap_err()), Limit::Compute(Duration::from_millis(50)));
    assert_eq!(limit(note.call("note", "{}").await.unwrap_err()), Limit::Appends(0));
    let refused = call(plan, "plan_create", &chain(20)).await.unwrap_err();
    assert_eq!((&*refused.code, refused.data.as_deref()), ("too-large", Some(r#"{"limit":500}"#)));
    assert_eq!(limit(plan.call("plan_create", &chain(50)).await.unwrap_err()), Limit::Arguments(1024));
    assert!(memory.custom_entries().is_empty());
    call(plan, "plan_create", &chain(2)).await.unwrap();
}

#[tokio::test]
async fn what_one_plugin_reads_at_most() {
    let place = Place::new();
    let memory = Memory::default();
    memory.push(Some("pi-harness/plan-execute"), Payload::json(format!("\"{}\"", "x".repeat(2_000))));
    let attached =
        place.attach("- {id: a, name: plan-execute, limits: {payload-read: 1 KiB}}", &host(), &memory).await.unwrap();
    let error = call(&attached[0], "plan_get", "{}").await.unwrap_err();
    assert!(error.message.contains("reads at most 1024"), "{}", error.message);
}

/// A plugin that needs more than a slot of the pool has gets it, beside one that does not.
#[tokio::test]
async fn higher_limits() {
    let place = Place::new();
    let grows = "(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable";
    // 300 pages are 18.75 MiB, and the host's limit is 16.
    let big = WatPlugin { pages: Some((300, 65_536)), call_tool: grows.into(), ..WatPlugin::default() };
    let late = WatPlugin { call_tool: grows.into(), tool: Some("late"), ..WatPlugin::default() };
    let (big, late) = (place.component("big.wasm", &big), place.component("late.wasm", &late));
    let plain = format!("- id: a\n  name: big.wasm\n  sha256: {big}\n");
    assert!(place.error(&plain).await.contains("the memory of one call (16777216 bytes)"));
    let yaml = format!(
        "{plain}  limits: {{memory: 32 MiB}}\n- id: b\n  name: late.wasm\n  sha256: {late}\n  limits: {{memory: 24 MiB}}\n\
         - {{id: p, name: plan-execute}}\n"
    );
    let attached = place.attach(&yaml, &host(), &Memory::default()).await.unwrap();
    let [big, late, plan] = &attached[..] else { panic!() };
    call(plan, "plan_create", &chain(2)).await.unwrap();
    for (plugin, tool, mib) in [(big, "run", 32), (late, "late", 24), (big, "run", 32)] {
        let error = plugin.call(tool, "{}").await.unwrap_err();
        let Error::Limit { limit, .. } = error else { panic!("{error}") };
        assert_eq!(limit, Limit::Memory(mib << 20));
    }
    call(plan, "plan_get", "{}").await.unwrap();
    // It grew as far as that, and no sooner: 24 MiB are 384 pages.
    let measures = WatPlugin {
        call_tool: "(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 1)))))
            (if (i32.ne (memory.size) (i32.const 384)) (then unreachable))"
            .into(),
        ..WatPlugin::default()
    };
    let hash = place.component("m.wasm", &measures);
    let yaml = format!("- {{id: m, name: m.wasm, sha256: {hash}, limits: {{memory: 24 MiB}}}}");
    let attached = place.attach(&yaml, &host(), &Memory::default()).await.unwrap();
    call(&attached[0], "run", "{}").await.unwrap();
}

/// Tables grow as far as the plugin's limit, too, be it above that of the host or below.
#[tokio::test]
async fn tables_grow_as_far_as_they_may() {
    let place = Place::new();
    let grows = |elements: u32| WatPlugin {
        definitions: "(table $t 1 funcref)".into(),
        call_tool: format!(
            "(if (i32.eq (i32.const -1) (table.grow $t (ref.null func) (i32.const {elements}))) (then unreachable))"
        ),
        ..WatPlugin::default()
    };
    for (limits, elements, grown) in
        [("{}", 90_000, true), ("{table-elements: 200000}", 190_000, true), ("{table-elements: 1000}", 2_000, false)]
    {
        let hash = place.component("t.wasm", &grows(elements));
        let yaml = format!("- {{id: t, name: t.wasm, sha256: {hash}, limits: {limits}}}");
        let attached = place.attach(&yaml, &host(), &Memory::default()).await.unwrap();
        let answer = attached[0].call("run", "{}").await;
        assert_eq!(answer.is_ok(), grown, "{limits}: {answer:?}");
        if let Err(error) = answer {
            assert!(matches!(error, Error::Limit { limit: Limit::TableElements(1_000), .. }), "{error}");
        }
    }
}

/// What all plugins of a host share, stays shared.
#[tokio::test]
async fn limits_of_the_host_stay_the_hosts() {
    let host = host_with(|limits| limits.waiting = 0);
    let other = host.with_limits(Limits::default());
    assert_eq!((other.limits().waiting, other.limits().memory), (0, Limits::default().memory));
    let plugin = other.load(components::PLAN_EXECUTE).await.unwrap();
    let session = host.open(Memory::default()).await.unwrap();
    let attached = session.attach(&plugin, "{}", Grants::Declared).await.unwrap();
    let error = attached.call("plan_get", "{}").await.unwrap_err();
    assert!(matches!(error, Error::Limit { limit: Limit::Waiting(0), .. }), "{error}");
}

/// What a component needs, as it is told without running it, is what it needs.
#[tokio::test]
async fn needs() {
    let definitions = "(memory 1 1) (table 5 funcref) (table 7 funcref)".into();
    let bytes = WatPlugin { definitions, ..WatPlugin::default() }.build();
    let needs = inspect(&bytes).unwrap().needs;
    assert_eq!((needs.memory, needs.memories), (3 << 16, 2));
    let exactly = |limits: &mut Limits| {
        limits.memory = needs.memory as usize;
        limits.memories = needs.memories as usize;
        limits.tables = needs.tables as usize;
        limits.table_elements = needs.table_elements as usize;
        limits.core_instances = needs.core_instances as usize;
    };
    let hash = sha256(&bytes);
    assert!(host_with(exactly).load_pinned(&bytes, &hash).await.is_ok());
    let less: [fn(&mut Limits); 5] = [
        |limits| limits.memory -= 1,
        |limits| limits.memories -= 1,
        |limits| limits.tables -= 1,
        |limits| limits.table_elements -= 1,
        |limits| limits.core_instances -= 1,
    ];
    for (which, less) in less.into_iter().enumerate() {
        let host = host_with(|limits| {
            exactly(limits);
            less(limits);
        });
        let error = host.load_pinned(&bytes, &hash).await.err();
        assert!(matches!(error, Some(Error::Limit { .. })), "{which}: {error:?}");
    }
}

#[test]
fn a_look_into_components() {
    let inside = inspect(components::PLAN_EXECUTE).unwrap();
    assert_eq!(inside.imports, ["plan-execute:plugin/session-journal@0.1.0"]);
    assert_eq!((inside.exports.len(), inside.not_offered().count(), inside.missing().count()), (3, 0, 0));
    let bare = inspect(&wat::parse_str("(component)").unwrap()).unwrap();
    assert_eq!(
        bare.missing().collect::<Vec<_>>(),
        ["plan-execute:plugin/lifecycle@0.1.0", "plan-execute:plugin/tools@0.1.0"]
    );
    // Cut or changed anywhere, it is an error or another component, and never a panic.
    for cut in (0..components::PLAN_EXECUTE.len()).step_by(1_009) {
        assert!(inspect(&components::PLAN_EXECUTE[..cut]).is_err(), "{cut}");
        let mut changed = components::PLAN_EXECUTE.to_vec();
        changed[cut] ^= 0xff;
        let _ = inspect(&changed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Whatever stands in a profile, it is taken or refused in one sentence.
    #[test]
    fn any_text_is_taken_or_refused(text in prop_oneof![
        any::<String>(),
        "[-:{}\\[\\]&*!|>'\"#%@,? \n\tabidnamelts0-9]{0,200}",
        (0..VALID.len(), 0..40usize, any::<String>()).prop_map(|(at, len, new)| {
            let (at, end) = (VALID.floor_char_boundary(at), VALID.ceil_char_boundary((at + len).min(VALID.len())));
            format!("{}{new}{}", &VALID[..at], &VALID[end.max(at)..])
        }),
    ]) {
        if let Err(error) = Profile::parse(&text, "p.yaml") {
            let sentence = error.to_string();
            prop_assert!(sentence.starts_with("p.yaml:") && !sentence.contains('\n') && sentence.len() < 1_000, "{sentence}");
        }
    }

    #[test]
    fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        let _ = Profile::read(file.path());
    }
}

const VALID: &str = "- id: plan\n  name: \"@pi-harness/plugin-plan-execute\"\n  config: &c {k: [1, 2.5, ~, 'x']}\n- id: notes\n  \
    name: plugins/notes.wasm\n  sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n  config: *c\n  \
    grants: [demo/notes]\n  limits: {memory: 64 MiB, compute: 5 s, appends: 3}\n";
