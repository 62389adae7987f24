//! Which custom types a plugin may read and append.

/// The custom types that a plugin was granted. A grant of `t` covers `t` and every `t/…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grants {
    /// Those that the plugin says it uses.
    Declared,
    /// These alone.
    Only(Vec<String>),
}

impl Grants {
    /// The grants of a plugin that declares `declared`.
    pub(crate) fn resolve(self, declared: &[String]) -> Grants {
        match self {
            Grants::Declared => Grants::Only(declared.to_vec()),
            only => only,
        }
    }

    /// Is this custom type granted? What was not [resolved](Grants::resolve) grants nothing.
    pub(crate) fn cover(&self, custom_type: &str) -> bool {
        let Grants::Only(granted) = self else { return false };
        granted.iter().any(|granted| {
            custom_type.strip_prefix(granted.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage() {
        let grants = Grants::Only(vec!["a/b".into()]);
        for (custom_type, covered) in
            [("a/b", true), ("a/b/c", true), ("a/b/", true), ("a/bc", false), ("a", false), ("", false), ("A/b", false)]
        {
            assert_eq!(grants.cover(custom_type), covered, "{custom_type}");
        }
        assert!(!Grants::Only(vec![]).cover(""));
        assert!(!Grants::Declared.cover("a"));
        assert!(Grants::Declared.resolve(&["a".into()]).cover("a"));
    }
}
