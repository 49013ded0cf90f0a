//! Versions to which a card can be converted, and the mark of a converted card.

use crate::named_enum;

/// URI of the extension that marks a card as converted.
///
/// The extension is never `required`. Its parameter `from` is the card's original family and is kept by further
/// conversions.
pub const CONVERTED_EXTENSION: &str = "urn:a2a-registry:converted";

named_enum! {
    /// Versions to which a card can be converted.
    pub enum ConversionTarget {
        /// 1.0: `supportedInterfaces`, wrapped security schemes.
        V1_0 = "1.0",
        /// 0.3: one flat `url`, further addresses in `additionalInterfaces`.
        V0_3 = "0.3",
    }

    /// Error for a text that is not a version to which cards can be converted.
    error UnknownTarget = "cards are converted to 1.0 and 0.3, not to {0:?}";
}
