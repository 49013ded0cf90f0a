//! The bytes of approved cards, exactly as they were received.

use std::sync::Arc;

use a2a_card::{
    ConversionTarget, DERIVATION_VERSION, convert_card, has_partial_address, parse_card,
    with_absolute_addresses,
};
use a2a_registry_domain::role::Permission;
use a2a_registry_search::is_visible_to;
use a2a_registry_store::{agents, domains, versions};
use uuid::Uuid;

use crate::agents::policy_attributes::{is_visibility_policy_free, visibility_labels_by_agent};
use crate::agents::views::{caller_owns_agent, is_domain_state_known, require_visible_agent};
use crate::context::AppContext;
use crate::database_health::require_recent_database_contact;
use crate::error::{AppError, Result};
use crate::process_state::card_cache::{ServedCard, ServedCardEntry};
use crate::sources::agent_card_base_url;
use crate::visibility::caller::Caller;
use crate::visibility::{ListingState, is_listed, visibility_labels};

/// Loads the card of an agent: the approved bytes or, if `version` is given, the stored version with that digest. The
/// approved bytes are cached until the agent changes.
pub async fn load_agent_card(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    version: Option<&str>,
) -> Result<Arc<ServedCard>> {
    require_recent_database_contact(context)?;
    if let Some(digest) = version {
        return load_visible_version_card(context, caller, agent, digest).await;
    }
    let labels = caller.labels(&context.policy_sets.enforced_set());
    if let Ok(id) = agent.parse::<Uuid>()
        && let Some(entry) = cached_card(context, id)
        && is_visible_to(&labels, &entry.visible_to)
    {
        return Ok(Arc::clone(&entry.card));
    }
    // A cached card that the caller may not see must not be rejected faster than a missing one.
    let id = require_visible_agent(context, caller, agent).await?.id;
    let entry = load_served_card(context, id, agent).await?;
    if is_visible_to(&labels, &entry.visible_to) {
        Ok(Arc::clone(&entry.card))
    } else {
        Err(AppError::no_agent(agent))
    }
}

/// The served card of an agent, if it is cached and still current.
fn cached_card(context: &AppContext, id: Uuid) -> Option<Arc<ServedCardEntry>> {
    let current_stamps = (
        context.change_counters.count(id),
        context.policy_sets.evaluation_set_numbers(),
    );
    let entry = context.card_cache.by_agent.get(&id)?;
    ((entry.stamp, entry.policies) == current_stamps).then_some(entry)
}

/// Loads the card of an agent as [`load_agent_card`] does, and converts it to another protocol version. The result is
/// never signed, and is marked as converted.
pub async fn convert_agent_card(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    version: Option<&str>,
    target: ConversionTarget,
) -> Result<Arc<ServedCard>> {
    let original = load_agent_card(context, caller, agent, version).await?;
    let key = format!("{target} {DERIVATION_VERSION} {}", original.digest);
    if let Some(card) = context.card_cache.by_digest.get(&key) {
        return Ok(card);
    }
    let mut parsed =
        parse_card(&original.bytes).map_err(|_| AppError::no_version(agent, &original.digest))?;
    // A relative address depends on the URL of the card, so cards with the same digest can differ once converted.
    // A card with a relative address is therefore not cached by its digest.
    let is_relative = has_partial_address(&parsed.card);
    if is_relative {
        let row = require_visible_agent(context, caller, agent).await?;
        let domain = domains::domains_by_ids(&context.store, &[row.domain_id])
            .await?
            .pop();
        if let Some(card_url) = agent_card_base_url(&row, domain.as_ref()) {
            parsed.card = with_absolute_addresses(&parsed.card, &card_url).into_owned();
        }
    }
    let card = Arc::new(ServedCard::from_conversion(convert_card(&parsed, target))?);
    if !is_relative {
        context.card_cache.by_digest.insert(key, Arc::clone(&card));
    }
    Ok(card)
}

/// Loads the served card of an agent. `agent` is its id or URN as requested, which errors repeat.
async fn load_served_card(
    context: &AppContext,
    id: Uuid,
    agent: &str,
) -> Result<Arc<ServedCardEntry>> {
    // The stamp is read before the database, so that a change in between is detected later.
    let (stamp, policies) = (
        context.change_counters.count(id),
        context.policy_sets.evaluation_set_numbers(),
    );
    if let Some(entry) = cached_card(context, id) {
        return Ok(entry);
    }
    let missing = || AppError::no_agent(agent);
    let row = agents::agents_by_ids(&context.store, &[id])
        .await?
        .pop()
        .ok_or_else(missing)?;
    let holds = agents::holds_of_agents(&context.store, &[id]).await?;
    let domain = domains::domains_by_ids(&context.store, &[row.domain_id])
        .await?
        .pop();
    let domain = domain
        .filter(|domain| is_domain_state_known(domain, &row))
        .ok_or_else(missing)?;
    let listed = is_listed(&row, &holds);
    let approved = row.approved_version.ok_or_else(missing)?;
    let version = versions::version_summaries(&context.store, &[approved])
        .await?
        .pop();
    let card = load_card_by_digest(context, &version.ok_or_else(missing)?.digest).await?;
    let openness = ListingState::new(listed, !holds.is_empty());
    let visible_to = match is_visibility_policy_free(context) {
        true => visibility_labels(&row, openness, domain.account_id, &[]),
        false => {
            let labels = visibility_labels_by_agent(context, &context.store, vec![row])
                .await?
                .remove(&id);
            labels.unwrap_or_default()
        }
    };
    let entry = Arc::new(ServedCardEntry {
        stamp,
        policies,
        visible_to,
        card,
    });
    context.card_cache.by_agent.insert(id, Arc::clone(&entry));
    Ok(entry)
}

async fn load_visible_version_card(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    digest: &str,
) -> Result<Arc<ServedCard>> {
    let row = require_visible_agent(context, caller, agent).await?;
    let sees_all_versions = caller.has_permission(Permission::SeeAll)
        || caller_owns_agent(context, caller, &row).await?;
    let version = versions::version_by_digest(&context.store, row.id, digest)
        .await?
        .filter(|version| sees_all_versions || version.ever_approved)
        .ok_or_else(|| AppError::no_version(agent, digest))?;
    load_card_by_digest(context, &version.digest).await
}

async fn load_card_by_digest(context: &AppContext, digest: &str) -> Result<Arc<ServedCard>> {
    if let Some(card) = context.card_cache.by_digest.get(digest) {
        return Ok(card);
    }
    let bytes = versions::body_by_digest(&context.store, digest)
        .await?
        .ok_or_else(|| AppError::not_found(format!("The card {digest} is no longer stored.")))?;
    let card = Arc::new(ServedCard::from_bytes(digest.to_owned(), bytes));
    context
        .card_cache
        .by_digest
        .insert(digest.to_owned(), Arc::clone(&card));
    Ok(card)
}
