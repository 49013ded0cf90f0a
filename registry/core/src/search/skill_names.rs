//! Names of skills as cards write them, by the ids that facets count.

use std::collections::BTreeMap;

use a2a_registry_api::FacetValue;
use a2a_registry_domain::facet::Facet;
use serde::Deserialize;

use crate::context::AppContext;
use crate::search::value_names::load_value_names;
use crate::visibility::caller::Caller;

/// The most skills whose names are looked up for one page.
const MAX_LOOKED_UP: usize = 12;
/// The most agents that are asked for the name of one skill: of many skills a hit shows only some.
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

/// The names of the most frequent of these skills. A skill whose name cannot be looked up has none.
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
    // Where a card names none, the name is the id, and words are better than that.
    Some(skill.name).filter(|name| !name.trim().is_empty() && name != id)
}
