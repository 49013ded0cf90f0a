//! Names of agents on pages, for callers who may see the agents.

use std::collections::HashMap;

use a2a_registry_store::agents;
use uuid::Uuid;

use crate::agents::records::load_agent_records;
use crate::context::AppContext;
use crate::error::Result;
use crate::text::{self, LINE};

/// An agent's name on a page, with a link to its page; its identifier if it no longer exists.
pub struct AgentNameView {
    pub link: Option<String>,
    pub name: String,
}

pub async fn load_agent_names(
    context: &AppContext,
    mut ids: Vec<Uuid>,
) -> Result<HashMap<Uuid, String>> {
    ids.sort_unstable();
    ids.dedup();
    let rows = agents::agents_by_ids(&context.store, &ids).await?;
    let found = load_agent_records(&context.store, rows).await?.into_iter();
    Ok(found
        .map(|record| (record.agent.id, text::single_line(&record.card.name, LINE)))
        .collect())
}

impl AgentNameView {
    pub fn new(id: Uuid, names: &HashMap<Uuid, String>) -> Self {
        match names.get(&id) {
            Some(name) => Self {
                link: Some(format!("/agents/{id}/")),
                name: name.clone(),
            },
            None => Self {
                link: None,
                name: id.to_string(),
            },
        }
    }
}
