//! Trust levels of a card's origin (docs/concepts/README.md#trust).

use super::text_enum::text_enum;

text_enum! {
    /// A trust level; each level includes those below it.
    TrustLevel {
        /// Fetched over valid TLS.
        L0 = "L0",
        /// The domain is proved, and the proof covers the card.
        L1 = "L1",
        /// Signed with a key of that domain.
        L2 = "L2",
        /// Signed with a key that the domain's owner or the operator enrolled.
        L3 = "L3",
        /// Its approval is in the transparency log, cosigned by a witness.
        L4 = "L4",
    }
}
