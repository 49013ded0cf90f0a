//! Conversions: any readable card, written as a card of 1.0 or of 0.3.
//!
//! A conversion has two steps. The first completes the model: it puts in what the version requires, takes
//! out what it cannot say, and leaves a finding for each. The second writes what is left, and has nothing
//! to decide any more.

mod complete;
mod flows;
mod interfaces;
mod object;
mod security;
mod target;
mod v0_3;
mod v1_0;

use serde_json::{Map, Value};

pub use target::{CONVERTED_EXTENSION, ConversionTarget, UnknownTarget};

use crate::Parsed;
use crate::finding::{Finding, Findings};

/// A card in the form of another version.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The members of the card. It is never signed, and an extension of the URI [`CONVERTED_EXTENSION`]
    /// says where it comes from.
    pub card: Map<String, Value>,
    /// What had to be put in and what could not be said, at most [`crate::MAX_FINDINGS`]. Pointers lead
    /// into the converted card; for what was left out, to where it would stand. An error says that the
    /// card cannot be used as it is.
    pub findings: Vec<Finding>,
}

/// Writes a card in the form of 1.0 (1.0 §4.4).
///
/// Every required member is there, and no required list is empty; only a card without any address stays
/// without `supportedInterfaces`. Everything that both the card's version and 1.0 can say is kept, as far
/// as [`crate::parse`] understood it. An interface keeps the protocol version it had: the agent speaks
/// what it spoke. But clients of 1.0 pass over everything older than 0.3, so an agent of 0.2 is written as one of
/// 0.3, whose requests it understands, and so is one that only the form of its card dates. Where no client of
/// 1.0 can call any interface, the finding `convert.no-client` says so.
///
/// Converting the result once more gives the same card. It may be some times larger than the original, as
/// names stand in for missing descriptions.
///
/// ```
/// let old = br#"{"name": "Echo", "url": "https://echo.example/", "authentication": {"schemes": ["bearer"]}}"#;
/// let converted = a2a_card::to_1_0(&a2a_card::parse(old)?);
/// let interface = &converted.card["supportedInterfaces"][0];
/// assert_eq!(interface["url"], "https://echo.example/");
/// assert_eq!(interface["protocolVersion"], "0.3");
/// let scheme = &converted.card["securitySchemes"]["bearer"];
/// assert_eq!(scheme["httpAuthSecurityScheme"]["scheme"], "bearer");
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn to_1_0(parsed: &Parsed) -> Converted {
    convert(parsed, ConversionTarget::V1_0)
}

/// Writes a card in the form of 0.3 (0.3 §5.5).
///
/// As [`to_1_0`], with one limit more: all addresses of a 0.3 card share one `protocolVersion`. Those that
/// speak 0.3 are written where there are any, else those of the first other 0.x version, else those of the
/// version the card prefers; a finding names each of the others. `protocolVersion` is the version the
/// agent really speaks there, with `0` for the patch, so a card of 1.0 becomes one of 0.3's form that says
/// `1.0.0`; the linter holds it to 0.3 because of its mark.
pub fn to_0_3(parsed: &Parsed) -> Converted {
    convert(parsed, ConversionTarget::V0_3)
}

/// Writes a card in the form of the given version: see [`to_1_0`] and [`to_0_3`].
pub fn convert(parsed: &Parsed, target: ConversionTarget) -> Converted {
    let mut out = Findings::default();
    let complete = complete::complete(parsed, target, &mut out);
    let card = match target {
        ConversionTarget::V1_0 => v1_0::write(&complete),
        ConversionTarget::V0_3 => v0_3::write(&complete),
    };
    Converted {
        card,
        findings: out.into_list(),
    }
}

#[cfg(test)]
mod tests;
