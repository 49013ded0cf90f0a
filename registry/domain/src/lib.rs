//! Domain types and rules of the registry, without I/O.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod admission_rules;
pub mod coverage;
pub mod endpoint;
pub mod event;
pub mod facet;
pub mod hook;
pub mod identifiers;
pub mod lifecycle;
pub mod open_enum;
pub mod owner_fingerprint;
pub mod ownership;
pub mod preview_state;
pub mod review;
pub mod role;
pub mod signature;
pub mod source;
pub mod task_state;
pub mod text_enum;
pub mod timestamp;
pub mod trust;
pub mod urn;
