//! Properties that hold for any bytes at all, as plain functions for the tests of this package and for the fuzzers of
//! `card/fuzz`.
//!
//! [`bytes`] reads bytes as a card; [`mutated`] reads them as instructions that build one, so that every input gets
//! past the JSON parser. Both then check the [`PROPERTIES`], where every operation on cards has a row.

mod plan;
mod properties;

use a2a_card::parse_card;

pub use properties::{BrokenProperty, PROPERTIES};

/// Reads the bytes as a card and checks every property of it.
pub fn bytes(data: &[u8]) -> Result<(), BrokenProperty> {
    let outcome = parse_card(data);
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
    bytes(&plan::card(data))
}
