//! The limits of one plugin, as a profile writes them.

use crate::Limits;
use bytesize::ByteSize;
use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, de::Error};
use std::time::Duration;

/// Declares [`Overrides`]: each field is one of [`Limits`], with how it is written.
macro_rules! overrides {
    ($($field:ident: $kind:ident,)*) => {
        /// Limits that differ from the host's.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub(super) struct Overrides {
            $($field: Option<$kind>,)*
        }

        impl Overrides {
            /// The limits where all that is not written here is as in `base`.
            pub(super) fn on(&self, base: &Limits) -> Limits {
                let mut limits = base.clone();
                $(if let Some($kind(value)) = self.$field {
                    limits.$field = value;
                })*
                limits
            }
        }
    };
}

// What is missing here is not one plugin's: `operation` is the session's; `instances` and `waiting` are for all together.
overrides! {
    memory: Bytes,
    core_instances: Count,
    memories: Count,
    tables: Count,
    table_elements: Count,
    compute: Time,
    call: Time,
    operations: Count,
    appends: Count,
    handles: Count,
    payload: Bytes,
    payload_read: Bytes,
    crossing: Bytes,
    arguments: Bytes,
    result: Bytes,
    tools: Count,
    tool_definitions: Bytes,
    component: Bytes,
    compile: Time,
    compile_memory: LongBytes,
    compiled: Bytes,
}

/// `64 MiB`, or a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bytes(usize);

/// As [`Bytes`], of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LongBytes(u64);

/// `16`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count(usize);

/// `500 ms`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Time(Duration);

/// Makes a value of a text, or says what to write instead.
fn written<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: impl FnOnce(&str) -> Option<T>,
    right: &str,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    read(&text).ok_or_else(|| D::Error::custom(format!("{:?} is no {right}", super::excerpt(&text))))
}

const SIZE: &str = "size: write a number of bytes, or one with its unit, such as 64 MiB";

fn size(text: &str) -> Option<u64> {
    // What is beyond its range, this library makes the end of its range.
    Some(text.parse::<ByteSize>().ok()?.as_u64()).filter(|&size| size != u64::MAX)
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        written(deserializer, |text| usize::try_from(size(text)?).ok().map(Bytes), SIZE)
    }
}

impl<'de> Deserialize<'de> for LongBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        written(deserializer, |text| size(text).map(LongBytes), SIZE)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        written(deserializer, |text| text.parse().ok().map(Count), "number: write a whole one, such as 16")
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: &str| {
            let time: SignedDuration = text.parse().ok()?;
            let time = Duration::try_from(time).ok().filter(|time| !time.is_zero())?;
            Some(Time(time))
        };
        written(deserializer, read, "time: write one that is longer than none, with its unit, such as 500 ms or 2 min")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Every limit is either one that a profile may change, or one of the three that it may not.
    #[test]
    fn every_limit_of_a_plugin_can_be_changed() {
        let Limits {
            memory: _,
            core_instances: _,
            memories: _,
            tables: _,
            table_elements: _,
            compute: _,
            operation,
            call: _,
            operations: _,
            appends: _,
            handles: _,
            payload: _,
            payload_read: _,
            crossing: _,
            arguments: _,
            result: _,
            tools: _,
            tool_definitions: _,
            instances,
            waiting,
            component: _,
            compile: _,
            compile_memory: _,
            compiled: _,
        } = Limits::default();
        let mut yaml = String::new();
        for line in format!("{:#?}", Limits::default()).lines() {
            let Some((field, value)) = line.trim().split_once(": ") else { continue };
            if !["operation", "instances", "waiting"].contains(&field) {
                let value = if value.contains('s') { "7 s" } else { "7" };
                writeln!(yaml, "{}: {value}", field.replace('_', "-")).expect("a text takes all");
            }
        }
        let overrides: Overrides = serde_saphyr::from_str(&yaml).expect("every key is known");
        let seven = Duration::from_secs(7);
        let all = Limits {
            memory: 7,
            core_instances: 7,
            memories: 7,
            tables: 7,
            table_elements: 7,
            compute: seven,
            operation,
            call: seven,
            operations: 7,
            appends: 7,
            handles: 7,
            payload: 7,
            payload_read: 7,
            crossing: 7,
            arguments: 7,
            result: 7,
            tools: 7,
            tool_definitions: 7,
            instances,
            waiting,
            component: 7,
            compile: seven,
            compile_memory: 7,
            compiled: 7,
        };
        assert_eq!(overrides.on(&Limits::default()), all);
        assert_eq!(Overrides::default().on(&all), all);
    }

    #[test]
    fn values() {
        let bytes = |text: &str| serde_saphyr::from_str::<Bytes>(text).ok().map(|Bytes(bytes)| bytes);
        for (text, found) in [
            ("64", Some(64)),
            ("64 MiB", Some(64 << 20)),
            ("64MiB", Some(64 << 20)),
            ("1.5 KiB", Some(1536)),
            ("2 MB", Some(2_000_000)),
            ("0", Some(0)),
            ("-1", None),
            ("MiB", None),
            ("64 parsecs", None),
            ("99999999 EiB", None),
            ("[1]", None),
        ] {
            assert_eq!(bytes(text), found, "{text}");
        }
        let time = |text: &str| serde_saphyr::from_str::<Time>(text).ok().map(|Time(time)| time.as_millis());
        for (text, found) in [
            ("5 s", Some(5_000)),
            ("5s", Some(5_000)),
            ("500 ms", Some(500)),
            ("1 min 30 s", Some(90_000)),
            ("1.5 s", Some(1_500)),
            ("5", None),
            ("0 s", None),
            ("-5 s", None),
            ("5 s ago", None),
            ("1 day", None),
            ("soon", None),
        ] {
            assert_eq!(time(text), found, "{text}");
        }
        let count = |text: &str| serde_saphyr::from_str::<Count>(text).ok().map(|Count(count)| count);
        for (text, found) in [("16", Some(16)), ("0", Some(0)), ("-1", None), ("1.5", None), ("many", None)] {
            assert_eq!(count(text), found, "{text}");
        }
    }
}
