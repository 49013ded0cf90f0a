//! What a set of policies would change, before it is put in force.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use a2a_registry_api::{AccessChange, NewPolicies, PolicyChange, PolicyPreview, PreviewedAgent};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{Action, AgentFacts, Matches, PolicySet, PolicyText, Principal, Verdict};
use a2a_registry_store::agents;

use crate::context::Context;
use crate::error::{AppError, Result};
use crate::policies::apply_checks::{preview_permit, preview_token};
use crate::policies::preview_inputs::{Callers, Previewed, callers, previewed};
use crate::policies::sets::{check_texts, read_set, text_of};
use crate::policy_sets::{asking_about_present_collections, newest_set};
use crate::visibility::caller::Caller;

/// Agents that are read at once.
const PAGE: u64 = 500;
const SAMPLE: usize = 20;

/// Compares policies with the newest set: both decide on every listed agent, for every kind of caller that one of them
/// names. Policies that both have are evaluated once.
pub async fn policies_preview(
    context: &Context,
    caller: &Caller,
    new: &NewPolicies,
) -> Result<PolicyPreview> {
    caller.demand(Permission::Administer)?;
    check_texts(new)?;
    let texts: Vec<PolicyText> = new.policies.iter().map(text_of).collect();
    let after = read_set(context, &texts).await?;
    let after = asking_about_present_collections(&context.store, after).await?;
    let _alone = preview_permit(context)?;
    let compiled = &context.policies.compiled;
    let before = newest_set(compiled, &context.store, &context.rules).await?;
    let callers = callers(context, &[&before, &after]).await?;
    let comparison = Arc::new(Comparison::of(before, after, callers)?);
    let mut found = Found::default();
    let mut cursor = None;
    let mut registrants = HashMap::new();
    loop {
        let rows = agents::agents_walk(&context.store, cursor, PAGE).await?;
        let Some(last) = rows.last() else { break };
        cursor = Some(last.id);
        let asked = previewed(context, rows, &comparison.before, &mut registrants).await?;
        let comparison = Arc::clone(&comparison);
        let compared = tokio::task::spawn_blocking(move || {
            for agent in &asked {
                comparison.compare(agent, &mut found);
            }
            found
        });
        found = compared
            .await
            .map_err(|error| AppError::internal(format!("a preview was aborted: {error}")))?;
    }
    let number = comparison.before.number();
    Ok(PolicyPreview {
        token: preview_token(context, caller, number, &texts)?,
        ..comparison.told(found)
    })
}

/// Where the matches of a policy of the new set come from.
enum Origin {
    /// A policy of the old set with the same text, by its position.
    Old(u16),
    /// A policy of the set of those that differ, by its position.
    Changed(u16),
}

struct Comparison {
    before: PolicySet,
    after: PolicySet,
    /// The policies of the new set that the old one does not have.
    changed: PolicySet,
    /// One for each policy of the new set.
    origins: Vec<Origin>,
    callers: Callers,
}

#[derive(Default)]
struct Found {
    agents: u64,
    /// Whether there is a listed agent.
    any_listed: bool,
    /// Whether there is one that the new set leaves visible to anyone.
    any_found: bool,
    changes: BTreeMap<(Action, usize), AccessChange>,
    /// By the caller: an agent that it loses and that anonymous callers keep.
    better_signed_out: BTreeSet<usize>,
}

impl Comparison {
    fn of(before: PolicySet, after: PolicySet, callers: Callers) -> Result<Self> {
        let mut changed = Vec::new();
        let mut origins = Vec::new();
        for policy in after.policies() {
            let same = |(_, old): &(u16, &a2a_registry_policy::Policy)| {
                old.id == policy.id && old.text == policy.text
            };
            let old = (0..).zip(before.policies()).find(same);
            origins.push(match old {
                Some((place, _)) => Origin::Old(place),
                None => {
                    changed.push(PolicyText {
                        id: policy.id.clone(),
                        text: policy.text.clone(),
                    });
                    Origin::Changed(u16::try_from(changed.len() - 1).unwrap_or(u16::MAX))
                }
            });
        }
        let changed = PolicySet::compile(0, &changed)
            .map_err(|_| AppError::internal("policies that were accepted are not".to_owned()))?
            .asking_like(&after);
        Ok(Self {
            before,
            after,
            changed,
            origins,
            callers,
        })
    }

    /// The matches of an agent under the new set, from those under the old one.
    fn matches_after(&self, action: Action, facts: &AgentFacts, old: &Matches) -> Matches {
        let fresh = self.changed.matches(action, facts);
        let mut matches = Matches::default();
        for (place, origin) in (0..).zip(&self.origins) {
            let (from, at) = match origin {
                Origin::Old(at) => (old, at),
                Origin::Changed(at) => (&fresh, at),
            };
            if from.matching.contains(at) {
                matches.matching.insert(place);
            }
            if from.failed.contains(at) {
                matches.failed.insert(place);
            }
        }
        matches
    }

    fn compare(&self, agent: &Previewed, found: &mut Found) {
        found.agents += 1;
        let ids: Vec<&str> = agent
            .waived
            .iter()
            .filter_map(|place| self.before.policies().get(usize::from(*place)))
            .map(|policy| policy.id.as_str())
            .collect();
        let waived_after = self.after.places_of_forbids(&ids);
        for action in [Action::Discover, Action::Invoke, Action::Admit] {
            let old = self.before.matches(action, &agent.facts);
            let new = self.matches_after(action, &agent.facts, &old);
            let verdicts = |principal: &Principal| {
                let before = self.before.verdict(action, principal, &old, &agent.waived);
                let after = self.after.verdict(action, principal, &new, &waived_after);
                (before, after)
            };
            if action == Action::Admit {
                let (before, after) = verdicts(&agent.registrant);
                // Approved content stays approved unless a policy forbids it; waiting content is approved if one
                // permits it.
                let stands = |verdict: &Verdict| match agent.is_approved {
                    true => verdict.allowed || verdict.policies.is_empty(),
                    false => verdict.allowed,
                };
                let (old, new) = (stands(&before), stands(&after));
                found.note(
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
                found.any_listed |= agent.is_listed;
                found.any_found = found.any_found
                    || agent.is_found(&self.after, &new, &waived_after, &self.callers);
            }
            let mut anonymous_keeps = false;
            for (place, caller) in self.callers.named.iter().enumerate() {
                let (name, principal) = (&caller.name, &caller.principal);
                if !agent.is_listed || !agent.is_seen_by(principal) {
                    continue;
                }
                let (before, after) = verdicts(principal);
                if place == 0 {
                    anonymous_keeps = after.allowed;
                }
                if before.allowed && !after.allowed && anonymous_keeps && place > 0 {
                    found.better_signed_out.insert(place);
                }
                let change = (before.allowed, after.allowed);
                found.note(action, place, name, agent, change, after.policies);
            }
        }
    }

    fn told(&self, found: Found) -> PolicyPreview {
        let mut warnings: Vec<String> = Vec::new();
        for action in [Action::Discover, Action::Invoke] {
            if !self.after.permits(action) {
                warnings.push(format!(
                    "No policy permits `{}`, so it is denied to everybody.",
                    action.as_str()
                ));
            }
        }
        let hides_every_agent = found.any_listed && !found.any_found;
        if hides_every_agent {
            warnings.push(
                "Every agent would be hidden from everybody but its owner, curators, auditors and admins, who would see no \
                 difference."
                    .to_owned(),
            );
        }
        for place in &found.better_signed_out {
            if let Some(name) = self.callers.named.get(*place).map(|caller| &caller.name) {
                warnings.push(format!(
                    "{name} would lose agents that they find signed out: a forbid for a group or account does not hold for callers without a token."
                ));
            }
        }
        if self.callers.left_out > 0 {
            warnings.push(format!(
                "{} further groups and accounts that the policies name were not compared.",
                self.callers.left_out
            ));
        }
        PolicyPreview {
            number: self.before.number(),
            policies: differences(&self.before, &self.after),
            agents: found.agents,
            changes: found.changes.into_values().collect(),
            warnings,
            permits_nothing: !self.after.permits(Action::Discover),
            hides_every_agent,
            token: String::new(),
        }
    }
}

impl Found {
    fn note(
        &mut self,
        action: Action,
        place: usize,
        caller: &str,
        agent: &Previewed,
        (before, after): (bool, bool),
        policies: Vec<String>,
    ) {
        if before == after {
            return;
        }
        let change = self
            .changes
            .entry((action, place))
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
        if sample.len() < SAMPLE {
            sample.push(PreviewedAgent {
                id: agent.id,
                name: agent.name.clone(),
                policies,
            });
        }
    }
}

/// The policies that differ between two sets, without shipped ones.
fn differences(before: &PolicySet, after: &PolicySet) -> Vec<PolicyChange> {
    let written = |set: &PolicySet| -> BTreeMap<String, String> {
        let policies = set.policies().iter().filter(|policy| !policy.is_shipped);
        policies
            .map(|policy| (policy.id.clone(), policy.text.clone()))
            .collect()
    };
    let (old, new) = (written(before), written(after));
    let ids: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    ids.into_iter()
        .filter_map(|id| {
            let what = match (old.get(id), new.get(id)) {
                (None, _) => "add",
                (_, None) => "remove",
                (old, new) if old != new => "change",
                _ => return None,
            };
            Some(PolicyChange {
                id: id.clone(),
                what: what.to_owned(),
            })
        })
        .collect()
}
