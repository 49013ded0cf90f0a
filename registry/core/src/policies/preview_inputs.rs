//! The inputs on which a policy set is evaluated for a preview: every agent with its facts, and every kind of caller
//! that policies name.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_policy::{
    ANONYMOUS_ACCOUNT, Action, AgentAttributes, PolicyMatches, PolicySet, Principal, PrincipalScope,
};
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::entity::agent;
use uuid::Uuid;

use crate::accounts::subject_callers::load_known_callers;
use crate::admission::policies::registrant_principal;
use crate::agents::policy_attributes::{agent_attributes_as_of, waived_forbid_indices};
use crate::agents::records::load_agent_records;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::visibility::audience::group_names_by_id;
use crate::visibility::audience_groups;
use crate::visibility::caller::{INTERNAL_LABEL, PUBLIC_LABEL, group_audience_label};

/// Maximum number of combinations of groups that are compared.
const MAX_COMBINATIONS: usize = 200;
/// Agents that a preview names for all kinds of callers together; few callers have longer samples.
const MAX_NAMED_AGENTS: usize = 4_000;
/// Bounds of the agents that a preview names for each kind of caller.
const MIN_SAMPLE: usize = 2;
pub(super) const MAX_SAMPLE: usize = 20;

/// Loads the inputs for these agents. `registrants` are the accounts that are already loaded.
pub(super) async fn load_compared_agents(
    context: &AppContext,
    rows: Vec<agent::Model>,
    before: &PolicySet,
    registrants: &mut HashMap<Option<Uuid>, Principal>,
) -> Result<Vec<ComparedAgent>> {
    let mut agents = Vec::new();
    let records = load_agent_records(&context.store, rows).await?;
    let audiences = records
        .iter()
        .flat_map(|record| audience_groups(&record.agent));
    let audiences: BTreeSet<Uuid> = audiences.collect();
    let audiences: Vec<Uuid> = audiences.into_iter().collect();
    let names = group_names_by_id(&context.store, &audiences).await?;
    for record in records {
        let labels = record.audience_labels();
        let audience_groups = names
            .iter()
            .filter(|(id, _)| labels.contains(&group_audience_label(**id)));
        let shown_to = audience_groups.map(|(_, name)| name.clone()).collect();
        let is_public = labels.iter().any(|label| label == PUBLIC_LABEL);
        let is_internal = labels.iter().any(|label| label == INTERNAL_LABEL);
        let submitter = record.agent.submitter;
        let registrant = match registrants.get(&submitter) {
            Some(known) => known.clone(),
            None => {
                let principal = registrant_principal(&context.store, submitter).await?;
                registrants.insert(submitter, principal.clone());
                principal
            }
        };
        agents.push(ComparedAgent {
            id: record.agent.id,
            name: record.card.name.clone(),
            attributes: agent_attributes_as_of(context, &record, context.now()),
            waived_forbids: waived_forbid_indices(context, &record, before),
            is_approved: record.agent.approved_version.is_some(),
            registrant,
            is_public,
            is_listed: record.is_listed(),
            is_visible_signed_in: is_public || is_internal,
            audience_groups: shown_to,
        });
    }
    Ok(agents)
}

pub(super) struct ComparedAgent {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) attributes: AgentAttributes,
    pub(super) waived_forbids: BTreeSet<u16>,
    pub(super) is_listed: bool,
    pub(super) is_approved: bool,
    /// The principal for which the agent is admitted.
    pub(super) registrant: Principal,
    pub(super) is_public: bool,
    pub(super) is_visible_signed_in: bool,
    /// The groups to whose members the agent is restricted, as policies name them.
    pub(super) audience_groups: BTreeSet<String>,
}

impl ComparedAgent {
    /// Whether a caller can see the agent regardless of policies.
    pub(super) fn is_visible_without_policies(&self, principal: &Principal) -> bool {
        let restricted = || {
            principal
                .groups
                .iter()
                .any(|group| self.audience_groups.contains(group))
        };
        match principal.account {
            None => self.is_public,
            Some(_) => self.is_visible_signed_in || restricted(),
        }
    }

    /// Whether anyone but the owner and callers who see everything can find the agent under a set: one of these kinds
    /// of callers, or a member of a group to which the agent is restricted.
    pub(super) fn is_found_by_any(
        &self,
        set: &PolicySet,
        matches: &PolicyMatches,
        waived_forbids: &BTreeSet<u16>,
        callers: &ComparedCallers,
    ) -> bool {
        let finds = |who: &Principal| {
            set.decide(Action::Discover, who, matches, waived_forbids)
                .allowed
        };
        let audience = self.audience_groups.iter();
        let mut members = audience.filter_map(|group| callers.members.get(group));
        let existing = callers.named.iter().filter(|caller| caller.exists);
        let mut callers = existing.map(|caller| &caller.principal);
        self.is_listed
            && (callers.any(|who| self.is_visible_without_policies(who) && finds(who))
                || members.any(|combinations| {
                    let mut combinations = combinations.iter();
                    combinations.any(|groups| finds(&new_member(groups.clone())))
                }))
    }
}

pub(super) struct ComparedCallers {
    /// At most two, one for each name in a policy of both sets, and the combinations of groups.
    pub(super) named: Vec<CallerKind>,
    /// Whether all combinations of groups in which accounts are were found and compared.
    pub(super) is_complete: bool,
    /// By a group: in which of the groups that policies name its members are.
    members: HashMap<String, BTreeSet<Vec<String>>>,
}

/// A member of these groups whom no policy names.
fn new_member(groups: Vec<String>) -> Principal {
    Principal {
        account: Some(String::new()),
        groups,
    }
}

impl ComparedCallers {
    /// Number of agents that a preview names for each kind of caller.
    pub(super) fn sample_size(&self) -> usize {
        (MAX_NAMED_AGENTS / self.named.len().max(1)).clamp(MIN_SAMPLE, MAX_SAMPLE)
    }
}

/// A kind of callers.
pub(super) struct CallerKind {
    pub(super) name: String,
    pub(super) principal: Principal,
    /// Whether a caller of this kind exists: a policy may name a group without members, or one whose members are all
    /// in another one too, or a missing account.
    exists: bool,
}

/// Loads the kinds of callers: callers without a token, accounts that no policy names, every caller that a policy
/// names, accounts with their groups, and members of several groups that policies name, as far as accounts are in
/// these.
pub(super) async fn load_compared_callers(
    context: &AppContext,
    sets: &[&PolicySet],
) -> Result<ComparedCallers> {
    let mut scopes = BTreeSet::new();
    for policy in sets.iter().flat_map(|set| set.policies()) {
        policy.scope.collect_named(&mut scopes);
    }
    scopes.retain(|scope| match scope {
        PrincipalScope::Account(name) => name != ANONYMOUS_ACCOUNT,
        _ => true,
    });
    let caller_kind = |name: String, principal: Principal| CallerKind {
        name,
        principal,
        exists: true,
    };
    let mut named = vec![
        caller_kind("anonymous".to_owned(), Principal::default()),
        caller_kind("anybody signed in".to_owned(), new_member(Vec::new())),
    ];
    let known = load_known_callers(context).await?;
    let groups = scopes.iter().filter_map(|scope| match scope {
        PrincipalScope::Group(name) => Some(name.clone()),
        _ => None,
    });
    let groups: BTreeSet<String> = groups.collect();
    let combinations = known.group_combinations(&groups);
    for scope in scopes {
        named.push(match scope {
            PrincipalScope::Group(name) => {
                let alone = vec![name.clone()];
                CallerKind {
                    name: format!("group {name}"),
                    exists: known.truncated || combinations.contains(&alone),
                    principal: new_member(alone),
                }
            }
            PrincipalScope::Account(name) => load_named_account(context, name).await?,
            _ => return Err(AppError::internal("a scope names no principal".to_owned())),
        });
    }
    let several = combinations.into_iter().filter(|names| names.len() > 1);
    let several: Vec<Vec<String>> = several.collect();
    let is_complete = !known.truncated && several.len() <= MAX_COMBINATIONS;
    named.extend(several.into_iter().take(MAX_COMBINATIONS).map(|names| {
        let name = format!("groups {}", names.join(", "));
        caller_kind(name, new_member(names))
    }));
    let mut members: HashMap<String, BTreeSet<Vec<String>>> = HashMap::new();
    for account in known.bound_accounts() {
        for group in &account.group_names {
            let of_group = members.entry(group.clone()).or_default();
            of_group.insert(account.groups_among(&groups));
        }
    }
    Ok(ComparedCallers {
        named,
        is_complete,
        members,
    })
}

async fn load_named_account(context: &AppContext, name: &str) -> Result<CallerKind> {
    let account = account_by_name(&context.store, name).await?;
    let principal = registrant_principal(&context.store, account.map(|account| account.id)).await?;
    Ok(CallerKind {
        name: format!("account {name}"),
        // A disabled account does not count as existing.
        exists: principal.account.is_some(),
        principal: Principal {
            account: Some(name.to_owned()),
            groups: principal.groups,
        },
    })
}
