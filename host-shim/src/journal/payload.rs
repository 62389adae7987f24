//! The data of one custom entry, and what makes it one.

use super::AppendError;

/// How the bytes of a payload are encoded. Both carry the JSON data model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 JSON text (RFC 8259).
    Json,
    /// CBOR in the core deterministic encoding (RFC 8949, section 4.2).
    Cbor,
}

/// The data of one custom entry: exactly one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// How the bytes are encoded.
    pub encoding: Encoding,
    /// The value.
    pub bytes: Vec<u8>,
}

/// The deepest nesting that may be appended, in levels.
const DEPTH: usize = 128;

impl Payload {
    /// JSON text.
    pub fn json(text: impl Into<String>) -> Payload {
        Payload { encoding: Encoding::Json, bytes: text.into().into_bytes() }
    }

    /// Is it exactly one value of the JSON data model in its encoding, at most 128 levels deep? JSON comes out as one line,
    /// whatever the bytes held.
    ///
    /// # Errors
    ///
    /// [`AppendError::InvalidPayload`], with the reason.
    pub fn check(self) -> Result<CheckedPayload, AppendError> {
        let bytes = match self.encoding {
            Encoding::Json => {
                let mut line = Vec::with_capacity(self.bytes.len());
                let mut value = serde_json::Deserializer::from_slice(&self.bytes);
                serde_transcode::transcode(&mut value, &mut serde_json::Serializer::new(&mut line))
                    .and_then(|()| value.end())
                    .map_err(|e| {
                        AppendError::InvalidPayload(format!("the payload is not exactly one JSON value ({e})"))
                    })?;
                line
            }
            Encoding::Cbor => {
                check_cbor(&self.bytes)?;
                self.bytes
            }
        };
        Ok(CheckedPayload(Payload { encoding: self.encoding, bytes }))
    }
}

/// A payload that was [checked](Payload::check): exactly one value, and as JSON one line. A journal needs not look at it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedPayload(Payload);

impl CheckedPayload {
    /// The payload.
    pub fn as_payload(&self) -> &Payload {
        &self.0
    }

    /// The text of the value, on one line.
    ///
    /// # Errors
    ///
    /// [`AppendError::InvalidPayload`] where it is CBOR.
    pub fn as_json(&self) -> Result<&str, AppendError> {
        match self.0.encoding {
            Encoding::Json => Ok(str::from_utf8(&self.0.bytes).expect("JSON that was written out here is UTF-8")),
            Encoding::Cbor => {
                Err(AppendError::InvalidPayload("this journal takes payloads in JSON, not in CBOR".into()))
            }
        }
    }
}

fn check_cbor(bytes: &[u8]) -> Result<(), AppendError> {
    let invalid = |why: &str| {
        AppendError::InvalidPayload(format!("the payload is not exactly one value in deterministic CBOR ({why})"))
    };
    let mut rest = bytes;
    let mut value: ciborium::Value =
        ciborium::de::from_reader_with_recursion_limit(&mut rest, DEPTH).map_err(|e| invalid(&e.to_string()))?;
    if !rest.is_empty() {
        return Err(invalid("more bytes follow it"));
    }
    sort(&mut value).map_err(invalid)?;
    let mut deterministic = Vec::with_capacity(bytes.len());
    ciborium::into_writer(&value, &mut deterministic).map_err(|e| invalid(&e.to_string()))?;
    if deterministic != bytes {
        return Err(invalid("it is encoded in another way than the deterministic one"));
    }
    Ok(())
}

/// Sorts the keys as the deterministic encoding has them: text keys by length, then by bytes.
fn sort(value: &mut ciborium::Value) -> Result<(), &'static str> {
    use ciborium::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => Ok(()),
        Value::Array(items) => items.iter_mut().try_for_each(sort),
        Value::Map(pairs) => {
            let text = |key: &Value| key.as_text().map(|text| (text.len(), text.to_owned())).ok_or("a key is not text");
            let mut sorted = Vec::with_capacity(pairs.len());
            for (key, mut value) in std::mem::take(pairs) {
                sort(&mut value)?;
                sorted.push((text(&key)?, (key, value)));
            }
            sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
            if sorted.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err("a key stands twice");
            }
            *pairs = sorted.into_iter().map(|(_, pair)| pair).collect();
            Ok(())
        }
        _ => Err("it holds more than the JSON data model"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_and_nothing_else() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for (text, valid) in [
            ("{}", true),
            (" [1, 2]\n", true),
            ("\"a\\nb\"", true),
            (deep(127).as_str(), true),
            (deep(129).as_str(), false),
            ("", false),
            ("1 2", false),
            ("{}\n{\"type\":\"custom\"}", false),
            ("\"a\nb\"", false),
            ("\"\\ud83d\"", false),
            ("nul", false),
            ("1e999", false),
        ] {
            let checked = Payload::json(text).check();
            assert_eq!(checked.is_ok(), valid, "{text}");
            if let Ok(checked) = checked {
                assert!(!checked.as_json().unwrap().contains('\n'), "{text}");
            }
        }
        assert!(Payload { encoding: Encoding::Json, bytes: b"\"\xff\"".to_vec() }.check().is_err());
    }

    #[test]
    fn cbor_is_deterministic_and_of_the_json_data_model() {
        let deep = |levels: usize| [vec![0x81; levels], vec![0x80]].concat();
        for (bytes, valid) in [
            (&b"\xa2\x61a\x01\x62aa\xf6"[..], true),
            (b"\x82\xf9\x3e\x00\x20", true),
            (&deep(120), true),
            (&deep(200), false),
            (b"", false),
            (b"\x01\x01", false),
            (b"\xa1\x61a", false),
            // Keys out of order, a key twice, a number longer than needed, an open-ended list.
            (b"\xa2\x62aa\xf6\x61a\x01", false),
            (b"\xa2\x61a\x01\x61a\x02", false),
            (b"\x18\x01", false),
            (b"\x9f\x01\xff", false),
            // A byte string, a tag, a key that is no text.
            (b"\x41a", false),
            (b"\xc1\x01", false),
            (b"\xa1\x01\x01", false),
        ] {
            let payload = Payload { encoding: Encoding::Cbor, bytes: bytes.to_vec() };
            let checked = payload.check();
            assert_eq!(checked.is_ok(), valid, "{bytes:x?}: {checked:?}");
        }
    }
}
