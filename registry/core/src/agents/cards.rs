//! The bytes of approved cards, exactly as they were received.

use std::sync::Arc;

use a2a_card::{
    ConversionTarget, DERIVATION, convert, has_relative_address, parse, with_absolute_addresses,
};
use a2a_registry_domain::role::Permission;
use a2a_registry_search::sees;
use a2a_registry_store::{agents, domains, versions};
use uuid::Uuid;

use crate::agents::policy_facts::{labels_of_all, rows_decide};
use crate::agents::views::{agent_visible, is_state_known, owns};
use crate::context::Context;
use crate::database::demand_database;
use crate::error::{AppError, Result};
use crate::memory::cards::{ServedCard, ServedCardEntry};
use crate::sources::card_url_of;
use crate::visibility::caller::Caller;
use crate::visibility::{Openness, is_listed, visible_to};

/// The card of an agent: the approved bytes, or with `version` a stored version by its digest. The approved bytes are
/// cached while the agent has not changed.
pub async fn agent_card(
    context: &Context,
    caller: &Caller,
    agent: &str,
    version: Option<&str>,
) -> Result<Arc<ServedCard>> {
    demand_database(context)?;
    if let Some(digest) = version {
        return card_of_version(context, caller, agent, digest).await;
    }
    let labels = caller.labels(&context.policies.in_force());
    if let Ok(id) = agent.parse::<Uuid>()
        && let Some(entry) = cached_entry(context, id)
        && sees(&labels, &entry.visible_to)
    {
        return Ok(Arc::clone(&entry.card));
    }
    // A cached card that the caller may not see must not be refused faster than a missing one.
    let id = agent_visible(context, caller, agent).await?.id;
    let serving = serving(context, id, agent).await?;
    if sees(&labels, &serving.visible_to) {
        Ok(Arc::clone(&serving.card))
    } else {
        Err(AppError::no_agent(agent))
    }
}

/// The served card of an agent, if it is cached and nothing has changed since.
fn cached_entry(context: &Context, id: Uuid) -> Option<Arc<ServedCardEntry>> {
    let present = (context.changes.stamp(id), context.policies.stamp());
    let entry = context.cards.serving.get(&id)?;
    ((entry.stamp, entry.policies) == present).then_some(entry)
}

/// The card of an agent, as [`agent_card`] gives it, converted to another protocol version: never signed, and marked as
/// converted.
pub async fn agent_card_as(
    context: &Context,
    caller: &Caller,
    agent: &str,
    version: Option<&str>,
    target: ConversionTarget,
) -> Result<Arc<ServedCard>> {
    let original = agent_card(context, caller, agent, version).await?;
    let key = format!("{target} {DERIVATION} {}", original.digest);
    if let Some(card) = context.cards.by_digest.get(&key) {
        return Ok(card);
    }
    let mut parsed =
        parse(&original.bytes).map_err(|_| AppError::no_version(agent, &original.digest))?;
    // The same bytes have other addresses at another URL, so such a card is not cached by its digest.
    let is_relative = has_relative_address(&parsed.card);
    if is_relative {
        let row = agent_visible(context, caller, agent).await?;
        let domain = domains::domains_by_ids(&context.store, &[row.domain_id])
            .await?
            .pop();
        if let Some(card_url) = card_url_of(&row, domain.as_ref()) {
            parsed.card = with_absolute_addresses(&parsed.card, &card_url).into_owned();
        }
    }
    let card = Arc::new(ServedCard::converted(convert(&parsed, target))?);
    if !is_relative {
        context.cards.by_digest.insert(key, Arc::clone(&card));
    }
    Ok(card)
}

/// The served card of an agent; `agent` is its id or URN from the request, for the error.
async fn serving(context: &Context, id: Uuid, agent: &str) -> Result<Arc<ServedCardEntry>> {
    // The stamp is read before the database, so that a change in between is noticed later.
    let (stamp, policies) = (context.changes.stamp(id), context.policies.stamp());
    if let Some(entry) = cached_entry(context, id) {
        return Ok(entry);
    }
    let missing = || AppError::no_agent(agent);
    let row = agents::agents_by_ids(&context.store, &[id])
        .await?
        .pop()
        .ok_or_else(missing)?;
    let holds = agents::holds_of(&context.store, &[id]).await?;
    let domain = domains::domains_by_ids(&context.store, &[row.domain_id])
        .await?
        .pop();
    let domain = domain
        .filter(|domain| is_state_known(domain, &row))
        .ok_or_else(missing)?;
    let listed = is_listed(&row, &holds);
    let approved = row.approved_version.ok_or_else(missing)?;
    let version = versions::version_keys(&context.store, &[approved])
        .await?
        .pop();
    let card = card_by_digest(context, &version.ok_or_else(missing)?.digest).await?;
    let openness = Openness::of(listed, !holds.is_empty());
    let visible_to = match rows_decide(context) {
        true => visible_to(&row, openness, domain.account_id, &[]),
        false => {
            let labels = labels_of_all(context, &context.store, vec![row])
                .await?
                .remove(&id);
            labels.unwrap_or_default()
        }
    };
    let serving = Arc::new(ServedCardEntry {
        stamp,
        policies,
        visible_to,
        card,
    });
    context.cards.serving.insert(id, Arc::clone(&serving));
    Ok(serving)
}

async fn card_of_version(
    context: &Context,
    caller: &Caller,
    agent: &str,
    digest: &str,
) -> Result<Arc<ServedCard>> {
    let row = agent_visible(context, caller, agent).await?;
    let all = caller.may(Permission::SeeAll) || owns(context, caller, &row).await?;
    let version = versions::version_by_digest(&context.store, row.id, digest)
        .await?
        .filter(|version| all || version.ever_approved)
        .ok_or_else(|| AppError::no_version(agent, digest))?;
    card_by_digest(context, &version.digest).await
}

async fn card_by_digest(context: &Context, digest: &str) -> Result<Arc<ServedCard>> {
    if let Some(card) = context.cards.by_digest.get(digest) {
        return Ok(card);
    }
    let bytes = versions::body_by_digest(&context.store, digest)
        .await?
        .ok_or_else(|| AppError::not_found(format!("The card {digest} is no longer stored.")))?;
    let card = Arc::new(ServedCard::of(digest.to_owned(), bytes));
    context
        .cards
        .by_digest
        .insert(digest.to_owned(), Arc::clone(&card));
    Ok(card)
}
