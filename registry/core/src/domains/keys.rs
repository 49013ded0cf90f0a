//! Enrolled keys: signing keys that a domain's owner names for its cards.

use a2a_registry_api::DomainView;
use a2a_registry_api::limits::MAX_KID;
use a2a_registry_domain::event::EventKind;
use a2a_registry_store::entity::{domain, enrolled_key};
use a2a_registry_store::visit_turns::VisitRequest;
use a2a_registry_store::{Write, agents, ownership};
use serde_json::{Value, json};

use crate::commit::ledger::Ledger;
use crate::commit::locks::domain_locked;
use crate::commit::publish::commit_act;
use crate::context::Context;
use crate::crawl::derivation::derive_again;
use crate::domains::acts::domain_visible;
use crate::domains::view::domain_view;
use crate::error::{AppError, Result};
use crate::ownership::authorization::require_owner_or_curator;
use crate::visibility::caller::{Account, Caller};

const MAX_ENROLLED: usize = 20;

/// Enrolls a key that signs the cards of a domain. Cards signed by it verify with or without the URL of a key set, and
/// reach one trust level more (docs/model.md#trust).
pub async fn key_enrol(
    context: &Context,
    caller: &Caller,
    domain: &str,
    kid: &str,
    jwk: &Value,
) -> Result<DomainView> {
    let seen = domain_visible(context, caller, domain).await?;
    require_owner_or_curator(&context.store, caller, &seen, context.now()).await?;
    let (jwk, thumbprint) = public_key(kid, jwk)?;
    let write = context.store.write().await?;
    let row = domain_locked(&write, &seen).await?;
    // Another account may have proved it since.
    let account = require_owner_or_curator(&write, caller, &row, context.now()).await?;
    let known = ownership::enrolled_of(&write, &[row.id]).await?;
    if known.len() >= MAX_ENROLLED && known.iter().all(|key| key.kid != kid) {
        return Err(AppError::limit_reached(format!(
            "{} has reached its limit of {MAX_ENROLLED} keys; withdraw one first.",
            row.name
        )));
    }
    let now = context.now();
    write
        .key_enrol(enrolled_key::Model {
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
    keys_have_changed(context, write, &row, account, data).await?;
    domain_view(context, caller, row.id).await
}

pub async fn key_withdraw(
    context: &Context,
    caller: &Caller,
    domain: &str,
    kid: &str,
) -> Result<()> {
    let seen = domain_visible(context, caller, domain).await?;
    require_owner_or_curator(&context.store, caller, &seen, context.now()).await?;
    let write = context.store.write().await?;
    let row = domain_locked(&write, &seen).await?;
    // Another account may have proved it since.
    let account = require_owner_or_curator(&write, caller, &row, context.now()).await?;
    if !write.key_withdraw(row.id, kid).await? {
        return Err(AppError::not_found(format!(
            "{} has no key {kid}.",
            row.name
        )));
    }
    let data = json!({"key_withdrawn": kid});
    keys_have_changed(context, write, &row, account, data).await
}

/// Appends the events, updates every agent of the domain, verifies the signatures of stored versions again, and has the
/// cards fetched in full.
async fn keys_have_changed(
    context: &Context,
    write: Write,
    row: &domain::Model,
    account: &Account,
    data: Value,
) -> Result<()> {
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    ledger.event(EventKind::DomainUpdated, &row.name, &account.name, data);
    let agents: Vec<_> = agents::agents_of(&write, &[row.id]).await?;
    let agents: Vec<_> = agents.into_iter().map(|agent| agent.id).collect();
    for agent in &agents {
        let data = json!({"domain_keys": true});
        ledger.agent_event(EventKind::AgentUpdated, *agent, &account.name, data);
    }
    let marked = write.versions_judge_anew(&agents, None).await?;
    write.sources_want_full(row.id).await?;
    if row.opted_out_by.is_none() {
        let request = VisitRequest {
            requester: account.id.to_string(),
            in_bulk: false,
        };
        write.visit_turn_take(row.id, &request).await?;
        write
            .domain_make_due(row.id, context.now().0.max(row.not_before))
            .await?;
    }
    commit_act(context, write, ledger).await?;
    context.wake.visits.notify_one();
    if marked > 0 {
        // Most domains have few versions, whose signatures are verified with the new keys before this returns.
        if let Err(error) = derive_again(context).await {
            tracing::warn!(%error, "the signatures of stored versions are verified again later");
        }
        context.wake.derive.notify_one();
    }
    Ok(())
}

/// A public key in its stored form, with its thumbprint.
fn public_key(kid: &str, jwk: &Value) -> Result<(String, String)> {
    let wrong = |detail: &str| AppError::invalid("", detail);
    if kid.is_empty() || kid.len() > MAX_KID || kid.chars().any(char::is_control) {
        return Err(wrong("A key's name has 1 to 200 characters."));
    }
    let mut jwk = jwk
        .as_object()
        .cloned()
        .ok_or_else(|| wrong("A key is one public key as a JWK (RFC 7517)."))?;
    jwk.insert("kid".into(), kid.into());
    let set = json!({"keys": [jwk]}).to_string();
    let thumbprint = a2a_card::KeySet::from_jwks(set.as_bytes())
        .ok()
        .and_then(|set| set.thumbprints().next().map(str::to_owned));
    let thumbprint = thumbprint.ok_or_else(|| {
        wrong(
            "This is no public key to verify with: Ed25519, P-256, P-384, or RSA of 2048 bits at least, as a \
             JWK without its private members.",
        )
    })?;
    Ok((Value::Object(jwk).to_string(), thumbprint))
}
