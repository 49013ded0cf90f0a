//! Properties that hold for any bytes at all, as plain functions for fuzzers and tests.
//!
//! [`bytes`] reads bytes as a card; [`mutated`] reads them as instructions that build one, so that every input gets
//! past the JSON parser. Both then check the [`PROPERTIES`], where every operation on cards has a row.

mod plan;
mod properties;

pub use properties::{BrokenProperty, PROPERTIES, Property, PropertyCheck};

use crate::parse;

/// Reads the bytes as a card and checks every property of it.
///
/// # Errors
///
/// [`BrokenProperty`] for the first property that does not hold.
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

/// Builds a card by the instructions in the data, and checks every property of it.
pub fn mutated(data: &[u8]) -> Result<(), BrokenProperty> {
    bytes(&card(data))
}

/// The card that the instructions build: at most [`crate::MAX_CARD_BYTES`] long, and always the same for the same
/// data.
pub fn card(data: &[u8]) -> Vec<u8> {
    plan::card(data)
}
