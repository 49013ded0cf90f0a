//! A secret setting, which is never shown.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Placeholder that is shown instead of a secret.
pub(crate) const HIDDEN: &str = "(hidden)";

/// A key or password. `Debug` and `--print-config` show only whether it is set, and no error quotes it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself; `None` if none is set.
    pub fn reveal(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|secret| !secret.is_empty())
    }

    /// Whether this is the placeholder of a printed configuration, read back as a value.
    pub(crate) fn was_hidden(&self) -> bool {
        self.0 == HIDDEN
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self(secret.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reveal().map_or("(none)", |_| HIDDEN))
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reveal().map_or("", |_| HIDDEN))
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text)
    }
}

/// Deserializes text, and refuses any other type without quoting the value. Serde's own errors quote it, which would
/// leak a key that consists of digits only.
struct Text;

impl Text {
    fn refused<T, E: Error>() -> Result<T, E> {
        Err(E::custom(
            "a secret must be text; put it into quotes, also in the environment: '\"…\"'",
        ))
    }
}

impl Visitor<'_> for Text {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Secret, E> {
        Ok(Secret(value.to_owned()))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Secret, E> {
        Self::refused()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Secret, E> {
        Self::refused()
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<Secret, E> {
        Self::refused()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Secret, E> {
        Self::refused()
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Secret, E> {
        Self::refused()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Secret, E> {
        Self::refused()
    }
}

#[cfg(test)]
mod tests {
    //! Tests that a secret is never shown.

    #![allow(clippy::unwrap_used)]

    use figment::Figment;
    use figment::providers::{Format, Toml};

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Section {
        key: Secret,
    }

    fn read(text: &str) -> Result<Section, String> {
        let figment = Figment::from(Toml::string(text));
        figment.extract().map_err(|error| error.to_string())
    }

    #[test]
    fn a_secret_is_read_and_not_shown() {
        let section = read("key = \"hush-7\"").unwrap();
        assert_eq!(section.key.reveal(), Some("hush-7"));
        for shown in [format!("{section:?}"), toml::to_string(&section).unwrap()] {
            assert!(shown.contains(HIDDEN) && !shown.contains("hush"), "{shown}");
        }
        let again = read(&toml::to_string(&section).unwrap()).unwrap();
        assert!(again.key.was_hidden() && !section.key.was_hidden());
        let none = read("key = \"\"").unwrap();
        assert_eq!(none.key.reveal(), None);
        assert_eq!(toml::to_string(&none).unwrap(), "key = \"\"\n");
        assert!(format!("{none:?}").contains("(none)"));
    }

    #[test]
    fn what_is_no_text_is_refused_unseen() {
        for value in ["7654321", "-7654321", "7654321.5", "true", "[7654321]"] {
            let error = read(&format!("key = {value}")).unwrap_err();
            assert!(
                !error.contains("7654321") && !error.contains("true"),
                "{error}"
            );
        }
        assert!(read("key = 7").unwrap_err().contains("quotes"));
    }

    /// A value in the environment that consists of digits is parsed as a number.
    #[test]
    fn digits_in_the_environment_are_read_where_they_are_quoted() {
        let read = |variable: &str| {
            let value: figment::value::Value = variable.parse().unwrap();
            let figment = Figment::from(figment::providers::Serialized::default("key", value));
            let section = figment.extract::<Section>();
            section.map_err(|error| error.to_string())
        };
        let quoted = read("\"0123456\"").unwrap();
        assert_eq!(quoted.key.reveal(), Some("0123456"));
        assert_eq!(read("sk-0123456").unwrap().key.reveal(), Some("sk-0123456"));
        let error = read("7654321").unwrap_err();
        assert!(
            error.contains("quotes") && !error.contains("7654321"),
            "{error}"
        );
    }
}
