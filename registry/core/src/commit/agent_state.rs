//! The state of an agent during a change: its row, its holds and its open review.

use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, ReviewKind};
use a2a_registry_store::entity::{agent, review};
use a2a_registry_store::{WriteTransaction, agents, reviews};
use uuid::Uuid;

use crate::error::AppError;

#[derive(Debug, Clone)]
pub struct AgentChangeState {
    pub agent: agent::Model,
    pub holds: Vec<Hold>,
    pub open_review: Option<review::Model>,
    /// Its open reviews of other kinds, which no change of its card closes.
    pub secondary_reviews: Vec<review::Model>,
}

impl AgentChangeState {
    /// Whether the open review is about this version and this change class.
    pub fn is_under_review(&self, version: Uuid, change_class: Option<ChangeClass>) -> bool {
        self.open_review.as_ref().is_some_and(|review| {
            let is_same_class = match (&review.change_class, change_class) {
                (None, None) => true,
                (Some(reviewed), Some(class)) => *reviewed == class,
                _ => false,
            };
            review.version_id == version && is_same_class
        })
    }
    pub fn add_review(&mut self, review: review::Model) {
        match review.kind == ReviewKind::Admission {
            true => self.open_review = Some(review),
            false => self.secondary_reviews.push(review),
        }
    }

    pub fn secondary_review_ids(&self, kind: ReviewKind) -> Vec<Uuid> {
        let of_kind = self.secondary_reviews.iter().filter(|one| one.kind == kind);
        of_kind.map(|one| one.id).collect()
    }

    /// Pins the keys with these thumbprints instead of the previous ones; an empty text changes nothing.
    pub fn pin_keys(&mut self, thumbprints: &str) {
        if !thumbprints.is_empty() {
            thumbprints.clone_into(&mut self.agent.pins);
        }
    }
}

/// Loads an agent with its holds and open review, inside a write.
pub async fn load_agent_state(
    write: &WriteTransaction,
    agent: Uuid,
) -> Result<AgentChangeState, AppError> {
    let row = agents::agents_by_ids(write, &[agent])
        .await?
        .pop()
        .ok_or_else(|| AppError::no_agent(agent))?;
    let holds = agents::holds_of_agents(write, &[agent]).await?;
    let mut state = AgentChangeState {
        agent: row,
        // Only the holds that this build knows. Visibility uses all of them, from the rows.
        holds: holds
            .iter()
            .filter_map(|row| row.hold.known_value())
            .collect(),
        open_review: None,
        secondary_reviews: Vec::new(),
    };
    for open in reviews::open_reviews_by_agent(write, &[agent]).await? {
        state.add_review(open);
    }
    Ok(state)
}
