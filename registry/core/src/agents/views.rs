//! Agents one by one: the agent, its versions, its findings.

use a2a_card::{Finding, Severity, assumed_address, security_sentences};
use a2a_registry_api::{
    Agent, BreakGlass, Decision, FindingList, FindingView, Hit, HoldView, Match, Version,
    VersionList,
};
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::review::{ReviewState, VersionState};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_search::sees;
use a2a_registry_store::entity::{agent, break_glass, domain, version};
use a2a_registry_store::{
    Handle, accounts, agents, coverage, decisions, domains, ownership, terms, versions,
};
use serde::Deserialize;
use url::Url;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::agents::documents::summary;
use crate::agents::policy_facts::{labels_or_decoy, rows_decide};
use crate::agents::records::{AgentRecord, records};
use crate::agents::replacements::hide_in_agent;
use crate::agents::shown_collections::collections_of;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::ownership::keeper_at;
use crate::paging::{ListPage, PageRequest};
use crate::signatures::KeyBinding;
use crate::visibility::audience::{groups_in, named_by_id};
use crate::visibility::caller::Caller;
use crate::visibility::{Openness, is_listed, visible_to};

/// Which version's findings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct FindingsQuery {
    /// Digest of a version; by default the shown one.
    pub version: Option<String>,
}

/// New versions in a day beyond which a card is said to flap (docs/model.md#two-digests).
const FLAPPING: i32 = 10;

pub async fn agent_show(context: &Context, caller: &Caller, agent: &str) -> Result<Agent> {
    let record = record_visible(context, caller, agent).await?;
    agent_view(context, caller, &record).await
}

pub async fn agent_view(context: &Context, caller: &Caller, record: &AgentRecord) -> Result<Agent> {
    let sees_holds = caller.may(Permission::SeeAll) || owns(context, caller, &record.agent).await?;
    let mut view = view_with_holds(context, record).await?;
    match sees_holds {
        true => {
            view.groups = groups_of(context, &record.agent).await?;
            view.collections = collections_of(&context.store, &record.agent).await?;
        }
        false => view.holds.clear(),
    }
    hide_in_agent(context, caller, &mut view).await?;
    Ok(view)
}

/// An agent with its holds and without its groups. It is cached as rendered (`agents::rendered`), so it may read only
/// rows whose changes the store counts for the agent or its domain, and must not depend on the time.
pub async fn view_with_holds(context: &Context, record: &AgentRecord) -> Result<Agent> {
    Ok(Agent {
        hit: Hit {
            summary: summary(context, record),
            matched: Match::default(),
        },
        assumed_url: assumed_url(record),
        security: security_sentences(&record.card),
        signature_verdict: record.signature_verdict(),
        card: record.card.clone(),
        decision: decision(context, record).await?,
        coverage: record.coverage().into(),
        sponsor: sponsor_of(context, &record.agent).await?,
        derived_queries: record.agent.derived_queries,
        groups: Vec::new(),
        collections: Vec::new(),
        holds: record.holds.iter().map(hold_view).collect(),
        break_glass: break_glass(context, record.agent.id).await?,
    })
}

/// The address to assume if a card names none: at the first of its hosts that publishes it at a well-known path.
fn assumed_url(record: &AgentRecord) -> Option<String> {
    let mut urls = record
        .sources()
        .iter()
        .map(|source| Url::parse(&source.url));
    let address = urls.find_map(|url| assumed_address(&record.card, &url.ok()?));
    address.map(Into::into)
}

/// The break-glass under which an agent is served, until it is confirmed.
async fn break_glass(context: &Context, agent: Uuid) -> Result<Option<BreakGlass>> {
    let open = terms::break_glasses_on(&context.store, agent, ReviewState::Open).await?;
    match open.into_iter().next() {
        Some(row) => Ok(Some(break_glass_view(context, row).await?)),
        None => Ok(None),
    }
}

pub async fn break_glass_view(context: &Context, row: break_glass::Model) -> Result<BreakGlass> {
    let by = accounts::accounts_by_ids(&context.store, &[row.account_id]).await?;
    Ok(BreakGlass {
        by: by
            .into_iter()
            .next()
            .map_or_else(String::new, |account| account.name),
        reason: row.reason,
        at: Timestamp(row.at),
        until: Timestamp(row.ends_at),
    })
}

async fn groups_of(context: &Context, agent: &agent::Model) -> Result<Vec<String>> {
    let groups = groups_in(agent.audience.as_deref());
    let named = named_by_id(&context.store, &groups).await?;
    let mut names: Vec<String> = named.into_values().collect();
    names.sort_unstable();
    Ok(names)
}

/// The name of an agent's sponsor. Accounts are neither renamed nor deleted, so it only changes with the agent's row.
pub async fn sponsor_of(context: &Context, agent: &agent::Model) -> Result<Option<String>> {
    let sponsor: Vec<Uuid> = agent.sponsor_id.into_iter().collect();
    let found = accounts::accounts_by_ids(&context.store, &sponsor).await?;
    Ok(found.into_iter().next().map(|account| account.name))
}

async fn decision(context: &Context, record: &AgentRecord) -> Result<Decision> {
    let rows = decisions::decisions_on(&context.store, &[record.agent.id]).await?;
    let broken =
        terms::break_glasses_on(&context.store, record.agent.id, ReviewState::Open).await?;
    // One that was not confirmed has no effect any more.
    let is_broken = !broken.is_empty();
    let state = record.known.state.into();
    // Approved content whose approval was not renewed also has a rejection, which the hold explains.
    let is_approved = record.known.state == VersionState::Approved;
    let made = rows
        .into_iter()
        .rev()
        .filter(|row| row.version_id == record.version.id && (row.approved || !is_approved))
        .find(|row| !is_approved || row.rule != Rule::BreakGlass || is_broken);
    let expires_at = ends_at(context, record);
    Ok(match made {
        Some(row) => Decision {
            state,
            rules: vec![row.rule.as_str().to_owned()],
            by: row.actor,
            at: Timestamp(row.at),
            reason: row.reason,
            self_approved: row.self_approved,
            expires_at,
        },
        None => Decision {
            state,
            rules: vec!["no_rule".into()],
            by: "policy".into(),
            at: Timestamp(record.version.observed_at),
            reason: None,
            self_approved: false,
            expires_at,
        },
    })
}

/// When the approval of the shown version ends, unless its content is approved again.
fn ends_at(context: &Context, record: &AgentRecord) -> Option<Timestamp> {
    let agent = &record.agent;
    let is_served = agent.approved_version == Some(record.version.id);
    let term = context.config.governance.term().filter(|_| is_served)?;
    let certified = || agent.certified_at.map(|at| at.saturating_add(term));
    agent.recertify_at.or_else(certified).map(Timestamp)
}

/// The stored versions of an agent, newest first: those approved once, or all of them for a caller who sees everything
/// or owns the agent.
pub async fn agent_versions(
    context: &Context,
    caller: &Caller,
    agent: &str,
    page: &PageRequest,
) -> Result<VersionList> {
    let row = agent_visible(context, caller, agent).await?;
    versions_of(context, caller, &row, page).await
}

/// As [`agent_versions`], for an agent that the caller may see.
pub async fn versions_of(
    context: &Context,
    caller: &Caller,
    row: &agent::Model,
    page: &PageRequest,
) -> Result<VersionList> {
    let all = caller.may(Permission::SeeAll) || owns(context, caller, row).await?;
    let query = format!("versions of {} ({all})", row.id);
    let list = ListPage::new(&context.signer, caller, &query, page)?;
    let (before, limit) = (list.start()?, list.limit());
    let mut rows = versions::version_page(&context.store, row.id, all, before, limit).await?;
    let next_page_token = list.cut(&mut rows, |last| last.id);
    let served = row.approved_version;
    let binding = key_binding(context, row.domain_id).await?;
    let versions = rows
        .into_iter()
        .filter_map(|row| version_view(row, served, &binding))
        .collect();
    Ok(VersionList {
        versions,
        next_page_token,
    })
}

pub async fn key_binding(context: &Context, domain: i64) -> Result<KeyBinding> {
    let rows = domains::domains_by_ids(&context.store, &[domain]).await?;
    let mut bindings = KeyBinding::of_domains(&context.store, &rows).await?;
    Ok(bindings.remove(&domain).unwrap_or_default())
}

/// The findings of a version: the one with that digest, or the one shown.
pub async fn agent_findings(
    context: &Context,
    caller: &Caller,
    agent: &str,
    query: &FindingsQuery,
) -> Result<FindingList> {
    let Some(digest) = &query.version else {
        let record = record_visible(context, caller, agent).await?;
        return findings_of(context, &record.agent, record.version);
    };
    let row = agent_visible(context, caller, agent).await?;
    let version = version_visible(context, caller, &row, digest).await?;
    findings_of(context, &row, version)
}

pub fn findings_of(
    context: &Context,
    agent: &agent::Model,
    version: version::Model,
) -> Result<FindingList> {
    let findings: Vec<Finding> = serde_json::from_str(&version.findings).map_err(|error| {
        AppError::internal(format!("findings of {} are broken: {error}", version.id))
    })?;
    let findings = findings.into_iter().chain(flapping(context, agent));
    Ok(FindingList {
        digest: version.digest,
        findings: findings.map(FindingView::from).collect(),
    })
}

/// The version of an agent with that digest, if the caller may see it.
pub async fn version_visible(
    context: &Context,
    caller: &Caller,
    agent: &agent::Model,
    digest: &str,
) -> Result<version::Model> {
    let all = caller.may(Permission::SeeAll) || owns(context, caller, agent).await?;
    versions::version_by_digest(&context.store, agent.id, digest)
        .await?
        .filter(|version| all || version.ever_approved)
        .ok_or_else(|| AppError::no_version(agent.id, digest))
}

/// The finding that a card changes too often: no single version can show it.
fn flapping(context: &Context, agent: &agent::Model) -> Option<Finding> {
    let today = context.now().0 - agent.changes_since < DAY;
    (today && agent.changes > FLAPPING).then(|| Finding {
        rule: "card.flapping".into(),
        severity: Severity::Warning,
        pointer: String::new(),
        found: format!("{} new versions in a day", agent.changes),
        wanted: format!("at most {FLAPPING}"),
        hint: "serve the same content from every instance, and keep what changes out of the card"
            .into(),
        section: "docs/model.md#two-digests".into(),
    })
}

/// The row of an agent, by id or URN, if the caller may see it. That is decided before anything else of it is loaded,
/// and a missing agent causes the same reads, so that the response time does not tell the two apart.
pub async fn agent_visible(
    context: &Context,
    caller: &Caller,
    agent: &str,
) -> Result<agent::Model> {
    let missing = || AppError::no_agent(agent);
    let store = &context.store;
    let row = match agent.parse::<Uuid>() {
        Ok(id) => agents::agents_by_ids(store, &[id]).await?.pop(),
        Err(_) if agent.starts_with("urn:") => agents::agent_by_urn(store, agent).await?,
        Err(_) => return Err(missing()),
    };
    let is_visible = is_agent_visible(context, store, caller, row.as_ref()).await?;
    row.filter(|_| is_visible).ok_or_else(missing)
}

/// Whether the caller may see an agent; never a missing one, for which the same is read. A write passes itself, so that
/// it needs no second connection while it holds row locks.
pub async fn is_agent_visible(
    context: &Context,
    on: &impl Handle,
    caller: &Caller,
    row: Option<&agent::Model>,
) -> Result<bool> {
    // No row has these keys.
    let (id, domain) = row.map_or((Uuid::nil(), 0), |row| (row.id, row.domain_id));
    let holds = agents::holds_of(on, &[id]).await?;
    let domain = domains::domains_by_ids(on, &[domain]).await?.pop();
    let registrants = match &caller.account {
        Some(_) => coverage::registrants_of_agent(on, id).await?,
        None => Vec::new(),
    };
    let carried = match rows_decide(context) {
        true => None,
        false => Some(labels_or_decoy(context, on, row.cloned().into_iter().collect()).await?),
    };
    let Some((row, domain)) = row.zip(domain) else {
        return Ok(false);
    };
    if !is_state_known(&domain, row) {
        return Ok(false);
    }
    let openness = Openness::of(is_listed(row, &holds), !holds.is_empty());
    let carried = match carried {
        None => visible_to(row, openness, domain.account_id, &registrants),
        Some(mut all) => all.remove(&row.id).unwrap_or_default(),
    };
    let labels = caller.labels(&context.policies.in_force());
    Ok(sees(&labels, &carried))
}

/// Whether this build knows the state of an agent's domain; if not, this is logged, and the agent is shown to no one.
pub fn is_state_known(domain: &domain::Model, agent: &agent::Model) -> bool {
    let state = domain.state().inspect_err(|error| {
        tracing::error!(agent = %agent.id, %error, "an agent is not shown");
    });
    state.is_ok()
}

/// As [`agent_visible`], with everything that is shown of it.
pub async fn record_visible(
    context: &Context,
    caller: &Caller,
    agent: &str,
) -> Result<AgentRecord> {
    let row = agent_visible(context, caller, agent).await?;
    records(&context.store, vec![row])
        .await?
        .pop()
        .ok_or_else(|| AppError::no_agent(agent))
}

/// Whether the caller owns the agent, or registered its domain and its source first while the domain never had an
/// owner.
pub async fn owns(context: &Context, caller: &Caller, agent: &agent::Model) -> Result<bool> {
    if !caller.is(agent.owner_id) && !caller.is(agent.submitter) {
        return Ok(false);
    }
    Ok(caller.is(keeper_of(context, agent).await?))
}

/// The account whose own an agent is.
pub async fn keeper_of(context: &Context, agent: &agent::Model) -> Result<Option<Uuid>> {
    let domain = [agent.domain_id];
    let rows = domains::domains_by_ids(&context.store, &domain).await?;
    let marks = ownership::owner_marks_of(&context.store, &domain).await?;
    Ok(rows.first().map_or(agent.owner_id, |row| {
        keeper_at(agent, row, &marks, context.now())
    }))
}

fn hold_view(row: &a2a_registry_store::entity::hold::Model) -> HoldView {
    HoldView {
        hold: row.shown().into(),
        reason: row.reason.clone(),
        since: Timestamp(row.since),
    }
}

/// A version as it is shown; `None`, which is logged, if this build does not know the decision on it.
fn version_view(
    row: version::Model,
    served: Option<Uuid>,
    binding: &KeyBinding,
) -> Option<Version> {
    let known = row
        .state()
        .and_then(|state| Ok((state, row.change_class()?)));
    let (state, change_class) = known
        .inspect_err(|error| tracing::error!(%error, "a version is left out"))
        .ok()?;
    Some(Version {
        signature_verdict: binding.verdict(Some(&row)),
        served: served == Some(row.id),
        digest: row.digest,
        content_digest: row.content_digest,
        observed_at: Timestamp(row.observed_at),
        state: state.into(),
        change_class: change_class.map(Into::into),
        wire_family: row.wire_family,
    })
}
