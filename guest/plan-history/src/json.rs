//! JSON of other programs, read as far as it is of use: a value of another type than expected counts as missing.
//!
//! Nothing is copied that need not be, and what is not asked for is passed over without being stored, however deep and
//! large it is. Of a key that comes twice the last counts.

use crate::text::cut;
use plan_guest_support::text::replace_lone_surrogates;
use serde::{
    Deserialize,
    de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use std::{borrow::Cow, fmt, marker::PhantomData};

/// The deepest nesting of a line. A line that goes deeper is skipped, as Python's parser gives up there.
const MAX_DEPTH: usize = 1_000;
/// The longest arguments of a tool call that are taken apart, in characters as Python writes JSON.
const MAX_ARGUMENTS: usize = 1_000_000;
/// An escaped character takes at most twelve bytes, so JSON that is longer than this is too long in any case.
const MAX_JSON: usize = 12 * MAX_ARGUMENTS;

/// The longest line that is copied to mend it, in bytes.
const MAX_MENDED: usize = 4 << 20;

/// What stands in one line.
#[derive(Debug)]
pub enum Line<T> {
    /// An object.
    Object(T),
    /// Some other JSON value; of `null`, `false`, `0` and `""` it is known that they are nothing to JavaScript.
    Other {
        /// Is it one of those?
        nothing: bool,
    },
    /// No JSON, or nested too deep.
    Broken,
}

/// Reads a line of JSON Lines as an object, and hands it to `take`. Bytes that are no UTF-8 and lone surrogates read as
/// U+FFFD, unless the line is too long to be copied for that.
pub fn line<R>(bytes: &[u8], take: impl FnOnce(Line<&str>) -> R) -> R {
    let text = match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) if bytes.len() <= MAX_MENDED => String::from_utf8_lossy(bytes),
        Err(_) => return take(Line::Broken),
    };
    match text.trim_start_matches([' ', '\t', '\n', '\r']).bytes().next() {
        Some(b'{') if !too_deep(text.as_bytes()) => take(Line::Object(&text)),
        Some(b'{') => take(Line::Broken),
        _ => take(other(&text)),
    }
}

fn other(text: &str) -> Line<&str> {
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Line::Broken;
    }
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let zero = || text.parse() == Ok(0.0f64);
    Line::Other { nothing: matches!(text, "null" | "false" | "\"\"") || zero() }
}

/// Reads one object out of a line. None where it is broken.
///
/// A lone surrogate is no reason to give a line up; most lines have none, and are not searched for one.
pub fn object<'a, T: Deserialize<'a>>(text: &'a str, mended: &'a mut Option<String>) -> Option<T> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    if text.len() > MAX_MENDED {
        return None;
    }
    match replace_lone_surrogates(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => serde_json::from_str(mended.insert(text)).ok(),
    }
}

/// Reads a value that keeps nothing of the text.
pub fn owned<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&replace_lone_surrogates(text)).ok())
}

fn too_deep(text: &[u8]) -> bool {
    // Few lines hold so many brackets at all.
    if memchr::memchr2_iter(b'{', b'[', text).nth(MAX_DEPTH).is_none() {
        return false;
    }
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Text, or nothing.
#[derive(Debug, Default, Clone)]
pub struct Text<'a>(pub Option<Cow<'a, str>>);

impl Text<'_> {
    /// The text; empty where there is none.
    pub fn or_empty(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The text, where there is one that is not empty.
    pub fn filled(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

/// The raw JSON of a value.
#[derive(Debug, Default, Clone, Copy)]
pub struct Raw<'a>(pub Option<&'a str>);

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&serde_json::value::RawValue>::deserialize(deserializer).map(|raw| Raw(Some(raw.get())))
    }
}

/// Text, a list of `T`, one `T`, or nothing.
#[derive(Debug, Default)]
pub enum Content<'a, T> {
    /// Anything else.
    #[default]
    Nothing,
    /// Text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<T>),
    /// An object.
    Object(T),
}

impl<T> Content<'_, T> {
    /// The items of a list; none of anything else.
    pub fn list(&self) -> &[T] {
        match self {
            Content::List(items) => items,
            _ => &[],
        }
    }
}

/// A visitor of values that may be anything.
pub trait Anything<'de>: Sized + Default {
    /// Text was found.
    fn text(_: Cow<'de, str>) -> Self {
        Self::default()
    }
    /// A list was found.
    ///
    /// # Errors
    ///
    /// Those of the input.
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
    /// An object was found.
    ///
    /// # Errors
    ///
    /// Those of the input.
    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Reads a value of any type.
///
/// # Errors
///
/// Those of the input.
pub fn anything<'de, T: Anything<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Any<T>(PhantomData<T>);
    impl<'de, T: Anything<'de>> Visitor<'de> for Any<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON")
        }
        fn visit_unit<E>(self) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_bool<E>(self, _: bool) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_u64<E>(self, _: u64) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_i64<E>(self, _: i64) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_f64<E>(self, _: f64) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
            Ok(T::text(Cow::Borrowed(text)))
        }
        fn visit_str<E>(self, text: &str) -> Result<T, E> {
            Ok(T::text(Cow::Owned(text.to_owned())))
        }
        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
            T::list(list)
        }
        fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
            T::object(object)
        }
    }
    deserializer.deserialize_any(Any(PhantomData))
}

impl<'de: 'a, 'a> Anything<'de> for Text<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Text(Some(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        anything(deserializer)
    }
}

impl<'de: 'a, 'a, T: Anything<'de> + Deserialize<'de>> Anything<'de> for Content<'a, T> {
    fn text(text: Cow<'de, str>) -> Self {
        Content::Text(text)
    }
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }
    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        T::object(object).map(Content::Object)
    }
}

impl<'de: 'a, 'a, T: Anything<'de> + Deserialize<'de>> Deserialize<'de> for Content<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        anything(deserializer)
    }
}

/// Reads an object into a struct of which every field has a default; anything but an object reads as the default.
macro_rules! fields {
    ($name:ident { $($field:ident: $key:literal),* $(,)? }) => {
        impl<'de: 'a, 'a> $crate::json::Anything<'de> for $name<'a> {
            fn object<A: serde::de::MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
                let mut this = Self::default();
                while let Some(plan_guest_support::loose::Key(key)) = object.next_key()? {
                    match &*key {
                        $($key => this.$field = object.next_value()?,)*
                        _ => {
                            object.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(this)
            }
        }
        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::json::anything(deserializer)
            }
        }
    };
}
pub(crate) use fields;

/// The arguments of a tool call: a value, or text that may hold JSON.
#[derive(Debug, Clone, Default)]
pub enum Arguments<'a> {
    /// None were given.
    #[default]
    None,
    /// A JSON value.
    Json(&'a str),
    /// Text, as it is.
    Text(Cow<'a, str>),
}

impl<'a> Arguments<'a> {
    /// The arguments that stand in a line as this raw value.
    pub fn raw(raw: Raw<'a>) -> Arguments<'a> {
        match raw.0 {
            None => Arguments::None,
            // What is too long to be decoded stays as it stands.
            Some(json) if json.starts_with('"') && json.len() <= MAX_JSON => match owned::<String>(json) {
                Some(text) => Arguments::Text(Cow::Owned(text)),
                None => Arguments::None,
            },
            Some(json) => Arguments::Json(json),
        }
    }

    /// The arguments decoded: a value, or the text itself where it is no JSON or longer than 1,000,000 characters.
    pub fn decoded(&self) -> Value {
        self.value().unwrap_or_else(|| match self {
            Arguments::None => Value::Null,
            Arguments::Json(json) => Value::String((*json).to_owned()),
            Arguments::Text(text) => Value::String(text.clone().into_owned()),
        })
    }

    /// The arguments as a value. None where they are none, or are not decoded.
    pub fn value(&self) -> Option<Value> {
        match self {
            Arguments::None => None,
            Arguments::Json(json) => decode(json),
            Arguments::Text(text) if cut(text, MAX_ARGUMENTS).1 => None,
            Arguments::Text(text) => owned(text),
        }
    }
}

/// The texts joined by line feeds; a single one without a copy.
pub fn joined<'a>(texts: impl IntoIterator<Item = Text<'a>>) -> Cow<'a, str> {
    let mut texts = texts.into_iter().filter_map(|text| text.0).filter(|text| !text.is_empty());
    let mut all = texts.next().unwrap_or_default();
    for text in texts {
        let all = all.to_mut();
        all.push('\n');
        all.push_str(&text);
    }
    all
}

/// None where Python would write more characters than are decoded.
fn decode(json: &str) -> Option<Value> {
    // Python's blanks make a value at most twice as long as it stands here.
    if json.len() > MAX_JSON {
        return None;
    }
    let value = owned(json)?;
    (json.len() <= MAX_ARGUMENTS / 2 || characters(&value) <= MAX_ARGUMENTS).then_some(value)
}

/// How many characters Python writes for a value.
fn characters(value: &Value) -> usize {
    match value {
        Value::String(text) => text_characters(text),
        Value::Array(items) => items.iter().map(|item| characters(item) + 2).sum::<usize>().max(2),
        Value::Object(object) => {
            object.iter().map(|(key, value)| text_characters(key) + characters(value) + 4).sum::<usize>().max(2)
        }
        other => other.to_string().len(),
    }
}

fn text_characters(text: &str) -> usize {
    let length = |c| match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => 1,
    };
    2 + text.chars().map(length).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, Default)]
    struct Probe<'a> {
        a: Text<'a>,
        b: Content<'a, Inner<'a>>,
    }
    fields!(Probe { a: "a", b: "b" });

    #[derive(Debug, Default)]
    struct Inner<'a> {
        a: Text<'a>,
    }
    fields!(Inner { a: "a" });

    fn read(bytes: &[u8]) -> Option<String> {
        line(bytes, |line| match line {
            Line::Object(text) => {
                let mut mended = None;
                let probe: Option<Probe> = object(text, &mut mended);
                probe.map(|probe| probe.a.or_empty().to_owned())
            }
            _ => None,
        })
    }

    #[test]
    fn objects() {
        let nested = |depth: usize| format!(r#"{{"x":{}{},"a":"y"}}"#, "[".repeat(depth), "]".repeat(depth));
        for (bytes, a) in [
            (br#"{"a":"x"}"#.to_vec(), Some("x")),
            (br#" {"a":"x"} "#.to_vec(), Some("x")),
            (br#"{"a":"x","a":"z"}"#.to_vec(), Some("z")),
            (br#"{"a":1}"#.to_vec(), Some("")),
            (br#"{"a":"\n\ud83d\ude00"}"#.to_vec(), Some("\n😀")),
            (br#"{"a":"\ud83d"}"#.to_vec(), Some("\u{fffd}")),
            (br#"{"\ud83d":1,"a":"x"}"#.to_vec(), Some("x")),
            (b"{\"a\":\"\xff\"}".to_vec(), Some("\u{fffd}")),
            (br#"{"x":1e999,"a":"x"}"#.to_vec(), Some("x")),
            (nested(900).into_bytes(), Some("y")),
            (nested(1_000).into_bytes(), None),
            (nested(1_000_000).into_bytes(), None),
            (br#"{"a":"x"} {}"#.to_vec(), None),
            (br#"{"a":"x""#.to_vec(), None),
            (br#"["a"]"#.to_vec(), None),
            (b"\xef\xbb\xbf{}".to_vec(), None),
        ] {
            assert_eq!(read(&bytes).as_deref(), a, "{}", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]));
        }
    }

    #[test]
    fn other_lines() {
        for (text, expected) in [
            ("[1]", Some(false)),
            ("1", Some(false)),
            ("0", Some(true)),
            ("null", Some(true)),
            ("false", Some(true)),
            ("true", Some(false)),
            ("\"\"", Some(true)),
            ("\"a\"", Some(false)),
            ("", None),
            ("x", None),
            ("[", None),
        ] {
            let nothing = line(text.as_bytes(), |line| match line {
                Line::Other { nothing } => Some(nothing),
                _ => None,
            });
            assert_eq!(nothing, expected, "{text}");
        }
        assert!(line("[".repeat(5_000).as_bytes(), |line| matches!(line, Line::Broken)));
    }

    #[test]
    fn brackets_in_texts_are_no_depth() {
        let text = format!(r#"{{"a":"x","b":"\"{}"}}"#, "[".repeat(5_000));
        assert_eq!(read(text.as_bytes()).as_deref(), Some("x"));
    }

    #[test]
    fn contents() {
        let mut mended = None;
        for (json, expected) in [
            (r#"{"b":"t"}"#, "text"),
            (r#"{"b":[{"a":"x"},5,[{"a":"no"}],{"a":"y"}]}"#, "x,,,y"),
            (r#"{"b":{"a":"z"}}"#, "object z"),
            (r#"{"b":7}"#, "nothing"),
        ] {
            let probe: Probe = object(json, &mut mended).expect(json);
            let found = match &probe.b {
                Content::Text(_) => "text".to_owned(),
                Content::List(items) => items.iter().map(|item| item.a.or_empty()).collect::<Vec<_>>().join(","),
                Content::Object(item) => format!("object {}", item.a.or_empty()),
                Content::Nothing => "nothing".to_owned(),
            };
            assert_eq!(found, expected, "{json}");
            mended = None;
        }
    }

    #[test]
    fn arguments_are_decoded_up_to_a_million_characters() {
        for (raw, expected) in [
            (Some(r#"{"a":1}"#), json!({"a": 1})),
            (Some(r#""{\"a\":1}""#), json!({"a": 1})),
            (Some(r#""no json""#), json!("no json")),
            (Some("[1]"), json!([1])),
            (None, json!(null)),
        ] {
            assert_eq!(Arguments::raw(Raw(raw)).decoded(), expected, "{raw:?}");
        }
        // `{"a": "…"}` takes nine characters more than its text.
        for (text, decoded) in [
            ("x".repeat(MAX_ARGUMENTS - 9), true),
            ("x".repeat(MAX_ARGUMENTS - 8), false),
            ("\\u00e9".repeat(MAX_ARGUMENTS - 100), true),
            ("é".repeat(MAX_ARGUMENTS - 100), true),
            ("\\n".repeat(MAX_ARGUMENTS / 2), false),
        ] {
            let json = format!(r#"{{"a":"{text}"}}"#);
            let arguments = Arguments::Json(&json).decoded();
            assert_eq!(arguments.is_object(), decoded, "{} {}", &json[..20], json.len());
            assert!(decoded || arguments == json!(json));
        }
    }

    #[test]
    fn python_counts_its_blanks() {
        assert_eq!(characters(&json!({"a": [1, "x\n"], "b": {}})), r#"{"a": [1, "x\n"], "b": {}}"#.len());
        assert_eq!(characters(&json!([])), 2);
    }
}
