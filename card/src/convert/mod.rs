//! Conversion of any readable card to the form of 1.0 or of 0.3.
//!
//! A conversion has two steps. The first completes the model: it adds what the target version requires, removes what
//! the version cannot express, and adds a finding for each change. The second writes the result and makes no
//! decisions.

mod completion;
mod conversion_target;
mod interfaces;
mod oauth_flows;
mod object_builder;
mod security;
mod v0_3;
mod v1_0;

use serde_json::{Map, Value};

pub use conversion_target::{CONVERTED_EXTENSION, ConversionTarget, UnknownTarget};

use crate::ParsedCard;
use crate::finding::{Finding, FindingCollector};

/// A card in the form of another version.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertedCard {
    /// The members of the card. It is never signed; an extension named [`CONVERTED_EXTENSION`] names the original
    /// form.
    pub card: Map<String, Value>,
    /// Findings about added and removed members, at most [`crate::MAX_FINDINGS`]. Pointers refer to the converted
    /// card; for a removed member, to where it would be. An error means that the card cannot be used as it is.
    pub findings: Vec<Finding>,
}

/// Converts a card to the form of 1.0 (1.0 §4.4).
///
/// Every required member is present, and no required list is empty; only a card without any address has no
/// `supportedInterfaces`. Everything that both the card's version and 1.0 can express is kept, as far as
/// [`crate::parse_card`] could read it. An interface keeps its protocol version, since conversion does not change the
/// agent. There are two exceptions, because clients of 1.0 ignore anything older than 0.3: an agent of 0.2 is written
/// as 0.3, whose requests it understands, and so is an agent whose version is known only from the form of its card. If
/// no client of 1.0 can call any interface, there is the finding `convert.no-client`.
///
/// Converting the result again gives the same card. The result may be several times larger than the original.
///
/// ```
/// let old = br#"{"name": "Echo", "url": "https://echo.example/", "authentication": {"schemes": ["bearer"]}}"#;
/// let converted = a2a_card::convert_to_1_0(&a2a_card::parse_card(old)?);
/// let interface = &converted.card["supportedInterfaces"][0];
/// assert_eq!(interface["url"], "https://echo.example/");
/// assert_eq!(interface["protocolVersion"], "0.3");
/// let scheme = &converted.card["securitySchemes"]["bearer"];
/// assert_eq!(scheme["httpAuthSecurityScheme"]["scheme"], "bearer");
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn convert_to_1_0(parsed: &ParsedCard) -> ConvertedCard {
    convert_card(parsed, ConversionTarget::V1_0)
}

/// Converts a card to the form of 0.3 (0.3 §5.5).
///
/// The rules are those of [`convert_to_1_0`], with one further limit: all addresses of a 0.3 card share one
/// `protocolVersion`. The addresses of 0.3 are kept if there are any, else those of the first other 0.x version, else
/// those of the version that the card prefers; a finding names each of the others. `protocolVersion` is the version
/// that the agent really supports, with `0` for the patch, so a card of 1.0 gets the form of 0.3 with `1.0.0`. Because
/// the card is marked as converted, the linter applies the rules of 0.3.
pub fn convert_to_0_3(parsed: &ParsedCard) -> ConvertedCard {
    convert_card(parsed, ConversionTarget::V0_3)
}

/// Converts a card to the form of the given version: see [`convert_to_1_0`] and [`convert_to_0_3`].
pub fn convert_card(parsed: &ParsedCard, target: ConversionTarget) -> ConvertedCard {
    let mut out = FindingCollector::default();
    let completed_card = completion::fit_card_to_version(parsed, target, &mut out);
    let card = match target {
        ConversionTarget::V1_0 => v1_0::card_object(&completed_card),
        ConversionTarget::V0_3 => v0_3::card_object(&completed_card),
    };
    ConvertedCard {
        card,
        findings: out.into_findings(),
    }
}

#[cfg(test)]
mod tests;
