//! Versions to which a card can be converted, and the mark of a converted card.

use std::fmt;
use std::str::FromStr;

/// The URI of the extension that marks a card as converted.
///
/// It is never `required`; its parameter `from` is the card's original family, and outlives further conversions.
pub const CONVERTED_EXTENSION: &str = "urn:a2a-registry:converted";

/// The versions a card can be converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConversionTarget {
    /// 1.0: `supportedInterfaces`, wrapped security schemes.
    V1_0,
    /// 0.3: one flat `url`, further addresses in `additionalInterfaces`.
    V0_3,
}

impl ConversionTarget {
    /// Every version, the newest first.
    pub const ALL: [ConversionTarget; 2] = [ConversionTarget::V1_0, ConversionTarget::V0_3];

    /// The version as `Major.Minor`: `1.0` or `0.3`.
    pub fn as_str(self) -> &'static str {
        match self {
            ConversionTarget::V1_0 => "1.0",
            ConversionTarget::V0_3 => "0.3",
        }
    }
}

impl fmt::Display for ConversionTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The text is not a version to which cards are converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cards are converted to 1.0 and 0.3, not to {0:?}")]
pub struct UnknownTarget(pub String);

impl FromStr for ConversionTarget {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, UnknownTarget> {
        ConversionTarget::ALL
            .into_iter()
            .find(|target| target.as_str() == name)
            .ok_or_else(|| UnknownTarget(name.to_owned()))
    }
}
