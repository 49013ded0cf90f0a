//! What must hold for any bytes at all, as plain functions for fuzzers and tests to call.
//!
//! [`bytes`] takes bytes as a card; [`mutated`] takes them as instructions that build one, so that every
//! input gets past the JSON parser. Both then go through [`PROPERTIES`]: whatever else is done with a card
//! becomes one row there.

mod plan;
mod properties;

pub use properties::{BrokenProperty, PROPERTIES, Property, PropertyCheck};

use crate::parse;

/// Reads the bytes as a card and tries every claim on it.
///
/// # Errors
///
/// [`BrokenProperty`] names the claim that does not hold.
pub fn bytes(data: &[u8]) -> Result<(), BrokenProperty> {
    let outcome = parse(data);
    for property in PROPERTIES {
        (property.holds)(data, outcome.as_ref()).map_err(|what| BrokenProperty {
            property: property.name,
            what,
        })?;
    }
    Ok(())
}

/// Builds a card by the instructions in the data, and tries every claim on it.
pub fn mutated(data: &[u8]) -> Result<(), BrokenProperty> {
    bytes(&card(data))
}

/// The card that the instructions build: at most [`crate::MAX_CARD_BYTES`], and the same for the same data.
pub fn card(data: &[u8]) -> Vec<u8> {
    plan::card(data)
}
