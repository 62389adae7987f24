//! How a tool is described to a model and a harness.

/// One tool of a plugin. All its calls run one at a time, in the order of the model's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Matches `^[a-z][a-z0-9_]{0,63}$`.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// For the model.
    pub description: &'static str,
    /// One line for the system prompt.
    pub prompt_snippet: &'static str,
    /// JSON Schema (2020-12) of the arguments.
    pub input_schema: &'static str,
    /// JSON Schema (2020-12) of the result.
    pub output_schema: &'static str,
    /// The tool appends nothing to the journal.
    pub read_only: bool,
    /// The tool can replace what a user made before.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
}

/// The JSON Schema (2020-12) of `T`, indented, without references: several clients follow none.
///
/// Components hold their schemas as files. A native test makes them anew from the types with this function and compares:
/// in a component the library would be a sixth of the whole.
#[cfg(feature = "schema")]
pub fn schema<T: schemars::JsonSchema>() -> String {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The Rust name of a type tells a model nothing, and its width is a format that validators do not know.
    schema.remove("title");
    let mut without_format = schemars::transform::RecursiveTransform(|schema: &mut schemars::Schema| {
        schema.remove("format");
    });
    schemars::transform::Transform::transform(&mut without_format, &mut schema);
    format!("{:#}\n", schema.as_value())
}
