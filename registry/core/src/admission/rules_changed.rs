//! Changed admission rules at a start: what they may forbid is hidden before this process answers anybody, and everything is
//! decided afterwards, in the background.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_domain::admission_rules::{DomainPattern, PatternSet, Rule};
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_policy::{Action, AgentFacts, Mode, PolicySet, Principal};
use a2a_registry_store::entity::review;
use a2a_registry_store::reviews::{self, ReviewFilter};
use a2a_registry_store::rule_changes::{
    ApprovedAgent, VersionFacts, agents_approved_by, agents_with_hold, agents_without_hold,
    verified_domains, version_facts,
};
use a2a_registry_store::{Handle, Write};
use uuid::Uuid;

use crate::admission::agent_facts::change_word;
use crate::admission::decision::decide_waiting;
use crate::admission::rules_lease::announce;
use crate::commit::admitting::admitting_set;
use crate::commit::approver::POLICY;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::AppError;
use crate::memory::policies::ShippedMatches;

/// Reviews per page, whose changes are one transaction.
const PAGE: u64 = 500;
/// What policies call the fact that a domain is on `allow_domains`.
const ALLOW_LISTED: &str = "allow_listed";
/// The reason of the hold of agents that are not decided yet.
const UNDECIDED: &str = "the admission rules have changed, and it is not decided by them yet";

/// Hides what the rules of this process may forbid and no process has decided on by them: agents get the hold
/// `rules_changed` until they are decided. A few statements, however many there are. Returns every agent that waits for a
/// decision; the index may still have their documents of before.
pub async fn hide_forbidden(context: &Context) -> Result<Vec<Uuid>, AppError> {
    let write = context.store.write().await?;
    // First of all: from here on no process decides by other rules what is read below.
    let kept = announce(context, &write).await?;
    let mut forbidden = agents_to_deny(context, &write).await?;
    forbidden.extend(agents_to_revoke(context, &write).await?);
    forbidden.extend(agents_allowed_otherwise(context, &write, &kept.allow_lists).await?);
    let forbidden: Vec<Uuid> = forbidden.into_iter().collect();
    let now = context.now().0;
    write
        .agents_hold(&forbidden, Hold::RulesChanged, POLICY, UNDECIDED, now)
        .await?;
    let undecided = agents_with_hold(&write, Hold::RulesChanged).await?;
    write.commit().await?;
    if !forbidden.is_empty() {
        let agents = forbidden.len();
        tracing::info!(agents, "hidden until they are decided by the changed rules");
    }
    Ok(undecided.into_iter().map(|(id, _)| id).collect())
}

/// The agents of domains on `deny_domains` that are not on the hold `denied`.
pub async fn agents_to_deny(
    context: &Context,
    on: &impl Handle,
) -> Result<BTreeSet<Uuid>, AppError> {
    if context.rules.deny_domains.is_empty() {
        return Ok(BTreeSet::new());
    }
    let denied = PatternSet::new(&context.rules.deny_domains);
    let free = agents_without_hold(on, Hold::Denied).await?;
    let denied = free.into_iter().filter(|(_, name)| denied.matches(name));
    Ok(denied.map(|(id, _)| id).collect())
}

/// The agents on the hold `denied` whose domain is not on `deny_domains` any more.
pub async fn agents_to_release(
    context: &Context,
    on: &impl Handle,
) -> Result<BTreeSet<Uuid>, AppError> {
    let denied = PatternSet::new(&context.rules.deny_domains);
    let held = agents_with_hold(on, Hold::Denied).await?;
    let free = held.into_iter().filter(|(_, name)| !denied.matches(name));
    Ok(free.map(|(id, _)| id).collect())
}

/// The agents whose domain `allow_domains` lists otherwise than one of these lists, where a policy that somebody has written asks
/// for that: what the policies say of them may be of that list, in the index too.
async fn agents_allowed_otherwise(
    context: &Context,
    write: &Write,
    lists: &[Vec<DomainPattern>],
) -> Result<BTreeSet<Uuid>, AppError> {
    let now = &context.rules.allow_domains;
    let others = lists.iter().filter(|list| *list != now);
    let others: Vec<PatternSet> = others.map(|list| PatternSet::new(list)).collect();
    if others.is_empty() {
        return Ok(BTreeSet::new());
    }
    let set = admitting_set(context, write).await?;
    let mut written = set.policies().iter().filter(|policy| !policy.is_shipped);
    if !written.any(|policy| policy.mode != Mode::Off && policy.text.contains(ALLOW_LISTED)) {
        return Ok(BTreeSet::new());
    }
    let now = PatternSet::new(now);
    let is_other = |name: &str| {
        let is_allowed = now.matches(name);
        let mut others = others.iter();
        others.any(|other| other.matches(name) != is_allowed)
    };
    let agents = agents_without_hold(write, Hold::RulesChanged).await?;
    let other = agents.into_iter().filter(|(_, name)| is_other(name));
    Ok(other.map(|(id, _)| id).collect())
}

/// The agents that `--approve-all` alone has approved, where the option is not set any more.
pub async fn agents_approved_by_option(
    context: &Context,
    on: &impl Handle,
) -> Result<Vec<ApprovedAgent>, AppError> {
    match context.rules.approve_all {
        true => Ok(Vec::new()),
        false => Ok(agents_approved_by(on, Rule::ApproveAll).await?),
    }
}

/// Those of these agents that are certain to be approved by no other rule, or of which only a decision tells.
async fn agents_to_revoke(
    context: &Context,
    write: &Write,
) -> Result<impl Iterator<Item = Uuid>, AppError> {
    let approved = agents_approved_by_option(context, write).await?;
    let stay = approved_otherwise(context, write, &approved).await?;
    let leave = approved.into_iter().map(|agent| agent.id);
    Ok(leave.filter(move |id| !stay.contains(id)))
}

/// Those of these agents that the shipped policies are certain to approve again, which are served meanwhile.
async fn approved_otherwise(
    context: &Context,
    write: &Write,
    approved: &[ApprovedAgent],
) -> Result<BTreeSet<Uuid>, AppError> {
    let set = admitting_set(context, write).await?;
    // What somebody has written asks for whole cards, which would be read for a long time.
    if approved.is_empty() || set.has_written(Action::Admit) {
        return Ok(BTreeSet::new());
    }
    let verified = verified_domains(write).await?;
    let allowed = PatternSet::new(&context.rules.allow_domains);
    let mut trusted: HashMap<Uuid, (Uuid, Trusted)> = HashMap::new();
    for agent in approved {
        let trust = Trusted {
            verified: verified.contains(&agent.domain_id),
            allow_listed: allowed.matches(&agent.domain),
        };
        // Another card than the served one may wait, and that one is decided on.
        let served = agent.approved_version;
        let newest = agent
            .newest_version
            .filter(|newest| served == Some(*newest));
        if let (Some(version), true) = (newest, trust.verified || trust.allow_listed) {
            trusted.insert(version, (agent.id, trust));
        }
    }
    let versions: Vec<Uuid> = trusted.keys().copied().collect();
    let known = ShippedMatches::default();
    let mut stay = BTreeSet::new();
    for facts in version_facts(write, &versions).await? {
        if let Some((agent, trust)) = trusted.get(&facts.id)
            && is_admitted(&set, &known, *trust, &facts)
        {
            stay.insert(*agent);
        }
    }
    Ok(stay)
}

/// Why the shipped policies may trust a domain.
#[derive(Debug, Clone, Copy)]
struct Trusted {
    verified: bool,
    allow_listed: bool,
}

/// Whether the shipped policies admit a version as a first card.
fn is_admitted(
    set: &PolicySet,
    known: &ShippedMatches,
    trusted: Trusted,
    version: &VersionFacts,
) -> bool {
    if version.signature.may_be(SignatureState::Invalid) {
        return false;
    }
    let level = version.standing.known();
    let facts = AgentFacts {
        verified: trusted.verified,
        allow_listed: trusted.allow_listed,
        covered: level.is_some_and(|level| level.is_admitted()),
        has_error: version.has_error,
        change: change_word(None).to_owned(),
        ..AgentFacts::default()
    };
    let matches = known.evaluate(set, &facts);
    let (nobody, none) = (Principal::default(), BTreeSet::new());
    set.verdict(Action::Admit, &nobody, &matches, &none).allowed
}

pub fn open_admissions() -> ReviewFilter {
    ReviewFilter {
        state: Some(ReviewState::Open),
        kind: Some(ReviewKind::Admission),
        ..ReviewFilter::default()
    }
}

/// Decides again, by changed policies, on every agent with an open review. One that fails stops none of the others.
///
/// # Errors
/// Where the database fails as a whole; else the first failure of those that failed, after the others.
pub async fn decide_open_reviews(context: &Context) -> Result<(), AppError> {
    let open = open_admissions();
    let (mut after, mut failed) = (None, Ok(()));
    loop {
        let page = reviews::review_page(&context.store, &open, after, PAGE).await?;
        let Some(last) = page.last() else {
            return failed;
        };
        after = Some(last.id);
        match decide_again(context, &page).await {
            Err(error) if error.is_of_database() => return Err(error),
            Err(_) => {}
            Ok(()) => continue,
        }
        for review in &page {
            let decided = decide_again(context, std::slice::from_ref(review)).await;
            if let Err(error) = &decided {
                let text = error.for_log();
                tracing::error!(error = text, review = %review.id, "rules could not act on a review");
            }
            failed = failed.and(decided);
        }
    }
}

/// Decides again on the agents of these reviews, in one transaction.
async fn decide_again(context: &Context, open: &[review::Model]) -> Result<(), AppError> {
    let write = context.store.write().await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    decide_reviewed(context, &write, &mut ledger, open).await?;
    commit_ledger(context, write, ledger).await
}

pub async fn decide_reviewed(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    open: &[review::Model],
) -> Result<(), AppError> {
    for review in open {
        let mut state = state_of(write, review.agent_id).await?;
        decide_waiting(context, write, ledger, &mut state, POLICY).await?;
    }
    Ok(())
}
