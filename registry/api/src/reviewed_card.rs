//! The reviewed card in brief, as lists of reviews show it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a list shows of a reviewed card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReviewedCard {
    /// Description, at most 280 characters; empty if the card has none.
    pub description: String,
    /// Organization that provides the agent; empty if the card names none.
    pub provider: String,
    /// Parts of the card that differ from the content approved before, such as `skills`; empty for a first card.
    pub changed: Vec<String>,
    /// Number of errors that the linter found.
    pub errors: u32,
    /// Number of warnings that the linter found.
    pub warnings: u32,
}
