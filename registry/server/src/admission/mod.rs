//! What is admitted: whose sources cover an agent, and what is decided on its card.

pub mod change;
pub mod coverage;
pub mod covering;
pub mod decision;
pub mod rules_changed;
pub mod urn;
