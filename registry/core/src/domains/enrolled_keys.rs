//! Enrolled keys: signing keys that a domain's owner names for its cards.

use a2a_registry_api::DomainView;
use a2a_registry_api::limits::MAX_KID_CHARS;
use a2a_registry_domain::event::EventKind;
use a2a_registry_store::entity::{domain, enrolled_key};
use a2a_registry_store::visit_queue::VisitRequest;
use a2a_registry_store::{WriteTransaction, agents, ownership};
use serde_json::{Value, json};

use crate::commit::change_set::ChangeSet;
use crate::commit::locks::lock_domain;
use crate::commit::publish::commit_and_await_index;
use crate::context::AppContext;
use crate::crawl::derivation::rederive_version_page;
use crate::domains::actions::find_visible_domain;
use crate::domains::view::domain_view;
use crate::error::{AppError, Result};
use crate::ownership::authorization::require_owner_or_curator;
use crate::visibility::caller::{Caller, CallerAccount};

const MAX_ENROLLED: usize = 20;

/// Enrolls a key that signs the cards of a domain. Cards signed by it verify with or without the URL of a key set, and
/// reach the next trust level (docs/concepts/README.md#trust).
pub async fn key_enrol(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    kid: &str,
    jwk: &Value,
) -> Result<DomainView> {
    let unlocked = find_visible_domain(context, caller, domain).await?;
    require_owner_or_curator(&context.store, caller, &unlocked, context.now()).await?;
    let (jwk, thumbprint) = parse_public_key(kid, jwk)?;
    let write = context.store.begin_write().await?;
    let row = lock_domain(&write, &unlocked).await?;
    // Another account may have proved it since.
    let account = require_owner_or_curator(&write, caller, &row, context.now()).await?;
    let enrolled = ownership::enrolled_keys_by_domain(&write, &[row.id]).await?;
    if enrolled.len() >= MAX_ENROLLED && enrolled.iter().all(|key| key.kid != kid) {
        return Err(AppError::limit_reached(format!(
            "{} has reached its limit of {MAX_ENROLLED} keys; withdraw one first.",
            row.name
        )));
    }
    let now = context.now();
    write
        .enroll_key(enrolled_key::Model {
            id: 0,
            domain_id: row.id,
            kid: kid.to_owned(),
            thumbprint: thumbprint.clone(),
            jwk,
            actor: account.name.clone(),
            created_at: now.0,
        })
        .await?;
    let data = json!({"key_enrolled": kid, "thumbprint": thumbprint});
    apply_key_change(context, write, &row, account, data).await?;
    domain_view(context, caller, row.id).await
}

pub async fn key_withdraw(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    kid: &str,
) -> Result<()> {
    let unlocked = find_visible_domain(context, caller, domain).await?;
    require_owner_or_curator(&context.store, caller, &unlocked, context.now()).await?;
    let write = context.store.begin_write().await?;
    let row = lock_domain(&write, &unlocked).await?;
    // Another account may have proved it since.
    let account = require_owner_or_curator(&write, caller, &row, context.now()).await?;
    if !write.withdraw_key(row.id, kid).await? {
        return Err(AppError::not_found(format!(
            "{} has no key {kid}.",
            row.name
        )));
    }
    let data = json!({"key_withdrawn": kid});
    apply_key_change(context, write, &row, account, data).await
}

/// Appends the events of a key change, updates every agent of the domain, verifies the signatures of stored versions
/// again, and schedules full fetches of the cards.
async fn apply_key_change(
    context: &AppContext,
    write: WriteTransaction,
    row: &domain::Model,
    account: &CallerAccount,
    data: Value,
) -> Result<()> {
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    change_set.add_event(EventKind::DomainUpdated, &row.name, &account.name, data);
    let agents: Vec<_> = agents::live_agents_by_domain(&write, &[row.id]).await?;
    let agents: Vec<_> = agents.into_iter().map(|agent| agent.id).collect();
    for agent in &agents {
        let data = json!({"domain_keys": true});
        change_set.add_agent_event(EventKind::AgentUpdated, *agent, &account.name, data);
    }
    let to_reverify = write.mark_for_reverification(&agents, None).await?;
    write.force_full_fetch(row.id).await?;
    if row.opted_out_by.is_none() {
        let request = VisitRequest {
            requester: account.id.to_string(),
            in_bulk: false,
        };
        write.assign_visit_turn(row.id, &request).await?;
        write
            .make_domain_due(row.id, context.now().0.max(row.not_before))
            .await?;
    }
    commit_and_await_index(context, write, change_set).await?;
    context.signals.visits.notify_one();
    if to_reverify > 0 {
        // Most domains have few versions, whose signatures are verified with the new keys before this returns.
        if let Err(error) = rederive_version_page(context).await {
            tracing::warn!(%error, "the signatures of stored versions are verified again later");
        }
        context.signals.rederive.notify_one();
    }
    Ok(())
}

/// A public key in its stored form, with its thumbprint.
fn parse_public_key(kid: &str, jwk: &Value) -> Result<(String, String)> {
    let invalid = |detail: &str| AppError::invalid("", detail);
    if kid.is_empty() || kid.len() > MAX_KID_CHARS || kid.chars().any(char::is_control) {
        return Err(invalid("The name of a key must have 1 to 200 characters."));
    }
    let mut jwk = jwk
        .as_object()
        .cloned()
        .ok_or_else(|| invalid("The key must be one public key as a JWK (RFC 7517)."))?;
    jwk.insert("kid".into(), kid.into());
    let set = json!({"keys": [jwk]}).to_string();
    let thumbprint = a2a_card::KeySet::from_jwks(set.as_bytes())
        .ok()
        .and_then(|set| set.thumbprints().next().map(str::to_owned));
    let thumbprint = thumbprint.ok_or_else(|| {
        invalid(
            "This is not a usable public key. Send an Ed25519, P-256, P-384 or RSA key (at least 2048 bits) as a \
             JWK without private members.",
        )
    })?;
    Ok((Value::Object(jwk).to_string(), thumbprint))
}
