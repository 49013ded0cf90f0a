//! Views of single agents, their versions and findings.

use a2a_card::{Finding, Severity, assumed_address, security_sentences};
use a2a_registry_api::{
    Agent, BreakGlass, Decision, FindingList, FindingView, Hit, HoldView, Match, Version,
    VersionList,
};
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::review::{ReviewState, VersionState};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_search::is_visible_to;
use a2a_registry_store::entity::{agent, break_glass, domain, version};
use a2a_registry_store::{
    Executor, accounts, agents, approval_terms, decisions, domains, ownership, registrants,
    versions,
};
use serde::Deserialize;
use url::Url;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::agents::audience_collections::audience_collection_names;
use crate::agents::documents::build_agent_summary;
use crate::agents::policy_attributes::{is_visibility_policy_free, visibility_labels_or_decoy};
use crate::agents::policy_hiding::count_hidden_from;
use crate::agents::records::{AgentRecord, load_agent_records};
use crate::agents::replacements::redact_agent_replacement;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::ownership::agent_owner_at;
use crate::paging::{ListPage, PageRequest};
use crate::signatures::DomainKeyBinding;
use crate::visibility::audience::{decode_audience, group_names_by_id};
use crate::visibility::caller::Caller;
use crate::visibility::{ListingState, is_listed, visibility_labels};

/// The version whose findings are requested.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct FindingsQuery {
    /// Digest of a version; by default the current one.
    pub version: Option<String>,
}

/// New versions per day beyond which a card is reported as flapping (docs/develop/model.md#two-digests).
const MAX_CHANGES_PER_DAY: i32 = 10;

pub async fn agent_show(context: &AppContext, caller: &Caller, agent: &str) -> Result<Agent> {
    let record = require_visible_agent_record(context, caller, agent).await?;
    build_agent_view(context, caller, &record).await
}

pub async fn build_agent_view(
    context: &AppContext,
    caller: &Caller,
    record: &AgentRecord,
) -> Result<Agent> {
    let sees_holds = caller.has_permission(Permission::SeeAll)
        || caller_owns_agent(context, caller, &record.agent).await?;
    let mut view = build_cacheable_agent_view(context, record).await?;
    match sees_holds {
        true => {
            view.groups = audience_group_names(context, &record.agent).await?;
            view.collections = audience_collection_names(&context.store, &record.agent).await?;
            view.hidden_from = count_hidden_from(context, caller, record).await?;
        }
        false => view.holds.clear(),
    }
    redact_agent_replacement(context, caller, &mut view).await?;
    Ok(view)
}

/// Builds the view of an agent with its holds and without its groups. It is cached in rendered form
/// (`agents::rendering`), so it may read only rows whose changes the store counts for the agent or its domain, and
/// must not depend on the time.
pub async fn build_cacheable_agent_view(
    context: &AppContext,
    record: &AgentRecord,
) -> Result<Agent> {
    Ok(Agent {
        hit: Hit {
            summary: build_agent_summary(context, record),
            matched: Match::default(),
        },
        former_urn: record.agent.former_urn().map(str::to_owned),
        assumed_url: assumed_agent_url(record),
        security: security_sentences(&record.card),
        signature_verdict: record.signature_verdict(),
        card: record.card.clone(),
        decision: load_version_decision(context, record).await?,
        coverage: record.coverage().into(),
        sponsor: sponsor_name(context, &record.agent).await?,
        derived_queries: record.agent.derived_queries,
        groups: Vec::new(),
        collections: Vec::new(),
        holds: record.holds.iter().map(hold_view).collect(),
        break_glass: load_open_break_glass(context, record.agent.id).await?,
        hidden_from: None,
    })
}

/// The address to assume if a card names none: the first of its hosts that publishes the card at a well-known path.
fn assumed_agent_url(record: &AgentRecord) -> Option<String> {
    let mut urls = record
        .sources()
        .iter()
        .map(|source| Url::parse(&source.url));
    let address = urls.find_map(|url| assumed_address(&record.card, &url.ok()?));
    address.map(Into::into)
}

/// The break-glass approval under which an agent is served, until it is confirmed.
async fn load_open_break_glass(context: &AppContext, agent: Uuid) -> Result<Option<BreakGlass>> {
    let open =
        approval_terms::break_glasses_by_agent(&context.store, agent, ReviewState::Open).await?;
    match open.into_iter().next() {
        Some(row) => Ok(Some(break_glass_view(context, row).await?)),
        None => Ok(None),
    }
}

pub async fn break_glass_view(context: &AppContext, row: break_glass::Model) -> Result<BreakGlass> {
    let accounts = accounts::accounts_by_ids(&context.store, &[row.account_id]).await?;
    Ok(BreakGlass {
        by: accounts
            .into_iter()
            .next()
            .map_or_else(String::new, |account| account.name),
        reason: row.reason,
        at: Timestamp(row.at),
        until: Timestamp(row.ends_at),
    })
}

async fn audience_group_names(context: &AppContext, agent: &agent::Model) -> Result<Vec<String>> {
    let groups = decode_audience(agent.audience.as_deref());
    let named = group_names_by_id(&context.store, &groups).await?;
    let mut names: Vec<String> = named.into_values().collect();
    names.sort_unstable();
    Ok(names)
}

/// The name of an agent's sponsor. Accounts are neither renamed nor deleted, so it changes only with the agent's row.
pub async fn sponsor_name(context: &AppContext, agent: &agent::Model) -> Result<Option<String>> {
    let sponsor: Vec<Uuid> = agent.sponsor_id.into_iter().collect();
    let found = accounts::accounts_by_ids(&context.store, &sponsor).await?;
    Ok(found.into_iter().next().map(|account| account.name))
}

async fn load_version_decision(context: &AppContext, record: &AgentRecord) -> Result<Decision> {
    let rows = decisions::decisions_by_agent(&context.store, &[record.agent.id]).await?;
    let break_glasses =
        approval_terms::break_glasses_by_agent(&context.store, record.agent.id, ReviewState::Open)
            .await?;
    // A break-glass approval that was not confirmed has no effect any more.
    let has_break_glass = !break_glasses.is_empty();
    let state = record.states.version_state.into();
    // Approved content whose approval was not renewed also has a rejection, which the hold explains.
    let is_approved = record.states.version_state == VersionState::Approved;
    let effective_decision = rows
        .into_iter()
        .rev()
        .filter(|row| row.version_id == record.version.id && (row.approved || !is_approved))
        .find(|row| !is_approved || row.rule != Rule::BreakGlass || has_break_glass);
    let expires_at = approval_ends_at(context, record);
    Ok(match effective_decision {
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

/// The time at which the approval of the current version ends, unless its content is approved again.
fn approval_ends_at(context: &AppContext, record: &AgentRecord) -> Option<Timestamp> {
    let agent = &record.agent;
    let is_served = agent.approved_version == Some(record.version.id);
    let term = context
        .config()
        .governance
        .approval_term()
        .filter(|_| is_served)?;
    let certified = || agent.certified_at.map(|at| at.saturating_add(term));
    agent.recertify_at.or_else(certified).map(Timestamp)
}

/// Lists the stored versions of an agent, newest first: those that were ever approved, or all of them for a caller who
/// sees everything or owns the agent.
pub async fn agent_versions(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    page: &PageRequest,
) -> Result<VersionList> {
    let row = require_visible_agent(context, caller, agent).await?;
    list_versions(context, caller, &row, page).await
}

/// Like [`agent_versions`], for an agent that the caller is known to see.
pub async fn list_versions(
    context: &AppContext,
    caller: &Caller,
    row: &agent::Model,
    page: &PageRequest,
) -> Result<VersionList> {
    let sees_all_versions = caller.has_permission(Permission::SeeAll)
        || caller_owns_agent(context, caller, row).await?;
    let query = format!("versions of {} ({sees_all_versions})", row.id);
    let list = ListPage::new(&context.page_token_signer, caller, &query, page)?;
    let (before, limit) = (list.start_position()?, list.row_limit());
    let mut rows =
        versions::version_page(&context.store, row.id, sees_all_versions, before, limit).await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.id);
    let served = row.approved_version;
    let key_binding = load_domain_key_binding(context, row.domain_id).await?;
    let versions = rows
        .into_iter()
        .filter_map(|row| version_view(row, served, &key_binding))
        .collect();
    Ok(VersionList {
        versions,
        next_page_token,
    })
}

pub async fn load_domain_key_binding(
    context: &AppContext,
    domain: i64,
) -> Result<DomainKeyBinding> {
    let rows = domains::domains_by_ids(&context.store, &[domain]).await?;
    let mut bindings = DomainKeyBinding::load_for_domains(&context.store, &rows).await?;
    Ok(bindings.remove(&domain).unwrap_or_default())
}

/// The findings of a version, given by its digest, or of the current one.
pub async fn agent_findings(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    query: &FindingsQuery,
) -> Result<FindingList> {
    let Some(digest) = &query.version else {
        let record = require_visible_agent_record(context, caller, agent).await?;
        return version_findings(context, &record.agent, record.version);
    };
    let row = require_visible_agent(context, caller, agent).await?;
    let version = require_visible_version(context, caller, &row, digest).await?;
    version_findings(context, &row, version)
}

pub fn version_findings(
    context: &AppContext,
    agent: &agent::Model,
    version: version::Model,
) -> Result<FindingList> {
    let findings: Vec<Finding> = serde_json::from_str(&version.findings).map_err(|error| {
        AppError::internal(format!(
            "the findings of {} cannot be parsed: {error}",
            version.id
        ))
    })?;
    let findings = findings.into_iter().chain(flapping_finding(context, agent));
    Ok(FindingList {
        digest: version.digest,
        findings: findings.map(FindingView::from).collect(),
    })
}

/// The version of an agent with that digest, if the caller may see it.
pub async fn require_visible_version(
    context: &AppContext,
    caller: &Caller,
    agent: &agent::Model,
    digest: &str,
) -> Result<version::Model> {
    let sees_all_versions = caller.has_permission(Permission::SeeAll)
        || caller_owns_agent(context, caller, agent).await?;
    versions::version_by_digest(&context.store, agent.id, digest)
        .await?
        .filter(|version| sees_all_versions || version.ever_approved)
        .ok_or_else(|| AppError::no_version(agent.id, digest))
}

/// The finding that a card changes too often, which no single version can show.
fn flapping_finding(context: &AppContext, agent: &agent::Model) -> Option<Finding> {
    let today = context.now().0 - agent.changes_since < DAY;
    (today && agent.changes > MAX_CHANGES_PER_DAY).then(|| Finding {
        rule: "card.flapping".into(),
        severity: Severity::Warning,
        pointer: String::new(),
        found: format!("{} new versions in a day", agent.changes),
        wanted: format!("at most {MAX_CHANGES_PER_DAY}"),
        hint: "serve the same content from every instance, and keep what changes out of the card"
            .into(),
        section: "docs/develop/model.md#two-digests".into(),
    })
}

/// Loads the row of an agent, by id or URN, if the caller may see it. That is decided before anything else of it is
/// loaded, and a missing agent causes the same reads, so that the response time does not reveal whether it exists.
pub async fn require_visible_agent(
    context: &AppContext,
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

/// Whether the caller may see an agent; false for a missing one, for which the same is read. A write passes its
/// transaction, so that no second connection is needed while it holds row locks.
pub async fn is_agent_visible(
    context: &AppContext,
    db: &impl Executor,
    caller: &Caller,
    row: Option<&agent::Model>,
) -> Result<bool> {
    // No row has these keys.
    let (id, domain) = row.map_or((Uuid::nil(), 0), |row| (row.id, row.domain_id));
    let holds = agents::holds_of_agents(db, &[id]).await?;
    let domain = domains::domains_by_ids(db, &[domain]).await?.pop();
    let registrants = match &caller.account {
        Some(_) => registrants::registrant_accounts_of_agent(db, id).await?,
        None => Vec::new(),
    };
    let policy_labels = match is_visibility_policy_free(context) {
        true => None,
        false => {
            Some(visibility_labels_or_decoy(context, db, row.cloned().into_iter().collect()).await?)
        }
    };
    let Some((row, domain)) = row.zip(domain) else {
        return Ok(false);
    };
    if !is_domain_state_known(&domain, row) {
        return Ok(false);
    }
    let openness = ListingState::new(is_listed(row, &holds), !holds.is_empty());
    let agent_labels = match policy_labels {
        None => visibility_labels(row, openness, domain.account_id, &registrants),
        Some(mut all) => all.remove(&row.id).unwrap_or_default(),
    };
    let labels = caller.labels(&context.policy_sets.enforced_set());
    Ok(is_visible_to(&labels, &agent_labels))
}

/// Whether this build knows the state of an agent's domain; if not, this is logged, and the agent is hidden from
/// everyone.
pub fn is_domain_state_known(domain: &domain::Model, agent: &agent::Model) -> bool {
    let state = domain.state().inspect_err(|error| {
        tracing::error!(agent = %agent.id, %error, "an agent is hidden because the state of its domain is unknown");
    });
    state.is_ok()
}

/// Like [`require_visible_agent`], with everything that is shown of the agent.
pub async fn require_visible_agent_record(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<AgentRecord> {
    let row = require_visible_agent(context, caller, agent).await?;
    load_agent_records(&context.store, vec![row])
        .await?
        .pop()
        .ok_or_else(|| AppError::no_agent(agent))
}

/// Whether the caller owns the agent, or was the first to register its domain and its source while the domain never
/// had an owner.
pub async fn caller_owns_agent(
    context: &AppContext,
    caller: &Caller,
    agent: &agent::Model,
) -> Result<bool> {
    if !caller.is_account(agent.owner_id) && !caller.is_account(agent.submitter) {
        return Ok(false);
    }
    Ok(caller.is_account(load_responsible_account(context, agent).await?))
}

/// The account that is responsible for an agent.
pub async fn load_responsible_account(
    context: &AppContext,
    agent: &agent::Model,
) -> Result<Option<Uuid>> {
    let domain = [agent.domain_id];
    let rows = domains::domains_by_ids(&context.store, &domain).await?;
    let marks = ownership::owner_fingerprints_by_domain(&context.store, &domain).await?;
    Ok(rows.first().map_or(agent.owner_id, |row| {
        agent_owner_at(agent, row, &marks, context.now())
    }))
}

fn hold_view(row: &a2a_registry_store::entity::hold::Model) -> HoldView {
    HoldView {
        hold: row.hold_kind().into(),
        reason: row.reason.clone(),
        since: Timestamp(row.since),
    }
}

/// The view of a version; `None`, which is logged, if this build does not know the decision on it.
fn version_view(
    row: version::Model,
    served: Option<Uuid>,
    key_binding: &DomainKeyBinding,
) -> Option<Version> {
    let known = row
        .state()
        .and_then(|state| Ok((state, row.change_class()?)));
    let (state, change_class) = known
        .inspect_err(|error| tracing::error!(%error, "a version cannot be read and is left out"))
        .ok()?;
    Some(Version {
        signature_verdict: key_binding.signature_verdict(Some(&row)),
        served: served == Some(row.id),
        digest: row.digest,
        content_digest: row.content_digest,
        observed_at: Timestamp(row.observed_at),
        state: state.into(),
        change_class: change_class.map(Into::into),
        wire_family: row.wire_family,
    })
}
