//! Trust manifests of AI Catalog, verified by the profile `did-web-v1`: the eight steps of the profile, without any request.
//!
//! [`SignedManifest`] is what steps 1 to 4 leave of a manifest, [`SignedManifest::check`] applies
//! steps 5 to 7, and [`super::authority`] the last one.

mod did_document;
mod fault;
mod signed;
mod subject;
#[cfg(test)]
mod tests;

pub use fault::ManifestFault;
pub use signed::{ManifestKind, SignedManifest};
pub use subject::EntryFacts;

/// The one profile that is verified. Another one counts as no signature: there is no fallback.
pub const PROFILE: &str = "did-web-v1";
/// Most bytes of a DID document.
pub const MAX_DID_DOCUMENT: usize = 64 * 1024;
/// Most manifests of one entry that are verified.
pub const MAX_MANIFESTS: usize = 4;
/// Clocks may differ by this many seconds.
pub const CLOCK_SKEW: i64 = 60;
