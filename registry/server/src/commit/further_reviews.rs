//! Reviews beside that of a change, of other kinds, and the term of an approval that some of them are about.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_store::entity::review;
use a2a_registry_store::versions::VersionKey;
use serde_json::json;
use uuid::Uuid;

use crate::commit::approver::{Approver, POLICY};
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;

/// A review to open beside that of a change.
#[derive(Debug, Clone)]
pub struct FurtherReview {
    /// Its kind.
    pub kind: ReviewKind,
    /// The version that it is about.
    pub version: Uuid,
    /// By when it is to be decided; microseconds.
    pub due_at: Option<i64>,
    /// The name of the account that has registered the agent.
    pub submitter: Option<String>,
}

impl FurtherReview {
    /// One without a date.
    pub const fn new(kind: ReviewKind, version: Uuid, submitter: Option<String>) -> Self {
        Self {
            kind,
            version,
            due_at: None,
            submitter,
        }
    }
}

impl Ledger<'_> {
    /// Opens a review that hides nothing and closes no other.
    pub fn open_further(
        &mut self,
        state: &mut AgentState,
        new: FurtherReview,
        actor: &str,
        reason: Option<&str>,
    ) -> Uuid {
        let review = review::Model {
            id: self.new_id(),
            agent_id: state.agent.id,
            version_id: new.version,
            kind: new.kind.into(),
            previous_version: None,
            change_class: None,
            state: ReviewState::Open.into(),
            submitter: new.submitter,
            assignee: None,
            due_at: new.due_at,
            decider: None,
            reason: None,
            created_at: self.now().0,
            decided_at: None,
        };
        let id = review.id;
        let mut data = json!({"agent": state.agent.id, "kind": new.kind});
        if let Some(reason) = reason {
            data["reason"] = json!(reason);
        }
        self.event(EventKind::ReviewOpened, &id.to_string(), actor, data);
        self.put_review(&review);
        state.further_reviews.push(review);
        id
    }

    /// Closes an open review of another kind than an admission.
    pub fn close_further(
        &mut self,
        state: &mut AgentState,
        id: Uuid,
        outcome: ReviewState,
        by: &Approver,
    ) {
        let place = state.further_reviews.iter().position(|one| one.id == id);
        let Some(mut review) = place.map(|at| state.further_reviews.remove(at)) else {
            return;
        };
        review.state = outcome.into();
        review.decided_at = Some(self.now().0);
        review.decider = Some(by.actor.clone());
        review.reason.clone_from(&by.reason);
        let data = json!({"agent": state.agent.id, "state": outcome});
        self.event(EventKind::ReviewClosed, &id.to_string(), &by.actor, data);
        self.put_review(&review);
    }

    /// Withdraws the open reviews of the served content, which is served no longer or was approved anew.
    pub fn withdraw_recertification(&mut self, state: &mut AgentState, by: &Approver) {
        for id in state.further_of(ReviewKind::Recertification) {
            self.close_further(state, id, ReviewState::Withdrawn, by);
        }
    }

    /// Approves the served content once more, by a review of the kind `recertification`.
    pub fn recertify(
        &mut self,
        state: &mut AgentState,
        version: &VersionKey,
        review: Uuid,
        by: &Approver,
    ) {
        self.decide(state.agent.id, version, true, by);
        self.close_further(state, review, ReviewState::Approved, by);
        self.begin_term(state, by);
        self.touch(state);
        let data = json!({"digest": version.digest, "rule": by.rule, "reason": by.reason,
            "kind": ReviewKind::Recertification});
        self.agent_event(EventKind::AgentApproved, state.agent.id, &by.actor, data);
    }

    /// Refuses to approve the served content once more: the agent is on hold from here on.
    pub fn refuse_recertification(
        &mut self,
        state: &mut AgentState,
        version: &VersionKey,
        review: Uuid,
        by: &Approver,
    ) {
        self.decide(state.agent.id, version, false, by);
        self.close_further(state, review, ReviewState::Rejected, by);
        let reason = by.reason.as_deref().unwrap_or_default();
        self.hold(state, Hold::Recertify, &by.actor, reason);
        let data = json!({"digest": version.digest, "reason": by.reason,
            "kind": ReviewKind::Recertification});
        self.agent_event(EventKind::AgentRejected, state.agent.id, &by.actor, data);
    }

    /// What an approval means for the term. One by a person begins a new one. A rule only continues the one that runs, or
    /// a card that changes a little every week would never be approved anew; and so does an earlier decision of a person
    /// that holds again.
    pub(super) fn approved_for_a_term(&mut self, state: &mut AgentState, by: &Approver) {
        if by.is_person_now() {
            self.begin_term(state, by);
            return;
        }
        if state.agent.certified_at.is_none() {
            state.agent.certified_at = Some(self.now().0);
        }
        self.recertification_follows(state);
    }

    fn begin_term(&mut self, state: &mut AgentState, by: &Approver) {
        state.agent.certified_at = Some(self.now().0);
        state.agent.recertify_at = None;
        self.withdraw_recertification(state, by);
        self.lift(state, Hold::Recertify, &by.actor, "approved");
    }

    /// Has the open review of the served content be about what is served now.
    fn recertification_follows(&mut self, state: &mut AgentState) {
        let Some(version) = state.agent.approved_version else {
            return;
        };
        for id in state.further_of(ReviewKind::Recertification) {
            let mut reviews = state.further_reviews.iter();
            let Some(open) = reviews.find(|one| one.id == id && one.version_id != version) else {
                continue;
            };
            let new = FurtherReview {
                kind: ReviewKind::Recertification,
                version,
                due_at: open.due_at,
                submitter: open.submitter.clone(),
            };
            let by = Approver {
                reason: Some("the served content has changed".to_owned()),
                ..Approver::policy(a2a_registry_domain::admission_rules::Rule::NoRule)
            };
            self.close_further(state, id, ReviewState::Superseded, &by);
            self.open_further(state, new, POLICY, None);
        }
    }
}
