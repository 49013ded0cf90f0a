//! Changed admission rules at a start: agents that they may forbid are hidden before this process serves requests, and
//! everything is decided afterwards in the background. A reload hides and decides likewise.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_domain::admission_rules::{DomainPattern, DomainPatternSet, Rule};
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_policy::{Action, AgentAttributes, PolicyMode, PolicySet, Principal};
use a2a_registry_store::entity::review;
use a2a_registry_store::reviews::{self, ReviewFilter};
use a2a_registry_store::rule_changes::{
    ApprovedAgent, VersionAdmissionFacts, agents_approved_by_rule, agents_with_hold,
    agents_without_hold, verified_domain_ids, version_admission_facts,
};
use a2a_registry_store::{Executor, WriteTransaction};
use uuid::Uuid;

use crate::admission::decision::redecide_pending_version;
use crate::admission::policy_subject::change_class_name;
use crate::admission::rules_lease::register_process_rules;
use crate::commit::admission_policies::load_admission_policies;
use crate::commit::agent_state::load_agent_state;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::POLICY_ACTOR;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind};

/// Reviews per page; the changes of a page are one transaction.
const REVIEWS_PER_PAGE: u64 = 500;
/// Maximum number of retries to hide content that the rules may forbid, after a deadlock with a write of another
/// process.
const MAX_HIDE_RETRIES: u32 = 5;
/// The policy attribute for a domain on `allow_domains`.
const ALLOW_LISTED_FACT: &str = "allow_listed";
/// The reason of the hold on agents that are not decided yet.
const UNDECIDED_REASON: &str =
    "the admission rules have changed, and have not been applied to this agent yet";

/// Hides the agents that the rules of this process may forbid. Deadlocks are retried: another process writes many of
/// the same rows, and PostgreSQL has aborted one of the two writes.
pub async fn hide_forbidden_agents_with_retries(
    context: &AppContext,
) -> Result<Vec<Uuid>, AppError> {
    let mut retries_left = MAX_HIDE_RETRIES;
    loop {
        match hide_forbidden_agents(context).await {
            Err(error) if error.kind == ErrorKind::Conflict && retries_left > 0 => {
                retries_left -= 1
            }
            hidden => return hidden,
        }
    }
}

/// Hides the agents that the rules of this process may forbid and that no process has decided by them: they get the
/// hold `rules_changed` until they are decided. This takes a few statements, however many agents there are. Returns
/// every agent that waits for a decision; the index may still have an older document of it.
async fn hide_forbidden_agents(context: &AppContext) -> Result<Vec<Uuid>, AppError> {
    let write = context.store.begin_write().await?;
    // This comes first: from here on no process decides by other rules what is read below.
    let stored_run = register_process_rules(context, &write).await?;
    let mut forbidden = agents_to_deny(context, &write).await?;
    forbidden.extend(agents_losing_approval(context, &write).await?);
    forbidden.extend(allow_list_affected_agents(context, &write, &stored_run.allow_lists).await?);
    let forbidden: Vec<Uuid> = forbidden.into_iter().collect();
    let now = context.now().0;
    write
        .hold_agents(
            &forbidden,
            Hold::RulesChanged,
            POLICY_ACTOR,
            UNDECIDED_REASON,
            now,
        )
        .await?;
    let undecided = agents_with_hold(&write, Hold::RulesChanged).await?;
    write.commit().await?;
    if !forbidden.is_empty() {
        let agents = forbidden.len();
        tracing::info!(
            agents,
            "agents are on hold until the changed rules are applied to them"
        );
    }
    Ok(undecided.into_iter().map(|(id, _)| id).collect())
}

/// The agents of domains on `deny_domains` that are not on the hold `denied`.
pub async fn agents_to_deny(
    context: &AppContext,
    db: &impl Executor,
) -> Result<BTreeSet<Uuid>, AppError> {
    if context.rules().deny_domains.is_empty() {
        return Ok(BTreeSet::new());
    }
    let denied = DomainPatternSet::new(&context.rules().deny_domains);
    let free = agents_without_hold(db, Hold::Denied).await?;
    let denied = free.into_iter().filter(|(_, name)| denied.matches(name));
    Ok(denied.map(|(id, _)| id).collect())
}

/// The agents on the hold `denied` whose domain is no longer on `deny_domains`.
pub async fn agents_to_release(
    context: &AppContext,
    db: &impl Executor,
) -> Result<BTreeSet<Uuid>, AppError> {
    let denied = DomainPatternSet::new(&context.rules().deny_domains);
    let denied_agents = agents_with_hold(db, Hold::Denied).await?;
    let free = denied_agents
        .into_iter()
        .filter(|(_, name)| !denied.matches(name));
    Ok(free.map(|(id, _)| id).collect())
}

/// The agents whose domain is on `allow_domains` but not on one of these lists, or the reverse, if a custom policy
/// uses that attribute: the results of policies may depend on that list, in the index too.
async fn allow_list_affected_agents(
    context: &AppContext,
    write: &WriteTransaction,
    allow_lists: &[Vec<DomainPattern>],
) -> Result<BTreeSet<Uuid>, AppError> {
    let current_list = &context.rules().allow_domains;
    let others = allow_lists.iter().filter(|list| *list != current_list);
    let other_lists: Vec<DomainPatternSet> =
        others.map(|list| DomainPatternSet::new(list)).collect();
    if other_lists.is_empty() {
        return Ok(BTreeSet::new());
    }
    let set = load_admission_policies(context, write).await?;
    let mut written = set.policies().iter().filter(|policy| !policy.is_built_in);
    if !written
        .any(|policy| policy.mode != PolicyMode::Off && policy.text.contains(ALLOW_LISTED_FACT))
    {
        return Ok(BTreeSet::new());
    }
    let now = DomainPatternSet::new(current_list);
    let is_changed = |name: &str| {
        let is_allowed = now.matches(name);
        let mut others = other_lists.iter();
        others.any(|other| other.matches(name) != is_allowed)
    };
    let agents = agents_without_hold(write, Hold::RulesChanged).await?;
    let other = agents.into_iter().filter(|(_, name)| is_changed(name));
    Ok(other.map(|(id, _)| id).collect())
}

/// The agents approved only by `--approve-all`, if the option is no longer set.
pub async fn agents_approved_by_approve_all(
    context: &AppContext,
    db: &impl Executor,
) -> Result<Vec<ApprovedAgent>, AppError> {
    match context.rules().approve_all {
        true => Ok(Vec::new()),
        false => Ok(agents_approved_by_rule(db, Rule::ApproveAll).await?),
    }
}

/// The agents among these that no other rule is certain to approve again.
async fn agents_losing_approval(
    context: &AppContext,
    write: &WriteTransaction,
) -> Result<impl Iterator<Item = Uuid>, AppError> {
    let approved = agents_approved_by_approve_all(context, write).await?;
    let stay = agents_keeping_approval(context, write, &approved).await?;
    let leave = approved.into_iter().map(|agent| agent.id);
    Ok(leave.filter(move |id| !stay.contains(id)))
}

/// The agents among these that the built-in policies are certain to approve again, and that are served meanwhile.
async fn agents_keeping_approval(
    context: &AppContext,
    write: &WriteTransaction,
    agents: &[ApprovedAgent],
) -> Result<BTreeSet<Uuid>, AppError> {
    let set = load_admission_policies(context, write).await?;
    // Custom policies need whole cards, which would take long to read.
    if agents.is_empty() || set.has_active_custom_policy(Action::Admit) {
        return Ok(BTreeSet::new());
    }
    let verified = verified_domain_ids(write).await?;
    let allowed = DomainPatternSet::new(&context.rules().allow_domains);
    let mut trust_by_version: HashMap<Uuid, (Uuid, DomainTrust)> = HashMap::new();
    for agent in agents {
        let trust = DomainTrust {
            verified: verified.contains(&agent.domain_id),
            allow_listed: allowed.matches(&agent.domain),
        };
        // If another card than the served one is pending, that one is decided.
        let served = agent.approved_version;
        let newest = agent
            .newest_version
            .filter(|newest| served == Some(*newest));
        if let (Some(version), true) = (newest, trust.verified || trust.allow_listed) {
            trust_by_version.insert(version, (agent.id, trust));
        }
    }
    let versions: Vec<Uuid> = trust_by_version.keys().copied().collect();
    let mut still_approved = BTreeSet::new();
    for facts in version_admission_facts(write, &versions).await? {
        if let Some((agent, trust)) = trust_by_version.get(&facts.id)
            && admits_as_first_card(&set, *trust, &facts)
        {
            still_approved.insert(*agent);
        }
    }
    Ok(still_approved)
}

/// Reasons for the built-in policies to trust a domain.
#[derive(Debug, Clone, Copy)]
struct DomainTrust {
    verified: bool,
    allow_listed: bool,
}

/// Whether the built-in policies admit a version as a first card.
fn admits_as_first_card(
    set: &PolicySet,
    trust: DomainTrust,
    version: &VersionAdmissionFacts,
) -> bool {
    if version.signature.could_be(SignatureState::Invalid) {
        return false;
    }
    let level = version.standing.known_value();
    let facts = AgentAttributes {
        verified: trust.verified,
        allow_listed: trust.allow_listed,
        covered: level.is_some_and(|level| level.is_admitted()),
        has_error: version.has_error,
        change: change_class_name(None).to_owned(),
        ..AgentAttributes::default()
    };
    let matches = set.match_agent(Action::Admit, &facts);
    let (nobody, none) = (Principal::default(), BTreeSet::new());
    set.decide(Action::Admit, &nobody, &matches, &none).allowed
}

pub fn open_admission_review_filter() -> ReviewFilter {
    ReviewFilter {
        state: Some(ReviewState::Open),
        kind: Some(ReviewKind::Admission),
        ..ReviewFilter::default()
    }
}

/// Decides every agent with an open review again by the changed policies. A failure does not stop the others.
///
/// # Errors
/// The failure of the database as a whole; else the first failure, after the other reviews.
pub async fn redecide_open_reviews(context: &AppContext) -> Result<(), AppError> {
    let open = open_admission_review_filter();
    let (mut after, mut failed) = (None, Ok(()));
    loop {
        let page = reviews::review_page(&context.store, &open, after, REVIEWS_PER_PAGE).await?;
        let Some(last) = page.last() else {
            return failed;
        };
        after = Some(last.id);
        match redecide_reviews(context, &page).await {
            Err(error) if error.is_database_failure() => return Err(error),
            Err(_) => {}
            Ok(()) => continue,
        }
        for review in &page {
            let decided = redecide_reviews(context, std::slice::from_ref(review)).await;
            if let Err(error) = &decided {
                let text = error.log_message();
                tracing::error!(error = text, review = %review.id, "the rules could not be applied to a review");
            }
            failed = failed.and(decided);
        }
    }
}

/// Decides the agents of these reviews again, in one transaction.
async fn redecide_reviews(
    context: &AppContext,
    open_reviews: &[review::Model],
) -> Result<(), AppError> {
    let write = context.store.begin_write().await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    redecide_reviewed_agents(context, &write, &mut change_set, open_reviews).await?;
    commit_changes(context, write, change_set).await
}

pub async fn redecide_reviewed_agents(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    open_reviews: &[review::Model],
) -> Result<(), AppError> {
    for review in open_reviews {
        let mut state = load_agent_state(write, review.agent_id).await?;
        redecide_pending_version(context, write, change_set, &mut state, POLICY_ACTOR).await?;
    }
    Ok(())
}
