//! A fetched card, with the version that it is compared with.

use a2a_card::bytes_digest;
use a2a_crawler::FetchedCard;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_store::entity::enrolled_key;
use a2a_registry_store::versions::VersionSummary;
use uuid::Uuid;

use crate::signatures::{StoredKeySet, VerifiedSignatures};

pub struct IngestedCard<'a> {
    pub source: i64,
    pub fetched: &'a FetchedCard,
    pub content: CardContent,
    pub answered_by: String,
    /// The account that has approved it with the registration (`--approve`).
    pub preapproved_by: Option<Uuid>,
    /// The newest version that the agent had before this card.
    pub newest: Option<VersionSummary>,
    /// Whether none of the keys that sign it is pinned for the agent.
    pub keys_rotated: bool,
    pub coverage_level: CoverageLevel,
}

impl IngestedCard<'_> {
    /// The newest version, if it has the same content and signatures.
    pub fn repeated_version(&self) -> Option<&VersionSummary> {
        let newest = self.newest.as_ref();
        newest.filter(|newest| self.content.matches_version(newest))
    }
}

pub struct CardContent {
    pub digest: String,
    pub content_digest: String,
    pub signing: String,
    pub signatures: VerifiedSignatures,
}

impl CardContent {
    /// Builds the content of a fetched card. Its signatures are verified with fetched keys, enrolled ones, and stored
    /// keys of the same URL.
    pub fn from_fetched(
        fetched: &FetchedCard,
        content_digest: String,
        stored_key_sets: &[StoredKeySet],
        enrolled: &[enrolled_key::Model],
    ) -> Self {
        let key_sets = fetched.key_sets.iter().map(StoredKeySet::from).collect();
        let key_sets = StoredKeySet::for_verification(key_sets, stored_key_sets, enrolled);
        let signatures = VerifiedSignatures::verify_card(&fetched.parsed, &fetched.bytes, key_sets);
        Self {
            digest: bytes_digest(&fetched.bytes),
            content_digest,
            signing: signatures.signing_summary(),
            signatures,
        }
    }

    /// The same content, with signatures verified by the stored keys of the agent.
    pub fn verified_with_stored_keys(
        self,
        fetched: &FetchedCard,
        stored_key_sets: &[StoredKeySet],
        enrolled: &[enrolled_key::Model],
    ) -> Self {
        if stored_key_sets.is_empty() {
            return self;
        }
        Self::from_fetched(fetched, self.content_digest, stored_key_sets, enrolled)
    }

    pub fn matches_version(&self, version: &VersionSummary) -> bool {
        self.content_digest == version.content_digest && self.signing == version.signing
    }
}
