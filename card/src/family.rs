//! The wire format of a card.

use std::fmt;
use std::str::FromStr;

/// The wire format of a card, determined by its form first and by the declared version second.
///
/// [`Family::as_str`] gives the stable name under which it is stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `0.1`: `authentication` beside `url`, or declared 0.1.
    V0_1,
    /// `0.2`: declared 0.2, or members such as `securitySchemes` beside `url` without any version.
    V0_2,
    /// `0.3`: declared 0.3 or later 0.x, or `signatures` beside `url` without any version.
    V0_3,
    /// `1.0`: `supportedInterfaces` with `protocolBinding`, no flat `url`.
    V1_0,
    /// `1.0+0.3`: `supportedInterfaces` with `protocolBinding` and a flat `url` beside it.
    Dual,
    /// `interfaces-other`: `supportedInterfaces` whose entries have no `protocolBinding`.
    OtherInterfaces,
    /// `flat-1.x`: a flat `url`, while the declared version is 1.0 or later.
    Flat1,
    /// `0.x`: a flat `url` and nothing that determines the version.
    Undated,
    /// `snake-0.x`: a flat card with `snake_case` members.
    Snake0,
    /// `snake-1.0`: a 1.0 card with `snake_case` members.
    Snake1,
    /// `no-address`: neither `url` nor `supportedInterfaces`.
    NoAddress,
    /// `nested`: the card, or its name, lies inside a member of the document.
    Nested,
}

impl Family {
    /// Every family, in the order of declaration.
    pub const ALL: [Family; 12] = [
        Family::V0_1,
        Family::V0_2,
        Family::V0_3,
        Family::V1_0,
        Family::Dual,
        Family::OtherInterfaces,
        Family::Flat1,
        Family::Undated,
        Family::Snake0,
        Family::Snake1,
        Family::NoAddress,
        Family::Nested,
    ];

    /// The stable name, as each variant's description gives it.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::V0_1 => "0.1",
            Family::V0_2 => "0.2",
            Family::V0_3 => "0.3",
            Family::V1_0 => "1.0",
            Family::Dual => "1.0+0.3",
            Family::OtherInterfaces => "interfaces-other",
            Family::Flat1 => "flat-1.x",
            Family::Undated => "0.x",
            Family::Snake0 => "snake-0.x",
            Family::Snake1 => "snake-1.0",
            Family::NoAddress => "no-address",
            Family::Nested => "nested",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Error for a text that is not the name of a family.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no card family is called {0:?}")]
pub struct UnknownFamily(pub String);

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(name: &str) -> Result<Self, UnknownFamily> {
        Family::ALL
            .into_iter()
            .find(|family| family.as_str() == name)
            .ok_or_else(|| UnknownFamily(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_family() {
        for family in Family::ALL {
            assert_eq!(family.as_str().parse(), Ok(family));
        }
        assert_eq!("2.0".parse::<Family>(), Err(UnknownFamily("2.0".into())));
    }
}
