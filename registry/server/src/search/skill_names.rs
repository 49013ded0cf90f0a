//! Names of skills as cards write them, by the ids that facets count.

use std::collections::BTreeMap;

use a2a_registry_api::FacetValue;
use a2a_registry_domain::facet::Facet;
use serde::Deserialize;

use crate::caller::Caller;
use crate::context::Context;
use crate::index_pool::run;

/// The most skills whose names are looked up for one page.
const LOOKED_UP: usize = 12;
/// The most agents that are asked for the name of one skill: of many skills a hit shows only some.
const ASKED: usize = 5;

/// Names of skills, by their ids.
pub(crate) type SkillNames = BTreeMap<String, String>;

/// The part of a stored hit that names its skills.
#[derive(Deserialize)]
struct StoredHit {
    skills: Vec<StoredSkill>,
}

#[derive(Deserialize)]
struct StoredSkill {
    id: String,
    name: String,
}

/// The names of the most frequent of these skills: each from the agent with it that changed last and names it, of those that
/// the caller finds. They are kept while the index stays as it is; a skill whose name cannot be looked up has none.
pub(crate) async fn skill_names(
    context: &Context,
    caller: &Caller,
    counted: &[FacetValue],
) -> SkillNames {
    let ids = counted.iter().map(|one| one.value.clone());
    let ids: Vec<String> = ids.take(LOOKED_UP).collect();
    if ids.is_empty() {
        return SkillNames::new();
    }
    let labels = caller.labels(&context.policies.in_force());
    let key = format!(
        "names of skills {ids:?} {} {} {}",
        labels.join(" "),
        context.index.generation(),
        context.index.overlay_version(),
    );
    let cached = context.searches.answers.get(&key);
    if let Some(names) = cached.and_then(|names| serde_json::from_slice(&names).ok()) {
        return names;
    }
    let asked = ids.clone();
    let found = run(context, caller, move |index| {
        let name = |id: &str, hit: &[u8]| name_in(hit, id);
        index.newest_with(Facet::Skill, &asked, &labels, ASKED, name)
    });
    let Ok(found) = found.await else {
        return SkillNames::new();
    };
    let names: SkillNames = ids
        .into_iter()
        .zip(found)
        .filter_map(|(id, name)| Some((id, name?)))
        .collect();
    if let Ok(kept) = serde_json::to_vec(&names) {
        context.searches.answers.insert(key, kept.into());
    }
    names
}

/// The name of the skill with this id in a hit.
fn name_in(hit: &[u8], id: &str) -> Option<String> {
    let stored: StoredHit = serde_json::from_slice(hit).ok()?;
    let skill = stored.skills.into_iter().find(|skill| skill.id == id)?;
    // Where a card names none, the name is the id, and words are better than that.
    Some(skill.name).filter(|name| !name.trim().is_empty() && name != id)
}
