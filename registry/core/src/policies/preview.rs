//! Previews of a policy set: the changes that it would make if it were put in force.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use a2a_registry_api::{AccessChange, NewPolicies, PolicyChange, PolicyPreview, PreviewedAgent};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{
    Action, AgentAttributes, AuthorizationDecision, PolicyMatches, PolicySet, PolicyText, Principal,
};
use a2a_registry_store::agents;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::policies::preview_inputs::{
    ComparedAgent, ComparedCallers, load_compared_agents, load_compared_callers,
};
use crate::policies::principal_warnings::unknown_principal_warnings;
use crate::policies::set_checks::{acquire_preview_permit, sign_preview_token};
use crate::policies::sets::{check_new_policies_fields, compile_requested_set, to_policy_text};
use crate::policy_sets::{load_newest_policy_set, with_current_collections};
use crate::visibility::caller::Caller;

/// Number of agents that are read at once.
const BATCH: u64 = 500;
const MAX_SAMPLE: usize = 20;

/// Compares policies with the newest set: both decide on every listed agent, for every kind of caller that one of them
/// names. Policies that are in both sets are evaluated once.
pub async fn policies_preview(
    context: &AppContext,
    caller: &Caller,
    new: &NewPolicies,
) -> Result<PolicyPreview> {
    caller.require_permission(Permission::Administer)?;
    check_new_policies_fields(new)?;
    let texts: Vec<PolicyText> = new.policies.iter().map(to_policy_text).collect();
    let after = compile_requested_set(context, &texts, context.now()).await?;
    let after = with_current_collections(&context.store, after).await?;
    let _permit = acquire_preview_permit(context)?;
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
    }
    let number = comparison.before.number();
    let mut preview = comparison.to_preview(totals);
    let unknown = unknown_principal_warnings(context, &comparison.after).await?;
    preview.warnings.extend(unknown);
    preview.token = sign_preview_token(context, caller, number, &texts)?;
    Ok(preview)
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
    callers: ComparedCallers,
}

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
        Ok(Self {
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
        let changed_matches = self.changed_policies.match_agent(action, attributes);
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
                    action,
                    usize::MAX,
                    "registrant",
                    agent,
                    (old, new),
                    after.policies,
                );
                continue;
            }
            if action == Action::Discover {
                totals.any_listed |= agent.is_listed;
                totals.any_found = totals.any_found
                    || agent.is_found_by_any(&self.after, &new, &waived_after, &self.callers);
            }
            let mut anonymous_keeps = false;
            for (index, caller) in self.callers.named.iter().enumerate() {
                let (name, principal) = (&caller.name, &caller.principal);
                if !agent.is_listed || !agent.is_visible_without_policies(principal) {
                    continue;
                }
                let (before, after) = decisions(principal);
                if index == 0 {
                    anonymous_keeps = after.allowed;
                }
                if before.allowed && !after.allowed && anonymous_keeps && index > 0 {
                    totals.better_when_signed_out.insert(index);
                }
                let change = (before.allowed, after.allowed);
                totals.record_change(action, index, name, agent, change, after.policies);
            }
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
        if self.callers.omitted > 0 {
            warnings.push(format!(
                "{} more groups and accounts that the policies name were not compared.",
                self.callers.omitted
            ));
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
        action: Action,
        caller_index: usize,
        caller: &str,
        agent: &ComparedAgent,
        (before, after): (bool, bool),
        policies: Vec<String>,
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
        if sample.len() < MAX_SAMPLE {
            sample.push(PreviewedAgent {
                id: agent.id,
                name: agent.name.clone(),
                policies,
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
