//! Callers about whom others ask: accounts, members of groups, and the holders of a provider's access tokens. Reading
//! them changes nothing at any account.

use std::sync::Arc;

use a2a_registry_domain::role::{Role, Roles};
use a2a_registry_policy::{ANONYMOUS_ACCOUNT, Principal};
use a2a_registry_store::entity::{account, account_group, identity};
use a2a_registry_store::groups;
use a2a_registry_store::{Executor, accounts, identities};
use uuid::Uuid;

use crate::accounts::authentication::{account_suspended_since, policy_group_names};
use crate::context::AppContext;
use crate::error::Result;
use crate::process_state::decision_callers::KnownCallers;
use crate::providers::{AccountGrant, TokenSubject};
use crate::visibility::audience::find_group_by_name;
use crate::visibility::caller::{Caller, CallerAccount, Credential};

/// Accounts that are read at once.
const ACCOUNTS_PER_READ: u64 = 500;
/// Maximum number of accounts that are kept in memory, to tell from whom policies hide agents.
const MAX_KNOWN_ACCOUNTS: usize = 10_000;

/// A caller, or why nobody acts as the subject, in a sentence.
pub type SubjectCaller = std::result::Result<Caller, String>;

/// The newest accounts that may act, from memory while nothing about callers changes.
pub async fn load_known_callers(context: &AppContext) -> Result<Arc<KnownCallers>> {
    let cache = &context.decision_callers;
    // Read before the rows, so that a change in between is detected later.
    let generation = cache.generation();
    if let Some(known) = cache.known.get(generation) {
        return Ok(known);
    }
    let known = Arc::new(read_known_callers(&context.store).await?);
    cache.known.set(generation, Arc::clone(&known));
    Ok(known)
}

async fn read_known_callers(db: &impl Executor) -> Result<KnownCallers> {
    let mut known = KnownCallers::default();
    let mut before = None;
    loop {
        let rows = accounts::account_page(db, before, ACCOUNTS_PER_READ).await?;
        let Some(last) = rows.last() else {
            return Ok(known);
        };
        before = Some(last.id);
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let memberships = groups::groups_by_account(db, &ids).await?;
        for row in rows.into_iter().filter(account::Model::is_account_active) {
            if known.callers.len() >= MAX_KNOWN_ACCOUNTS {
                known.truncated = true;
                return Ok(known);
            }
            // An account with roles that only a later build knows may do nothing here.
            let Ok(roles) = row.account_roles() else {
                continue;
            };
            let own = memberships.iter().filter(|(account, _)| *account == row.id);
            let own: Vec<(Uuid, account_group::Model)> = own.cloned().collect();
            known
                .callers
                .push(new_caller(row.id, row.name, roles, &own));
        }
    }
}

/// Loads the caller of an account by its name.
pub async fn load_account_caller(context: &AppContext, name: &str) -> Result<SubjectCaller> {
    if name == ANONYMOUS_ACCOUNT {
        return Ok(Ok(Caller::default()));
    }
    let account = accounts::account_by_name(&context.store, name).await?;
    caller_from_account(context, account).await
}

/// Loads the caller of an account by its id.
pub async fn load_account_caller_by_id(context: &AppContext, id: Uuid) -> Result<SubjectCaller> {
    let account = accounts::accounts_by_ids(&context.store, &[id])
        .await?
        .pop();
    caller_from_account(context, account).await
}

async fn caller_from_account(
    context: &AppContext,
    account: Option<account::Model>,
) -> Result<SubjectCaller> {
    let Some(account) = account else {
        return Ok(Err("The account does not exist.".to_owned()));
    };
    if !account.is_account_active() {
        return Ok(Err(
            "The account is disabled, or its access has ended.".to_owned()
        ));
    }
    if account_suspended_since(context, &account).is_some() {
        let text = "The tokens of the account are suspended until its next sign-in.";
        return Ok(Err(text.to_owned()));
    }
    let roles = account.account_roles()?;
    let memberships = groups::groups_by_account(&context.store, &[account.id]).await?;
    Ok(Ok(new_caller(
        account.id,
        account.name,
        roles,
        &memberships,
    )))
}

/// Loads a caller with the role `reader` in these groups, whom no policy names.
pub async fn load_group_caller(db: &impl Executor, names: &[String]) -> Result<Caller> {
    let mut ids = Vec::new();
    for name in names {
        ids.extend(find_group_by_name(db, name).await?.map(|group| group.id));
    }
    Ok(new_group_caller(ids, names.to_vec()))
}

/// A caller with the role `reader` in these groups, whom no policy names.
pub fn new_group_caller(ids: Vec<Uuid>, names: Vec<String>) -> Caller {
    let roles: Roles = [Role::Reader].into_iter().collect();
    let mut caller = new_caller(Uuid::nil(), String::new(), roles, &[]);
    if let Some(account) = &mut caller.account {
        account.groups = ids;
        account.group_names = names;
    }
    caller
}

/// Loads the caller that the holder of an access token would be, if the holder came now. The token is verified, and
/// nothing is written: neither is an account made, nor does any lose its access.
pub async fn load_token_caller(
    context: &AppContext,
    subject: &TokenSubject,
) -> Result<SubjectCaller> {
    let grant = match &subject.grant {
        Ok(grant) => grant,
        Err(rejection) => return Ok(Err(rejection.text.clone())),
    };
    let store = &context.store;
    let identity =
        identities::identity_by_subject(store, &subject.issuer, &subject.subject).await?;
    let Some(identity) = identity else {
        return Ok(Ok(load_new_caller(store, subject, grant).await?));
    };
    let accounts = accounts::accounts_by_ids(store, &[identity.account_id]).await?;
    match accounts.into_iter().next() {
        Some(account) => load_identity_caller(store, account, &identity, subject, grant).await,
        None => Ok(Err("The account of the token does not exist.".to_owned())),
    }
}

/// The caller of an account that would be made.
async fn load_new_caller(
    db: &impl Executor,
    subject: &TokenSubject,
    grant: &AccountGrant,
) -> Result<Caller> {
    let is_taken = accounts::account_by_name(db, &grant.account_name)
        .await?
        .is_some();
    let name = match is_taken {
        true => grant.alternative_account_name(&subject.subject),
        false => grant.account_name.clone(),
    };
    let names = grant.groups.as_deref().unwrap_or_default();
    let mut caller = new_caller(Uuid::nil(), name, grant.roles.clone(), &[]);
    add_provider_groups(db, &mut caller, &subject.issuer, names).await?;
    Ok(caller)
}

/// The caller of an account that exists, with the roles and groups that the token would give it.
async fn load_identity_caller(
    db: &impl Executor,
    account: account::Model,
    identity: &identity::Model,
    subject: &TokenSubject,
    grant: &AccountGrant,
) -> Result<SubjectCaller> {
    if account.disabled_at.is_some() {
        return Ok(Err("The account of the token is disabled.".to_owned()));
    }
    let had_ended = account.access_ended_at.is_some();
    if had_ended && subject.issued_at <= identity.claims_at {
        let text =
            "The identity provider has ended the access of the account since it issued the token.";
        return Ok(Err(text.to_owned()));
    }
    // An older token brings no news.
    let is_current = subject.issued_at >= identity.claims_at;
    let follows_map = account.roles.as_deref() == Some(identity.roles.as_str());
    let has_news = is_current && (grant.groups.is_some() || had_ended);
    let roles = match has_news && follows_map {
        true => grant.roles.clone(),
        false => account.account_roles()?,
    };
    let mut memberships = groups::groups_by_account(db, &[account.id]).await?;
    let new_groups = grant.groups.as_deref().filter(|_| is_current);
    if new_groups.is_some() {
        memberships.retain(|(_, group)| group.origin != subject.issuer);
    }
    let mut caller = new_caller(account.id, account.name, roles, &memberships);
    let names = new_groups.unwrap_or_default();
    add_provider_groups(db, &mut caller, &subject.issuer, names).await?;
    Ok(Ok(caller))
}

async fn add_provider_groups(
    db: &impl Executor,
    caller: &mut Caller,
    issuer: &str,
    names: &[String],
) -> Result<()> {
    let Some(account) = &mut caller.account else {
        return Ok(());
    };
    for name in names {
        let group = groups::group_by_name(db, issuer, name).await?;
        account.groups.extend(group.map(|group| group.id));
        let policy_name = Principal::format_group_id(Some(issuer), name);
        account.group_names.push(policy_name);
    }
    Ok(())
}

/// A caller with all scopes that its roles allow.
fn new_caller(
    id: Uuid,
    name: String,
    roles: Roles,
    memberships: &[(Uuid, account_group::Model)],
) -> Caller {
    Caller {
        network: None,
        account: Some(CallerAccount {
            id,
            name,
            scopes: roles.scopes(),
            roles,
            groups: memberships.iter().map(|(_, group)| group.id).collect(),
            group_names: policy_group_names(memberships),
            credential: Credential::Token(Uuid::nil()),
        }),
    }
}
