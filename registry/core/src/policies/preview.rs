//! Previews of a policy set: the changes that it would make if it were put in force.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use a2a_registry_api::{AccessChange, PolicyChange, PolicyPreview, PreviewedAgent};
use a2a_registry_policy::{Action, AuthorizationDecision, PolicyMatches, PolicySet, Principal};
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
/// names. `None` if the reporter says that nobody waits for it any more. The caller holds the permit for previews.
pub(super) async fn make_preview(
    context: &AppContext,
    after: PolicySet,
    mut reporter: PreviewReporter,
) -> Result<Option<PolicyPreview>> {
    let after = with_current_collections(&context.store, after).await?;
    let compiled = &context.policy_sets.compiled;
    let before = load_newest_policy_set(compiled, &context.store, &context.rules()).await?;
    let callers = load_compared_callers(context, &[&before, &after]).await?;
    let comparison = Arc::new(PolicySetComparison::new(before, after, callers));
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

struct PolicySetComparison {
    before: PolicySet,
    after: PolicySet,
    callers: ComparedCallers,
    /// By the action, the policies of the old and of the new set that the other one has too.
    carried: BTreeMap<Action, (BTreeSet<u16>, BTreeSet<u16>)>,
}

/// What decides about an agent: the policies that match it under both sets, without the waived ones of each.
type DecisionInputs = (Action, PolicyMatches, PolicyMatches, BTreeSet<u16>);

/// The decisions that the sets make differently about agents with the same matching policies.
struct DecisionChanges {
    /// Whether the new set allows it to callers without a token.
    is_anonymous_allowed: bool,
    /// By the kind of caller, what the new set decides and the old one does not.
    changed: Vec<(usize, AuthorizationDecision)>,
}

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
    /// Changes by what decides them.
    decided: HashMap<DecisionInputs, Arc<DecisionChanges>>,
}

impl PolicySetComparison {
    fn new(before: PolicySet, after: PolicySet, callers: ComparedCallers) -> Self {
        let carried = Action::ALL.into_iter();
        let carried = carried
            .map(|action| {
                let pairs = after.carried_policies(&before, action).into_iter();
                let both: (BTreeSet<u16>, BTreeSet<u16>) = pairs.unzip();
                (action, both)
            })
            .collect();
        Self {
            before,
            after,
            callers,
            carried,
        }
    }

    /// Whether both sets decide in the same way about an agent, because no policy that differs matches it.
    fn is_decided_alike(&self, action: Action, old: &PolicyMatches, new: &PolicyMatches) -> bool {
        let Some((before, after)) = self.carried.get(&action) else {
            return false;
        };
        let are_carried = |matches: &PolicyMatches, carried: &BTreeSet<u16>| {
            matches.matching.is_subset(carried) && matches.failed.is_subset(carried)
        };
        are_carried(old, before) && are_carried(new, after)
    }

    /// The decisions of the new set that the old one does not make.
    fn decision_changes(
        &self,
        (action, old, new, waived): &DecisionInputs,
        waived_after: &BTreeSet<u16>,
    ) -> DecisionChanges {
        let decide = |principal: &Principal| {
            let before = self.before.decide(*action, principal, old, waived);
            let after = self.after.decide(*action, principal, new, waived_after);
            (before.allowed, after)
        };
        let (_, for_anonymous) = decide(&Principal::default());
        let callers = self.callers.named.iter().enumerate();
        let decisions = callers.map(|(index, caller)| (index, decide(&caller.principal)));
        DecisionChanges {
            is_anonymous_allowed: for_anonymous.allowed,
            changed: decisions
                .filter(|(_, (before, after))| *before != after.allowed)
                .map(|(index, (_, after))| (index, after))
                .collect(),
        }
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
            let old = self.before.match_agent(action, &agent.attributes);
            let new = self.after.match_agent(action, &agent.attributes);
            if action == Action::Discover {
                totals.any_listed |= agent.is_listed;
                totals.any_found = totals.any_found
                    || agent.is_found_by_any(&self.after, &new, &waived_after, &self.callers);
            }
            if action == Action::Admit {
                self.compare_admission(agent, (&old, &new), &waived_after, totals);
                continue;
            }
            if !agent.is_listed || self.is_decided_alike(action, &old, &new) {
                continue;
            }
            let inputs = (action, old, new, agent.waived_forbids.clone());
            let changes = match totals.decided.get(&inputs) {
                Some(changes) => Arc::clone(changes),
                None => {
                    let changes = Arc::new(self.decision_changes(&inputs, &waived_after));
                    if totals.decided.len() < MAX_SHARED_DECISIONS {
                        totals.decided.insert(inputs, Arc::clone(&changes));
                    }
                    changes
                }
            };
            self.record_decisions(action, agent, &changes, totals);
        }
    }

    /// Approved content stays approved unless a policy forbids it. Pending content is approved if a policy permits it.
    fn compare_admission(
        &self,
        agent: &ComparedAgent,
        (old, new): (&PolicyMatches, &PolicyMatches),
        waived_after: &BTreeSet<u16>,
        totals: &mut PreviewTotals,
    ) {
        let (action, who) = (Action::Admit, &agent.registrant);
        let before = self.before.decide(action, who, old, &agent.waived_forbids);
        let after = self.after.decide(action, who, new, waived_after);
        let stays_admitted = |decision: &AuthorizationDecision| {
            decision.allowed || (agent.is_approved && decision.policies.is_empty())
        };
        let is_admitted = stays_admitted(&after);
        if stays_admitted(&before) != is_admitted {
            let place = (action, usize::MAX);
            let policies = (is_admitted, after.policies.as_slice());
            totals.record_change(place, "registrant", agent, policies, MAX_SAMPLE);
        }
    }

    fn record_decisions(
        &self,
        action: Action,
        agent: &ComparedAgent,
        changes: &DecisionChanges,
        totals: &mut PreviewTotals,
    ) {
        let anonymous_keeps = changes.is_anonymous_allowed
            && agent.is_visible_without_policies(&Principal::default());
        for (index, after) in &changes.changed {
            let Some(caller) = self.callers.named.get(*index) else {
                continue;
            };
            if !agent.is_visible_without_policies(&caller.principal) {
                continue;
            }
            if !after.allowed && anonymous_keeps {
                totals.better_when_signed_out.insert(*index);
            }
            totals.record_change(
                (action, *index),
                &caller.name,
                agent,
                (after.allowed, after.policies.as_slice()),
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
        if !self.callers.is_complete {
            warnings.push(
                "There are more accounts, or more combinations of the groups that policies name, than a preview \
                 compares; members of several groups may be affected otherwise than shown."
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
        (is_allowed, policies): (bool, &[String]),
        sample_size: usize,
    ) {
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
        let (count, sample) = match is_allowed {
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
