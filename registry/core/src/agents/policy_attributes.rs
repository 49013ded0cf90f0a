//! Policy attributes of agents, and the labels that matching policies give them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{Action, AgentAttributes, Policy, PolicyMatches, PolicySet};
use a2a_registry_store::Executor;
use a2a_registry_store::agents::agents_page_by_id;
use a2a_registry_store::entity::agent;
use uuid::Uuid;

use crate::agents::records::{AgentRecord, load_agent_records};
use crate::context::AppContext;
use crate::error::Result;
use crate::visibility::caller::account_audience_label;
use crate::visibility::policy_labels::{discovery_policy_labels, is_unrestricted_policy_set};

/// The attributes by which policies decide about finding and calling an agent, on every process alike.
pub fn agent_attributes(context: &AppContext, record: &AgentRecord) -> AgentAttributes {
    agent_attributes_as_of(context, record, context.policy_sets.ages_as_of())
}

/// The attributes of an agent with its ages as of a moment.
pub fn agent_attributes_as_of(
    context: &AppContext,
    record: &AgentRecord,
    as_of: Timestamp,
) -> AgentAttributes {
    record
        .policy_subject()
        .agent_attributes(&context.rules(), as_of)
}

/// The attributes of an agent as lists show it: one on hold has the lifecycle `held`, which policies cannot query.
pub fn listed_agent_attributes(context: &AppContext, record: &AgentRecord) -> AgentAttributes {
    AgentAttributes {
        lifecycle: record.shown_lifecycle().as_str().to_owned(),
        ..agent_attributes(context, record)
    }
}

/// The forbid policies of a set that a waiver lifts for the current content of an agent.
pub fn waived_forbid_indices(
    context: &AppContext,
    record: &AgentRecord,
    set: &PolicySet,
) -> BTreeSet<u16> {
    let ids = record.waived_policies(context.now());
    set.forbid_indices(&ids)
}

/// The custom policies of a set that match an agent with these attributes, each with its subject.
pub fn matching_custom_policies<'a>(
    set: &'a PolicySet,
    attributes: &AgentAttributes,
) -> Vec<(&'a Policy, Vec<Action>)> {
    let mut actions_by_index: BTreeMap<u16, Vec<Action>> = BTreeMap::new();
    for action in [Action::Discover, Action::Invoke, Action::Admit] {
        let matches = set.match_agent(action, attributes);
        for index in matches.matching.union(&matches.failed) {
            actions_by_index.entry(*index).or_default().push(action);
        }
    }
    let matched = actions_by_index.into_iter().filter_map(|(place, actions)| {
        let policy = set.policies().get(usize::from(place))?;
        Some((policy, actions))
    });
    // A built-in policy is explained by its rule.
    matched.filter(|(policy, _)| !policy.is_built_in).collect()
}

/// The labels of an agent: those of its audience, and those by policies.
pub fn agent_visibility_labels(context: &AppContext, record: &AgentRecord) -> Vec<String> {
    let mut labels = agent_audience_labels(record);
    labels.extend(agent_policy_labels(context, record));
    labels
}

/// The labels of an agent's audience. Its owner, or its submitter while it has none, sees it regardless of policies.
pub fn agent_audience_labels(record: &AgentRecord) -> Vec<String> {
    let mut labels = record.audience_labels();
    let owner = record.responsible_account().map(account_audience_label);
    let owner = owner.filter(|owner| !labels.is_empty() && !labels.contains(owner));
    labels.extend(owner);
    labels
}

/// The labels of an agent by the matching policies in every set by which agents are evaluated.
pub fn agent_policy_labels(context: &AppContext, record: &AgentRecord) -> Vec<String> {
    let sets: Vec<_> = context.policy_sets.sets_for_evaluation().collect();
    if sets
        .iter()
        .all(|set| set.is_independent_of_resource(Action::Discover))
    {
        return Vec::new();
    }
    let facts = agent_attributes(context, record);
    let labels_of_set = |set: &Arc<PolicySet>| {
        discovery_policy_labels(set, &facts, &waived_forbid_indices(context, record, set))
    };
    sets.iter().flat_map(labels_of_set).collect()
}

/// The labels of these agents, by agent. Agents that no one may see are omitted.
pub async fn visibility_labels_by_agent(
    context: &AppContext,
    db: &impl Executor,
    rows: Vec<agent::Model>,
) -> Result<HashMap<Uuid, Vec<String>>> {
    let records = load_agent_records(db, rows).await?;
    let labelled = records
        .iter()
        .map(|record| (record.agent.id, agent_visibility_labels(context, record)));
    Ok(labelled.collect())
}

/// Like [`visibility_labels_by_agent`], or for any other agent if none of these exists: where policies are evaluated,
/// the amount of work must not reveal whether an agent is hidden or missing.
pub async fn visibility_labels_or_decoy(
    context: &AppContext,
    db: &impl Executor,
    rows: Vec<agent::Model>,
) -> Result<HashMap<Uuid, Vec<String>>> {
    let decoy = agents_page_by_id(db, None, 1).await?;
    let judged = if rows.is_empty() { decoy } else { rows };
    visibility_labels_by_agent(context, db, judged).await
}

/// Whether rows alone determine who may see an agent, because no policy needs anything else.
pub fn is_visibility_policy_free(context: &AppContext) -> bool {
    context
        .policy_sets
        .sets_for_evaluation()
        .all(|set| is_unrestricted_policy_set(&set))
}

/// The policies of a set that match doing this with an agent, without waived forbid policies.
pub fn action_policy_matches(
    context: &AppContext,
    set: &PolicySet,
    record: &AgentRecord,
    action: Action,
) -> PolicyMatches {
    let mut matches = match set.is_independent_of_resource(action) {
        true => set.match_agent(action, &AgentAttributes::default()),
        false => set.match_agent(action, &agent_attributes(context, record)),
    };
    matches.remove_waived(&waived_forbid_indices(context, record, set));
    matches
}
