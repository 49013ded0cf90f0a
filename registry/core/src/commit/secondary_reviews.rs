//! Reviews of other kinds than admission, and the approval term that some of them are about.

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, ReviewKind, ReviewState};
use a2a_registry_store::StoredEnum;
use a2a_registry_store::entity::review;
use a2a_registry_store::versions::VersionSummary;
use serde_json::json;
use uuid::Uuid;

use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::{DecisionMaker, POLICY_ACTOR};

#[derive(Debug, Clone)]
pub struct NewSecondaryReview {
    pub kind: ReviewKind,
    pub version: Uuid,
    /// The version that was served previously.
    pub previous: Option<Uuid>,
    /// The class of the change between them.
    pub change_class: Option<ChangeClass>,
    /// The time by which it must be decided, in microseconds.
    pub due_at: Option<i64>,
    pub submitter: Option<String>,
}

impl NewSecondaryReview {
    pub const fn new(kind: ReviewKind, version: Uuid, submitter: Option<String>) -> Self {
        Self {
            kind,
            version,
            previous: None,
            change_class: None,
            due_at: None,
            submitter,
        }
    }
}

impl ChangeSet<'_> {
    /// Opens a review that hides nothing and closes no other review.
    pub fn open_secondary_review(
        &mut self,
        state: &mut AgentChangeState,
        secondary: NewSecondaryReview,
        actor: &str,
        reason: Option<&str>,
    ) -> Uuid {
        let review = review::Model {
            id: self.new_id(),
            agent_id: state.agent.id,
            version_id: secondary.version,
            kind: secondary.kind.into(),
            previous_version: secondary.previous,
            change_class: secondary.change_class.map(StoredEnum::from),
            state: ReviewState::Open.into(),
            submitter: secondary.submitter,
            assignee: None,
            due_at: secondary.due_at,
            decider: None,
            reason: None,
            created_at: self.now().0,
            decided_at: None,
        };
        let id = review.id;
        let mut data = json!({"agent": state.agent.id, "kind": secondary.kind});
        if let Some(reason) = reason {
            data["reason"] = json!(reason);
        }
        self.add_event(EventKind::ReviewOpened, id, actor, data);
        self.put_review(&review);
        state.secondary_reviews.push(review);
        id
    }

    /// Closes an open review of another kind than admission.
    pub fn close_secondary_review(
        &mut self,
        state: &mut AgentChangeState,
        id: Uuid,
        new_state: ReviewState,
        decision_maker: &DecisionMaker,
    ) {
        let position = state.secondary_reviews.iter().position(|one| one.id == id);
        let Some(mut review) = position.map(|at| state.secondary_reviews.remove(at)) else {
            return;
        };
        review.state = new_state.into();
        review.decided_at = Some(self.now().0);
        review.decider = Some(decision_maker.actor.clone());
        review.reason.clone_from(&decision_maker.reason);
        let data = json!({"agent": state.agent.id, "state": new_state});
        self.add_event(EventKind::ReviewClosed, id, &decision_maker.actor, data);
        self.put_review(&review);
    }

    /// Withdraws the open reviews about an approval that was renewed or revoked.
    pub fn withdraw_approval_reviews(
        &mut self,
        state: &mut AgentChangeState,
        decision_maker: &DecisionMaker,
    ) {
        for kind in [ReviewKind::Recertification, ReviewKind::BreakGlass] {
            for id in state.secondary_review_ids(kind) {
                self.close_secondary_review(state, id, ReviewState::Withdrawn, decision_maker);
            }
        }
    }

    /// Approves content that is already served, by a review of another kind than admission.
    pub fn reapprove_served_version(
        &mut self,
        state: &mut AgentChangeState,
        version: &VersionSummary,
        review: &review::Model,
        decision_maker: &DecisionMaker,
    ) {
        self.record_decision(state.agent.id, version, true, decision_maker);
        self.close_secondary_review(state, review.id, ReviewState::Approved, decision_maker);
        self.begin_approval_term(state, decision_maker);
        // The review was opened because nothing else could end these holds.
        let is_about_hold = review.kind == ReviewKind::Recertification
            && review.change_class.is_some()
            && state.open_review.is_none();
        if is_about_hold {
            for hold in [Hold::CriticalChange, Hold::KeyChanged] {
                self.lift_hold(state, hold, &decision_maker.actor, "approved");
            }
        }
        self.mark_agent_changed(state);
        let kind = review.kind.as_str();
        let data = json!({"digest": version.digest, "rule": decision_maker.rule, "reason": decision_maker.reason, "kind": kind});
        self.add_agent_event(
            EventKind::AgentApproved,
            state.agent.id,
            &decision_maker.actor,
            data,
        );
    }

    /// Rejects a recertification of the served content: the agent is put on hold.
    pub fn reject_recertification(
        &mut self,
        state: &mut AgentChangeState,
        version: &VersionSummary,
        review: Uuid,
        decision_maker: &DecisionMaker,
    ) {
        self.record_decision(state.agent.id, version, false, decision_maker);
        self.close_secondary_review(state, review, ReviewState::Rejected, decision_maker);
        let reason = decision_maker.reason.as_deref().unwrap_or_default();
        self.place_hold(state, Hold::Recertify, &decision_maker.actor, reason);
        let data = json!({"digest": version.digest, "reason": decision_maker.reason,
            "kind": ReviewKind::Recertification});
        self.add_agent_event(
            EventKind::AgentRejected,
            state.agent.id,
            &decision_maker.actor,
            data,
        );
    }

    /// Updates the approval term after an approval. An approval by a person begins a new term. A rule only continues
    /// the current one, because otherwise a card with a small change every week would never need a new approval; the
    /// same applies to an earlier decision of a person that takes effect again.
    pub(super) fn update_approval_term(
        &mut self,
        state: &mut AgentChangeState,
        decision_maker: &DecisionMaker,
    ) {
        if decision_maker.is_new_person_decision() {
            self.begin_approval_term(state, decision_maker);
            return;
        }
        if state.agent.certified_at.is_none() {
            state.agent.certified_at = Some(self.now().0);
        }
        self.retarget_recertification(state);
    }

    /// Begins a new approval term of the served content, and lifts the hold that the end of the previous term placed.
    fn begin_approval_term(
        &mut self,
        state: &mut AgentChangeState,
        decision_maker: &DecisionMaker,
    ) {
        state.agent.certified_at = Some(self.now().0);
        state.agent.recertify_at = None;
        self.withdraw_approval_reviews(state, decision_maker);
        self.lift_hold(state, Hold::Recertify, &decision_maker.actor, "approved");
    }

    /// Points the open review of the served content to what is served now.
    pub fn retarget_recertification(&mut self, state: &mut AgentChangeState) {
        let Some(version) = state.agent.approved_version else {
            return;
        };
        for id in state.secondary_review_ids(ReviewKind::Recertification) {
            let mut reviews = state.secondary_reviews.iter();
            let Some(open) = reviews.find(|one| one.id == id && one.version_id != version) else {
                continue;
            };
            let replacement = NewSecondaryReview {
                due_at: open.due_at,
                ..NewSecondaryReview::new(
                    ReviewKind::Recertification,
                    version,
                    open.submitter.clone(),
                )
            };
            let decision_maker = DecisionMaker {
                reason: Some("the served content has changed".to_owned()),
                ..DecisionMaker::by_rule(Rule::NoRule)
            };
            self.close_secondary_review(state, id, ReviewState::Superseded, &decision_maker);
            self.open_secondary_review(state, replacement, POLICY_ACTOR, None);
        }
    }
}
