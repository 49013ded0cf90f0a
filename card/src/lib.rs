//! Reader of A2A agent cards of every protocol version into one model, with checks.
//!
//! Real cards follow 0.1, 0.2, 0.3 and 1.0 of the protocol, several of them at once, or none exactly. [`parse_card`]
//! recognises the wire format by a card's form, reads every member on its own and reports oddities as [`Finding`]s;
//! only bytes that are not JSON, or not a card at all, are an error. [`lint_card`] adds findings about the card as a
//! whole, [`sarif_log`] writes findings for code hosting services, and [`convert_card`] converts any card to 1.0 or
//! 0.3.
//!
//! ```
//! use a2a_card::{CardFamily, parse_card};
//!
//! let bytes = br#"{
//!     "name": "Flight desk",
//!     "url": "https://desk.example/a2a",
//!     "protocolVersion": "0.3.0",
//!     "preferredTransport": "rest",
//!     "capabilities": {"streaming": "True"},
//!     "security": [{"key": []}],
//!     "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}},
//!     "skills": [{"id": "book", "name": "Book flights", "tags": ["Travel"]}]
//! }"#;
//! let parsed = parse_card(bytes)?;
//! assert_eq!(parsed.family, CardFamily::V0_3);
//! assert_eq!(parsed.card.interfaces[0].binding, "HTTP+JSON");
//! assert_eq!(parsed.card.interfaces[0].protocol_version.as_deref(), Some("0.3"));
//! assert!(parsed.card.capabilities.streaming);
//! assert_eq!(a2a_card::skill_tags(&parsed.card), ["travel"]);
//! assert_eq!(
//!     a2a_card::security_sentences(&parsed.card),
//!     ["Send an API key in the header `X-Api-Key`"]
//! );
//! for finding in a2a_card::all_findings(&parsed, bytes) {
//!     println!("{} {}: {}", finding.rule, finding.pointer, finding.hint);
//! }
//! # Ok::<(), a2a_card::ParseError>(())
//! ```
//!
//! The crate is pure: no network, no files, no clock. Its work is limited by [`MAX_CARD_BYTES`], [`MAX_DEPTH`],
//! [`MAX_LIST_ELEMENTS`], [`MAX_OTHER_TEXTS`], [`MAX_FINDINGS`] and [`MAX_CHANGES`]. It never changes a card's bytes:
//! those stay with the caller, identified by [`bytes_digest`]. [`content_digest`] and [`signature_summary`] decide
//! whether two cards mean the same, and [`diff_cards`] how much a change matters. [`verify_signatures`] checks
//! signatures with the caller's keys, and [`sign_card`] makes new ones.
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod absolute_addresses;
mod assumed_address;
mod auth_requirements;
mod convert;
mod diff;
mod digest;
mod enums;
mod exact_json;
mod facets;
mod family;
mod finding;
mod hidden_characters;
mod interface_ranking;
mod json_document;
mod json_pointer;
mod json_scan;
mod lint;
mod member_reader;
mod model;
mod parse_error;
mod parsed_card;
mod rule;
mod rule_catalog;
mod rules;
mod sarif;
mod security_sentences;
mod signature;
mod text_position;
mod wire;

pub use absolute_addresses::{has_partial_address, with_absolute_addresses};
pub use assumed_address::assumed_address;
pub use auth_requirements::{AuthRequirements, AuthScheme, auth_requirements, has_unreadable_auth};
pub use convert::{
    CONVERTED_EXTENSION, ConversionTarget, ConvertedCard, UnknownTarget, convert_card,
    convert_to_0_3, convert_to_1_0,
};
pub use diff::{
    CardChange, CardDiff, ChangeClass, MAX_CHANGES, SignatureStateChange, UnknownChangeClass,
    diff_cards, diff_verified_cards,
};
pub use digest::{bytes_digest, content_digest};
pub use exact_json::{canonical_json, parse_exact_json};
pub use facets::{all_input_modes, all_output_modes, auth_labels, capability_labels, skill_tags};
pub use family::{CardFamily, UnknownFamily};
pub use finding::{Finding, MAX_FINDINGS};
pub use hidden_characters::terminal_safe_json;
pub use interface_ranking::{RankedInterface, SupportedBinding, ranked_interfaces};
pub use json_scan::MAX_DEPTH;
pub use lint::{
    INSTRUCTION_RULE, LintContext, all_findings, all_findings_with_context, lint_card,
    lint_with_context,
};
pub use member_reader::{MAX_LIST_ELEMENTS, to_snake_case};
pub use model::*;
pub use parse_error::{MAX_CARD_BYTES, ParseError};
pub use parsed_card::{ParsedCard, parse_card};
pub use rule::{Rule, Severity};
pub use rule_catalog::{all_rules, rules_as_markdown};
pub use sarif::{parse_error_sarif_log, sarif_log};
pub use security_sentences::security_sentences;
pub use signature::{
    Algorithm, CanonicalForm, CompactJws, KeySet, KeySetError, MAX_KEY_FILE_BYTES,
    MAX_KEY_SET_BYTES, MAX_KEYS, MAX_SIGNATURES, MAX_TOKEN_BYTES, MAX_UNCOVERED, MAX_VERIFICATIONS,
    ProtectedHeader, SignError, SignatureFault, SignatureResult, SignatureState, SigningKey,
    SigningKeyError, TokenError, UncoveredMember, UncoveredSubject, UnknownSignatureState,
    VerificationResult, canonical_payload, sign_card, signature_state, signature_summary,
    uncovered_findings, uncovered_members, unverified_signatures, verified_signature_state,
    verified_signature_summary, verify_signatures,
};
pub use text_position::{TextPosition, finding_positions};
pub use wire::other_texts::{MAX_OTHER_TEXT_BYTES, MAX_OTHER_TEXTS};
/// Items that only the property tests in `tests/any_bytes` use.
#[doc(hidden)]
pub use {hidden_characters::is_hidden_character, sarif::sarif_results};

/// Version of derived results, raised by one whenever [`parse_card`], [`lint_card`] or any other function here gives
/// another result for the same bytes.
///
/// Results are stored together with this number, and derived again if it has been raised.
pub const DERIVATION_VERSION: u32 = 8;
