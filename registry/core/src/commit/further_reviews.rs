//! Reviews of other kinds than that of a change, and the term of an approval that some of them are about.

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, ReviewKind, ReviewState};
use a2a_registry_store::Kept;
use a2a_registry_store::entity::review;
use a2a_registry_store::versions::VersionKey;
use serde_json::json;
use uuid::Uuid;

use crate::commit::approver::{Approver, POLICY};
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;

#[derive(Debug, Clone)]
pub struct FurtherReview {
    pub kind: ReviewKind,
    pub version: Uuid,
    /// The version that was served before.
    pub previous: Option<Uuid>,
    /// The class of the change between them.
    pub class: Option<ChangeClass>,
    /// The time by which it is to be decided, in microseconds.
    pub due_at: Option<i64>,
    pub submitter: Option<String>,
}

impl FurtherReview {
    pub const fn new(kind: ReviewKind, version: Uuid, submitter: Option<String>) -> Self {
        Self {
            kind,
            version,
            previous: None,
            class: None,
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
            previous_version: new.previous,
            change_class: new.class.map(Kept::from),
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
        self.event(EventKind::ReviewOpened, id, actor, data);
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
        self.event(EventKind::ReviewClosed, id, &by.actor, data);
        self.put_review(&review);
    }

    /// Withdraws the open reviews of an approval that was renewed or revoked.
    pub fn withdraw_of_approval(&mut self, state: &mut AgentState, by: &Approver) {
        for kind in [ReviewKind::Recertification, ReviewKind::BreakGlass] {
            for id in state.further_of(kind) {
                self.close_further(state, id, ReviewState::Withdrawn, by);
            }
        }
    }

    /// Approves content that is already served, by a review of another kind than an admission.
    pub fn approve_served(
        &mut self,
        state: &mut AgentState,
        version: &VersionKey,
        review: &review::Model,
        by: &Approver,
    ) {
        self.decide(state.agent.id, version, true, by);
        self.close_further(state, review.id, ReviewState::Approved, by);
        self.begin_term(state, by);
        // The review was opened because nothing else could end these holds.
        let is_about_hold = review.kind == ReviewKind::Recertification
            && review.change_class.is_some()
            && state.open_review.is_none();
        if is_about_hold {
            for hold in [Hold::CriticalChange, Hold::KeyChanged] {
                self.lift(state, hold, &by.actor, "approved");
            }
        }
        self.touch(state);
        let kind = review.kind.as_str();
        let data =
            json!({"digest": version.digest, "rule": by.rule, "reason": by.reason, "kind": kind});
        self.agent_event(EventKind::AgentApproved, state.agent.id, &by.actor, data);
    }

    /// Refuses to approve the served content again: the agent is put on hold.
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

    /// The effect of an approval on the term. One by a person begins a new term. A rule only continues the current one,
    /// or a card that changes a little every week would never be approved anew; and so does an earlier decision of a
    /// person that takes effect again.
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

    /// Begins a new term of the approval of what is served, and lifts the hold that the end of the last one has set.
    fn begin_term(&mut self, state: &mut AgentState, by: &Approver) {
        state.agent.certified_at = Some(self.now().0);
        state.agent.recertify_at = None;
        self.withdraw_of_approval(state, by);
        self.lift(state, Hold::Recertify, &by.actor, "approved");
    }

    /// Points the open review of the served content to what is served now.
    pub fn recertification_follows(&mut self, state: &mut AgentState) {
        let Some(version) = state.agent.approved_version else {
            return;
        };
        for id in state.further_of(ReviewKind::Recertification) {
            let mut reviews = state.further_reviews.iter();
            let Some(open) = reviews.find(|one| one.id == id && one.version_id != version) else {
                continue;
            };
            let new = FurtherReview {
                due_at: open.due_at,
                ..FurtherReview::new(ReviewKind::Recertification, version, open.submitter.clone())
            };
            let by = Approver {
                reason: Some("the served content has changed".to_owned()),
                ..Approver::policy(Rule::NoRule)
            };
            self.close_further(state, id, ReviewState::Superseded, &by);
            self.open_further(state, new, POLICY, None);
        }
    }
}
