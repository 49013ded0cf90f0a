//! A review with everything that a decision needs, so that no one decides on an unseen card.

use a2a_card::{AgentCard, auth_labels, security_sentences};
use a2a_registry_api::limits::DEFAULT_SIMILAR;
use a2a_registry_api::{
    BreakGlass, Diff, DomainProofs, Duplicates, EarlierDecision, Hit, HitSkill, MatchingPolicy,
    Review, ReviewDetail,
};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, decision, review, version};
use a2a_registry_store::{accounts, agents, decisions, domains, ownership, terms, versions};
use uuid::Uuid;

use crate::agents::diff::diff_of;
use crate::agents::documents::interfaces;
use crate::agents::policy_facts::{facts, matching};
use crate::agents::records::records;
use crate::agents::similar::similar_to;
use crate::agents::views::{break_glass_view, findings_of, key_binding, sponsor_of};
use crate::context::Context;
use crate::domains::domain_access::DomainAccess;
use crate::domains::row_views::proof_view;
use crate::error::{AppError, ErrorKind, Result};
use crate::reviews::deciding::hindrance;
use crate::reviews::written::Notes;
use crate::signatures::KeyBinding;
use crate::visibility::caller::Caller;

/// Earlier decisions that are shown.
const MAX_EARLIER: u64 = 20;

/// A review whose agent or version no longer exists.
fn without_card(review: Review) -> ReviewDetail {
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
    context: &Context,
    caller: &Caller,
    row: &review::Model,
    review: Review,
) -> Result<ReviewDetail> {
    let ids: Vec<Uuid> = row
        .previous_version
        .into_iter()
        .chain([row.version_id])
        .collect();
    let mut found = versions::versions_by_ids(&context.store, &ids).await?;
    let mut take = |id: Uuid| {
        let place = found.iter().position(|version| version.id == id)?;
        Some(found.swap_remove(place))
    };
    let about = take(row.version_id);
    let before = row.previous_version.and_then(take);
    let agent = agents::agents_by_ids(&context.store, &[row.agent_id]).await?;
    let Some((agent, about)) = agent.into_iter().next().zip(about) else {
        return Ok(without_card(review));
    };
    let binding = key_binding(context, agent.domain_id).await?;
    let bytes = versions::intact_body_by_digest(&context.store, &about.digest).await?;
    let newer = (&about, bytes.as_deref());
    let diff = diff_stored(context, &agent, before.as_ref(), newer, &binding).await?;
    let card: AgentCard = serde_json::from_str(&about.model).map_err(|error| {
        AppError::internal(format!(
            "the stored model of version {} cannot be parsed: {error}",
            about.id
        ))
    })?;
    let (similar, duplicates) = others_like(context, caller, &agent).await?;
    let notes = Notes::load(context, caller, row).await?;
    let account = caller.account.as_ref();
    Ok(ReviewDetail {
        review,
        description: card.description.clone(),
        skills: card.skills.iter().map(skill).collect(),
        sponsor: sponsor_of(context, &agent).await?,
        break_glass: confirmed_by(context, row).await?,
        policies: matching_policies(context, caller, &agent, &about, &card).await?,
        earlier: earlier(context, row, &about).await?,
        comments: notes.comments,
        reports: notes.reports,
        cannot_decide: hindrance(context, account, row, &agent).await?,
        card_text: bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        interfaces: interfaces(&card),
        auth: auth_labels(&card),
        security: security_sentences(&card),
        findings: findings_of(context, &agent, about)?.findings,
        diff,
        domain_proofs: domain_proofs(context, caller, &agent).await?,
        similar,
        duplicates,
    })
}

/// The break-glass approval that a review confirms.
async fn confirmed_by(context: &Context, row: &review::Model) -> Result<Option<BreakGlass>> {
    match terms::break_glass_of(&context.store, row.id).await? {
        Some(broken) => Ok(Some(break_glass_view(context, broken).await?)),
        None => Ok(None),
    }
}

/// The difference, if both cards are still stored and undamaged: the rest is enough to decide.
async fn diff_stored(
    context: &Context,
    agent: &agent::Model,
    before: Option<&version::Model>,
    (about, after): (&version::Model, Option<&[u8]>),
    binding: &KeyBinding,
) -> Result<Option<Diff>> {
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(None);
    };
    let bytes = versions::intact_body_by_digest(&context.store, &before.digest).await?;
    Ok(bytes.map(|bytes| diff_of(context, agent, (before, &bytes), (about, after), binding)))
}

fn skill(skill: &a2a_card::Skill) -> HitSkill {
    HitSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
    }
}

/// The policies in force that match the reviewed content once it is served, including those on a dry run.
async fn matching_policies(
    context: &Context,
    caller: &Caller,
    agent: &agent::Model,
    about: &version::Model,
    card: &AgentCard,
) -> Result<Vec<MatchingPolicy>> {
    // Owners read their reviews, but the registry's policies are not for them.
    let told = caller.may(Permission::SeeAll);
    let record = records(&context.store, vec![agent.clone()]).await?.pop();
    let Some(mut record) = record.filter(|_| told) else {
        return Ok(Vec::new());
    };
    record.version = about.clone();
    record.card = card.clone();
    let (set, facts) = (context.policies.in_force(), facts(context, &record));
    Ok(matching(&set, &facts)
        .into_iter()
        .map(|(policy, _)| MatchingPolicy {
            id: policy.id.clone(),
            mode: policy.mode.as_str().to_owned(),
            effect: policy.effect.as_str().to_owned(),
        })
        .collect())
}

async fn earlier(
    context: &Context,
    row: &review::Model,
    about: &version::Model,
) -> Result<Vec<EarlierDecision>> {
    let ids = [row.agent_id];
    let made = decisions::decisions_since(&context.store, &ids, i64::MIN, MAX_EARLIER).await?;
    let view = |made: decision::Model| EarlierDecision {
        approved: made.approved,
        same_content: made.content_digest == about.content_digest,
        rule: made.rule.as_str().to_owned(),
        by: made.actor,
        at: Timestamp(made.at),
        reason: made.reason,
    };
    Ok(made.into_iter().map(view).collect())
}

/// Similar agents and duplicates of an agent. A review can be decided without them, so they may be missing.
async fn others_like(
    context: &Context,
    caller: &Caller,
    agent: &agent::Model,
) -> Result<(Vec<Hit>, Option<Duplicates>)> {
    match similar_to(context, caller, agent.id, DEFAULT_SIMILAR).await {
        Ok(found) => Ok((found.agents, found.duplicates)),
        Err(error) if error.kind == ErrorKind::Unavailable => Ok((Vec::new(), None)),
        Err(error) => Err(error),
    }
}

async fn domain_proofs(
    context: &Context,
    caller: &Caller,
    agent: &agent::Model,
) -> Result<DomainProofs> {
    let ids = [agent.domain_id];
    let Some(row) = domains::domains_by_ids(&context.store, &ids).await?.pop() else {
        return Ok(DomainProofs::default());
    };
    let now = context.now();
    let access = DomainAccess::of(caller, &row, &[], &[], true, now);
    let owner: Vec<Uuid> = row.owner_at(now).into_iter().collect();
    let owner = accounts::accounts_by_ids(&context.store, &owner)
        .await?
        .pop();
    let proofs = domains::proofs_of(&context.store, &ids).await?;
    let keys = ownership::enrolled_of(&context.store, &ids).await?;
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
