//! The changes of one action, collected in memory and written in one transaction together with their events. Ingest
//! and the curators' actions share it, so that an approval has the same effects wherever it comes from.

mod holds;
mod trace_span;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::identifiers::{Entropy, new_uuid};
use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use a2a_registry_domain::review::{ChangeClass, ReviewKind, ReviewState, VersionState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::PolicySet;
use a2a_registry_store::entity::{
    agent, card_body, decision, hold, review, version, version_source,
};
use a2a_registry_store::events::{NewEvent, highest_event_seq};
use a2a_registry_store::versions::VersionSummary;
use a2a_registry_store::{StoredEnum, WriteTransaction};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::commit::admission_policies::load_admission_policies;
use crate::commit::agent_state::AgentChangeState;
use crate::commit::audit_log::build_audit_lines;
use crate::commit::committed_changes::{CommittedChanges, WrittenAgentRows};
use crate::commit::decision_maker::{DecisionMaker, POLICY_ACTOR};
use crate::context::AppContext;
use crate::error::AppError;

/// The collected changes of one action.
#[derive(Debug)]
pub struct ChangeSet<'a> {
    now: Timestamp,
    entropy: &'a dyn Entropy,
    agents: BTreeMap<Uuid, agent::Model>,
    pub bodies: Vec<card_body::Model>,
    pub versions: Vec<version::Model>,
    pub repeated_versions: Vec<Uuid>,
    /// Versions whose signature state changed with the current keys.
    pub reverified: Vec<version::Model>,
    /// The sources of stored and new versions.
    pub version_sources: Vec<version_source::Model>,
    coverage_levels: BTreeMap<Uuid, CoverageLevel>,
    version_states: Vec<(Uuid, VersionState)>,
    decisions: Vec<decision::Model>,
    reviews: BTreeMap<Uuid, review::Model>,
    holds: Vec<hold::Model>,
    lifted_holds: Vec<(Uuid, Hold)>,
    retired_agents: Vec<Uuid>,
    /// Agents that are as the action wants them, perhaps by another process whose event this one has not applied.
    confirmed_agents: Vec<Uuid>,
    events: Vec<NewEvent>,
    /// The account that first registered a domain, by domain, if it is known without a read.
    pub first_registrants: HashMap<i64, Option<Uuid>>,
    /// The policies by which this change set admits cards.
    admission_policies: OnceCell<Arc<PolicySet>>,
    /// Whether each action is logged. A caller that makes very many logs its own progress instead.
    pub logs_actions: bool,
}

impl<'a> ChangeSet<'a> {
    pub fn new(now: Timestamp, entropy: &'a dyn Entropy) -> Self {
        Self {
            now,
            entropy,
            agents: BTreeMap::new(),
            bodies: Vec::new(),
            versions: Vec::new(),
            repeated_versions: Vec::new(),
            reverified: Vec::new(),
            version_sources: Vec::new(),
            coverage_levels: BTreeMap::new(),
            version_states: Vec::new(),
            decisions: Vec::new(),
            reviews: BTreeMap::new(),
            holds: Vec::new(),
            lifted_holds: Vec::new(),
            retired_agents: Vec::new(),
            confirmed_agents: Vec::new(),
            events: Vec::new(),
            first_registrants: HashMap::new(),
            admission_policies: OnceCell::new(),
            logs_actions: true,
        }
    }

    /// The policies by which this change set admits and registers, read once.
    pub async fn admission_policies(
        &self,
        context: &AppContext,
        write: &WriteTransaction,
    ) -> Result<Arc<PolicySet>, AppError> {
        let load = || load_admission_policies(context, write);
        self.admission_policies.get_or_try_init(load).await.cloned()
    }

    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// A new identifier with the time of this change set.
    pub fn new_id(&self) -> Uuid {
        new_uuid(self.now, self.entropy)
    }

    /// Whether an agent in this change set has this URN.
    pub fn has_agent_with_urn(&self, urn: &str) -> bool {
        let mut agents = self.agents.values();
        agents.any(|agent| agent.has_urn(urn))
    }

    /// Writes this agent's row, without an event. Callers learn of changes only by events.
    pub fn put_agent(&mut self, agent: &agent::Model) {
        self.agents.insert(agent.id, agent.clone());
    }

    pub fn add_agent_event(&mut self, kind: EventKind, agent: Uuid, actor: &str, data: Value) {
        self.events.push(NewEvent {
            at: self.now,
            kind,
            subject: agent.to_string(),
            agent_id: Some(agent),
            actor: actor.into(),
            data,
        });
    }

    /// Appends an event about a subject other than an agent.
    pub fn add_event(&mut self, kind: EventKind, subject: impl ToString, actor: &str, data: Value) {
        self.events.push(NewEvent {
            at: self.now,
            kind,
            subject: subject.to_string(),
            agent_id: None,
            actor: actor.into(),
            data,
        });
    }

    /// Approves a version: it is served from now on, the open review ends, and holds that an approval lifts are
    /// lifted. A change of class none keeps the served bytes.
    pub fn approve_version(
        &mut self,
        state: &mut AgentChangeState,
        version: &VersionSummary,
        change_class: Option<ChangeClass>,
        decision_maker: &DecisionMaker,
    ) {
        self.version_states
            .push((version.id, VersionState::Approved));
        self.record_decision(state.agent.id, version, true, decision_maker);
        if change_class != Some(ChangeClass::None) || state.agent.approved_version.is_none() {
            state.agent.approved_version = Some(version.id);
        }
        // An approval of a card also accepts the keys that sign it.
        state.pin_keys(&version.thumbprints);
        let lifecycle = state.agent.lifecycle.known_value();
        if matches!(lifecycle, Some(Lifecycle::Pending | Lifecycle::Rejected)) {
            state.agent.lifecycle = Lifecycle::Approved.into();
        }
        let is_other_version = state
            .open_review
            .as_ref()
            .is_some_and(|review| review.version_id != version.id);
        let outcome = if is_other_version && change_class == Some(ChangeClass::None) {
            ReviewState::Withdrawn
        } else {
            ReviewState::Approved
        };
        self.close_review(state, version.id, outcome, decision_maker);
        for hold in [Hold::CriticalChange, Hold::KeyChanged] {
            self.lift_hold(state, hold, &decision_maker.actor, "approved");
        }
        self.update_approval_term(state, decision_maker);
        self.mark_agent_changed(state);
        let data = json!({"digest": version.digest, "rule": decision_maker.rule, "reason": decision_maker.reason});
        self.add_agent_event(
            EventKind::AgentApproved,
            state.agent.id,
            &decision_maker.actor,
            data,
        );
    }

    /// Rejects a version. An agent that was never approved becomes rejected; an approved one keeps being served with
    /// its approved version, and a critical change keeps its hold.
    pub fn reject_version(
        &mut self,
        state: &mut AgentChangeState,
        version: &VersionSummary,
        decision_maker: &DecisionMaker,
    ) {
        self.record_decision(state.agent.id, version, false, decision_maker);
        self.repeat_rejection(state, version, decision_maker);
        let data = json!({"digest": version.digest, "reason": decision_maker.reason});
        self.add_agent_event(
            EventKind::AgentRejected,
            state.agent.id,
            &decision_maker.actor,
            data,
        );
    }

    /// Applies an earlier rejection of this content, without a new decision.
    pub fn repeat_rejection(
        &mut self,
        state: &mut AgentChangeState,
        version: &VersionSummary,
        decision_maker: &DecisionMaker,
    ) {
        self.set_version_state(version.id, VersionState::Rejected);
        if state.agent.lifecycle == Lifecycle::Pending {
            state.agent.lifecycle = Lifecycle::Rejected.into();
        }
        self.close_review(state, version.id, ReviewState::Rejected, decision_maker);
        self.mark_agent_changed(state);
    }

    /// Opens a review of a version; an open one is superseded. A critical change puts the agent on hold at once.
    /// `actor` is the one whose action or fetch caused it.
    pub fn open_review(
        &mut self,
        state: &mut AgentChangeState,
        version: &VersionSummary,
        change_class: Option<ChangeClass>,
        submitter: Option<String>,
        actor: &str,
    ) {
        self.close_review(
            state,
            version.id,
            ReviewState::Superseded,
            &DecisionMaker::by_rule(Rule::NoRule),
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
            change_class: change_class.map(StoredEnum::from),
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
        self.add_event(EventKind::ReviewOpened, review.id, actor, data);
        self.reviews.insert(review.id, review.clone());
        state.open_review = Some(review);
        if change_class == Some(ChangeClass::Critical) {
            self.place_hold(
                state,
                Hold::CriticalChange,
                POLICY_ACTOR,
                "the card had a critical change",
            );
        }
        self.mark_agent_changed(state);
    }

    /// Closes the open review, if there is one: with the given outcome if it is about this version or is withdrawn,
    /// else as superseded.
    pub fn close_review(
        &mut self,
        state: &mut AgentChangeState,
        version: Uuid,
        outcome: ReviewState,
        decision_maker: &DecisionMaker,
    ) {
        let Some(mut review) = state.open_review.take() else {
            return;
        };
        let is_other_version = review.version_id != version;
        let outcome = if is_other_version && outcome != ReviewState::Withdrawn {
            ReviewState::Superseded
        } else {
            outcome
        };
        if is_other_version {
            self.version_states
                .push((review.version_id, VersionState::Superseded));
        }
        review.state = outcome.into();
        review.decided_at = Some(self.now.0);
        review.decider = Some(decision_maker.actor.clone());
        review.reason.clone_from(&decision_maker.reason);
        let data = json!({"agent": state.agent.id, "state": outcome});
        self.add_event(
            EventKind::ReviewClosed,
            review.id,
            &decision_maker.actor,
            data,
        );
        self.reviews.insert(review.id, review);
    }

    /// Writes this review's row, without an event.
    pub fn put_review(&mut self, review: &review::Model) {
        self.reviews.insert(review.id, review.clone());
    }

    /// Retires an agent permanently, and ends its sources.
    pub fn retire_agent(&mut self, state: &mut AgentChangeState, actor: &str, reason: &str) {
        let decision_maker = DecisionMaker {
            actor: actor.into(),
            rule: Rule::NoRule,
            reason: Some(reason.into()),
            self_approved: false,
        };
        let reviewed_version = state.open_review.as_ref().map(|review| review.version_id);
        self.close_review(
            state,
            reviewed_version.unwrap_or_default(),
            ReviewState::Withdrawn,
            &decision_maker,
        );
        let further: Vec<Uuid> = state.secondary_reviews.iter().map(|one| one.id).collect();
        for review in further {
            self.close_secondary_review(state, review, ReviewState::Withdrawn, &decision_maker);
        }
        state.agent.lifecycle = Lifecycle::Retired.into();
        state.agent.retired_at = Some(self.now.0);
        self.retired_agents.push(state.agent.id);
        self.mark_agent_changed(state);
        let data = json!({"reason": reason});
        self.add_agent_event(EventKind::AgentRetired, state.agent.id, actor, data);
    }

    /// Marks the agent as changed now and writes its row.
    pub fn mark_agent_changed(&mut self, state: &mut AgentChangeState) {
        state.agent.updated_at = self.now.0;
        self.put_agent(&state.agent);
    }

    /// Clears the versions of an agent and the result of its endpoint check, without an event: they are erased.
    pub fn clear_agent_versions(&mut self, agent: &agent::Model) {
        let row = self.agents.entry(agent.id).or_insert_with(|| agent.clone());
        row.approved_version = None;
        row.newest_version = None;
        row.endpoint = EndpointState::NotChecked.into();
        row.endpoint_check_id = None;
        row.endpoint_checked_at = None;
        row.endpoint_answered_at = None;
    }

    pub fn set_version_coverage(&mut self, version: Uuid, level: CoverageLevel) {
        self.coverage_levels.insert(version, level);
    }

    /// The coverage of a version, including the changes of this change set.
    pub fn version_coverage_level(&self, version: &VersionSummary) -> CoverageLevel {
        // The rules must not rely on a level that only a later build knows.
        let stored_level = || {
            version
                .standing
                .known_value()
                .unwrap_or(CoverageLevel::Nomination)
        };
        self.coverage_levels
            .get(&version.id)
            .copied()
            .unwrap_or_else(stored_level)
    }

    /// Sets a version's state without a decision.
    pub fn set_version_state(&mut self, version: Uuid, state: VersionState) {
        self.version_states.push((version, state));
    }

    /// Records a decision on a version, without its consequences.
    pub fn record_decision(
        &mut self,
        agent: Uuid,
        version: &VersionSummary,
        approved: bool,
        decision_maker: &DecisionMaker,
    ) {
        self.decisions.push(decision::Model {
            id: 0,
            agent_id: agent,
            version_id: version.id,
            content_digest: version.content_digest.clone(),
            signing: version.signing.clone(),
            approved,
            rule: decision_maker.rule.into(),
            actor: decision_maker.actor.clone(),
            reason: decision_maker.reason.clone(),
            self_approved: decision_maker.self_approved,
            at: self.now.0,
        });
    }

    /// Applies the states set since to new versions, so that their rows are written once and not changed afterwards.
    fn apply_states_to_new_versions(&mut self) {
        let rows = self.versions.iter_mut();
        let mut new_rows: HashMap<Uuid, &mut version::Model> =
            rows.map(|row| (row.id, row)).collect();
        // States are applied in the order in which those of stored versions are written.
        for state in VersionState::ALL {
            for (id, _) in self.version_states.iter().filter(|(_, to)| to == state) {
                if let Some(row) = new_rows.get_mut(id) {
                    row.state = (*state).into();
                    row.ever_approved |= *state == VersionState::Approved;
                }
            }
        }
        self.version_states
            .retain(|(id, _)| !new_rows.contains_key(id));
    }

    /// Writes everything, events last, and returns the committed changes, which the caller commits and publishes by
    /// `commit_and_publish`.
    pub async fn write(mut self, write: &WriteTransaction) -> Result<CommittedChanges, AppError> {
        self.apply_states_to_new_versions();
        let of_events = self.events.iter().filter_map(|event| event.agent_id);
        let mut agents: Vec<Uuid> = of_events.chain(self.confirmed_agents).collect();
        agents.sort_unstable();
        agents.dedup();
        let rows = agents.iter().filter_map(|id| self.agents.get(id));
        let logged_events = self.logs_actions.then_some(self.events.as_slice());
        let written = WrittenAgentRows {
            agents: rows.cloned().collect(),
            audit_lines: build_audit_lines(logged_events.unwrap_or_default(), &self.versions),
            first_registrants: self.first_registrants,
        };
        write
            .upsert_agents(self.agents.into_values().collect())
            .await?;
        write.upsert_bodies(self.bodies).await?;
        write.insert_versions(self.versions).await?;
        write
            .increment_version_repeats(&self.repeated_versions)
            .await?;
        write.upsert_version_sources(self.version_sources).await?;
        for (version, standing) in self.coverage_levels {
            write.set_version_coverage(version, standing).await?;
        }
        for row in self.reverified {
            write.update_derived_version_columns(row).await?;
        }
        for state in VersionState::ALL {
            let ids: Vec<Uuid> = self
                .version_states
                .iter()
                .filter(|(_, to)| to == state)
                .map(|(id, _)| *id)
                .collect();
            write.set_version_states(&ids, *state).await?;
        }
        write.insert_decisions(self.decisions).await?;
        write
            .upsert_reviews(self.reviews.into_values().collect())
            .await?;
        write.insert_holds(self.holds).await?;
        for (agent, hold) in self.lifted_holds {
            write.lift_hold(agent, hold).await?;
        }
        write
            .end_sources_of_agents(&self.retired_agents, self.now.0)
            .await?;
        let mut committed = CommittedChanges::load(write, agents, written).await?;
        let mut kinds = self.events.iter().map(|event| event.kind);
        committed.changes_callers = kinds.any(EventKind::changes_callers);
        committed.last_seq = write.append_events(self.events).await?;
        if committed.last_seq.is_none() && !committed.changed_ids.is_empty() {
            committed.last_seq = Some(highest_event_seq(write).await?);
        }
        Ok(committed)
    }
}
