//! Names of skills as written in cards, by the ids that facets count.

use std::collections::BTreeMap;

use a2a_registry_api::FacetValue;
use a2a_registry_domain::facet::Facet;
use serde::Deserialize;

use crate::context::AppContext;
use crate::search::value_names::load_value_names;
use crate::visibility::caller::Caller;

/// Maximum number of skills whose names are looked up for one page.
const MAX_LOOKED_UP: usize = 12;
/// Maximum number of agents that are read for the name of one skill: a hit shows only some of many skills.
const MAX_AGENTS_PER_SKILL: usize = 5;

pub type SkillNames = BTreeMap<String, String>;

#[derive(Deserialize)]
struct StoredSkillHit {
    skills: Vec<StoredSkill>,
}

#[derive(Deserialize)]
struct StoredSkill {
    id: String,
    name: String,
}

/// Looks up the names of the most frequent of these skills. A skill whose name cannot be looked up has none.
pub async fn load_skill_names(
    context: &AppContext,
    caller: &Caller,
    counted: &[FacetValue],
) -> SkillNames {
    let ids = counted.iter().map(|one| one.value.clone());
    let ids = ids.take(MAX_LOOKED_UP).collect();
    load_value_names(
        context,
        caller,
        Facet::Skill,
        ids,
        MAX_AGENTS_PER_SKILL,
        stored_skill_name,
    )
    .await
}

/// The name of the skill with this id in a hit.
fn stored_skill_name(id: &str, hit: &[u8]) -> Option<String> {
    let stored: StoredSkillHit = serde_json::from_slice(hit).ok()?;
    let skill = stored.skills.into_iter().find(|skill| skill.id == id)?;
    // If the card gives no name, the stored name is the id, which the caller can show better as words.
    Some(skill.name).filter(|name| !name.trim().is_empty() && name != id)
}
