//! The details of a review: everything that a decision needs, so that no one decides on an unseen card.

use a2a_card::{AgentCard, auth_labels, security_sentences};
use a2a_registry_api::limits::DEFAULT_SIMILAR_AGENTS;
use a2a_registry_api::{
    BreakGlass, Diff, DomainProofs, Duplicates, EarlierDecision, Hit, HitSkill, MatchingPolicy,
    Review, ReviewDetail,
};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, decision, review, version};
use a2a_registry_store::{
    accounts, agents, approval_terms, decisions, domains, ownership, versions,
};
use uuid::Uuid;

use crate::agents::diff::diff_versions;
use crate::agents::documents::card_interfaces;
use crate::agents::policy_attributes::{agent_attributes, matching_custom_policies};
use crate::agents::records::load_agent_records;
use crate::agents::similar::find_similar_agents;
use crate::agents::views::{
    break_glass_view, load_domain_key_binding, sponsor_name, version_findings,
};
use crate::context::AppContext;
use crate::domains::domain_access::DomainAccess;
use crate::domains::row_views::proof_view;
use crate::error::{AppError, ErrorKind, Result};
use crate::reviews::decisions::decision_blocker;
use crate::reviews::note_views::ReviewNotes;
use crate::signatures::DomainKeyBinding;
use crate::visibility::caller::Caller;

/// Maximum number of earlier decisions that are shown.
const MAX_EARLIER_DECISIONS: u64 = 20;

/// The details of a review whose agent or version no longer exists.
fn detail_without_card(review: Review) -> ReviewDetail {
    ReviewDetail {
        review,
        card_text: None,
        description: None,
        skills: Vec::new(),
        sponsor: None,
        break_glass: None,
        policies: Vec::new(),
        earlier: Vec::new(),
        comments: Vec::new(),
        reports: Vec::new(),
        cannot_decide: Some("The reviewed card is no longer stored.".to_owned()),
        interfaces: Vec::new(),
        auth: Vec::new(),
        security: Vec::new(),
        findings: Vec::new(),
        diff: None,
        domain_proofs: DomainProofs::default(),
        similar: Vec::new(),
        duplicates: None,
    }
}

pub async fn review_detail(
    context: &AppContext,
    caller: &Caller,
    row: &review::Model,
    review: Review,
) -> Result<ReviewDetail> {
    let ids: Vec<Uuid> = row
        .previous_version
        .into_iter()
        .chain([row.version_id])
        .collect();
    let mut version_rows = versions::versions_by_ids(&context.store, &ids).await?;
    let mut take = |id: Uuid| {
        let place = version_rows.iter().position(|version| version.id == id)?;
        Some(version_rows.swap_remove(place))
    };
    let reviewed = take(row.version_id);
    let previous = row.previous_version.and_then(take);
    let agent = agents::agents_by_ids(&context.store, &[row.agent_id]).await?;
    let Some((agent, reviewed)) = agent.into_iter().next().zip(reviewed) else {
        return Ok(detail_without_card(review));
    };
    let binding = load_domain_key_binding(context, agent.domain_id).await?;
    let bytes = versions::intact_body_by_digest(&context.store, &reviewed.digest).await?;
    let newer = (&reviewed, bytes.as_deref());
    let diff = diff_stored_cards(context, &agent, previous.as_ref(), newer, &binding).await?;
    let card: AgentCard = serde_json::from_str(&reviewed.model).map_err(|error| {
        AppError::internal(format!(
            "the stored model of version {} cannot be parsed: {error}",
            reviewed.id
        ))
    })?;
    let (similar, duplicates) = similar_and_duplicates(context, caller, &agent).await?;
    let notes = ReviewNotes::load(context, caller, row).await?;
    let account = caller.account.as_ref();
    Ok(ReviewDetail {
        review,
        description: card.description.clone(),
        skills: card.skills.iter().map(to_hit_skill).collect(),
        sponsor: sponsor_name(context, &agent).await?,
        break_glass: confirmed_break_glass(context, row).await?,
        policies: policies_matching_review(context, caller, &agent, &reviewed, &card).await?,
        earlier: earlier_decisions(context, row, &reviewed).await?,
        comments: notes.comments,
        reports: notes.reports,
        cannot_decide: decision_blocker(context, account, row, &agent).await?,
        card_text: bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        interfaces: card_interfaces(&card),
        auth: auth_labels(&card),
        security: security_sentences(&card),
        findings: version_findings(context, &agent, reviewed)?.findings,
        diff,
        domain_proofs: domain_proofs(context, caller, &agent).await?,
        similar,
        duplicates,
    })
}

/// The break-glass approval that a review confirms.
async fn confirmed_break_glass(
    context: &AppContext,
    row: &review::Model,
) -> Result<Option<BreakGlass>> {
    match approval_terms::break_glass_by_review(&context.store, row.id).await? {
        Some(broken) => Ok(Some(break_glass_view(context, broken).await?)),
        None => Ok(None),
    }
}

/// Computes the diff if both cards are still stored and undamaged. A decision is possible without it.
async fn diff_stored_cards(
    context: &AppContext,
    agent: &agent::Model,
    before: Option<&version::Model>,
    (about, after): (&version::Model, Option<&[u8]>),
    binding: &DomainKeyBinding,
) -> Result<Option<Diff>> {
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(None);
    };
    let bytes = versions::intact_body_by_digest(&context.store, &before.digest).await?;
    Ok(bytes.map(|bytes| diff_versions(context, agent, (before, &bytes), (about, after), binding)))
}

fn to_hit_skill(skill: &a2a_card::Skill) -> HitSkill {
    HitSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
    }
}

/// The policies in force that match the reviewed content once it is served, including those on a dry run.
async fn policies_matching_review(
    context: &AppContext,
    caller: &Caller,
    agent: &agent::Model,
    reviewed: &version::Model,
    card: &AgentCard,
) -> Result<Vec<MatchingPolicy>> {
    // Owners may read their reviews, but not the registry's policies.
    let sees_policies = caller.has_permission(Permission::SeeAll);
    let record = load_agent_records(&context.store, vec![agent.clone()])
        .await?
        .pop();
    let Some(mut record) = record.filter(|_| sees_policies) else {
        return Ok(Vec::new());
    };
    record.version = reviewed.clone();
    record.card = card.clone();
    let (set, facts) = (
        context.policy_sets.enforced_set(),
        agent_attributes(context, &record),
    );
    Ok(matching_custom_policies(&set, &facts)
        .into_iter()
        .map(|(policy, _)| MatchingPolicy {
            id: policy.id.clone(),
            mode: policy.mode.as_str().to_owned(),
            effect: policy.effect.as_str().to_owned(),
        })
        .collect())
}

async fn earlier_decisions(
    context: &AppContext,
    row: &review::Model,
    reviewed: &version::Model,
) -> Result<Vec<EarlierDecision>> {
    let ids = [row.agent_id];
    let rows =
        decisions::decisions_on_agents_since(&context.store, &ids, i64::MIN, MAX_EARLIER_DECISIONS)
            .await?;
    let view = |made: decision::Model| EarlierDecision {
        approved: made.approved,
        same_content: made.content_digest == reviewed.content_digest,
        rule: made.rule.as_str().to_owned(),
        by: made.actor,
        at: Timestamp(made.at),
        reason: made.reason,
    };
    Ok(rows.into_iter().map(view).collect())
}

/// Finds similar agents and duplicates of an agent. They may be missing, because a review can be decided without them.
async fn similar_and_duplicates(
    context: &AppContext,
    caller: &Caller,
    agent: &agent::Model,
) -> Result<(Vec<Hit>, Option<Duplicates>)> {
    match find_similar_agents(context, caller, agent.id, DEFAULT_SIMILAR_AGENTS).await {
        Ok(found) => Ok((found.agents, found.duplicates)),
        Err(error) if error.kind == ErrorKind::Unavailable => Ok((Vec::new(), None)),
        Err(error) => Err(error),
    }
}

async fn domain_proofs(
    context: &AppContext,
    caller: &Caller,
    agent: &agent::Model,
) -> Result<DomainProofs> {
    let ids = [agent.domain_id];
    let Some(row) = domains::domains_by_ids(&context.store, &ids).await?.pop() else {
        return Ok(DomainProofs::default());
    };
    let now = context.now();
    let access = DomainAccess::for_caller(caller, &row, &[], &[], true, now);
    let owner: Vec<Uuid> = row.domain_owner_at(now).into_iter().collect();
    let owner = accounts::accounts_by_ids(&context.store, &owner)
        .await?
        .pop();
    let proofs = domains::valid_proofs_by_domain(&context.store, &ids).await?;
    let keys = ownership::enrolled_keys_by_domain(&context.store, &ids).await?;
    Ok(DomainProofs {
        state: row.state()?.into(),
        owner: owner.map(|account| account.name),
        owner_vouched_until: row
            .vouched_owner_at(now)
            .and(row.vouched_until)
            .map(Timestamp),
        proofs: proofs
            .iter()
            .map(|proof| proof_view(proof, access))
            .collect(),
        enrolled_keys: keys.into_iter().map(|key| key.kid).collect(),
    })
}
