//! A look into a component without compiling or running it: what it imports, exports and takes.

use crate::{
    Error,
    plugin::{IMPORT, LIFECYCLE, TOOLS},
    sandbox::check_kind,
};
use sha2::{Digest, Sha256};
use wasmparser::{Encoding, Instance, Parser, Payload};

/// What a component is made of, as it says itself: nothing of this was checked yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The names of what it imports.
    pub imports: Vec<String>,
    /// The names of what it exports.
    pub exports: Vec<String>,
    /// What it takes from the start.
    pub needs: Needs,
}

/// What every call of a component takes before it does anything, all its modules together. A plugin whose
/// [`Limits`](crate::Limits) are smaller cannot be loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// Bytes of memory.
    pub memory: u64,
    /// Memories.
    pub memories: u64,
    /// Tables.
    pub tables: u64,
    /// Elements of all tables.
    pub table_elements: u64,
    /// Core instances.
    pub core_instances: u64,
}

/// The SHA-256 of a component, as a profile pins it.
pub fn sha256(component: &[u8]) -> String {
    hex::encode(Sha256::digest(component))
}

/// Looks into a component.
///
/// # Errors
///
/// [`Error::NotWasm`], [`Error::CoreModule`]; [`Error::Invalid`] where it is cut short or damaged.
pub fn inspect(component: &[u8]) -> Result<Inspection, Error> {
    check_kind(component)?;
    look(component).map_err(|e| Error::Invalid(e.to_string()))
}

impl Inspection {
    /// What it imports and no plugin gets.
    pub fn not_offered(&self) -> impl Iterator<Item = &str> {
        self.imports.iter().map(String::as_str).filter(|import| *import != IMPORT)
    }

    /// What every plugin exports and it does not.
    pub fn missing(&self) -> impl Iterator<Item = &'static str> {
        [LIFECYCLE, TOOLS].into_iter().filter(|needed| self.exports.iter().all(|export| export != needed))
    }
}

fn look(component: &[u8]) -> wasmparser::Result<Inspection> {
    let mut found = Inspection::default();
    // How deep in the component the parser is. What is within stands in components and modules of its own.
    let mut depth = 0;
    let needs = &mut found.needs;
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::Version { encoding: Encoding::Component | Encoding::Module, .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(imports) if depth == 1 => {
                for import in imports {
                    found.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(exports) if depth == 1 => {
                for export in exports {
                    found.exports.push(export?.name.name.to_owned());
                }
            }
            Payload::InstanceSection(instances) => {
                for instance in instances {
                    if let Instance::Instantiate { .. } = instance? {
                        needs.core_instances += 1;
                    }
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    let memory = memory?;
                    let page = 1u64.checked_shl(memory.page_size_log2.unwrap_or(16)).unwrap_or(u64::MAX);
                    needs.memories += 1;
                    needs.memory = needs.memory.saturating_add(memory.initial.saturating_mul(page));
                }
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    needs.tables += 1;
                    needs.table_elements = needs.table_elements.saturating_add(table?.ty.initial);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}
