//! What a policy set is tried on: every agent with its facts, and every kind of caller that policies name.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_policy::{
    Action, AgentFacts, Matches, PolicySet, Principal, PrincipalScope,
};
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::entity::agent;
use uuid::Uuid;

use crate::admission::policies::registrant;
use crate::agents::policy_facts::{facts, waived};
use crate::agents::records::records;
use crate::audience::named_by_id;
use crate::caller::{INTERNAL, PUBLIC, group_label};
use crate::context::Context;
use crate::error::AppError;
use crate::visibility::shown_to;

/// Kinds of callers that are compared.
const MAX_CALLERS: usize = 100;

/// These agents as they are compared. `registrants` are accounts that are known already.
pub(super) async fn previewed(
    context: &Context,
    rows: Vec<agent::Model>,
    before: &PolicySet,
    registrants: &mut HashMap<Option<Uuid>, Principal>,
) -> Result<Vec<Previewed>, AppError> {
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

/// An agent as it is compared.
pub(super) struct Previewed {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) facts: AgentFacts,
    pub(super) waived: BTreeSet<u16>,
    pub(super) is_listed: bool,
    pub(super) is_approved: bool,
    /// For whom it is admitted.
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

    /// Whether anybody but its owner and those who see everything finds it by a set: one of these kinds of callers, or a member
    /// of a group to which it is restricted.
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
        let mut callers = callers.named.iter().map(|(_, who)| who);
        self.is_listed
            && (callers.any(|who| self.is_seen_by(who) && finds(who))
                || self.shown_to.iter().any(|group| finds(&member(group))))
    }
}

/// The kinds of callers that are compared.
pub(super) struct Callers {
    pub(super) named: Vec<(String, Principal)>,
    /// Further ones that policies name.
    pub(super) left_out: usize,
}

/// Callers without a token, accounts that no policy names, and everybody whom one names; accounts with the groups that they
/// are in.
pub(super) async fn callers(context: &Context, sets: &[&PolicySet]) -> Result<Callers, AppError> {
    let mut named = BTreeSet::new();
    for policy in sets.iter().flat_map(|set| set.policies()) {
        named.insert(&policy.scope);
    }
    // No account has this name.
    let nobody = || Some(String::new());
    let mut callers = vec![
        ("anonymous".to_owned(), Principal::default()),
        (
            "anybody signed in".to_owned(),
            Principal {
                account: nobody(),
                groups: Vec::new(),
            },
        ),
    ];
    callers.extend(named.into_iter().filter_map(|scope| match scope {
        PrincipalScope::Group(name) => Some((
            format!("group {name}"),
            Principal {
                account: nobody(),
                groups: vec![name.clone()],
            },
        )),
        PrincipalScope::Account(name) if name != "anonymous" => Some((
            format!("account {name}"),
            Principal {
                account: Some(name.clone()),
                groups: Vec::new(),
            },
        )),
        _ => None,
    }));
    let left_out = callers.len().saturating_sub(MAX_CALLERS);
    callers.truncate(MAX_CALLERS);
    for (_, principal) in &mut callers {
        let Some(name) = principal.account.as_deref().filter(|name| !name.is_empty()) else {
            continue;
        };
        if let Some(account) = account_by_name(&context.store, name).await? {
            principal.groups = registrant(&context.store, Some(account.id)).await?.groups;
        }
    }
    Ok(Callers {
        named: callers,
        left_out,
    })
}
