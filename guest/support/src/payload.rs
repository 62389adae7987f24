//! The two encodings of a journal payload. Both carry the JSON data model.

use crate::text;
use ciborium::Value;
use serde::{Serialize, de::DeserializeOwned};

/// How the bytes of a payload are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 JSON text (RFC 8259).
    Json,
    /// CBOR in the core deterministic encoding (RFC 8949, section 4.2).
    Cbor,
}

/// The bytes are not one value of the encoding, or not of the type that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

/// Writes `value` in `encoding`.
///
/// # Panics
///
/// Where `value` is not of the JSON data model (a map with keys that are not text): a fault in the program.
pub fn encode<T: Serialize>(encoding: Encoding, value: &T) -> Vec<u8> {
    match encoding {
        Encoding::Json => serde_json::to_vec(value).expect("plain data"),
        Encoding::Cbor => {
            let mut value = Value::serialized(value).expect("plain data");
            sort_keys(&mut value);
            write(&value)
        }
    }
}

/// Reads exactly one value. In JSON, a lone surrogate reads as U+FFFD and bytes that are no UTF-8 likewise.
///
/// # Errors
///
/// The bytes hold no value, more than one, or one of another type.
pub fn decode<T: DeserializeOwned>(encoding: Encoding, bytes: &[u8]) -> Result<T, Malformed> {
    match encoding {
        Encoding::Json => match std::str::from_utf8(bytes) {
            Ok(json) => decode_json(json),
            Err(_) => decode_json(&String::from_utf8_lossy(bytes)),
        },
        Encoding::Cbor => {
            let mut rest = bytes;
            let unreadable = |e: &dyn std::fmt::Display| Malformed(format!("not readable as CBOR ({e})"));
            let value: Value = ciborium::from_reader(&mut rest).map_err(|e| unreadable(&e))?;
            if !rest.is_empty() {
                return Err(Malformed(format!("followed by {} more bytes", rest.len())));
            }
            // By way of JSON, so that a component holds the code that reads its types once.
            decode_json(&serde_json::to_string(&value).map_err(|e| unreadable(&e))?)
        }
    }
}

/// Reads exactly one JSON value; a lone surrogate reads as U+FFFD.
///
/// # Errors
///
/// As [`decode`].
pub fn decode_json<T: DeserializeOwned>(json: &str) -> Result<T, Malformed> {
    serde_json::from_str(&text::replace_lone_surrogates(json))
        .map_err(|e| Malformed(format!("not readable as JSON ({e})")))
}

/// Keys in the bytewise order of their encodings, at every level: what makes the encoding deterministic.
fn sort_keys(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort_keys),
        Value::Map(pairs) => {
            pairs.iter_mut().for_each(|(_, value)| sort_keys(value));
            pairs.sort_by_cached_key(|(key, _)| write(key));
        }
        _ => {}
    }
}

fn write(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to a vector fails for nothing but memory.
    ciborium::into_writer(value, &mut bytes).expect("memory");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cbor_is_deterministic() {
        // RFC 8949, section 4.2.1: by the bytes of the encoded key, so shorter keys come first.
        let value = json!({"bb": 1, "a": {"z": [1.5, -1], "": null}, "c": true});
        let bytes = encode(Encoding::Cbor, &value);
        assert_eq!(
            bytes,
            [
                0xa3, 0x61, b'a', 0xa2, 0x60, 0xf6, 0x61, b'z', 0x82, 0xf9, 0x3e, 0x00, 0x20, 0x61, b'c', 0xf5, 0x62,
                b'b', b'b', 0x01
            ]
        );
        assert_eq!(decode::<serde_json::Value>(Encoding::Cbor, &bytes).unwrap(), value);
    }

    #[test]
    fn exactly_one_value() {
        for bytes in [&b""[..], b"\x01\x01", b"\xff", b"\x82\x01"] {
            assert!(decode::<serde_json::Value>(Encoding::Cbor, bytes).is_err(), "{bytes:?}");
        }
        for text in ["", "1 1", "{", "\u{feff}1"] {
            assert!(decode::<serde_json::Value>(Encoding::Json, text.as_bytes()).is_err(), "{text}");
        }
    }
}
