//! Reads the JSON data model as it comes: a wrong type is remembered with its place, not an end of reading.
//!
//! The types here deserialise from JSON and from CBOR alike. They accept everything, keep what a rule can use, and name the
//! rest, so that the rules decide in their own order which fault to report. What is not kept is passed over without being
//! stored: depth, size and duplicate keys of foreign data cost nothing (of duplicate keys the last counts, as in JavaScript).

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::{borrow::Cow, fmt, marker::PhantomData};

/// A value of the type that was hoped for, or what came in its place.
#[derive(Debug, Clone, PartialEq)]
pub enum Loose<T> {
    /// It is what it should be.
    Value(T),
    /// It is something else.
    Other(Found),
}

/// What stands where another type was expected.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Nothing at all.
    Missing,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, with its value.
    Number(f64),
    /// Text. It is kept because the error shows the beginning of it.
    Text(String),
    /// A list.
    List,
    /// An object.
    Object,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Missing => f.write_str("missing"),
            Found::Null => f.write_str("null"),
            Found::Bool(value) => write!(f, "{value}"),
            // By way of serde_json: the formatter of the standard library would add 15 KB to a component.
            Found::Number(value) => match Integer::number(*value) {
                Loose::Value(Integer(value)) => write!(f, "the number {value}"),
                Loose::Other(_) => write!(f, "the number {}", serde_json::json!(value)),
            },
            Found::Text(value) => write!(f, "the text {:?}", crate::text::excerpt(value, 40)),
            Found::List => f.write_str("a list"),
            Found::Object => f.write_str("an object"),
        }
    }
}

/// A type that can be picked out of loose data. Each method may turn what it is offered down, and gets it back as a [`Found`].
pub trait Pick<'de>: Sized {
    /// Text was found.
    fn text(text: String) -> Loose<Self> {
        Loose::Other(Found::Text(text))
    }
    /// A number was found.
    fn number(number: f64) -> Loose<Self> {
        Loose::Other(Found::Number(number))
    }
    /// A list was found.
    ///
    /// # Errors
    ///
    /// Only those of the input.
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Loose<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Other(Found::List))
    }
    /// An object was found.
    ///
    /// # Errors
    ///
    /// Only those of the input.
    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Loose<Self>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::Other(Found::Object))
    }
}

impl<'de, T: Pick<'de>> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Pick<'de>> Visitor<'de> for Any<T> {
            type Value = Loose<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value of the JSON data model")
            }
            fn visit_unit<E>(self) -> Result<Loose<T>, E> {
                Ok(Loose::Other(Found::Null))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Loose<T>, E> {
                Ok(Loose::Other(Found::Bool(value)))
            }
            // Exact for every number that a plan can hold; a larger one only needs to stay out of range.
            fn visit_u64<E>(self, value: u64) -> Result<Loose<T>, E> {
                Ok(T::number(value as f64))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Loose<T>, E> {
                Ok(T::number(value as f64))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Loose<T>, E> {
                Ok(T::number(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Loose<T>, E> {
                Ok(T::text(value.to_owned()))
            }
            fn visit_string<E>(self, value: String) -> Result<Loose<T>, E> {
                Ok(T::text(value))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Loose<T>, A::Error> {
                T::list(list)
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Loose<T>, A::Error> {
                T::object(object)
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Pick<'de> for String {
    fn text(text: String) -> Loose<Self> {
        Loose::Value(text)
    }
}

/// A whole number. `1.0` is one, `1.5` is none; numbers of more than 53 bits are none either, as JavaScript cannot tell
/// them from their neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer(pub i64);

impl<'de> Pick<'de> for Integer {
    fn number(number: f64) -> Loose<Self> {
        const LARGEST: f64 = 9_007_199_254_740_991.0;
        if number.fract() == 0.0 && number.abs() <= LARGEST {
            Loose::Value(Integer(number as i64))
        } else {
            Loose::Other(Found::Number(number))
        }
    }
}

/// A list of which at most `MAX` items are kept; further ones are only counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Items<T, const MAX: usize> {
    /// The first `MAX` items.
    pub kept: Vec<T>,
    /// How many items there were in all.
    pub count: usize,
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Pick<'de> for Items<T, MAX> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Loose<Self>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < MAX {
            match list.next_element()? {
                Some(item) => kept.push(item),
                None => return Ok(Loose::Value(Items { count: kept.len(), kept })),
            }
        }
        let mut count = kept.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Loose::Value(Items { kept, count }))
    }
}

impl<T, const MAX: usize> FromIterator<T> for Items<T, MAX> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let kept: Vec<T> = items.by_ref().take(MAX).collect();
        Items { count: kept.len() + items.count(), kept }
    }
}

/// The key of an object: where the input allows it, without a copy.
#[derive(Debug)]
pub struct Key<'de>(pub Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }
            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Names of keys that an object should not have: the first few of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownKeys(Vec<String>);

impl UnknownKeys {
    const MOST: usize = 8;

    /// Notes one more key, unless enough are noted.
    pub fn push(&mut self, key: &str) {
        if self.0.len() < Self::MOST && !self.0.iter().any(|known| known == key) {
            self.0.push(crate::text::excerpt(key, 40).into_owned());
        }
    }

    /// The keys, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Reads an object into a struct whose fields are all `Option<Loose<…>>`, besides `unknown: UnknownKeys`.
///
/// `loose_object!(Point { x: "x", y: "y" })` implements [`Pick`] for `Point`, which is [`Default`]. Of a key that comes
/// twice the last counts.
#[macro_export]
macro_rules! loose_object {
    ($type:ty { $($field:ident: $key:literal),* $(,)? }) => {
        impl<'de> $crate::loose::Pick<'de> for $type {
            fn object<A: serde::de::MapAccess<'de>>(mut object: A) -> Result<$crate::loose::Loose<Self>, A::Error> {
                let mut this = Self::default();
                while let Some($crate::loose::Key(key)) = object.next_key()? {
                    match &*key {
                        $($key => this.$field = Some(object.next_value()?),)*
                        _ => {
                            object.next_value::<serde::de::IgnoredAny>()?;
                            this.unknown.push(&key);
                        }
                    }
                }
                Ok($crate::loose::Loose::Value(this))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{Encoding, decode, decode_json, encode};
    use serde_json::{Value, json};

    #[test]
    fn names_what_came_instead() {
        for (value, text) in [
            (json!(null), "null"),
            (json!(true), "true"),
            (json!(1.5), "the number 1.5"),
            (json!("1"), "the text \"1\""),
            (json!([[1]]), "a list"),
            (json!({"a": {}}), "an object"),
        ] {
            for encoding in [Encoding::Json, Encoding::Cbor] {
                match decode::<Loose<Integer>>(encoding, &encode(encoding, &value)).unwrap() {
                    Loose::Other(found) => assert_eq!(found.to_string(), text),
                    Loose::Value(integer) => panic!("{value} read as {integer:?}"),
                }
            }
        }
    }

    #[test]
    fn whole_numbers_in_every_spelling() {
        for (json, number) in
            [("1", 1), ("1.0", 1), ("1e0", 1), ("-0", 0), ("10e-1", 1), ("9007199254740991", 9_007_199_254_740_991)]
        {
            assert_eq!(decode_json::<Loose<Integer>>(json), Ok(Loose::Value(Integer(number))), "{json}");
        }
        for json in ["1.5", "1e300", "9007199254740993", "18446744073709551615"] {
            assert!(matches!(decode_json::<Loose<Integer>>(json), Ok(Loose::Other(Found::Number(_)))), "{json}");
        }
    }

    #[test]
    fn long_lists_are_counted_not_kept() {
        let json = Value::from(vec![1; 1000]).to_string();
        let Loose::Value(items) = decode_json::<Loose<Items<Loose<Integer>, 3>>>(&json).unwrap() else { panic!() };
        assert_eq!((items.kept.len(), items.count), (3, 1000));
    }

    #[test]
    fn depth_and_range_of_what_is_passed_over_do_not_matter() {
        let deep = format!("{}1e999{}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(decode_json::<Loose<String>>(&deep), Ok(Loose::Other(Found::List)));
    }
}
