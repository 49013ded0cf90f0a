//! An agent while an act changes it: its row, its holds and its open review.

use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, ReviewKind};
use a2a_registry_store::entity::{agent, review};
use a2a_registry_store::{Write, agents, reviews};
use uuid::Uuid;

use crate::error::AppError;

#[derive(Debug, Clone)]
pub struct AgentState {
    pub agent: agent::Model,
    pub holds: Vec<Hold>,
    pub open_review: Option<review::Model>,
    /// Its open reviews of other kinds, which no change of its card closes.
    pub further_reviews: Vec<review::Model>,
}

impl AgentState {
    /// Whether the open review is of this version and this class of change.
    pub fn is_under_review(&self, version: Uuid, class: Option<ChangeClass>) -> bool {
        self.open_review.as_ref().is_some_and(|open| {
            let same = match (&open.change_class, class) {
                (None, None) => true,
                (Some(reviewed), Some(class)) => *reviewed == class,
                _ => false,
            };
            open.version_id == version && same
        })
    }
    pub fn add_review(&mut self, open: review::Model) {
        match open.kind == ReviewKind::Admission {
            true => self.open_review = Some(open),
            false => self.further_reviews.push(open),
        }
    }

    pub fn further_of(&self, kind: ReviewKind) -> Vec<Uuid> {
        let of_kind = self.further_reviews.iter().filter(|one| one.kind == kind);
        of_kind.map(|one| one.id).collect()
    }

    /// Pins the keys with these thumbprints instead of the previous ones; an empty text keeps those.
    pub fn pin_keys(&mut self, thumbprints: &str) {
        if !thumbprints.is_empty() {
            thumbprints.clone_into(&mut self.agent.pins);
        }
    }
}

/// Reads an agent with its holds and open review, inside a write.
pub async fn state_of(write: &Write, agent: Uuid) -> Result<AgentState, AppError> {
    let row = agents::agents_by_ids(write, &[agent])
        .await?
        .pop()
        .ok_or_else(|| AppError::no_agent(agent))?;
    let holds = agents::holds_of(write, &[agent]).await?;
    let mut state = AgentState {
        agent: row,
        // Only the holds that this build knows. Visibility uses all of them, from the rows.
        holds: holds.iter().filter_map(|row| row.hold.known()).collect(),
        open_review: None,
        further_reviews: Vec::new(),
    };
    for open in reviews::reviews_open(write, &[agent]).await? {
        state.add_review(open);
    }
    Ok(state)
}
