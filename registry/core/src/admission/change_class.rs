//! The difference between two cards of an agent, and its change class.

use a2a_card::{CardDiff, SignatureState, SignatureStateChange, diff_verified_cards};
use a2a_registry_domain::review::ChangeClass;
use a2a_registry_domain::signature as domain;
use a2a_registry_store::entity::{agent, card_body};
use a2a_registry_store::versions::{self, VersionSummary};
use a2a_registry_store::{Executor, StoreError};

use crate::context::AppContext;
use crate::signatures::{DomainKeyBinding, StoredSignatures};

/// The class of a change between two versions of a card. Bytes that are not in `loaded_bodies` are read through `db`,
/// which also sees those that this write inserts.
pub async fn classify_change(
    context: &AppContext,
    db: &impl Executor,
    agent: &agent::Model,
    before: &VersionSummary,
    after: &VersionSummary,
    binding: &DomainKeyBinding,
    loaded_bodies: &[card_body::Model],
) -> Result<ChangeClass, StoreError> {
    if before.has_same_content(after) {
        return Ok(ChangeClass::None);
    }
    let mut bodies = Vec::with_capacity(2);
    for key in [before, after] {
        bodies.extend(load_card_bytes(db, &key.digest, loaded_bodies).await?);
    }
    Ok(match bodies.as_slice() {
        [old, new] => {
            let states = signature_state_change(agent, binding, before.into(), after.into());
            classify_diff(diff_cards(context, old, new, states).as_ref(), states)
        }
        _ => ChangeClass::High,
    })
}

/// Compares two cards; `None` if this build cannot read one of them.
pub fn diff_cards(
    context: &AppContext,
    before: &[u8],
    after: &[u8],
    states: SignatureStateChange,
) -> Option<CardDiff> {
    diff_verified_cards(before, after, Some(&owner_extension_uri(context)), states).ok()
}

/// The extension by which a card names its owner (docs/publish/prove.md).
pub fn owner_extension_uri(context: &AppContext) -> String {
    format!("{}/ext/owner/v1", context.config().public_url())
}

/// The signature states of two versions, by the stored state and keys of each. A card signed by a pinned key counts as
/// verified even if that key has left its key set since, so removing a key gains nothing.
pub fn signature_state_change(
    agent: &agent::Model,
    binding: &DomainKeyBinding,
    before: StoredSignatures<'_>,
    after: StoredSignatures<'_>,
) -> SignatureStateChange {
    let before = match binding.signature_state(before) {
        domain::SignatureState::Unknown if !agent.pins.is_empty() => {
            domain::SignatureState::Untrusted
        }
        before => before,
    };
    SignatureStateChange {
        before: before.into(),
        after: binding.signature_state(after).into(),
    }
}

/// Classifies a change, given the states of both signatures.
pub fn classify_diff(diff: Option<&CardDiff>, states: SignatureStateChange) -> ChangeClass {
    use SignatureState::{Untrusted, Valid};
    let verified = |state| matches!(state, Valid | Untrusted);
    match diff {
        Some(difference) => difference.class.into(),
        // A card that this build cannot read cannot be compared, so a person decides. If its signature no longer
        // verifies, that happens before any of it is served.
        None if verified(states.before) && !verified(states.after) => ChangeClass::Critical,
        None => ChangeClass::High,
    }
}

/// The bytes with this digest: from the loaded bodies, else from the database. Damaged bytes count as missing, so that
/// the agent's next card can still be decided.
pub async fn load_card_bytes(
    db: &impl Executor,
    digest: &str,
    loaded_bodies: &[card_body::Model],
) -> Result<Option<Vec<u8>>, StoreError> {
    match loaded_bodies.iter().find(|body| body.digest == digest) {
        Some(body) => Ok(Some(body.bytes.clone())),
        None => versions::intact_body_by_digest(db, digest).await,
    }
}
