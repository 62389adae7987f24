//! The plugin's configuration: an object without any key, yet.

use plan_guest_support::{
    loose::{Loose, UnknownKeys},
    loose_object,
    payload::decode_json,
};

/// What `configure` takes.
#[derive(Debug, Default)]
struct Config {
    unknown: UnknownKeys,
}

loose_object!(Config {});

/// The JSON Schema of the configuration.
pub fn schema() -> &'static str {
    include_str!("../schemas/config.json")
}

/// Checks the configuration.
///
/// # Errors
///
/// One sentence: it is no JSON object, or has keys that are not known.
pub fn check(config: &str) -> Result<(), String> {
    let config: Config = match decode_json(config).map_err(|e| format!("The plugin's configuration is {e}."))? {
        Loose::Value(config) => config,
        Loose::Other(found) => {
            return Err(format!("The plugin's configuration must be an object such as {{}}, not {found}."));
        }
    };
    let keys: Vec<&str> = config.unknown.iter().collect();
    if keys.is_empty() {
        return Ok(());
    }
    Err(format!("Unknown config keys: {} (plan-history has none).", keys.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations() {
        assert_eq!(check(" {} "), Ok(()));
        for (config, words) in [
            (r#"{"a":1,"b":{}}"#, "config keys: a, b (plan-history"),
            ("[]", "not a list"),
            ("", "not readable as JSON"),
        ] {
            let error = check(config).expect_err(config);
            assert!(error.contains(words), "{config}: {error}");
        }
    }
}
