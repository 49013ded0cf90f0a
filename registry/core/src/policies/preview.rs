//! Previews of a policy set: the changes that it would make if it were put in force.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use a2a_registry_api::{AccessChange, PolicyChange, PolicyPreview, PreviewedAgent};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{
    Action, AgentAttributes, AuthorizationDecision, BatchEvaluator, PolicyMatches, PolicySet,
    PolicyText, Principal,
};
use a2a_registry_store::agents;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::policies::preview_inputs::{
    ComparedAgent, ComparedCallers, MAX_SAMPLE, load_compared_agents, load_compared_callers,
};
use crate::policies::preview_jobs::PreviewReporter;
use crate::policies::principal_warnings::unknown_principal_warnings;
use crate::policy_sets::{load_newest_policy_set, with_current_collections};

/// Number of agents that are read at once.
const BATCH: u64 = 500;

/// Compares a set with the newest one: both decide on every listed agent, for every kind of caller that one of them
/// names. Policies that are in both sets are evaluated once. `None` if the reporter says that nobody waits for it any
/// more. The caller holds the permit for previews.
pub(super) async fn make_preview(
    context: &AppContext,
    after: PolicySet,
    mut reporter: PreviewReporter,
) -> Result<Option<PolicyPreview>> {
    let after = with_current_collections(&context.store, after).await?;
    let compiled = &context.policy_sets.compiled;
    let before = load_newest_policy_set(compiled, &context.store, &context.rules()).await?;
    let callers = load_compared_callers(context, &[&before, &after]).await?;
    let comparison = Arc::new(PolicySetComparison::build(
        before,
        after,
        callers,
        context.now(),
    )?);
    let mut totals = PreviewTotals::default();
    let mut cursor = None;
    let mut registrants = HashMap::new();
    loop {
        let rows = agents::agents_page_by_id(&context.store, cursor, BATCH).await?;
        let Some(last) = rows.last() else { break };
        cursor = Some(last.id);
        let agents =
            load_compared_agents(context, rows, &comparison.before, &mut registrants).await?;
        let comparison = Arc::clone(&comparison);
        let comparing = tokio::task::spawn_blocking(move || {
            for agent in &agents {
                comparison.compare_agent(agent, &mut totals);
            }
            totals
        });
        totals = comparing
            .await
            .map_err(|error| AppError::internal(format!("a preview was aborted: {error}")))?;
        if !reporter.record(context, totals.agents).await? {
            return Ok(None);
        }
    }
    let mut preview = comparison.to_preview(totals);
    let unknown = unknown_principal_warnings(context, &comparison.after).await?;
    preview.warnings.extend(unknown);
    Ok(Some(preview))
}

/// The source of the matches of a policy of the new set.
enum PolicyMatchSource {
    /// A policy of the old set with the same text, by its position.
    Old(u16),
    /// A policy of the set of changed policies, by its position.
    Changed(u16),
}

struct PolicySetComparison {
    before: PolicySet,
    after: PolicySet,
    /// The policies of the new set that the old one does not have.
    changed_policies: PolicySet,
    /// The source of the matches of each policy of the new set.
    match_sources: Vec<PolicyMatchSource>,
    /// The positions of the policies of the old set that the new one has too.
    kept_policies: BTreeSet<u16>,
    callers: ComparedCallers,
    /// The policies of the old set, and the changed ones, prepared for many agents.
    batches: BTreeMap<Action, BatchEvaluator>,
    changed_batches: BTreeMap<Action, BatchEvaluator>,
}

fn prepare_batches(set: &PolicySet) -> BTreeMap<Action, BatchEvaluator> {
    let prepared = Action::ALL.into_iter().filter_map(|action| {
        let all: BTreeSet<u16> = set
            .policies_for_action(action)
            .map(|(index, _)| index)
            .collect();
        Some((action, set.batch_evaluator(action, &all)?))
    });
    prepared.collect()
}

/// The policies of a set that match an agent.
fn match_in_batch(
    batches: &BTreeMap<Action, BatchEvaluator>,
    action: Action,
    set: &PolicySet,
    attributes: &AgentAttributes,
) -> PolicyMatches {
    match batches.get(&action) {
        Some(batch) => batch.evaluate(attributes),
        None => set.match_agent(action, attributes),
    }
}

/// What decides about an agent: the policies that match it under both sets, without the waived ones of each.
type DecisionInputs = (Action, PolicyMatches, PolicyMatches, BTreeSet<u16>);

/// The decisions on one agent for each kind of caller: before and after, with the determining policies.
type CallerDecisions = Arc<Vec<(bool, AuthorizationDecision)>>;

/// Maximum number of decisions that are shared by agents with the same matching policies.
const MAX_SHARED_DECISIONS: usize = 1_000;

#[derive(Default)]
struct PreviewTotals {
    agents: u64,
    /// Whether any agent is listed.
    any_listed: bool,
    /// Whether the new set leaves any agent visible to anyone.
    any_found: bool,
    changes: BTreeMap<(Action, usize), AccessChange>,
    /// By the caller: an agent that it loses and that anonymous callers keep.
    better_when_signed_out: BTreeSet<usize>,
    /// Decisions by what decides them.
    decided: HashMap<DecisionInputs, CallerDecisions>,
}

impl PolicySetComparison {
    fn build(
        before: PolicySet,
        after: PolicySet,
        callers: ComparedCallers,
        now: Timestamp,
    ) -> Result<Self> {
        let mut changed_texts = Vec::new();
        let mut match_sources = Vec::new();
        for policy in after.policies() {
            let is_same = |(_, old): &(u16, &a2a_registry_policy::Policy)| {
                // A policy with dates may be off in one of the sets.
                old.id == policy.id && old.text == policy.text && old.mode == policy.mode
            };
            let old = (0..).zip(before.policies()).find(is_same);
            match_sources.push(match old {
                Some((index, _)) => PolicyMatchSource::Old(index),
                None => {
                    changed_texts.push(PolicyText {
                        id: policy.id.clone(),
                        text: policy.text.clone(),
                    });
                    PolicyMatchSource::Changed(
                        u16::try_from(changed_texts.len() - 1).unwrap_or(u16::MAX),
                    )
                }
            });
        }
        let changed_policies = PolicySet::compile_with_defaults(0, &changed_texts, &[], now)
            .map_err(|_| AppError::internal("policies that were accepted are not".to_owned()))?
            .with_collections_of(&after);
        let kept_policies = match_sources.iter().filter_map(|source| match source {
            PolicyMatchSource::Old(index) => Some(*index),
            PolicyMatchSource::Changed(_) => None,
        });
        Ok(Self {
            kept_policies: kept_policies.collect(),
            batches: prepare_batches(&before),
            changed_batches: prepare_batches(&changed_policies),
            before,
            after,
            changed_policies,
            match_sources,
            callers,
        })
    }

    /// The matches of an agent under the new set, from those under the old one.
    fn matches_under_new_set(
        &self,
        action: Action,
        attributes: &AgentAttributes,
        old: &PolicyMatches,
    ) -> PolicyMatches {
        let batches = &self.changed_batches;
        let changed_matches = match_in_batch(batches, action, &self.changed_policies, attributes);
        let mut matches = PolicyMatches::default();
        for (index, origin) in (0..).zip(&self.match_sources) {
            let (from, at) = match origin {
                PolicyMatchSource::Old(at) => (old, at),
                PolicyMatchSource::Changed(at) => (&changed_matches, at),
            };
            if from.matching.contains(at) {
                matches.matching.insert(index);
            }
            if from.failed.contains(at) {
                matches.failed.insert(index);
            }
        }
        matches
    }

    /// Whether an agent is decided in the same way by both sets, because no policy that differs matches it.
    fn has_same_matches(&self, old: &PolicyMatches, new: &PolicyMatches) -> bool {
        let is_kept_here = |index: &u16| {
            let source = self.match_sources.get(usize::from(*index));
            matches!(source, Some(PolicyMatchSource::Old(_)))
        };
        let mut before = old.matching.iter().chain(&old.failed);
        let mut after = new.matching.iter().chain(&new.failed);
        before.all(|index| self.kept_policies.contains(index)) && after.all(is_kept_here)
    }

    /// The decisions of both sets for each kind of caller.
    fn decide_for_callers(
        &self,
        (action, old, new, waived): &DecisionInputs,
        waived_after: &BTreeSet<u16>,
    ) -> CallerDecisions {
        let callers = self.callers.named.iter();
        let decisions = callers.map(|caller| {
            let principal = &caller.principal;
            let before = self.before.decide(*action, principal, old, waived);
            let after = self.after.decide(*action, principal, new, waived_after);
            (before.allowed, after)
        });
        Arc::new(decisions.collect())
    }

    fn compare_agent(&self, agent: &ComparedAgent, totals: &mut PreviewTotals) {
        totals.agents += 1;
        let ids: Vec<&str> = agent
            .waived_forbids
            .iter()
            .filter_map(|index| self.before.policies().get(usize::from(*index)))
            .map(|policy| policy.id.as_str())
            .collect();
        let waived_after = self.after.forbid_indices(&ids);
        for action in [Action::Discover, Action::Invoke, Action::Admit] {
            let old = match_in_batch(&self.batches, action, &self.before, &agent.attributes);
            let new = self.matches_under_new_set(action, &agent.attributes, &old);
            let decisions = |principal: &Principal| {
                let before = self
                    .before
                    .decide(action, principal, &old, &agent.waived_forbids);
                let after = self.after.decide(action, principal, &new, &waived_after);
                (before, after)
            };
            if action == Action::Admit {
                let (before, after) = decisions(&agent.registrant);
                // Approved content stays approved unless a policy forbids it. Pending content is approved if a policy
                // permits it.
                let stays_admitted = |decision: &AuthorizationDecision| match agent.is_approved {
                    true => decision.allowed || decision.policies.is_empty(),
                    false => decision.allowed,
                };
                let (old, new) = (stays_admitted(&before), stays_admitted(&after));
                totals.record_change(
                    (action, usize::MAX),
                    "registrant",
                    agent,
                    (old, new),
                    &after.policies,
                    MAX_SAMPLE,
                );
                continue;
            }
            if action == Action::Discover {
                totals.any_listed |= agent.is_listed;
                totals.any_found = totals.any_found
                    || agent.is_found_by_any(&self.after, &new, &waived_after, &self.callers);
            }
            if !agent.is_listed || self.has_same_matches(&old, &new) {
                continue;
            }
            let inputs = (action, old, new, agent.waived_forbids.clone());
            let decided = match totals.decided.get(&inputs) {
                Some(decided) => Arc::clone(decided),
                None => {
                    let decided = self.decide_for_callers(&inputs, &waived_after);
                    if totals.decided.len() < MAX_SHARED_DECISIONS {
                        totals.decided.insert(inputs, Arc::clone(&decided));
                    }
                    decided
                }
            };
            self.record_decisions(action, agent, &decided, totals);
        }
    }

    fn record_decisions(
        &self,
        action: Action,
        agent: &ComparedAgent,
        decided: &[(bool, AuthorizationDecision)],
        totals: &mut PreviewTotals,
    ) {
        let mut anonymous_keeps = false;
        for (index, (caller, (before, after))) in self.callers.named.iter().zip(decided).enumerate()
        {
            if !agent.is_visible_without_policies(&caller.principal) {
                continue;
            }
            if index == 0 {
                anonymous_keeps = after.allowed;
            }
            if *before && !after.allowed && anonymous_keeps && index > 0 {
                totals.better_when_signed_out.insert(index);
            }
            let change = (*before, after.allowed);
            totals.record_change(
                (action, index),
                &caller.name,
                agent,
                change,
                &after.policies,
                self.callers.sample_size(),
            );
        }
    }

    fn to_preview(&self, totals: PreviewTotals) -> PolicyPreview {
        let mut warnings: Vec<String> = Vec::new();
        for action in [Action::Discover, Action::Invoke] {
            if !self.after.may_permit(action) {
                warnings.push(format!(
                    "No policy permits `{}`, so it is denied to everyone.",
                    action.as_str()
                ));
            }
        }
        let hides_every_agent = totals.any_listed && !totals.any_found;
        if hides_every_agent {
            warnings.push(
                "Every agent would be hidden from everyone but its owner, curators, auditors and admins, who would \
                 see no difference."
                    .to_owned(),
            );
        }
        for index in &totals.better_when_signed_out {
            if let Some(name) = self.callers.named.get(*index).map(|caller| &caller.name) {
                warnings.push(format!(
                    "{name} would lose agents that they find when signed out: a forbid for a group or account does not \
                     apply to callers without a token."
                ));
            }
        }
        PolicyPreview {
            number: self.before.number(),
            policies: policy_changes(&self.before, &self.after),
            agents: totals.agents,
            changes: totals.changes.into_values().collect(),
            warnings,
            permits_nothing: !self.after.may_permit(Action::Discover),
            hides_every_agent,
            token: String::new(),
        }
    }
}

impl PreviewTotals {
    fn record_change(
        &mut self,
        (action, caller_index): (Action, usize),
        caller: &str,
        agent: &ComparedAgent,
        (before, after): (bool, bool),
        policies: &[String],
        sample_size: usize,
    ) {
        if before == after {
            return;
        }
        let change = self
            .changes
            .entry((action, caller_index))
            .or_insert_with(|| AccessChange {
                action: action.as_str().to_owned(),
                caller: caller.to_owned(),
                gained: 0,
                gained_sample: Vec::new(),
                lost: 0,
                lost_sample: Vec::new(),
            });
        let (count, sample) = match after {
            true => (&mut change.gained, &mut change.gained_sample),
            false => (&mut change.lost, &mut change.lost_sample),
        };
        *count += 1;
        if sample.len() < sample_size {
            sample.push(PreviewedAgent {
                id: agent.id,
                name: agent.name.clone(),
                policies: policies.to_vec(),
            });
        }
    }
}

/// The policies that differ between two sets, without the shipped policies.
fn policy_changes(before: &PolicySet, after: &PolicySet) -> Vec<PolicyChange> {
    let custom_texts = |set: &PolicySet| -> BTreeMap<String, String> {
        let policies = set.policies().iter().filter(|policy| !policy.is_built_in);
        policies
            .map(|policy| (policy.id.clone(), policy.text.clone()))
            .collect()
    };
    let (old, new) = (custom_texts(before), custom_texts(after));
    let ids: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    ids.into_iter()
        .filter_map(|id| {
            let change = match (old.get(id), new.get(id)) {
                (None, _) => "add",
                (_, None) => "remove",
                (old, new) if old != new => "change",
                _ => return None,
            };
            Some(PolicyChange {
                id: id.clone(),
                what: change.to_owned(),
            })
        })
        .collect()
}
