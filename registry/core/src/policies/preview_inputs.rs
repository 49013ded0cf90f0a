//! The inputs that a policy set is tried on: every agent with its facts, and every kind of caller that policies name.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_policy::{
    ANONYMOUS, Action, AgentFacts, Matches, PolicySet, Principal, PrincipalScope,
};
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::entity::agent;
use uuid::Uuid;

use crate::admission::policies::registrant;
use crate::agents::policy_facts::{facts, waived};
use crate::agents::records::records;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::visibility::audience::{group_has_members, named_by_id};
use crate::visibility::caller::{INTERNAL, PUBLIC, group_label};
use crate::visibility::shown_to;

/// Kinds of callers that are compared.
const MAX_CALLERS: usize = 100;

/// The inputs for these agents. `registrants` are accounts that are already loaded.
pub(super) async fn previewed(
    context: &Context,
    rows: Vec<agent::Model>,
    before: &PolicySet,
    registrants: &mut HashMap<Option<Uuid>, Principal>,
) -> Result<Vec<Previewed>> {
    let mut asked = Vec::new();
    let records = records(&context.store, rows).await?;
    let audiences = records.iter().flat_map(|record| shown_to(&record.agent));
    let audiences: BTreeSet<Uuid> = audiences.collect();
    let audiences: Vec<Uuid> = audiences.into_iter().collect();
    let names = named_by_id(&context.store, &audiences).await?;
    for record in records {
        let labels = record.visible_to();
        let shown_to = names
            .iter()
            .filter(|(id, _)| labels.contains(&group_label(**id)));
        let shown_to = shown_to.map(|(_, name)| name.clone()).collect();
        let is_public = labels.iter().any(|label| label == PUBLIC);
        let is_internal = labels.iter().any(|label| label == INTERNAL);
        let submitter = record.agent.submitter;
        let registrant = match registrants.get(&submitter) {
            Some(known) => known.clone(),
            None => {
                let found = registrant(&context.store, submitter).await?;
                registrants.insert(submitter, found.clone());
                found
            }
        };
        asked.push(Previewed {
            id: record.agent.id,
            name: record.card.name.clone(),
            facts: facts(context, &record),
            waived: waived(context, &record, before),
            is_approved: record.agent.approved_version.is_some(),
            registrant,
            is_public,
            is_listed: record.listed(),
            is_seen_signed_in: is_public || is_internal,
            shown_to,
        });
    }
    Ok(asked)
}

pub(super) struct Previewed {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) facts: AgentFacts,
    pub(super) waived: BTreeSet<u16>,
    pub(super) is_listed: bool,
    pub(super) is_approved: bool,
    /// The principal that it is admitted for.
    pub(super) registrant: Principal,
    pub(super) is_public: bool,
    pub(super) is_seen_signed_in: bool,
    /// The groups to whose members it is restricted, as policies name them.
    pub(super) shown_to: BTreeSet<String>,
}

impl Previewed {
    /// Whether a caller sees it, whatever policies say.
    pub(super) fn is_seen_by(&self, principal: &Principal) -> bool {
        let restricted = || {
            principal
                .groups
                .iter()
                .any(|group| self.shown_to.contains(group))
        };
        match principal.account {
            None => self.is_public,
            Some(_) => self.is_seen_signed_in || restricted(),
        }
    }

    /// Whether anyone but its owner and those who see everything finds it under a set: one of these kinds of callers,
    /// or a member of a group to which it is restricted.
    pub(super) fn is_found(
        &self,
        set: &PolicySet,
        matches: &Matches,
        waived: &BTreeSet<u16>,
        callers: &Callers,
    ) -> bool {
        let finds = |who: &Principal| set.verdict(Action::Discover, who, matches, waived).allowed;
        let member = |group: &String| Principal {
            account: Some(String::new()),
            groups: vec![group.clone()],
        };
        let existing = callers.named.iter().filter(|caller| caller.exists);
        let mut callers = existing.map(|caller| &caller.principal);
        self.is_listed
            && (callers.any(|who| self.is_seen_by(who) && finds(who))
                || self.shown_to.iter().any(|group| finds(&member(group))))
    }
}

pub(super) struct Callers {
    pub(super) named: Vec<NamedCaller>,
    /// The number of further ones that policies name.
    pub(super) left_out: usize,
}

/// A kind of callers.
pub(super) struct NamedCaller {
    pub(super) name: String,
    pub(super) principal: Principal,
    /// Whether a caller of this kind exists: a policy may name a group without members, or a missing account.
    exists: bool,
}

/// Callers without a token, accounts that no policy names, and every caller that one names; accounts with their groups.
pub(super) async fn callers(context: &Context, sets: &[&PolicySet]) -> Result<Callers> {
    let mut scopes = BTreeSet::new();
    for policy in sets.iter().flat_map(|set| set.policies()) {
        scopes.insert(&policy.scope);
    }
    scopes.retain(|scope| match scope {
        PrincipalScope::Group(_) => true,
        PrincipalScope::Account(name) => name != ANONYMOUS,
        PrincipalScope::Everybody | PrincipalScope::Nobody => false,
    });
    let kind = |name: &str, account: Option<&str>| NamedCaller {
        name: name.to_owned(),
        principal: Principal {
            account: account.map(str::to_owned),
            groups: Vec::new(),
        },
        exists: true,
    };
    // No account has this name.
    let mut named = vec![kind("anonymous", None), kind("anybody signed in", Some(""))];
    let left_out = (named.len() + scopes.len()).saturating_sub(MAX_CALLERS);
    let compared = scopes.len() - left_out;
    for scope in scopes.into_iter().take(compared) {
        named.push(named_caller(context, scope).await?);
    }
    Ok(Callers { named, left_out })
}

async fn named_caller(context: &Context, scope: &PrincipalScope) -> Result<NamedCaller> {
    let (PrincipalScope::Group(name) | PrincipalScope::Account(name)) = scope else {
        return Err(AppError::internal("a scope names nobody".to_owned()));
    };
    if matches!(scope, PrincipalScope::Group(_)) {
        return Ok(NamedCaller {
            name: format!("group {name}"),
            principal: Principal {
                account: Some(String::new()),
                groups: vec![name.clone()],
            },
            exists: group_has_members(&context.store, name).await?,
        });
    }
    let account = account_by_name(&context.store, name).await?;
    let known = registrant(&context.store, account.map(|account| account.id)).await?;
    Ok(NamedCaller {
        name: format!("account {name}"),
        // A disabled account does not count as existing.
        exists: known.account.is_some(),
        principal: Principal {
            account: Some(name.clone()),
            groups: known.groups,
        },
    })
}
