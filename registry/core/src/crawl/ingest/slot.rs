//! Finds the agent of a source (docs/model.md#slots).

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::{agent, source, source_registrant};
use a2a_registry_store::versions::VersionKey;
use serde_json::json;
use uuid::Uuid;

use crate::commit::approver::CRAWLER;
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;
use crate::context::Context;
use crate::crawl::ingest::arrival::CardContent;
use crate::crawl::ingest::group::Group;
use crate::sources::quota::quota;
use crate::sources::{card_url, slot_of};

/// The agent of a source: its previous one, the one in its slot, one of the same domain with the same content, or a new
/// one. A nominated source gets its own agent, and changes no other. `None` if the domain's quota is used up.
pub fn agent_for(
    context: &Context,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
    content: &CardContent,
) -> Option<Uuid> {
    let seeker = AgentMatcher::of(group, source, content)?;
    let (found, standing, slot) = (seeker.find(), seeker.standing, seeker.slot);
    let (known, url) = (seeker.row.agent_id, seeker.row.url.clone());
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
        // Both agents' index entries list their sources.
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

struct AgentMatcher<'a> {
    group: &'a Group,
    row: &'a source::Model,
    content: &'a CardContent,
    slot: String,
    standing: CoverageLevel,
    /// The agent behind the very same URL.
    same_place: Option<Uuid>,
}

impl<'a> AgentMatcher<'a> {
    fn of(group: &'a Group, source: i64, content: &'a CardContent) -> Option<Self> {
        let row = group.sources.get(&source)?;
        let mut sources = group.all_of_domain(row.domain_id);
        let other = sources.find(|other| other.id != source && asks_alike(row, other));
        Some(Self {
            group,
            row,
            content,
            slot: slot_of(
                group.domains.get(&row.domain_id)?,
                row,
                group.identifier_of(row),
            ),
            standing: group.coverage_of(source),
            same_place: other.and_then(|other| other.agent_id),
        })
    }

    fn find(&self) -> Option<Uuid> {
        let mut in_domain = self.in_domain();
        self.fed_before()
            .or_else(|| in_domain.find(|state| self.is_in_slot(state)))
            .or_else(|| self.joined())
            .map(|state| state.agent.id)
    }

    fn in_domain(&self) -> impl Iterator<Item = &'a AgentState> {
        self.group.agents_of_domain(self.row.domain_id)
    }

    /// The previous agent of the source. An additional source keeps the agent of an older slot only while both have the
    /// same card.
    fn fed_before(&self) -> Option<&'a AgentState> {
        let state = self.group.agents.get(&self.row.agent_id?)?;
        let is_further = self.is_same_content(state) || self.is_same_place(state);
        (self.is_in_slot(state) || (is_further && self.may_feed(state))).then_some(state)
    }

    /// The agent of the domain that a new source joins. A nominated source joins none by its content alone: a copy of
    /// a card proves nothing about its author.
    fn joined(&self) -> Option<&'a AgentState> {
        if self.row.agent_id.is_some() {
            return None;
        }
        let by_content = self.standing.is_admitted();
        let same_place = |state: &&AgentState| self.is_same_place(state) && self.may_feed(state);
        let same_content =
            |state: &&AgentState| by_content && self.is_same_content(state) && self.may_feed(state);
        self.in_domain()
            .find(same_place)
            .or_else(|| self.in_domain().find(same_content))
    }

    fn is_in_slot(&self, state: &AgentState) -> bool {
        state.agent.slot == self.slot
    }

    fn is_same_place(&self, state: &AgentState) -> bool {
        self.same_place == Some(state.agent.id)
    }

    fn is_same_content(&self, state: &AgentState) -> bool {
        let newest = self.newest(state);
        newest.is_some_and(|newest| newest.content_digest == self.content.content_digest)
    }

    fn newest(&self, state: &AgentState) -> Option<&'a VersionKey> {
        self.group.versions.get(&state.agent.newest_version?)
    }

    /// Whether an agent has at least the coverage of this source, which then may not change it.
    fn may_feed(&self, state: &AgentState) -> bool {
        let agent = &state.agent;
        let theirs = self.group.coverage_of_agent(agent.domain_id, agent.id);
        match (self.standing, theirs) {
            (CoverageLevel::Nomination, theirs) => theirs == CoverageLevel::Nomination,
            (own, theirs) if own < theirs => {
                let newest = self.newest(state);
                newest.is_some_and(|newest| self.content.is(newest))
            }
            _ => theirs.is_admitted() || self.row.agent_id == Some(state.agent.id),
        }
    }
}

/// The limit that prevents a source from adding an agent; `None` if it may. Sources registered by an admin have no
/// limit; nominated ones leave the reserved places to the domain's own.
fn limit_met(
    context: &Context,
    group: &Group,
    source: i64,
    standing: CoverageLevel,
) -> Option<String> {
    let row = group.sources.get(&source)?;
    let admins = |one: &source_registrant::Model| {
        let role: Option<Role> = one.role.as_ref().and_then(|role| role.known());
        role.is_some_and(|role| role.may(Permission::Administer))
    };
    if group.standings.registrants(source).iter().any(admins) {
        return None;
    }
    let standings = group
        .agents_of_domain(row.domain_id)
        .map(|state| group.coverage_of_agent(row.domain_id, state.agent.id));
    let name = &group.domains.get(&row.domain_id)?.name;
    quota(&context.config.limits, standings).refusal(name, standing)
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
    let owner_id = domain.owner_at(ledger.now());
    let now = ledger.now().0;
    let id = ledger.new_id();
    let agent = agent::Model {
        owner_id,
        submitter: registrants.iter().find_map(|one| one.account_id),
        ..agent::Model::found(id, domain_id, domain.name.clone(), slot, now)
    };
    let data = json!({"domain": agent.domain, "slot": agent.slot});
    ledger.agent_event(EventKind::AgentDiscovered, id, CRAWLER, data);
    group.add_agent(AgentState {
        agent,
        holds: Vec::new(),
        open_review: None,
        further_reviews: Vec::new(),
    });
    Some(id)
}

fn asks_alike(one: &source::Model, other: &source::Model) -> bool {
    let cards = |row: &source::Model| row.kind == SourceKind::Url || row.kind == SourceKind::Entry;
    one.domain_id == other.domain_id
        && other.ended_at.is_none()
        && cards(one)
        && cards(other)
        && card_url(one) == card_url(other)
}
