//! Plugins written by hand in WebAssembly text, for what no well-behaved plugin does.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A plugin of the world `tool-plugin` with one tool, `run`, which answers `{}`. Parts of it can be replaced.
#[derive(Default)]
pub struct WatPlugin {
    /// Further definitions of the core module.
    pub definitions: String,
    /// Its name: `wat-plugin` where nothing is given.
    pub name: Option<&'static str>,
    /// Runs in `info`.
    pub info: String,
    /// Runs at the end of `info`, whose record stands at [`INFO`].
    pub info_end: String,
    /// Runs in `configure`. Local 0 is where the configuration stands, local 1 its length.
    pub configure: String,
    /// Runs in `list-tools`.
    pub list_tools: String,
    /// Runs at the end of `list-tools`, whose list stands at [`LIST`] and its first definition at [`TOOL`].
    pub list_tools_end: String,
    /// Runs whenever the host asks for memory, of the length `$len` at the alignment `$align`.
    pub realloc: String,
    /// Runs in `call-tool`. The locals `$branch`, `$name`, `$name_len`, `$args` and `$args_len` are its parameters; `$i` and
    /// `$j` are free. The buffer at 8192 takes answers of the journal; the text `demo/type` stands at 512.
    pub call_tool: String,
    /// Length of the answer's text, which stands at 4096.
    pub text_len: Option<u32>,
    /// Custom types that it declares: `demo/type` where nothing is given.
    pub custom_type: Option<&'static str>,
    /// The tool's name.
    pub tool: Option<&'static str>,
    /// How often the tool is listed.
    pub tools: Option<u32>,
    /// The memory's size in pages, at first and at most.
    pub pages: Option<(u32, u32)>,
    /// Further imports of the core module.
    pub imports: String,
    /// A world of its own: a WIT package of the name `test:extra` with a world `extra`, which includes
    /// `plan-execute:plugin/tool-plugin@0.1.0`.
    pub wit: Option<&'static str>,
}

/// Where the record of `info` stands.
pub const INFO: u32 = 1024;
/// Where pointer and length of the list of tools stand.
pub const LIST: u32 = 1536;
/// Where the first tool's definition stands.
pub const TOOL: u32 = 16384;
/// From here up to the heap at 65536 nothing stands but what further definitions put there.
pub const FREE: u32 = 24576;

const IMPORTS: &str = r#"
  (import "plan-execute:plugin/session-journal@0.1.0" "[method]branch.append"
    (func $append (param i32 i32 i32 i32 i32 i32 i32)))
  (import "plan-execute:plugin/session-journal@0.1.0" "[method]branch.latest" (func $latest (param i32 i32 i32 i32)))
  (import "plan-execute:plugin/session-journal@0.1.0" "[method]branch.entries"
    (func $entries (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "plan-execute:plugin/session-journal@0.1.0" "preferred-encoding" (func $encoding (result i32)))
  (import "plan-execute:plugin/session-journal@0.1.0" "[method]branch.session-token" (func $token (param i32 i32)))
  (import "plan-execute:plugin/session-journal@0.1.0" "[resource-drop]branch" (func $drop (param i32)))
"#;

impl WatPlugin {
    /// The component.
    ///
    /// # Panics
    ///
    /// Where what was replaced does not assemble.
    pub fn build(&self) -> Vec<u8> {
        let name = self.name.unwrap_or("wat-plugin");
        let custom_type = self.custom_type.unwrap_or("demo/type");
        let tool = self.tool.unwrap_or("run");
        let (min, max) = self.pages.unwrap_or((2, 65_536));
        let text_len = self.text_len.unwrap_or(2);
        let tools = self.tools.unwrap_or(1);
        let WatPlugin { definitions, info, info_end, configure, list_tools, list_tools_end, .. } = self;
        let WatPlugin { call_tool, realloc, imports, .. } = self;
        let (name_text, tool_text, type_text) = (text(name), text(tool), text(custom_type));
        let core = format!(
            r#"(module {IMPORTS} {imports}
  (memory (export "memory") {min} {max})
  (global $heap (mut i32) (i32.const 65536))
  (data (i32.const 16) "{name_text}")
  (data (i32.const 64) "1.0.0")
  (data (i32.const 128) "{{}}")
  (data (i32.const 256) "{tool_text}")
  (data (i32.const 512) "{type_text}")
  (data (i32.const 4096) "{{}}")
  {definitions}
  (func (export "cabi_realloc") (param $old i32) (param $old_len i32) (param $align i32) (param $len i32) (result i32)
    (local $at i32)
    {realloc}
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get $len)))
    (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
      (then
        (if (i32.eq (i32.const -1) (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get $len) (i32.const 65536)))))
          (then unreachable))))
    (local.get $at))
  (func (export "plan-execute:plugin/lifecycle@0.1.0#info") (result i32)
    {info}
    (i32.store (i32.const 1024) (i32.const 16)) (i32.store (i32.const 1028) (i32.const {name_len}))
    (i32.store (i32.const 1032) (i32.const 64)) (i32.store (i32.const 1036) (i32.const 5))
    (i32.store (i32.const 1040) (i32.const 1088)) (i32.store (i32.const 1044) (i32.const 1))
    (i32.store (i32.const 1048) (i32.const 128)) (i32.store (i32.const 1052) (i32.const 2))
    (i32.store (i32.const 1088) (i32.const 512)) (i32.store (i32.const 1092) (i32.const {type_len}))
    {info_end}
    (i32.const 1024))
  (func (export "plan-execute:plugin/lifecycle@0.1.0#configure") (param i32 i32) (result i32)
    {configure}
    (i32.store8 (i32.const 1280) (i32.const 0))
    (i32.const 1280))
  (func (export "plan-execute:plugin/tools@0.1.0#list-tools") (result i32)
    (local $i i32) (local $at i32)
    {list_tools}
    (i32.store (i32.const 1536) (i32.const 16384)) (i32.store (i32.const 1540) (i32.const {tools}))
    (local.set $at (i32.const 16384))
    (loop $next
      (if (i32.lt_u (local.get $i) (i32.const {tools}))
        (then
          (i32.store (local.get $at) (i32.const 256)) (i32.store offset=4 (local.get $at) (i32.const {tool_len}))
          (i32.store offset=8 (local.get $at) (i32.const 256)) (i32.store offset=12 (local.get $at) (i32.const {tool_len}))
          (i32.store offset=16 (local.get $at) (i32.const 256)) (i32.store offset=20 (local.get $at) (i32.const {tool_len}))
          (i32.store offset=24 (local.get $at) (i32.const 256)) (i32.store offset=28 (local.get $at) (i32.const {tool_len}))
          (i32.store offset=32 (local.get $at) (i32.const 128)) (i32.store offset=36 (local.get $at) (i32.const 2))
          (i32.store offset=40 (local.get $at) (i32.const 128)) (i32.store offset=44 (local.get $at) (i32.const 2))
          (i32.store offset=48 (local.get $at) (i32.const 0))
          (local.set $at (i32.add (local.get $at) (i32.const 52)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br $next))))
    {list_tools_end}
    (i32.const 1536))
  (func (export "plan-execute:plugin/tools@0.1.0#call-tool")
    (param $branch i32) (param $name i32) (param $name_len i32) (param $args i32) (param $args_len i32) (result i32)
    (local $i i32) (local $j i32)
    {call_tool}
    (call $drop (local.get $branch))
    (i32.store8 (i32.const 2048) (i32.const 0))
    (i32.store (i32.const 2052) (i32.const 4096)) (i32.store (i32.const 2056) (i32.const {text_len}))
    (i32.store (i32.const 2060) (i32.const 4096)) (i32.store (i32.const 2064) (i32.const {text_len}))
    (i32.const 2048)))"#,
            name_len = name.len(),
            tool_len = tool.len(),
            type_len = custom_type.len(),
        );
        encode(&core, self.wit)
    }
}

/// A text as WebAssembly text spells it, byte by byte.
pub fn text(text: impl AsRef<[u8]>) -> String {
    text.as_ref().iter().map(|byte| format!("\\{byte:02x}")).collect()
}

/// Makes a component of a core module in text, for the world `tool-plugin` or for that of `wit`.
///
/// # Panics
///
/// Where it is none.
fn encode(core: &str, wit: Option<&str>) -> Vec<u8> {
    let mut module = wat::parse_str(core).expect("WebAssembly text");
    let mut resolve = Resolve::default();
    let (contract, _) = resolve.push_dir(format!("{}/../wit", env!("CARGO_MANIFEST_DIR"))).expect("the contract");
    let (package, world) = match wit {
        None => (contract, "tool-plugin"),
        Some(wit) => (resolve.push_str("extra.wit", wit).expect("WIT"), "extra"),
    };
    let world = resolve.select_world(&[package], Some(world)).expect("the world is there");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata");
    ComponentEncoder::default().validate(true).module(&module).expect("a module").encode().expect("a component")
}

/// Puts a core module into a component, and as many instances of it.
///
/// # Panics
///
/// Where the module is none, or the bytes are no component.
pub fn with_module(mut component: Vec<u8>, module: &str, instances: usize) -> Vec<u8> {
    let module = wat::parse_str(module).expect("WebAssembly text");
    let index = sections(&component).filter(|&id| id == CORE_MODULE).count();
    let mut section = |id: u8, content: &[u8]| {
        component.push(id);
        leb(&mut component, content.len());
        component.extend_from_slice(content);
    };
    section(CORE_MODULE, &module);
    let mut content = Vec::new();
    leb(&mut content, instances);
    for _ in 0..instances {
        // An instance of the module, which takes nothing.
        content.push(0);
        leb(&mut content, index);
        leb(&mut content, 0);
    }
    section(CORE_INSTANCE, &content);
    component
}

const CORE_MODULE: u8 = 1;
const CORE_INSTANCE: u8 = 2;

/// The ids of a component's sections.
fn sections(component: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = &component[8..];
    std::iter::from_fn(move || {
        let (&id, mut after) = rest.split_first()?;
        let (mut length, mut shift) = (0, 0);
        loop {
            let (&byte, more) = after.split_first().expect("a length");
            after = more;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        rest = &after[length..];
        Some(id)
    })
}

/// Appends a number in LEB128.
fn leb(bytes: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
