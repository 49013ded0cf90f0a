//! A fetched card, with the version that it is compared with.

use a2a_card::digest;
use a2a_crawler::FetchedCard;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_store::entity::enrolled_key;
use a2a_registry_store::versions::VersionKey;
use uuid::Uuid;

use crate::signatures::{KeptKeySet, Signatures};

pub struct Arrival<'a> {
    pub source: i64,
    pub fetched: &'a FetchedCard,
    pub content: CardContent,
    pub answered_by: String,
    /// The account that has approved it with the registration (`--approve`).
    pub word: Option<Uuid>,
    /// The version that the agent had before.
    pub newest: Option<VersionKey>,
    /// Whether none of the keys that sign it is pinned for the agent.
    pub rotated: bool,
    pub standing: CoverageLevel,
}

impl Arrival<'_> {
    /// The newest version, if it has the same content and signatures.
    pub fn repeats(&self) -> Option<&VersionKey> {
        let newest = self.newest.as_ref();
        newest.filter(|newest| self.content.is(newest))
    }
}

pub struct CardContent {
    pub digest: String,
    pub content_digest: String,
    pub signing: String,
    pub signatures: Signatures,
}

impl CardContent {
    /// The content of a fetched card. Its signatures are verified with fetched keys, enrolled ones, and stored keys of
    /// the same URL.
    pub fn of(
        fetched: &FetchedCard,
        content_digest: String,
        known: &[KeptKeySet],
        enrolled: &[enrolled_key::Model],
    ) -> Self {
        let key_sets = fetched.key_sets.iter().map(KeptKeySet::from).collect();
        let key_sets = KeptKeySet::to_verify_with(key_sets, known, enrolled);
        let signatures = Signatures::judge(&fetched.parsed, &fetched.bytes, key_sets);
        Self {
            digest: digest(&fetched.bytes),
            content_digest,
            signing: signatures.summary(),
            signatures,
        }
    }

    /// The same content, its signatures verified with the stored keys of the agent.
    pub fn judged_with(
        self,
        fetched: &FetchedCard,
        known: &[KeptKeySet],
        enrolled: &[enrolled_key::Model],
    ) -> Self {
        if known.is_empty() {
            return self;
        }
        Self::of(fetched, self.content_digest, known, enrolled)
    }

    pub fn is(&self, version: &VersionKey) -> bool {
        self.content_digest == version.content_digest && self.signing == version.signing
    }
}
