//! The cache of cards, by agent and by digest.

use std::cmp::Reverse;
use std::sync::Arc;

use a2a_card::{ConvertedCard, bytes_digest};
use bytes::Bytes;
use moka::sync::Cache;
use uuid::Uuid;

use crate::error::{AppError, Result};
use crate::process_state::CACHE_IDLE_TTL;

#[derive(Debug)]
pub struct ServedCard {
    /// `sha256:` and 64 hex digits of the bytes.
    pub digest: String,
    /// The entity tag: the digest in quotes.
    pub etag: String,
    /// The bytes as received, or as converted.
    pub bytes: Bytes,
    /// The rules that a conversion violates, the most severe first and each once: inserted values, values that could
    /// not be expressed, and whether any client can call the agent with the converted card. Empty for a card as
    /// received.
    pub losses: Vec<String>,
}

impl ServedCard {
    pub fn from_bytes(digest: String, bytes: Vec<u8>) -> Self {
        Self {
            etag: format!("\"{digest}\""),
            digest,
            bytes: Bytes::from(bytes),
            losses: Vec::new(),
        }
    }

    /// A card in the form of another version.
    pub fn from_conversion(converted: ConvertedCard) -> Result<Self> {
        let bytes = serde_json::to_vec(&converted.card)
            .map_err(|error| AppError::internal(error.to_string()))?;
        let mut findings = converted.findings;
        findings.sort_by_key(|finding| Reverse(finding.severity));
        let mut losses: Vec<String> = Vec::new();
        for finding in findings {
            if !losses.contains(&finding.rule) {
                losses.push(finding.rule);
            }
        }
        Ok(Self {
            losses,
            ..Self::from_bytes(bytes_digest(&bytes), bytes)
        })
    }
}

/// The served card of an agent and the labels that may see it, valid for the stamp under which it was read.
#[derive(Debug)]
pub struct ServedCardEntry {
    pub stamp: u64,
    /// The numbers of the policy sets under which the labels were made.
    pub policies: (u64, Option<u64>),
    pub visible_to: Vec<String>,
    pub card: Arc<ServedCard>,
}

/// The cache of cards: the served card of each agent, valid while the agent's stamp is unchanged, and bytes by digest,
/// which never change. Both are bounded by the bytes they hold.
#[derive(Debug)]
pub struct CardCache {
    pub by_agent: Cache<Uuid, Arc<ServedCardEntry>>,
    pub by_digest: Cache<String, Arc<ServedCard>>,
}

impl CardCache {
    pub fn new(megabytes: u64) -> Self {
        let weigh = |card: &ServedCard| u32::try_from(card.bytes.len() + 256).unwrap_or(u32::MAX);
        let capacity = megabytes * 1024 * 1024;
        Self {
            by_agent: Cache::builder()
                .max_capacity(capacity)
                .weigher(move |_, serving: &Arc<ServedCardEntry>| weigh(&serving.card))
                .time_to_idle(CACHE_IDLE_TTL)
                .build(),
            by_digest: Cache::builder()
                .max_capacity(capacity / 2)
                .weigher(move |_, card: &Arc<ServedCard>| weigh(card))
                .time_to_idle(CACHE_IDLE_TTL)
                .build(),
        }
    }

    /// Removes all entries and frees them at once.
    pub fn clear(&self) {
        self.by_agent.invalidate_all();
        self.by_digest.invalidate_all();
        self.evict_expired();
    }

    /// Frees entries that were not used recently: without requests the cache would not free them itself.
    pub fn evict_expired(&self) {
        self.by_agent.run_pending_tasks();
        self.by_digest.run_pending_tasks();
    }
}
