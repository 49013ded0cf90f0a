//! Admission: which sources cover an agent, and the decision on its card.

pub mod change;
pub mod coverage;
pub mod covering;
pub mod decision;
pub(crate) mod policies;
pub mod rules_changed;
pub mod settling;
pub mod urn;
