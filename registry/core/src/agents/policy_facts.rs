//! Agents as policies see them: their facts, and the labels that they carry by the policies that match.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use a2a_registry_policy::{Action, AgentFacts, Matches, Policy, PolicySet};
use a2a_registry_store::Handle;
use a2a_registry_store::agents::agents_walk;
use a2a_registry_store::entity::agent;
use uuid::Uuid;

use crate::agents::records::{AgentRecord, records};
use crate::context::Context;
use crate::error::Result;
use crate::visibility::caller::account_label;
use crate::visibility::policy_labels::{carried, is_open};

pub fn facts(context: &Context, record: &AgentRecord) -> AgentFacts {
    record.shown_card().facts(&context.rules)
}

/// The facts about an agent as lists show it: one on hold is `held` there, which policies cannot ask for.
pub fn listed_facts(context: &Context, record: &AgentRecord) -> AgentFacts {
    AgentFacts {
        lifecycle: record.shown().as_str().to_owned(),
        ..facts(context, record)
    }
}

/// The forbids of a set that a waiver lifts for the shown content of an agent.
pub fn waived(context: &Context, record: &AgentRecord, set: &PolicySet) -> BTreeSet<u16> {
    let ids = record.waived_policies(context.now());
    set.places_of_forbids(&ids)
}

/// The written policies of a set that match an agent with these facts, each with its subject.
pub fn matching<'a>(set: &'a PolicySet, facts: &AgentFacts) -> Vec<(&'a Policy, Vec<Action>)> {
    let mut places: BTreeMap<u16, Vec<Action>> = BTreeMap::new();
    for action in [Action::Discover, Action::Invoke, Action::Admit] {
        let matches = set.matches(action, facts);
        for place in matches.matching.union(&matches.failed) {
            places.entry(*place).or_default().push(action);
        }
    }
    let found = places.into_iter().filter_map(|(place, actions)| {
        let policy = set.policies().get(usize::from(place))?;
        Some((policy, actions))
    });
    // A shipped policy is explained by its rule.
    found.filter(|(policy, _)| !policy.is_shipped).collect()
}

/// The labels that an agent carries: those of who may find it, and those of the matching policies in every set that
/// agents are evaluated under. Its owner, which is its submitter while it has none, sees it whatever policies say.
pub fn labels_of(context: &Context, record: &AgentRecord) -> Vec<String> {
    let mut labels = record.visible_to();
    let owner = record.own_account().map(account_label);
    let owner = owner.filter(|owner| !labels.is_empty() && !labels.contains(owner));
    labels.extend(owner);
    let sets: Vec<_> = context.policies.evaluated().collect();
    if sets.iter().any(|set| !set.is_plain(Action::Discover)) {
        let facts = facts(context, record);
        let carried = |set: &Arc<PolicySet>| carried(set, &facts, &waived(context, record, set));
        labels.extend(sets.iter().flat_map(carried));
    }
    labels
}

/// The labels of these agents, by agent; agents that no one may see are left out.
pub async fn labels_of_all(
    context: &Context,
    on: &impl Handle,
    rows: Vec<agent::Model>,
) -> Result<HashMap<Uuid, Vec<String>>> {
    let records = records(on, rows).await?;
    let labelled = records
        .iter()
        .map(|record| (record.agent.id, labels_of(context, record)));
    Ok(labelled.collect())
}

/// As [`labels_of_all`], or for any other agent if none of these exists: where policies are evaluated, a caller must
/// not be able to tell a hidden agent from a missing one by the work that is done.
pub async fn labels_or_decoy(
    context: &Context,
    on: &impl Handle,
    rows: Vec<agent::Model>,
) -> Result<HashMap<Uuid, Vec<String>>> {
    let decoy = agents_walk(on, None, 1).await?;
    let judged = if rows.is_empty() { decoy } else { rows };
    labels_of_all(context, on, judged).await
}

/// Whether rows alone say who sees an agent, because no policy asks for anything else.
pub fn rows_decide(context: &Context) -> bool {
    context.policies.evaluated().all(|set| is_open(&set))
}

/// The matching policies about calling an agent, of the set in force, without waived forbids.
pub fn invoke_matches(context: &Context, record: &AgentRecord) -> Matches {
    let set = context.policies.in_force();
    let mut matches = match set.is_plain(Action::Invoke) {
        true => set.matches(Action::Invoke, &AgentFacts::default()),
        false => set.matches(Action::Invoke, &facts(context, record)),
    };
    matches.without(&waived(context, record, &set));
    matches
}

/// The matching policies about finding an agent, of the set in force; `None` if none of them is on a dry run.
pub fn tried_matches(context: &Context, record: &AgentRecord) -> Option<Matches> {
    let set = context.policies.in_force();
    if !set.tries(Action::Discover) {
        return None;
    }
    let mut matches = set.matches(Action::Discover, &facts(context, record));
    matches.without(&waived(context, record, &set));
    Some(matches)
}
