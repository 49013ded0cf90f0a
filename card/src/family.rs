//! The wire format of a card.

use crate::named_enum;

named_enum! {
    /// The wire format of a card, determined by its form first and by the declared version second.
    ///
    /// [`CardFamily::as_str`] returns the stable name under which the family is stored and displayed.
    pub enum CardFamily {
        /// `0.1`: `authentication` beside `url`, or declared 0.1.
        V0_1 = "0.1",
        /// `0.2`: declared 0.2, or members such as `securitySchemes` beside `url` without any version.
        V0_2 = "0.2",
        /// `0.3`: declared 0.3 or later 0.x, or `signatures` beside `url` without any version.
        V0_3 = "0.3",
        /// `1.0`: `supportedInterfaces` with `protocolBinding`, no flat `url`.
        V1_0 = "1.0",
        /// `1.0+0.3`: `supportedInterfaces` with `protocolBinding` and a flat `url` beside it.
        Dual = "1.0+0.3",
        /// `interfaces-other`: `supportedInterfaces` whose entries have no `protocolBinding`.
        OtherInterfaces = "interfaces-other",
        /// `flat-1.x`: a flat `url`, while the declared version is 1.0 or later.
        Flat1 = "flat-1.x",
        /// `0.x`: a flat `url` and nothing that determines the version.
        Undated = "0.x",
        /// `snake-0.x`: a flat card with `snake_case` members.
        Snake0 = "snake-0.x",
        /// `snake-1.0`: a 1.0 card with `snake_case` members.
        Snake1 = "snake-1.0",
        /// `no-address`: neither `url` nor `supportedInterfaces`.
        NoAddress = "no-address",
        /// `nested`: the card, or its name, lies inside a member of the document.
        Nested = "nested",
    }

    /// Error for a text that is not the name of a family.
    error UnknownFamily = "no card family is called {0:?}";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_family() {
        for family in CardFamily::ALL {
            assert_eq!(family.as_str().parse(), Ok(family));
        }
        assert_eq!(
            "2.0".parse::<CardFamily>(),
            Err(UnknownFamily("2.0".into()))
        );
    }
}
