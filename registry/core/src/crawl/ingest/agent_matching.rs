//! Finds the agent of a source (docs/develop/model.md#slots).

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::{agent, source, source_registrant};
use a2a_registry_store::versions::VersionSummary;
use serde_json::json;
use uuid::Uuid;

use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::CRAWLER_ACTOR;
use crate::context::AppContext;
use crate::crawl::ingest::batch::IngestBatch;
use crate::crawl::ingest::ingested_card::CardContent;
use crate::sources::domain_agent_quota::domain_agent_quota;
use crate::sources::{source_card_url, source_slot};

/// Finds or creates the agent of a source: its previous one, the one in its slot, one of the same domain with the same
/// content, or a new one with this visibility. A nominated source gets a separate agent, and changes no other. `None` if
/// the domain's quota is used up.
pub fn match_or_create_agent(
    context: &AppContext,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    source: i64,
    content: &CardContent,
    visibility: Visibility,
) -> Option<Uuid> {
    let seeker = AgentMatcher::new(batch, source, content)?;
    let (matched, coverage_level, slot) = (seeker.find_agent(), seeker.coverage_level, seeker.slot);
    let (previous, url) = (seeker.row.agent_id, seeker.row.url.clone());
    let reached_limit_text = match matched {
        Some(_) => None,
        None => reached_agent_limit(context, batch, source, coverage_level),
    };
    if let Some(row) = batch.source_mut(source) {
        row.limit_met.clone_from(&reached_limit_text);
    }
    if reached_limit_text.is_some() {
        return None;
    }
    let id = match matched {
        Some(id) => id,
        None => create_agent(batch, change_set, source, slot, visibility)?,
    };
    if previous != Some(id) {
        // The index entries of both agents list their sources.
        for affected in previous.into_iter().chain(matched) {
            let data = json!({"source": url, "fed": affected == id});
            change_set.add_agent_event(EventKind::AgentUpdated, affected, CRAWLER_ACTOR, data);
        }
    }
    if let Some(row) = batch.sources.get_mut(&source) {
        row.agent_id = Some(id);
    }
    Some(id)
}

struct AgentMatcher<'a> {
    batch: &'a IngestBatch,
    row: &'a source::Model,
    content: &'a CardContent,
    slot: String,
    coverage_level: CoverageLevel,
    /// The agent with exactly the same URL.
    same_url_agent: Option<Uuid>,
}

impl<'a> AgentMatcher<'a> {
    fn new(batch: &'a IngestBatch, source: i64, content: &'a CardContent) -> Option<Self> {
        let row = batch.sources.get(&source)?;
        let mut sources = batch.all_domain_sources(row.domain_id);
        let same_card_source =
            sources.find(|other| other.id != source && fetches_same_card(row, other));
        Some(Self {
            batch,
            row,
            content,
            slot: source_slot(
                batch.domains.get(&row.domain_id)?,
                row,
                batch.own_catalog_entry_identifier(row),
            ),
            coverage_level: batch.source_coverage(source),
            same_url_agent: same_card_source.and_then(|other| other.agent_id),
        })
    }

    fn find_agent(&self) -> Option<Uuid> {
        let mut in_domain = self.domain_agents();
        self.previous_agent()
            .or_else(|| in_domain.find(|state| self.is_in_slot(state)))
            .or_else(|| self.joinable_agent())
            .map(|state| state.agent.id)
    }

    fn domain_agents(&self) -> impl Iterator<Item = &'a AgentChangeState> {
        self.batch.domain_agents(self.row.domain_id)
    }

    /// The previous agent of the source. An additional source keeps the agent of an older slot only while both have
    /// the same card.
    fn previous_agent(&self) -> Option<&'a AgentChangeState> {
        let state = self.batch.agents.get(&self.row.agent_id?)?;
        let is_further = self.has_same_content(state) || self.has_same_url(state);
        (self.is_in_slot(state) || (is_further && self.may_supply_agent_card(state)))
            .then_some(state)
    }

    /// The agent of the domain that a new source joins. A nominated source joins none by its content alone, because a
    /// copy of a card proves nothing about its author.
    fn joinable_agent(&self) -> Option<&'a AgentChangeState> {
        if self.row.agent_id.is_some() {
            return None;
        }
        let by_content = self.coverage_level.is_admitted();
        let same_place = |state: &&AgentChangeState| {
            self.has_same_url(state) && self.may_supply_agent_card(state)
        };
        let same_content = |state: &&AgentChangeState| {
            by_content && self.has_same_content(state) && self.may_supply_agent_card(state)
        };
        self.domain_agents()
            .find(same_place)
            .or_else(|| self.domain_agents().find(same_content))
    }

    fn is_in_slot(&self, state: &AgentChangeState) -> bool {
        state.agent.slot == self.slot
    }

    fn has_same_url(&self, state: &AgentChangeState) -> bool {
        self.same_url_agent == Some(state.agent.id)
    }

    fn has_same_content(&self, state: &AgentChangeState) -> bool {
        let newest = self.newest_version(state);
        newest.is_some_and(|newest| newest.content_digest == self.content.content_digest)
    }

    fn newest_version(&self, state: &AgentChangeState) -> Option<&'a VersionSummary> {
        self.batch.versions.get(&state.agent.newest_version?)
    }

    /// Whether this source may supply the card of an agent. With less coverage than the agent it may only supply the
    /// same content.
    fn may_supply_agent_card(&self, state: &AgentChangeState) -> bool {
        let agent = &state.agent;
        let agent_coverage = self.batch.agent_coverage(agent.domain_id, agent.id);
        match (self.coverage_level, agent_coverage) {
            (CoverageLevel::Nomination, theirs) => theirs == CoverageLevel::Nomination,
            (own, theirs) if own < theirs => {
                let newest = self.newest_version(state);
                newest.is_some_and(|newest| self.content.matches_version(newest))
            }
            _ => agent_coverage.is_admitted() || self.row.agent_id == Some(state.agent.id),
        }
    }
}

/// The limit that prevents a source from creating an agent; `None` if it may. Sources registered by an admin have no
/// limit; nominated ones leave the reserved positions to the domain's own.
fn reached_agent_limit(
    context: &AppContext,
    batch: &IngestBatch,
    source: i64,
    coverage_level: CoverageLevel,
) -> Option<String> {
    let row = batch.sources.get(&source)?;
    let admins = |one: &source_registrant::Model| {
        let role: Option<Role> = one.role.as_ref().and_then(|role| role.known_value());
        role.is_some_and(|role| role.has_permission(Permission::Administer))
    };
    if batch
        .coverage_evidence
        .registrants(source)
        .iter()
        .any(admins)
    {
        return None;
    }
    let standings = batch
        .domain_agents(row.domain_id)
        .map(|state| batch.agent_coverage(row.domain_id, state.agent.id));
    let name = &batch.domains.get(&row.domain_id)?.name;
    domain_agent_quota(&context.config().limits, standings).limit_message(name, coverage_level)
}

fn create_agent(
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    source: i64,
    slot: String,
    visibility: Visibility,
) -> Option<Uuid> {
    let domain_id = batch.sources.get(&source)?.domain_id;
    let domain = batch.domains.get(&domain_id)?;
    let registrants = batch.coverage_evidence.registrants(source);
    let owner_id = domain.domain_owner_at(change_set.now());
    let now = change_set.now().0;
    let id = change_set.new_id();
    let agent = agent::Model {
        owner_id,
        submitter: registrants.iter().find_map(|one| one.account_id),
        visibility: visibility.into(),
        ..agent::Model::new_agent(id, domain_id, domain.name.clone(), slot, now)
    };
    let data = json!({"domain": agent.domain, "slot": agent.slot});
    change_set.add_agent_event(EventKind::AgentDiscovered, id, CRAWLER_ACTOR, data);
    batch.add_agent(AgentChangeState {
        agent,
        holds: Vec::new(),
        open_review: None,
        secondary_reviews: Vec::new(),
    });
    Some(id)
}

fn fetches_same_card(source: &source::Model, other: &source::Model) -> bool {
    let cards = |row: &source::Model| row.kind == SourceKind::Url || row.kind == SourceKind::Entry;
    source.domain_id == other.domain_id
        && other.ended_at.is_none()
        && cards(source)
        && cards(other)
        && source_card_url(source) == source_card_url(other)
}
