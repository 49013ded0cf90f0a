//! The log of decisions by policies: each has an identifier, by which its asker and auditors can look it up for a few
//! days, in every process.
//!
//! Records are written behind, in batches. An identifier names its asker: the last 32 bits are a keyed hash of the
//! rest and of the asker, so that a look-up tells a lost record from an identifier that was never given to this
//! caller.

pub mod job;
pub mod lookup;

use a2a_registry_api::{PolicyDecision, RecordedDecision};
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::timestamp::DAY;
use a2a_registry_store::entity::access_decision;
use uuid::Uuid;

use crate::context::AppContext;
use crate::process_state::pending_decisions::ACCOUNT_ASKER_PREFIX;
use crate::visibility::caller::{Caller, CallerKey};

/// How long a decision can be looked up.
pub const DECISION_RETENTION: i64 = 7 * DAY;
/// Maximum number of stored decisions of one account; the oldest make way.
pub const MAX_DECISIONS_OF_ACCOUNT: u64 = 10_000;
/// Maximum number of stored decisions of one network without an account.
pub const MAX_DECISIONS_OF_NETWORK: u64 = 100;
/// Maximum number of stored decisions of all networks, so that strangers do not displace those of accounts.
pub const MAX_DECISIONS_OF_NETWORKS: u64 = 100_000;
/// The beginning of an asker that is a network.
pub const NETWORK_ASKER_PREFIX: &str = "network:";
/// Maximum number of stored decisions, to which they are cut every hour.
pub const MAX_DECISIONS: u64 = 1_000_000;
/// Maximum number of characters of a resource or a subject in a record.
const MAX_RECORDED_CHARS: usize = 1_024;

const HASH_BITS: u32 = 32;

/// What a decision is about, for its record.
#[derive(Debug, Clone)]
pub struct DecisionFacts {
    pub action: &'static str,
    /// The account, the groups or the client that the decision is about.
    pub subject: String,
    /// The agent or the URL as it was asked, or the domain to register.
    pub resource: String,
}

/// The key by which a caller's decisions are found.
pub fn decision_asker(caller: &Caller) -> String {
    match caller.key() {
        CallerKey::Account(id) => account_asker(id),
        CallerKey::Network(Some(network)) => format!("{NETWORK_ASKER_PREFIX}{network}"),
        CallerKey::Network(None) => NETWORK_ASKER_PREFIX.to_owned(),
    }
}

pub fn account_asker(account: Uuid) -> String {
    format!("{ACCOUNT_ASKER_PREFIX}{account}")
}

/// Gives a decision its identifier and its time, and records it for its asker.
pub fn record_decision(
    context: &AppContext,
    asker: String,
    asked_by: &str,
    facts: DecisionFacts,
    decision: PolicyDecision,
) -> PolicyDecision {
    let id = new_uuid(context.now(), context.entropy.as_ref());
    let decision = PolicyDecision {
        id: with_asker_hash(context, id, &asker),
        decided_at: context.now(),
        ..decision
    };
    let cut = |text: &str| text.chars().take(MAX_RECORDED_CHARS).collect();
    let record = RecordedDecision {
        decision: decision.clone(),
        action: facts.action.to_owned(),
        subject: cut(&facts.subject),
        resource: cut(&facts.resource),
        asked_by: asked_by.to_owned(),
    };
    if let Ok(record) = serde_json::to_string(&record) {
        let has_account = asker.starts_with(ACCOUNT_ASKER_PREFIX);
        let row = access_decision::Model {
            id: decision.id,
            asker,
            at: decision.decided_at.0,
            record,
        };
        // Without room the record is lost, which a look-up says.
        context.pending_decisions.add(row, has_account);
    }
    decision
}

/// The name of a caller in records.
pub fn asker_name(caller: &Caller) -> &str {
    let account = caller.account.as_ref();
    account.map_or("anonymous", |account| account.name.as_str())
}

/// Whether this identifier was given to this asker, by any process.
fn is_issued_to(context: &AppContext, id: Uuid, asker: &str) -> bool {
    with_asker_hash(context, id, asker) == id
}

/// The identifier with the hash of the asker as its last bits.
fn with_asker_hash(context: &AppContext, id: Uuid, asker: &str) -> Uuid {
    let prefix = id.as_u128() >> HASH_BITS;
    let prefix_text = format!("{prefix:x}");
    let texts = ["access decision", asker, prefix_text.as_str()];
    let hash = context.page_token_signer.hash_texts(&texts) >> HASH_BITS;
    Uuid::from_u128(prefix << HASH_BITS | u128::from(hash))
}

/// The time in an identifier, in microseconds since 1970.
fn issued_at(id: Uuid) -> i64 {
    // The first 48 bits of a UUIDv7 are milliseconds.
    let millis = i64::try_from(id.as_u128() >> 80).unwrap_or(i64::MAX);
    millis.saturating_mul(1_000)
}
