//! The changes of one act, collected in memory and written in one transaction together with their events. Ingest and
//! the curators' acts share it, so that an approval is the same thing wherever it comes from.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::{Entropy, new_id};
use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use a2a_registry_domain::review::{ChangeClass, ReviewKind, ReviewState, VersionState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::PolicySet;
use a2a_registry_store::entity::{agent, body, decision, hold, review, version, version_source};
use a2a_registry_store::events::NewEvent;
use a2a_registry_store::versions::VersionKey;
use a2a_registry_store::{Kept, Write};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::commit::admitting::admitting_set;
use crate::commit::approver::{Approver, POLICY};
use crate::commit::state::AgentState;
use crate::commit::touched::{Touched, WrittenRows};
use crate::context::Context;
use crate::error::AppError;

/// The collected changes of one act.
#[derive(Debug)]
pub struct Ledger<'a> {
    now: Timestamp,
    entropy: &'a dyn Entropy,
    agents: BTreeMap<Uuid, agent::Model>,
    pub bodies: Vec<body::Model>,
    pub versions: Vec<version::Model>,
    pub repeats: Vec<Uuid>,
    /// Versions whose signatures have another state with the present keys.
    pub judged: Vec<version::Model>,
    /// The sources of stored and of new versions.
    pub gave: Vec<version_source::Model>,
    standings: BTreeMap<Uuid, CoverageLevel>,
    states: Vec<(Uuid, VersionState)>,
    decisions: Vec<decision::Model>,
    reviews: BTreeMap<Uuid, review::Model>,
    holds: Vec<hold::Model>,
    lifted: Vec<(Uuid, Hold)>,
    retired: Vec<Uuid>,
    events: Vec<NewEvent>,
    /// The account that first registered a domain, by the domain, as far as that is known without reading it.
    pub first_registrants: HashMap<i64, Option<Uuid>>,
    /// The policies by which this act admits.
    policies: OnceCell<Arc<PolicySet>>,
}

impl<'a> Ledger<'a> {
    pub fn new(now: Timestamp, entropy: &'a dyn Entropy) -> Self {
        Self {
            now,
            entropy,
            agents: BTreeMap::new(),
            bodies: Vec::new(),
            versions: Vec::new(),
            repeats: Vec::new(),
            judged: Vec::new(),
            gave: Vec::new(),
            standings: BTreeMap::new(),
            states: Vec::new(),
            decisions: Vec::new(),
            reviews: BTreeMap::new(),
            holds: Vec::new(),
            lifted: Vec::new(),
            retired: Vec::new(),
            events: Vec::new(),
            first_registrants: HashMap::new(),
            policies: OnceCell::new(),
        }
    }

    /// The policies by which this act admits and registers, read once.
    pub async fn admitting(
        &self,
        context: &Context,
        write: &Write,
    ) -> Result<Arc<PolicySet>, AppError> {
        let read = || admitting_set(context, write);
        self.policies.get_or_try_init(read).await.cloned()
    }

    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// A new identifier with the time of the act.
    pub fn new_id(&self) -> Uuid {
        new_id(self.now, self.entropy)
    }

    /// Whether an agent of this act has this URN.
    pub fn has_urn(&self, urn: &str) -> bool {
        let mut agents = self.agents.values();
        agents.any(|agent| agent.urn.as_deref() == Some(urn))
    }

    /// Writes this agent's row, without an event: callers learn of a change by events only.
    pub fn put_agent(&mut self, agent: &agent::Model) {
        self.agents.insert(agent.id, agent.clone());
    }

    pub fn agent_event(&mut self, kind: EventKind, agent: Uuid, actor: &str, data: Value) {
        self.events.push(NewEvent {
            at: self.now,
            kind,
            subject: agent.to_string(),
            agent_id: Some(agent),
            actor: actor.into(),
            data,
        });
    }

    /// Appends an event of anything else.
    pub fn event(&mut self, kind: EventKind, subject: impl ToString, actor: &str, data: Value) {
        self.events.push(NewEvent {
            at: self.now,
            kind,
            subject: subject.to_string(),
            agent_id: None,
            actor: actor.into(),
            data,
        });
    }

    /// Approves a version: it is served from now on, the open review ends, and holds that an approval lifts are lifted.
    /// A change of class none keeps the bytes that are served.
    pub fn approve(
        &mut self,
        state: &mut AgentState,
        version: &VersionKey,
        class: Option<ChangeClass>,
        by: &Approver,
    ) {
        self.states.push((version.id, VersionState::Approved));
        self.decide(state.agent.id, version, true, by);
        if class != Some(ChangeClass::None) || state.agent.approved_version.is_none() {
            state.agent.approved_version = Some(version.id);
        }
        // An approval of a card also accepts the keys that sign it.
        state.pin_keys(&version.thumbprints);
        let lifecycle = state.agent.lifecycle.known();
        if matches!(lifecycle, Some(Lifecycle::Pending | Lifecycle::Rejected)) {
            state.agent.lifecycle = Lifecycle::Approved.into();
        }
        let about_another = state
            .open_review
            .as_ref()
            .is_some_and(|review| review.version_id != version.id);
        let outcome = if about_another && class == Some(ChangeClass::None) {
            ReviewState::Withdrawn
        } else {
            ReviewState::Approved
        };
        self.close_review(state, version.id, outcome, by);
        for hold in [Hold::CriticalChange, Hold::KeyChanged] {
            self.lift(state, hold, &by.actor, "approved");
        }
        self.approved_for_a_term(state, by);
        self.touch(state);
        let data = json!({"digest": version.digest, "rule": by.rule, "reason": by.reason});
        self.agent_event(EventKind::AgentApproved, state.agent.id, &by.actor, data);
    }

    /// Rejects a version. An agent that was never approved becomes rejected; an approved one keeps being served with
    /// its approved version, and a critical change keeps its hold.
    pub fn reject(&mut self, state: &mut AgentState, version: &VersionKey, by: &Approver) {
        self.decide(state.agent.id, version, false, by);
        self.refuse(state, version, by);
        let data = json!({"digest": version.digest, "reason": by.reason});
        self.agent_event(EventKind::AgentRejected, state.agent.id, &by.actor, data);
    }

    /// Applies an earlier rejection of this content, without a new decision.
    pub fn refuse(&mut self, state: &mut AgentState, version: &VersionKey, by: &Approver) {
        self.set_state(version.id, VersionState::Rejected);
        if state.agent.lifecycle == Lifecycle::Pending {
            state.agent.lifecycle = Lifecycle::Rejected.into();
        }
        self.close_review(state, version.id, ReviewState::Rejected, by);
        self.touch(state);
    }

    /// Opens a review of a version; an open one is superseded. A critical change puts the agent on hold at once. `actor` is
    /// whose act or fetch led to it.
    pub fn open_review(
        &mut self,
        state: &mut AgentState,
        version: &VersionKey,
        class: Option<ChangeClass>,
        submitter: Option<String>,
        actor: &str,
    ) {
        self.close_review(
            state,
            version.id,
            ReviewState::Superseded,
            &Approver::policy(Rule::NoRule),
        );
        if state.agent.lifecycle == Lifecycle::Rejected {
            state.agent.lifecycle = Lifecycle::Pending.into();
        }
        let review = review::Model {
            id: self.new_id(),
            agent_id: state.agent.id,
            version_id: version.id,
            kind: ReviewKind::Admission.into(),
            previous_version: state.agent.approved_version,
            change_class: class.map(Kept::from),
            state: ReviewState::Open.into(),
            submitter,
            assignee: None,
            due_at: None,
            decider: None,
            reason: None,
            created_at: self.now.0,
            decided_at: None,
        };
        let data = json!({"agent": state.agent.id, "digest": version.digest});
        self.event(EventKind::ReviewOpened, review.id, actor, data);
        self.reviews.insert(review.id, review.clone());
        state.open_review = Some(review);
        if class == Some(ChangeClass::Critical) {
            self.hold(
                state,
                Hold::CriticalChange,
                POLICY,
                "the card changed critically",
            );
        }
        self.touch(state);
    }

    /// Closes the open review, if there is one: with the given outcome if it is of this version or is withdrawn, else
    /// as superseded.
    pub fn close_review(
        &mut self,
        state: &mut AgentState,
        version: Uuid,
        outcome: ReviewState,
        by: &Approver,
    ) {
        let Some(mut review) = state.open_review.take() else {
            return;
        };
        let about_another = review.version_id != version;
        let outcome = if about_another && outcome != ReviewState::Withdrawn {
            ReviewState::Superseded
        } else {
            outcome
        };
        if about_another {
            self.states
                .push((review.version_id, VersionState::Superseded));
        }
        review.state = outcome.into();
        review.decided_at = Some(self.now.0);
        review.decider = Some(by.actor.clone());
        review.reason.clone_from(&by.reason);
        let data = json!({"agent": state.agent.id, "state": outcome});
        self.event(EventKind::ReviewClosed, review.id, &by.actor, data);
        self.reviews.insert(review.id, review);
    }

    /// Writes this review's row, without an event.
    pub fn put_review(&mut self, review: &review::Model) {
        self.reviews.insert(review.id, review.clone());
    }

    /// Puts an agent on hold; nothing happens if it is on this hold already.
    pub fn hold(&mut self, state: &mut AgentState, hold: Hold, actor: &str, reason: &str) {
        if state.holds.contains(&hold) {
            return;
        }
        state.holds.push(hold);
        self.holds.push(hold::Model {
            agent_id: state.agent.id,
            hold: hold.into(),
            reason: reason.into(),
            actor: actor.into(),
            since: self.now.0,
        });
        self.touch(state);
        let data = json!({"hold": hold, "reason": reason});
        self.agent_event(EventKind::AgentHeld, state.agent.id, actor, data);
    }

    /// Lifts a hold; returns whether the agent was on it.
    pub fn lift(&mut self, state: &mut AgentState, hold: Hold, actor: &str, reason: &str) -> bool {
        let was_held = self.end_hold(state, hold);
        if was_held {
            let data = json!({"hold": hold, "reason": reason});
            self.agent_event(EventKind::AgentReleased, state.agent.id, actor, data);
        }
        was_held
    }

    /// Ends a hold without an event, for a change of the agent that has one; returns whether the agent was on it.
    pub fn end_hold(&mut self, state: &mut AgentState, hold: Hold) -> bool {
        let Some(index) = state.holds.iter().position(|current| *current == hold) else {
            return false;
        };
        state.holds.remove(index);
        self.lifted.push((state.agent.id, hold));
        self.touch(state);
        true
    }

    /// Retires an agent for good, and ends its sources.
    pub fn retire(&mut self, state: &mut AgentState, actor: &str, reason: &str) {
        let by = Approver {
            actor: actor.into(),
            rule: Rule::NoRule,
            reason: Some(reason.into()),
            self_approved: false,
        };
        let reviewed = state.open_review.as_ref().map(|review| review.version_id);
        self.close_review(
            state,
            reviewed.unwrap_or_default(),
            ReviewState::Withdrawn,
            &by,
        );
        let further: Vec<Uuid> = state.further_reviews.iter().map(|one| one.id).collect();
        for review in further {
            self.close_further(state, review, ReviewState::Withdrawn, &by);
        }
        state.agent.lifecycle = Lifecycle::Retired.into();
        state.agent.retired_at = Some(self.now.0);
        self.retired.push(state.agent.id);
        self.touch(state);
        let data = json!({"reason": reason});
        self.agent_event(EventKind::AgentRetired, state.agent.id, actor, data);
    }

    /// Marks the agent as changed now and writes its row.
    pub fn touch(&mut self, state: &mut AgentState) {
        state.agent.updated_at = self.now.0;
        self.put_agent(&state.agent);
    }

    pub fn set_coverage(&mut self, version: Uuid, standing: CoverageLevel) {
        self.standings.insert(version, standing);
    }

    /// The coverage of a version, as of this act.
    pub fn coverage_of(&self, version: &VersionKey) -> CoverageLevel {
        // A level that only a later build knows is none that the rules may rely on.
        let kept = || {
            version
                .standing
                .known()
                .unwrap_or(CoverageLevel::Nomination)
        };
        self.standings
            .get(&version.id)
            .copied()
            .unwrap_or_else(kept)
    }

    /// Sets a version's state without a decision.
    pub fn set_state(&mut self, version: Uuid, state: VersionState) {
        self.states.push((version, state));
    }

    /// Records a decision on a version, without what follows from it.
    pub fn decide(&mut self, agent: Uuid, version: &VersionKey, approved: bool, by: &Approver) {
        self.decisions.push(decision::Model {
            id: 0,
            agent_id: agent,
            version_id: version.id,
            content_digest: version.content_digest.clone(),
            signing: version.signing.clone(),
            approved,
            rule: by.rule.into(),
            actor: by.actor.clone(),
            reason: by.reason.clone(),
            self_approved: by.self_approved,
            at: self.now.0,
        });
    }

    /// Gives new versions the states that were set since, so that their rows are written once, and not changed after that.
    fn settle_new_versions(&mut self) {
        let rows = self.versions.iter_mut();
        let mut new: HashMap<Uuid, &mut version::Model> = rows.map(|row| (row.id, row)).collect();
        // In the order in which states of stored versions are written.
        for state in VersionState::ALL {
            for (id, _) in self.states.iter().filter(|(_, to)| to == state) {
                if let Some(row) = new.get_mut(id) {
                    row.state = (*state).into();
                    row.ever_approved |= *state == VersionState::Approved;
                }
            }
        }
        self.states.retain(|(id, _)| !new.contains_key(id));
    }

    /// Writes everything, events last, and returns what was touched, which the caller commits and publishes by
    /// `commit_written`.
    pub async fn write(mut self, write: &Write) -> Result<Touched, AppError> {
        self.settle_new_versions();
        let mut agents: Vec<Uuid> = self
            .events
            .iter()
            .filter_map(|event| event.agent_id)
            .collect();
        agents.sort_unstable();
        agents.dedup();
        let rows = agents.iter().filter_map(|id| self.agents.get(id));
        let written = WrittenRows {
            agents: rows.cloned().collect(),
            first_registrants: self.first_registrants,
        };
        write
            .agents_put(self.agents.into_values().collect())
            .await?;
        write.bodies_insert(self.bodies).await?;
        write.versions_insert(self.versions).await?;
        write.versions_repeat(&self.repeats).await?;
        write.version_sources_put(self.gave).await?;
        for (version, standing) in self.standings {
            write.version_set_coverage(version, standing).await?;
        }
        for row in self.judged {
            write.version_derived(row).await?;
        }
        for state in VersionState::ALL {
            let ids: Vec<Uuid> = self
                .states
                .iter()
                .filter(|(_, to)| to == state)
                .map(|(id, _)| *id)
                .collect();
            write.versions_set_state(&ids, *state).await?;
        }
        write.decisions_insert(self.decisions).await?;
        write
            .reviews_put(self.reviews.into_values().collect())
            .await?;
        write.holds_set(self.holds).await?;
        for (agent, hold) in self.lifted {
            write.hold_lift(agent, hold).await?;
        }
        write.sources_end_of(&self.retired, self.now.0).await?;
        let mut touched = Touched::by(write, agents, written, &self.events).await?;
        touched.seq = write.events_append(self.events).await?;
        Ok(touched)
    }
}
