//! Names of skills as cards write them, by the ids that facets count.

use std::collections::BTreeMap;

use a2a_registry_api::FacetValue;
use a2a_registry_domain::facet::Facet;
use serde::Deserialize;

use crate::context::Context;
use crate::search::value_names::value_names;
use crate::visibility::caller::Caller;

/// The most skills whose names are looked up for one page.
const LOOKED_UP: usize = 12;
/// The most agents that are asked for the name of one skill: of many skills a hit shows only some.
const ASKED: usize = 5;

pub type SkillNames = BTreeMap<String, String>;

#[derive(Deserialize)]
struct StoredHit {
    skills: Vec<StoredSkill>,
}

#[derive(Deserialize)]
struct StoredSkill {
    id: String,
    name: String,
}

/// The names of the most frequent of these skills. A skill whose name cannot be looked up has none.
pub async fn skill_names(context: &Context, caller: &Caller, counted: &[FacetValue]) -> SkillNames {
    let ids = counted.iter().map(|one| one.value.clone());
    let ids = ids.take(LOOKED_UP).collect();
    value_names(context, caller, Facet::Skill, ids, ASKED, name_in).await
}

/// The name of the skill with this id in a hit.
fn name_in(id: &str, hit: &[u8]) -> Option<String> {
    let stored: StoredHit = serde_json::from_slice(hit).ok()?;
    let skill = stored.skills.into_iter().find(|skill| skill.id == id)?;
    // Where a card names none, the name is the id, and words are better than that.
    Some(skill.name).filter(|name| !name.trim().is_empty() && name != id)
}
