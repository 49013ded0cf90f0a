//! Secret settings, which are never shown.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

pub const HIDDEN_PLACEHOLDER: &str = "(hidden)";

/// A key or password. `Debug` and `--print-config` show only whether it is set, and no error quotes it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn reveal(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|secret| !secret.is_empty())
    }

    /// Whether this is the placeholder from a printed configuration.
    pub fn is_placeholder(&self) -> bool {
        self.0 == HIDDEN_PLACEHOLDER
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self(secret.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reveal().map_or("(none)", |_| HIDDEN_PLACEHOLDER))
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reveal().map_or("", |_| HIDDEN_PLACEHOLDER))
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecretVisitor)
    }
}

/// The URL of a database, which may contain a password. `Debug` and `--print-config` hide the password, and no error
/// quotes it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DatabaseUrl(String);

/// Parameters of a PostgreSQL URL that are not secret.
const NON_SECRET_PARAMETERS: [&str; 16] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

impl DatabaseUrl {
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this contains the placeholder from a printed configuration.
    pub fn has_placeholder(&self) -> bool {
        self.0.contains(HIDDEN_PLACEHOLDER)
    }
}

impl From<&str> for DatabaseUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

/// The URL without parts that may be secret.
impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A SQLite URL has no password.
        if self.is_empty() || self.0.starts_with("sqlite:") {
            return f.write_str(&self.0);
        }
        // A password with an unescaped character may be parsed as any other part of a URL.
        let Ok(mut url) = Url::parse(&self.0) else {
            return f.write_str(HIDDEN_PLACEHOLDER);
        };
        let rest = &url[url::Position::BeforePath..];
        if rest.contains('@') || url.fragment().is_some() || !url.has_host() {
            return f.write_str(HIDDEN_PLACEHOLDER);
        }
        if url.password().is_some() && url.set_password(Some(HIDDEN_PLACEHOLDER)).is_err() {
            return f.write_str(HIDDEN_PLACEHOLDER);
        }
        let redacted_query = url.query().map(|query| {
            let redacted_pairs = query.split('&').map(|pair| match pair.split_once('=') {
                Some((name, _)) if !NON_SECRET_PARAMETERS.contains(&name) => {
                    format!("{name}={HIDDEN_PLACEHOLDER}")
                }
                _ => pair.to_owned(),
            });
            redacted_pairs.collect::<Vec<_>>().join("&")
        });
        url.set_query(redacted_query.as_deref());
        f.write_str(url.as_str())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DatabaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(SecretVisitor)
            .map(|Secret(url)| Self(url))
    }
}

/// Deserializes text, and rejects any other type without quoting the value. Serde's own errors quote it, which would
/// leak a key that consists only of digits.
struct SecretVisitor;

impl SecretVisitor {
    fn reject_type<T, E: Error>() -> Result<T, E> {
        Err(E::custom(
            "a secret must be text; quote it, also in the environment: '\"…\"'",
        ))
    }
}

impl Visitor<'_> for SecretVisitor {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Secret, E> {
        Ok(Secret(value.to_owned()))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Secret, E> {
        Self::reject_type()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Secret, E> {
        Self::reject_type()
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<Secret, E> {
        Self::reject_type()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Secret, E> {
        Self::reject_type()
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Secret, E> {
        Self::reject_type()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Secret, E> {
        Self::reject_type()
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
            assert!(
                shown.contains(HIDDEN_PLACEHOLDER) && !shown.contains("hush"),
                "{shown}"
            );
        }
        let again = read(&toml::to_string(&section).unwrap()).unwrap();
        assert!(again.key.is_placeholder() && !section.key.is_placeholder());
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
        assert!(read("key = 7").unwrap_err().contains("quote"));
    }

    #[test]
    fn the_password_of_a_database_is_hidden_wherever_it_stands() {
        for (url, shown) in [
            ("", ""),
            ("sqlite:/a?mode=rwc", "sqlite:/a?mode=rwc"),
            ("postgres://db.example/a", "postgres://db.example/a"),
            (
                "postgres://ann@db.example/a?sslmode=require",
                "postgres://ann@db.example/a?sslmode=require",
            ),
            (
                "postgres://ann:hush@db.example:5433/a",
                "postgres://ann:(hidden)@db.example:5433/a",
            ),
            (
                "postgres://db.example/a?password=hush&user=ann",
                "postgres://db.example/a?password=(hidden)&user=ann",
            ),
            (
                "postgres://db.example/a?PASSWORD=hush",
                "postgres://db.example/a?PASSWORD=(hidden)",
            ),
            (
                "postgres://db.example/a?options=-c%20x=hush",
                "postgres://db.example/a?options=(hidden)",
            ),
            ("postgres://ann:hush/hush@db.example/a", HIDDEN_PLACEHOLDER),
            ("postgres://ann:12/hush@db.example/a", HIDDEN_PLACEHOLDER),
            ("postgres://ann:12#hush@db.example/a", HIDDEN_PLACEHOLDER),
            ("postgres://ann:12?hush@db.example/a", HIDDEN_PLACEHOLDER),
            ("postgres:ann:hush@db.example", HIDDEN_PLACEHOLDER),
            ("ann:hush@db.example/a", HIDDEN_PLACEHOLDER),
            ("hush", HIDDEN_PLACEHOLDER),
        ] {
            let own = DatabaseUrl::from(url);
            assert_eq!(own.to_string(), shown, "{url}");
            assert_eq!(format!("{own:?}"), shown, "{url}");
            assert_eq!(serde_json::to_value(&own).unwrap(), shown, "{url}");
            let is_hidden = DatabaseUrl::from(shown).has_placeholder();
            assert_eq!(is_hidden, shown.contains(HIDDEN_PLACEHOLDER), "{url}");
        }
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
            error.contains("quote") && !error.contains("7654321"),
            "{error}"
        );
    }
}
