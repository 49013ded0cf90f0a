//! Pages rendered from cards that mean well and from cards that do not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub(crate) mod api_samples;
mod claims;
pub(crate) mod hostile;
mod markup;
pub(crate) mod samples;
mod view;
