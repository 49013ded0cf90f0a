//! Which agent a source feeds (docs/model.md#slots).

use a2a_registry_domain::coverage::Standing;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::{Lifecycle, LivenessState, Visibility};
use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::Kept;
use a2a_registry_store::entity::{agent, source, source_registrant};
use serde_json::json;
use uuid::Uuid;

use crate::commit::ledger::{AgentState, CRAWLER, Ledger};
use crate::context::Context;
use crate::crawl::ingest::arrival::Content;
use crate::crawl::ingest::group::Group;
use crate::sources::places::places;
use crate::sources::slot_of;

/// The agent this source feeds: the one it fed before, the one in its slot, one of the same domain
/// with this very content, or a new one. What somebody has nominated is an agent of its own, and changes no other.
/// `None` where the domain has as many agents as it may.
pub(crate) fn agent_for(
    context: &Context,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
    content: &Content,
) -> Option<Uuid> {
    let row = group.sources.get(&source)?;
    let (domain_id, known) = (row.domain_id, row.agent_id);
    let slot = slot_of(group.domains.get(&domain_id)?, row);
    let standing = group.standing_of(source);
    let newest = |state: &AgentState| {
        let newest = state.agent.newest_version?;
        group.versions.get(&newest)
    };
    let same_content = |state: &AgentState| {
        newest(state).is_some_and(|newest| newest.content_digest == content.content_digest)
    };
    // Whose agent it is, this source's or one that weighs more: then it may say the same, and change nothing.
    let may_feed = |state: &AgentState| {
        let theirs = group.standing_of_agent(state.agent.id);
        match (standing, theirs) {
            (Standing::Nomination, theirs) => theirs == Standing::Nomination,
            (own, theirs) if own < theirs => newest(state).is_some_and(|one| content.is(one)),
            _ => theirs.is_admitted() || known == Some(state.agent.id),
        }
    };
    // The agent behind the very same URL.
    let same_place = group
        .sources
        .values()
        .find(|other| other.id != source && asks_alike(row, other))
        .and_then(|other| other.agent_id);
    let fed = known.and_then(|id| group.agents.get(&id)).filter(|state| {
        // A further source keeps feeding an older slot's agent only while both say the same.
        let is_further = same_content(state) || same_place == Some(state.agent.id);
        state.agent.slot == slot || (is_further && may_feed(state))
    });
    let in_domain = || {
        group
            .agents
            .values()
            .filter(|state| state.agent.domain_id == domain_id)
    };
    let found = fed
        .or_else(|| in_domain().find(|state| state.agent.slot == slot))
        .or_else(|| {
            let same_place = |state: &&AgentState| same_place == Some(state.agent.id);
            in_domain()
                .filter(|_| known.is_none())
                .find(|state| same_place(state) && may_feed(state))
        })
        .or_else(|| {
            // What nobody vouches for joins nothing by its content alone: whoever copies a card is not who wrote it.
            in_domain()
                .filter(|_| known.is_none() && standing.is_admitted())
                .find(|state| same_content(state) && may_feed(state))
        })
        .map(|state| state.agent.id);
    let url = row.url.clone();
    let refused = match found {
        Some(_) => None,
        None => limit_met(context, group, source, standing),
    };
    if let Some(row) = group.touch(source) {
        row.limit_met.clone_from(&refused);
    }
    if refused.is_some() {
        return None;
    }
    let id = match found {
        Some(id) => id,
        None => new_agent(group, ledger, source, slot)?,
    };
    if known != Some(id) {
        // Both agents' entries name their sources.
        for fed in known.into_iter().chain(found) {
            let data = json!({"source": url, "fed": fed == id});
            ledger.agent_event(EventKind::AgentUpdated, fed, CRAWLER, data);
        }
    }
    if let Some(row) = group.sources.get_mut(&source) {
        row.agent_id = Some(id);
    }
    Some(id)
}

/// Why a source brings no further agent, where a limit says so. What an admin has registered is bounded by nothing;
/// what others have nominated leaves room for what is the domain's own.
fn limit_met(context: &Context, group: &Group, source: i64, standing: Standing) -> Option<String> {
    let row = group.sources.get(&source)?;
    let admins = |one: &source_registrant::Model| {
        let role: Option<Role> = one.role.as_ref().and_then(Kept::known);
        role.is_some_and(|role| role.may(Permission::Administer))
    };
    if group.standings.registrants(source).iter().any(admins) {
        return None;
    }
    let standings = group
        .agents
        .values()
        .filter(|state| state.agent.domain_id == row.domain_id)
        .map(|state| group.standing_of_agent(state.agent.id));
    let name = &group.domains.get(&row.domain_id)?.name;
    places(&context.config.limits, standings).refusal(name, standing)
}

fn new_agent(
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
    slot: String,
) -> Option<Uuid> {
    let domain_id = group.sources.get(&source)?.domain_id;
    let domain = group.domains.get(&domain_id)?;
    let registrants = group.standings.registrants(source);
    let now = ledger.now().0;
    let agent = agent::Model {
        id: ledger.new_id(),
        domain_id,
        domain: domain.name.clone(),
        slot,
        urn: None,
        lifecycle: Lifecycle::Pending.into(),
        deprecation: None,
        visibility: Visibility::Public.into(),
        labels: "{}".into(),
        pins: String::new(),
        claimed_by: None,
        owner_id: domain.owner_id,
        submitter: registrants.iter().find_map(|one| one.account_id),
        approved_version: None,
        newest_version: None,
        tls: false,
        liveness: LivenessState::Fresh.into(),
        liveness_reason: None,
        last_seen_at: Some(now),
        last_changed_at: None,
        gone_since: None,
        changes_since: now,
        changes: 0,
        created_at: now,
        updated_at: now,
        retired_at: None,
    };
    let id = agent.id;
    let data = json!({"domain": agent.domain, "slot": agent.slot});
    ledger.agent_event(EventKind::AgentDiscovered, id, CRAWLER, data);
    group.agents.insert(
        id,
        AgentState {
            agent,
            holds: Vec::new(),
            open_review: None,
        },
    );
    Some(id)
}

/// Whether two sources of a domain ask for one URL.
fn asks_alike(one: &source::Model, other: &source::Model) -> bool {
    let cards = |row: &source::Model| row.kind == SourceKind::Url || row.kind == SourceKind::Entry;
    one.domain_id == other.domain_id
        && other.ended_at.is_none()
        && cards(one)
        && cards(other)
        && one.url == other.url
}
