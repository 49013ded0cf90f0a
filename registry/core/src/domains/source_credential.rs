//! Credentials of sources: set and removed by the owner of the domain or an admin, and shown without their secrets.

use a2a_crawler::fetch::InvalidCredential;
use a2a_registry_api::{NewSourceCredential, SourceCredentialView};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::CredentialKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, source, source_credential};
use a2a_registry_store::visit_queue::VisitRequest;
use a2a_registry_store::{WriteTransaction, domains};
use serde_json::json;
use url::Url;

use crate::commit::change_set::ChangeSet;
use crate::commit::locks::lock_domain;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::domains::actions::find_visible_domain;
use crate::error::{AppError, Result};
use crate::ownership::authorization::require_owner_or_admin;
use crate::sealing::Sealer;
use crate::secrets::source_credentials::{
    credential_origin, parse_credential, remove_credentials, seal_credential,
};
use crate::sources::{public_source_id, source_card_url};
use crate::visibility::caller::{Caller, CallerAccount};

/// Sets the credential of a source, in place of its earlier one.
pub async fn set_source_credential(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    source: &str,
    new: &NewSourceCredential,
) -> Result<SourceCredentialView> {
    let unlocked = find_visible_domain(context, caller, domain).await?;
    require_owner_or_admin(&context.store, caller, &unlocked, context.now()).await?;
    let sealer = require_key(context)?;
    check_credential_members(context, new)?;
    let write = context.store.begin_write().await?;
    let row = lock_domain(&write, &unlocked).await?;
    // Another account may have proved it since.
    let account = require_owner_or_admin(&write, caller, &row, context.now()).await?;
    let source = find_source(context, &write, &row, source).await?;
    let url = source_url(&source)?;
    require_vouched_origin(caller, &row, &url, context.now())?;
    let token_hosts = &context.config().crawler.token_hosts;
    parse_credential(0, &url, new, token_hosts).map_err(invalid_credential_error)?;
    let origin = credential_origin(&url);
    let entropy = context.entropy.as_ref();
    let stored = source_credential::Model {
        id: 0,
        source_id: source.id,
        domain_id: row.id,
        kind: new.kind.into(),
        sealed: seal_credential(sealer, entropy, (source.id, &origin), new)?,
        origin,
        owner_id: row.domain_owner_at(context.now()),
        generation: row.generation,
        set_by: account.name.clone(),
        set_at: context.now().0,
    };
    let view = source_credential_view(&stored, true);
    let mut change_set = ChangeSet::new(context.now(), entropy);
    let data = json!({"source": source.url, "origin": stored.origin, "kind": stored.kind});
    change_set.add_event(
        EventKind::DomainCredentialSet,
        &row.name,
        &account.name,
        data,
    );
    write.replace_source_credential(stored).await?;
    request_full_visit(context, &write, &row, account).await?;
    commit_changes(context, write, change_set).await?;
    context.signals.visits.notify_one();
    Ok(view)
}

/// Removes the credential of a source, which is fetched without one from then on.
pub async fn remove_source_credential(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    source: &str,
) -> Result<()> {
    let unlocked = find_visible_domain(context, caller, domain).await?;
    require_owner_or_admin(&context.store, caller, &unlocked, context.now()).await?;
    let write = context.store.begin_write().await?;
    let row = lock_domain(&write, &unlocked).await?;
    let account = require_owner_or_admin(&write, caller, &row, context.now()).await?;
    let source = find_source(context, &write, &row, source).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let why = (account.name.as_str(), "removed");
    let is_own = |one: &source_credential::Model| one.source_id == source.id;
    if !remove_credentials(&write, &mut change_set, &row, why, is_own).await? {
        return Err(AppError::not_found(format!(
            "The source {} has no credential of its own.",
            source.url
        )));
    }
    request_full_visit(context, &write, &row, account).await?;
    commit_changes(context, write, change_set).await?;
    context.signals.visits.notify_one();
    Ok(())
}

/// The view of a credential; only callers who see the details of the domain see who has set it.
pub fn source_credential_view(
    row: &source_credential::Model,
    sees_details: bool,
) -> SourceCredentialView {
    SourceCredentialView {
        kind: row.kind.0.clone(),
        origin: row.origin.clone(),
        set_at: Timestamp(row.set_at),
        set_by: sees_details.then(|| row.set_by.clone()),
    }
}

fn require_key(context: &AppContext) -> Result<&Sealer> {
    context.secrets.as_ref().ok_or_else(|| {
        AppError::conflict(
            "This registry has no key to encrypt credentials with. The operator must set secrets.key_file, or put the \
             file back, and restart it.",
        )
    })
}

/// Rejects members that a credential of this kind does not have, and a token URL that the guard would reject.
fn check_credential_members(context: &AppContext, new: &NewSourceCredential) -> Result<()> {
    let is_client = new.kind == CredentialKind::ClientCredentials;
    if new.kind == CredentialKind::Bearer && new.name.is_some() {
        return Err(AppError::invalid(
            "/name",
            "A bearer token has no name. Leave `name` out.",
        ));
    }
    for (pointer, is_given) in [
        ("/token_url", new.token_url.is_some()),
        ("/scope", new.scope.is_some()),
    ] {
        if is_given && !is_client {
            let detail = "Only client_credentials have a token URL and a scope.";
            return Err(AppError::invalid(pointer, detail));
        }
    }
    if is_client {
        let token_url = new.token_url.as_deref().unwrap_or_default();
        let checked = context.network.fetcher.guard().check_url(token_url);
        checked.map_err(|error| AppError::invalid("/token_url", error.to_string()))?;
    }
    Ok(())
}

fn invalid_credential_error(error: InvalidCredential) -> AppError {
    use InvalidCredential as Invalid;
    let pointer = match error {
        Invalid::NotHttps => return AppError::conflict(error.to_string()),
        Invalid::UserName
        | Invalid::HeaderName
        | Invalid::RefusedHeaderName
        | Invalid::ClientId => "/name",
        Invalid::Token | Invalid::Password | Invalid::HeaderValue | Invalid::ClientSecret => {
            "/secret"
        }
        Invalid::Scope => "/scope",
        Invalid::TokenUrl => "/token_url",
    };
    AppError::invalid(pointer, error.to_string())
}

async fn find_source(
    context: &AppContext,
    write: &WriteTransaction,
    row: &domain::Model,
    id: &str,
) -> Result<source::Model> {
    let sources = domains::live_sources_by_domain(write, &[row.id]).await?;
    let mut sources = sources.into_iter();
    let found = sources.find(|source| public_source_id(context, source) == id);
    found.ok_or_else(|| AppError::not_found(format!("{} has no source {id}.", row.name)))
}

/// The URL whose origin gets the credential.
fn source_url(source: &source::Model) -> Result<Url> {
    let url = source_card_url(source);
    Url::parse(url).map_err(|_| AppError::internal(format!("the source {} has no URL", source.id)))
}

/// Rejects a source of another origin than the one for whose owner an admin vouches: plain HTTP and HTTPS on their
/// default ports are one domain, but an owner vouch is for only one of the two.
fn require_vouched_origin(
    caller: &Caller,
    row: &domain::Model,
    url: &Url,
    now: Timestamp,
) -> Result<()> {
    let is_admin = caller.has_permission(Permission::Administer);
    let (vouched, asked) = (row.domain_origin(), credential_origin(url));
    if is_admin || row.vouched_owner_at(now).is_none() || vouched == asked {
        return Ok(());
    }
    Err(AppError::forbidden(format!(
        "An admin vouches only for the owner of {vouched}, but this source is at {asked}. Ask an admin to set its \
         credential."
    )))
}

/// Makes all sources of a domain due without validators: with another credential an origin may serve something else.
async fn request_full_visit(
    context: &AppContext,
    write: &WriteTransaction,
    row: &domain::Model,
    account: &CallerAccount,
) -> Result<()> {
    write.force_full_fetch(row.id).await?;
    if row.opted_out_by.is_some() {
        return Ok(());
    }
    let now = context.now().0;
    let request = VisitRequest {
        requester: account.id.to_string(),
        in_bulk: false,
    };
    write.assign_visit_turn(row.id, &request).await?;
    // A visit that is under way has the earlier credential.
    if row.lease.is_some() {
        write.request_followup_visit(row.id, now).await?;
    }
    write
        .make_domain_due(row.id, now.max(row.not_before))
        .await?;
    Ok(())
}
