//! From whom policies hide an agent that they could see otherwise.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use a2a_registry_api::HiddenFrom;
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{Action, Effect, PolicyMatches, PolicyMode, PolicySet, PrincipalScope};
use a2a_registry_search::is_visible_to;
use uuid::Uuid;

use crate::accounts::subject_callers::{load_known_callers, new_group_caller};
use crate::agents::policy_attributes::action_policy_matches;
use crate::agents::records::AgentRecord;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::process_state::decision_callers::KnownCallers;
use crate::visibility::caller::{Caller, account_audience_label};

/// Maximum number of accounts, and of combinations of groups, that are told apart to notice that an agent is hidden.
const MAX_CALLER_KINDS: usize = 100;
/// Maximum number of policies that are named.
const MAX_NAMED_POLICIES: usize = 20;

/// Whether the policies that match an agent may hide it from anybody: without that there is nothing to count.
pub fn may_be_hidden_by_policies(set: &PolicySet, matches: &PolicyMatches) -> bool {
    let mut is_permitted_to_everybody = false;
    for (index, policy) in set.policies_for_action(Action::Discover) {
        let has_failed = matches.failed.contains(&index);
        let is_matching = matches.matching.contains(&index);
        if policy.mode != PolicyMode::Enforce || !(has_failed || is_matching) {
            continue;
        }
        match policy.effect {
            Effect::Permit if !has_failed => {
                is_permitted_to_everybody |= policy.scope == PrincipalScope::Everybody;
            }
            _ => return true,
        }
    }
    !is_permitted_to_everybody
}

/// Counts from whom policies hide a listed agent; `None` if from nobody. The names of policies are for callers who see
/// everything.
pub async fn count_hidden_from(
    context: &AppContext,
    caller: &Caller,
    record: &AgentRecord,
) -> Result<Option<HiddenFrom>> {
    let set = context.policy_sets.enforced_set();
    let Some(hiding) = AgentHiding::new(context, &set, record) else {
        return Ok(None);
    };
    let known = load_known_callers(context).await?;
    let sees_policies = caller.has_permission(Permission::SeeAll);
    hiding.count_among(known, sees_policies).await
}

/// The accounts and groups that enforced policies about finding agents name.
fn named_principals(set: &PolicySet) -> BTreeSet<&PrincipalScope> {
    let mut named = BTreeSet::new();
    for (_, policy) in set.policies_for_action(Action::Discover) {
        if policy.mode == PolicyMode::Enforce {
            policy.scope.collect_named(&mut named);
        }
    }
    named
}

/// The kinds of callers for whom policies may decide differently: clients without a token, the accounts that a policy
/// about finding agents names, and members of the groups that policies name, in each combination in which accounts are
/// in them, in none of them too.
pub fn caller_kinds(known: &KnownCallers, set: &PolicySet) -> Vec<Caller> {
    let (mut named_groups, mut named_accounts) = (BTreeSet::new(), BTreeSet::new());
    for scope in named_principals(set) {
        match scope {
            PrincipalScope::Group(group) => named_groups.insert(group.clone()),
            PrincipalScope::Account(name) => named_accounts.insert(name),
            _ => false,
        };
    }
    // With all groups of these accounts: one of them sees an agent that is restricted to a group of any of them.
    let nobody = (Vec::new(), BTreeSet::new());
    let mut members: BTreeMap<Vec<String>, BTreeSet<Uuid>> = BTreeMap::from([nobody]);
    for account in known.bound_accounts() {
        let names = account.groups_among(&named_groups);
        let ids = members.entry(names).or_default();
        ids.extend(account.groups.iter().copied());
    }
    let members = members.into_iter();
    let members = members.map(|(names, ids)| new_group_caller(ids.into_iter().collect(), names));
    let accounts = known.callers.iter().filter(|caller| {
        let account = caller.account.as_ref();
        account.is_some_and(|account| named_accounts.contains(&account.name))
    });
    std::iter::once(Caller::default())
        .chain(accounts.take(MAX_CALLER_KINDS).cloned())
        .chain(members.take(MAX_CALLER_KINDS))
        .collect()
}

/// Whether policies of a set hide a listed agent from one of these kinds of callers.
pub fn is_hidden_from_any(
    context: &AppContext,
    set: &Arc<PolicySet>,
    record: &AgentRecord,
    kinds: &[Caller],
) -> bool {
    let Some(hiding) = AgentHiding::new(context, set, record) else {
        return false;
    };
    let mut bound = kinds.iter().filter(|kind| hiding.is_bound(kind));
    bound.any(|kind| hiding.is_hidden_from(kind, &mut BTreeSet::new()) == Some(true))
}

/// What decides who finds an agent.
pub struct AgentHiding {
    set: Arc<PolicySet>,
    matches: PolicyMatches,
    /// The labels of callers who may see it, policies aside.
    audience: Vec<String>,
    owner: Option<Uuid>,
}

impl AgentHiding {
    /// `None` for an agent that policies hide from nobody, or that is not listed.
    pub fn new(context: &AppContext, set: &Arc<PolicySet>, record: &AgentRecord) -> Option<Self> {
        if !record.is_listed() {
            return None;
        }
        let matches = action_policy_matches(context, set, record, Action::Discover);
        may_be_hidden_by_policies(set, &matches).then(|| Self {
            set: Arc::clone(set),
            matches,
            audience: record.audience_labels(),
            owner: record.responsible_account(),
        })
    }

    /// Counts from whom of these callers policies hide the agent; `None` if from nobody.
    pub async fn count_among(
        self,
        known: Arc<KnownCallers>,
        sees_policies: bool,
    ) -> Result<Option<HiddenFrom>> {
        // Thousands of accounts take some milliseconds.
        tokio::task::spawn_blocking(move || self.count(&known, sees_policies))
            .await
            .map_err(|error| AppError::internal(format!("a count of callers was aborted: {error}")))
    }

    fn count(&self, known: &KnownCallers, sees_policies: bool) -> Option<HiddenFrom> {
        let mut policies = BTreeSet::new();
        let mut hidden = HiddenFrom {
            callers: 0,
            of_callers: 0,
            truncated: known.truncated,
            anonymous: self.is_hidden_from(&Caller::default(), &mut policies) == Some(true),
            groups: Vec::new(),
            policies: Vec::new(),
        };
        let named = named_principals(&self.set);
        // Accounts with the same groups are decided once, unless a policy or the audience has one of them alone.
        let mut decided = HashMap::new();
        for caller in known.callers.iter().filter(|caller| self.is_bound(caller)) {
            let Some(account) = &caller.account else {
                continue;
            };
            let is_alone = named.contains(&PrincipalScope::Account(account.name.clone()))
                || self.audience.contains(&account_audience_label(account.id));
            let kind = (
                is_alone.then_some(account.id),
                caller.has_permission(Permission::Read),
                &account.group_names,
            );
            let is_hidden = decided
                .entry(kind)
                .or_insert_with(|| self.is_hidden_from(caller, &mut policies));
            hidden.of_callers += u64::from(is_hidden.is_some());
            hidden.callers += u64::from(*is_hidden == Some(true));
        }
        hidden.groups = self.hidden_groups(known, &mut policies);
        if sees_policies {
            hidden.policies = policies.into_iter().take(MAX_NAMED_POLICIES).collect();
        }
        let is_hidden = hidden.callers > 0 || hidden.anonymous || !hidden.groups.is_empty();
        is_hidden.then_some(hidden)
    }

    /// Whether policies bind a caller: they bind neither those who see everything nor the owner.
    fn is_bound(&self, caller: &Caller) -> bool {
        let id = caller.account.as_ref().map(|account| account.id);
        !caller.has_permission(Permission::SeeAll) && (id.is_none() || id != self.owner)
    }

    /// Whether policies hide the agent from a caller; `None` if the caller does not see it anyway.
    fn is_hidden_from(&self, caller: &Caller, policies: &mut BTreeSet<String>) -> Option<bool> {
        if !is_visible_to(&caller.labels_without_policies(), &self.audience) {
            return None;
        }
        let no_waivers = BTreeSet::new();
        let principal = caller.principal();
        let decision = self
            .set
            .decide(Action::Discover, &principal, &self.matches, &no_waivers);
        if !decision.allowed {
            policies.extend(decision.policies);
        }
        Some(!decision.allowed)
    }

    /// The groups of the owner whose members do not find the agent.
    fn hidden_groups(&self, known: &KnownCallers, policies: &mut BTreeSet<String>) -> Vec<String> {
        let mut accounts = known
            .callers
            .iter()
            .filter_map(|caller| caller.account.as_ref());
        let owner = accounts.find(|account| Some(account.id) == self.owner);
        let Some(owner) = owner else {
            return Vec::new();
        };
        let member = |index: usize| {
            let mut member = owner.clone();
            member.id = Uuid::nil();
            member.name = String::new();
            member.groups = owner.groups.get(index).copied().into_iter().collect();
            member.group_names = owner.group_names.get(index).cloned().into_iter().collect();
            Caller {
                account: Some(member),
                network: None,
            }
        };
        let names = owner.group_names.iter().enumerate();
        let hidden =
            names.filter(|(index, _)| self.is_hidden_from(&member(*index), policies) == Some(true));
        hidden.map(|(_, name)| name.clone()).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use a2a_registry_policy::{AgentAttributes, PolicyText};

    use super::*;

    #[test]
    fn an_agent_that_everybody_may_find_is_not_counted() {
        let may_be_hidden = |texts: &[&str]| {
            let texts: Vec<PolicyText> = (0..)
                .zip(texts)
                .map(|(number, text): (u32, _)| PolicyText {
                    id: format!("p{number}"),
                    text: (*text).to_owned(),
                })
                .collect();
            let set = PolicySet::compile(1, &texts).unwrap();
            let matches = set.match_agent(Action::Discover, &AgentAttributes::default());
            may_be_hidden_by_policies(&set, &matches)
        };
        let open = "permit (principal, action, resource);";
        let for_team = "permit (principal in Group::\"team\", action, resource);";
        let matching =
            "forbid (principal in Group::\"team\", action, resource) when { resource.trust < 1 };";
        let other = "forbid (principal, action, resource) when { resource.trust > 1 };";
        let failing = "permit (principal, action, resource) when { resource.trust - 1 - 9223372036854775807 - 1 < 0 };";
        assert!(!may_be_hidden(&[open]));
        assert!(!may_be_hidden(&[open, for_team, other]));
        assert!(!may_be_hidden(&[
            open,
            &format!("@mode(\"dry_run\") {matching}")
        ]));
        assert!(may_be_hidden(&[]));
        assert!(may_be_hidden(&[for_team]));
        assert!(may_be_hidden(&[open, matching]));
        // A policy that cannot be evaluated forbids.
        assert!(may_be_hidden(&[open, failing]));
    }

    #[test]
    fn members_of_the_same_named_groups_see_what_any_of_them_sees() {
        let [team, shown] = [1, 2].map(Uuid::from_u128);
        let in_groups = |ids: &[Uuid], names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            new_group_caller(ids.to_vec(), names.collect())
        };
        let known = KnownCallers {
            callers: vec![
                in_groups(&[team], &["team"]),
                in_groups(&[team, shown], &["team", "shown"]),
            ],
            truncated: false,
        };
        let texts = [PolicyText {
            id: "team".to_owned(),
            text: "permit (principal in Group::\"team\", action, resource);".to_owned(),
        }];
        let set = PolicySet::compile(1, &texts).unwrap();
        let members = in_groups(&[team, shown], &["team"]);
        let expected = [Caller::default(), in_groups(&[], &[]), members];
        assert_eq!(caller_kinds(&known, &set), expected);
    }
}
