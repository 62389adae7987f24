//! One line of a session file, read as Pi reads it.
//!
//! Pi parses with `JSON.parse`, which accepts what serde_json's own types refuse: lone surrogates, numbers beyond a double,
//! any nesting, a key that comes twice. None of these may hide an entry, so a line is taken apart without building values.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The fields of a line that matter here, each as the JSON text that stands in the file. Of a key that comes twice the last
/// counts.
#[derive(Debug, Default)]
pub(super) struct Line<'a> {
    kind: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    parent_id: Option<&'a RawValue>,
    custom_type: Option<&'a RawValue>,
    timestamp: Option<&'a RawValue>,
    version: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
}

/// What a line holds.
#[derive(Debug)]
pub(super) enum Content<'a> {
    /// An object.
    Object(Line<'a>),
    /// A list, a text, a number or `true`: Pi keeps it as an entry without anything.
    Other,
    /// `null`, `0`, `false` or `""`: Pi passes over it.
    Nothing,
    /// White space alone.
    Blank,
    /// No JSON.
    Damaged,
}

/// What loading a session needs of an entry's line.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Brief<'a> {
    kind: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    parent_id: Option<Cow<'a, str>>,
    custom_type: Option<Cow<'a, str>>,
}

impl<'a> Brief<'a> {
    /// Reads a line that holds an object with nothing unusual in these fields, in half the time of [`parse`]. `None` is for
    /// everything else, damage included: then [`parse`] tells.
    pub(super) fn read(text: &'a str) -> Option<Brief<'a>> {
        serde_json::from_str(text).ok()
    }

    /// The same out of a parsed line.
    pub(super) fn of(line: &Line<'a>) -> Brief<'a> {
        Brief {
            kind: text(line.kind),
            id: line.id(),
            parent_id: text(line.parent_id),
            custom_type: text(line.custom_type),
        }
    }

    /// Is this a header?
    pub(super) fn is_header(&self) -> bool {
        self.kind.as_deref() == Some("session")
    }

    /// The parent, where there is one.
    pub(super) fn parent_id(&self) -> Option<&str> {
        self.parent_id.as_deref().filter(|id| !id.is_empty())
    }

    /// The custom type, where this is a custom entry.
    pub(super) fn custom_type(&self) -> Option<&str> {
        self.custom_type.as_deref().filter(|_| self.kind.as_deref() == Some("custom"))
    }
}

impl<'de> Deserialize<'de> for Brief<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Brief<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Brief<'de>, A::Error> {
                let mut brief = Brief::default();
                while let Some(field) = object.next_key_seed(Key)? {
                    let place = match field {
                        Field::Kind => &mut brief.kind,
                        Field::Id => &mut brief.id,
                        Field::ParentId => &mut brief.parent_id,
                        Field::CustomType => &mut brief.custom_type,
                        _ => {
                            object.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *place = object.next_value_seed(TextOrNull)?;
                }
                Ok(brief)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A text or `null`. Anything else is an error.
struct TextOrNull;

impl<'de> DeserializeSeed<'de> for TextOrNull {
    type Value = Option<Cow<'de, str>>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextOrNull {
    type Value = Option<Cow<'de, str>>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or null")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// The text of a line. Bytes that are no UTF-8 become U+FFFD, in this line alone.
pub(super) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    // The lossy way takes five times as long, also where nothing is lost.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Reads the text of one line.
pub(super) fn parse(text: &str) -> Content<'_> {
    match text.trim_start_matches([' ', '\t', '\r', '\n']).as_bytes().first() {
        None => Content::Blank,
        Some(b'{') => serde_json::from_str(text).map_or(Content::Damaged, Content::Object),
        Some(_) => match serde_json::from_str::<&RawValue>(text) {
            Err(_) => Content::Damaged,
            Ok(value) => match value.get() {
                "null" | "false" | "\"\"" => Content::Nothing,
                // JSON numbers are all ones that Rust reads; one beyond a double is infinite, not zero.
                number if number.parse::<f64>() == Ok(0.0) => Content::Nothing,
                _ => Content::Other,
            },
        },
    }
}

impl<'a> Line<'a> {
    /// Is this a header?
    pub(super) fn is_header(&self) -> bool {
        text(self.kind).is_some_and(|kind| kind == "session")
    }

    /// The id, where it is one.
    pub(super) fn id(&self) -> Option<Cow<'a, str>> {
        text(self.id)
    }

    /// The custom type, where this is a custom entry.
    pub(super) fn custom_type(&self) -> Option<Cow<'a, str>> {
        text(self.kind).filter(|kind| kind == "custom")?;
        text(self.custom_type)
    }

    /// When the entry was appended, in milliseconds since 1970 (UTC).
    pub(super) fn timestamp_ms(&self) -> Option<u64> {
        let time: jiff::Timestamp = text(self.timestamp)?.parse().ok()?;
        time.as_millisecond().try_into().ok()
    }

    /// The data of a custom entry as JSON text. Missing data is `null`.
    pub(super) fn data(&self) -> &'a str {
        self.data.map_or("null", RawValue::get)
    }

    /// The format version, as JavaScript compares it with numbers: a missing one is 1, text counts as the number in it.
    pub(super) fn version(&self) -> f64 {
        match self.version.map(RawValue::get) {
            None | Some("null" | "true") => 1.0,
            Some("false") => 0.0,
            Some(number) if !number.starts_with('"') => number.parse().unwrap_or(f64::NAN),
            Some(_) => match text(self.version).unwrap_or_default().trim() {
                "" => 0.0,
                number => number.parse().unwrap_or(f64::NAN),
            },
        }
    }
}

/// The text of a JSON string. A lone surrogate becomes U+FFFD.
fn text(value: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let json = value?.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    if let Ok(text) = serde_json::from_str(json) {
        return Some(Cow::Owned(text));
    }
    // As bytes serde_json hands out half a pair in three bytes that are no UTF-8.
    let Bytes(bytes) = serde_json::from_str(json).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(Cow::Owned(text.replace("\u{fffd}\u{fffd}\u{fffd}", "\u{fffd}")))
}

struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Any)
    }
}

enum Field {
    Kind,
    Id,
    ParentId,
    CustomType,
    Timestamp,
    Version,
    Data,
    Unknown,
}

/// Reads a key as bytes, since a lone surrogate in a key would otherwise be an error.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Field;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Field;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_bytes<E>(self, key: &[u8]) -> Result<Field, E> {
        Ok(match key {
            b"type" => Field::Kind,
            b"id" => Field::Id,
            b"parentId" => Field::ParentId,
            b"customType" => Field::CustomType,
            b"timestamp" => Field::Timestamp,
            b"version" => Field::Version,
            b"data" => Field::Data,
            _ => Field::Unknown,
        })
    }
}

impl<'de> Deserialize<'de> for Line<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Line<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Line<'de>, A::Error> {
                let mut line = Line::default();
                while let Some(field) = object.next_key_seed(Key)? {
                    let place = match field {
                        Field::Kind => &mut line.kind,
                        Field::Id => &mut line.id,
                        Field::ParentId => &mut line.parent_id,
                        Field::CustomType => &mut line.custom_type,
                        Field::Timestamp => &mut line.timestamp,
                        Field::Version => &mut line.version,
                        Field::Data => &mut line.data,
                        Field::Unknown => {
                            object.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *place = Some(object.next_value()?);
                }
                Ok(line)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_lines() {
        for (text, kind) in [
            ("{}", "object"),
            (" \t{\"a\":1}\r", "object"),
            ("", "blank"),
            (" \t\r", "blank"),
            ("null", "nothing"),
            ("false ", "nothing"),
            ("0", "nothing"),
            ("-0.0e5", "nothing"),
            ("\"\"", "nothing"),
            ("17", "other"),
            ("1e999", "other"),
            ("[1]", "other"),
            ("\"x\"", "other"),
            ("true", "other"),
            ("{", "damaged"),
            ("{}{}", "damaged"),
            ("\u{feff}{}", "damaged"),
            ("\u{a0}", "damaged"),
            ("nul", "damaged"),
            ("\0\0", "damaged"),
            ("{\"a\":\"\n\"}", "damaged"),
        ] {
            let found = match parse(text) {
                Content::Object(_) => "object",
                Content::Other => "other",
                Content::Nothing => "nothing",
                Content::Blank => "blank",
                Content::Damaged => "damaged",
            };
            assert_eq!(found, kind, "{text:?}");
        }
    }

    #[test]
    fn what_javascript_accepts_hides_nothing() {
        let deep = format!("{}1e400{}", "[".repeat(5_000), "]".repeat(5_000));
        for extra in [
            r#""x":{"\ud83d":"\udc00"},"#.to_owned(),
            r#""\ud83d":1,"#.to_owned(),
            r#""id":5,"id":"old","#.to_owned(),
            format!(r#""x":{deep},"#),
            r#""\u0000":1e999,"#.to_owned(),
        ] {
            let text = format!(
                r#"{{{extra}"type":"custom","customType":"a\/b","id":"x1","parentId":"","data":[1],"timestamp":"2026-01-02T03:04:05.678Z"}}"#
            );
            let Content::Object(line) = parse(&text) else { panic!("{extra}") };
            assert_eq!(line.custom_type().as_deref(), Some("a/b"), "{extra}");
            assert_eq!(line.id().as_deref(), Some("x1"));
            assert_eq!(Brief::of(&line).parent_id(), None);
            assert_eq!(line.data(), "[1]");
            assert_eq!(line.timestamp_ms(), Some(1_767_323_045_678));
        }
    }

    #[test]
    fn fields_of_other_types_are_none() {
        let Content::Object(line) = parse(r#"{"type":"custom","customType":7,"id":null,"parentId":{},"timestamp":1}"#)
        else {
            panic!()
        };
        let brief = Brief::of(&line);
        assert_eq!((line.custom_type(), line.id(), brief.parent_id(), line.timestamp_ms()), (None, None, None, None));
        assert_eq!(line.data(), "null");
    }

    /// The short way says what the long way says, or nothing.
    #[test]
    fn the_short_way_agrees() {
        for (text, short) in [
            (r#"{"type":"message","id":"a","parentId":null,"x":[1e999,{}]}"#, true),
            (r#" {"type":"custom","customType":"t","id":"a\u0041","id":"b","parentId":""} "#, true),
            (r#"{}"#, true),
            (r#"{"\ud83d":1,"id":"a"}"#, true),
            (r#"{"id":"\ud83d"}"#, false),
            (r#"{"id":5}"#, false),
            (r#"{"type":["session"]}"#, false),
            (r#"{"id":"a"}x"#, false),
            (r#"{"id":"a""#, false),
            (r#"17"#, false),
        ] {
            let brief = Brief::read(text);
            assert_eq!(brief.is_some(), short, "{text}");
            if let (Some(brief), Content::Object(line)) = (brief, parse(text)) {
                assert_eq!(brief, Brief::of(&line), "{text}");
            }
        }
    }

    #[test]
    fn surrogates_in_texts() {
        let Content::Object(line) = parse(r#"{"id":"\ud83d\ud83d\udc00x"}"#) else { panic!() };
        assert_eq!(line.id().as_deref(), Some("\u{fffd}🐀x"));
    }

    #[test]
    fn versions_compare_as_in_javascript() {
        for (json, version) in [
            ("{}", 1.0),
            (r#"{"version":null}"#, 1.0),
            (r#"{"version":3}"#, 3.0),
            (r#"{"version":"3"}"#, 3.0),
            (r#"{"version":" 2 "}"#, 2.0),
            (r#"{"version":2.5}"#, 2.5),
            (r#"{"version":""}"#, 0.0),
        ] {
            let Content::Object(line) = parse(json) else { panic!() };
            assert_eq!(line.version(), version, "{json}");
        }
        let Content::Object(line) = parse(r#"{"version":"new"}"#) else { panic!() };
        assert!(line.version().is_nan());
    }
}
