//! Open enums: values stored by a later version of the registry stay readable as text.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text_enum::TextEnum;

/// A known enum value, or a text that this version does not know. It is read from any text and written back unchanged,
/// so a new value does not break older programs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpenEnum<T> {
    Known(T),
    Unknown(String),
}

impl<T: TextEnum> OpenEnum<T> {
    pub fn from_text(text: String) -> Self {
        text.parse().map_or(Self::Unknown(text), Self::Known)
    }

    pub fn known_value(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Unknown(_) => None,
        }
    }

    /// Whether this is `value` or may be: an unknown text may stand for any value.
    pub fn could_be(&self, value: T) -> bool
    where
        T: PartialEq,
    {
        self.known_value().is_none_or(|known| known == value)
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(value) => value.text(),
            Self::Unknown(text) => text,
        }
    }
}

impl<T> From<T> for OpenEnum<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

/// Compares known values only: an unknown text equals no value.
impl<T: PartialEq> PartialEq<T> for OpenEnum<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(value) if value == other)
    }
}

impl<T: TextEnum> fmt::Display for OpenEnum<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<T: TextEnum> Serialize for OpenEnum<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: TextEnum> Deserialize<'de> for OpenEnum<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from_text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::lifecycle::Hold;

    #[test]
    fn an_unknown_text_is_kept_and_is_no_value() {
        let known: OpenEnum<Hold> = serde_json::from_str("\"denied\"").unwrap();
        assert_eq!(known, OpenEnum::Known(Hold::Denied));
        assert_eq!(known, Hold::Denied);
        assert!(known.could_be(Hold::Denied) && !known.could_be(Hold::Operator));

        let later: OpenEnum<Hold> = serde_json::from_str("\"moon_phase\"").unwrap();
        assert_eq!(later.known_value(), None);
        assert_ne!(later, Hold::Denied);
        assert!(later.could_be(Hold::Denied));
        assert_eq!(later.to_string(), "moon_phase");
        assert_eq!(serde_json::to_string(&later).unwrap(), "\"moon_phase\"");
        assert!(serde_json::from_str::<OpenEnum<Hold>>("7").is_err());
    }
}
