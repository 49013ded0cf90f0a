//! Tests of pages rendered from benign and hostile cards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod api_samples;
pub mod claims;
mod hit_bounds;
pub mod hostile;
pub mod markup;
pub mod samples;
pub mod view;
