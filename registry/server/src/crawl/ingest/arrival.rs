//! A card that has come in, and what it is compared with.

use a2a_card::digest;
use a2a_crawler::FetchedCard;
use a2a_registry_domain::coverage::Standing;
use a2a_registry_store::entity::enrolled_key;
use a2a_registry_store::versions::VersionKey;
use uuid::Uuid;

use crate::signatures::{KeptKeySet, Signatures};

/// A card that has come in for an agent, and what it is compared with.
pub(crate) struct Arrival<'a> {
    pub(crate) source: i64,
    pub(crate) fetched: &'a FetchedCard,
    pub(crate) content: Content,
    /// The origin that has answered.
    pub(crate) answered_by: String,
    /// The account that has approved it with the registration.
    pub(crate) word: Option<Uuid>,
    /// The version that the agent had before.
    pub(crate) newest: Option<VersionKey>,
    /// Whether none of the keys it is signed with is one that the agent's card is known by.
    pub(crate) rotated: bool,
    /// Whose word stands behind it.
    pub(crate) standing: Standing,
}

impl Arrival<'_> {
    /// The newest version, where the card says the same and is signed alike.
    pub(crate) fn repeats(&self) -> Option<&VersionKey> {
        let newest = self.newest.as_ref();
        newest.filter(|newest| self.content.is(newest))
    }
}

/// What tells one content from another: the canonical form and how it is signed.
pub(crate) struct Content {
    pub(crate) digest: String,
    pub(crate) content_digest: String,
    pub(crate) signing: String,
    pub(crate) signatures: Signatures,
}

impl Content {
    /// Reads it off a fetched card, its signatures judged with the keys that came along, are enrolled, or were known
    /// of the same place before.
    pub(crate) fn of(
        fetched: &FetchedCard,
        content_digest: String,
        known: &[KeptKeySet],
        enrolled: &[enrolled_key::Model],
    ) -> Self {
        let key_sets = fetched.key_sets.iter().map(KeptKeySet::from).collect();
        let key_sets = KeptKeySet::to_judge_with(key_sets, known, enrolled);
        let signatures = Signatures::judge(&fetched.parsed, &fetched.bytes, key_sets);
        Self {
            digest: digest(&fetched.bytes),
            content_digest,
            signing: signatures.summary(),
            signatures,
        }
    }

    /// The same, its signatures judged with the keys that were known of the agent before.
    pub(crate) fn judged_with(
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

    /// Whether a version says the same and is signed alike.
    pub(crate) fn is(&self, version: &VersionKey) -> bool {
        self.content_digest == version.content_digest && self.signing == version.signing
    }
}
