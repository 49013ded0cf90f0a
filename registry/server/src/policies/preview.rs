//! What a set of policies would change, before it is put in force.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use a2a_registry_api::{AccessChange, NewPolicies, PolicyChange, PolicyPreview, PreviewedAgent};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{
    ANONYMOUS, Action, AgentFacts, Effect, Matches, Mode, PolicySet, PolicyText, Principal,
    PrincipalScope, Verdict,
};
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::agents;
use a2a_registry_store::entity::agent;
use uuid::Uuid;

use crate::admission::policies::registrant;
use crate::agents::policy_facts::{facts, waived};
use crate::agents::records::records;
use crate::audience::named_by_id;
use crate::caller::{Caller, INTERNAL, PUBLIC, group_label};
use crate::commit::approver::check_reason;
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::policies::sets::{read_set, text_of};
use crate::policy_sets::{asking_about_present_collections, newest_set};
use crate::visibility::shown_to;

/// Agents that are read at once.
const PAGE: u64 = 500;
/// Agents of a sample.
const SAMPLE: usize = 20;
/// Kinds of callers that are compared.
const MAX_CALLERS: usize = 100;

/// Compares policies with the newest set: every listed agent is decided about under both, for every kind of caller that one
/// of them names. Policies that both have are evaluated once.
///
/// # Errors
/// `Forbidden` without [`Permission::Administer`]; `Invalid` with each fault of the policies; `Unavailable` while another
/// preview is under way in this process.
pub async fn policies_preview(
    context: &Context,
    caller: &Caller,
    new: &NewPolicies,
) -> Result<PolicyPreview, AppError> {
    caller.demand(Permission::Administer)?;
    check_reason(&new.reason)?;
    let texts: Vec<PolicyText> = new.policies.iter().map(text_of).collect();
    let after = read_set(context, &texts).await?;
    let after = asking_about_present_collections(&context.store, after).await?;
    let _alone = context.policies.previewing.try_acquire().map_err(|_| {
        AppError::new(
            ErrorKind::Unavailable,
            "Another preview is under way; try again when it is done.",
        )
    })?;
    let before = newest_set(&context.store, &context.rules).await?;
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
    Ok(comparison.told(found))
}

/// These agents as they are compared. `registrants` are accounts that are known already.
async fn previewed(
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
struct Previewed {
    id: Uuid,
    name: String,
    facts: AgentFacts,
    waived: BTreeSet<u16>,
    is_listed: bool,
    is_approved: bool,
    /// For whom it is admitted.
    registrant: Principal,
    is_public: bool,
    is_seen_signed_in: bool,
    /// The groups to whose members it is restricted, as policies name them.
    shown_to: BTreeSet<String>,
}

impl Previewed {
    /// Whether a caller sees it, whatever policies say.
    fn is_seen_by(&self, principal: &Principal) -> bool {
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
}

/// Where the matches of a policy of the new set come from.
enum Origin {
    /// A policy of the old set with the same text, by its place.
    Old(u16),
    /// A policy of the set of those that differ, by its place.
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

/// The kinds of callers that are compared.
struct Callers {
    named: Vec<(String, Principal)>,
    /// Further ones that policies name.
    left_out: usize,
}

#[derive(Default)]
struct Found {
    agents: u64,
    changes: BTreeMap<(Action, usize), AccessChange>,
    /// By the caller: an agent that it loses and that anonymous callers keep.
    better_signed_out: BTreeSet<usize>,
}

impl Comparison {
    fn of(before: PolicySet, after: PolicySet, callers: Callers) -> Result<Self, AppError> {
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

    /// What matches an agent under the new set, from what matches under the old one.
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
                // What is approved stays so unless a policy forbids it; what waits is approved where one permits it.
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
            let mut anonymous_keeps = false;
            for (place, (name, principal)) in self.callers.named.iter().enumerate() {
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
            let mut about = self.after.about(action);
            let permits = about
                .any(|(_, policy)| policy.effect == Effect::Permit && policy.mode == Mode::Enforce);
            if !permits {
                warnings.push(format!(
                    "No policy permits `{}`, so it is denied to everybody.",
                    action.as_str()
                ));
            }
        }
        for place in &found.better_signed_out {
            if let Some((name, _)) = self.callers.named.get(*place) {
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

/// Callers without a token, accounts that no policy names, and everybody whom one names; accounts with the groups that they
/// are in.
async fn callers(context: &Context, sets: &[&PolicySet]) -> Result<Callers, AppError> {
    let mut named = BTreeSet::new();
    for policy in sets.iter().flat_map(|set| set.policies()) {
        named.insert(&policy.scope);
    }
    // No account has this name.
    let nobody = || Some(String::new());
    let mut callers = vec![
        (ANONYMOUS.to_owned(), Principal::default()),
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
        PrincipalScope::Account(name) if name != ANONYMOUS => Some((
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

/// The policies that differ between two sets, shipped ones left out.
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
