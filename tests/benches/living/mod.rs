//! Parts of the bench of a living registry.

pub mod answers;
pub mod cards;
pub mod child;
pub mod descriptors;
pub mod http;
pub mod origin;
pub mod registrations;
pub mod registry;
pub mod rivals;
pub mod rules;
pub mod searches;
pub mod serving;
pub mod tables;
