//! Representative queries of an entry: examples from the card, and queries derived from its skills if allowed.

use a2a_card::{AgentCard, Skill};

/// Minimum number of queries. ARD 0.9 rejects fewer, and more than [`MAX_QUERIES`].
const MIN_QUERIES: usize = 2;
const MAX_QUERIES: usize = 5;
/// Maximum length of a query, in characters.
const MAX_QUERY_CHARS: usize = 200;

/// Returns two to five examples from the card, taken from each skill in turn. If there are fewer than two and
/// `may_derive` is true, queries from the names and then the descriptions of the skills follow. Empty if there are
/// fewer than two in total.
pub(super) fn representative_queries(card: &AgentCard, may_derive: bool) -> Vec<String> {
    let turns = card.skills.iter().map(|skill| skill.examples.len()).max();
    let examples = (0..turns.unwrap_or(0)).flat_map(|turn| {
        let of_turn = move |skill: &Skill| Some(skill.examples.get(turn)?.trim().to_owned());
        card.skills.iter().filter_map(of_turn)
    });
    let mut queries = Vec::new();
    push_fitting_queries(&mut queries, examples);
    if may_derive && queries.len() < MIN_QUERIES {
        let named = card.skills.iter().filter_map(query_from_skill_name);
        let described = card.skills.iter().filter_map(query_from_skill_description);
        push_fitting_queries(&mut queries, named.chain(described));
    }
    if queries.len() < MIN_QUERIES {
        queries.clear();
    }
    queries
}

/// Adds the first queries that fit and are not present yet, up to [`MAX_QUERIES`] in total.
fn push_fitting_queries(queries: &mut Vec<String>, candidates: impl Iterator<Item = String>) {
    for query in candidates {
        if queries.len() == MAX_QUERIES {
            return;
        }
        let fits = !query.is_empty() && query.chars().count() <= MAX_QUERY_CHARS;
        if fits && !queries.contains(&query) {
            queries.push(query);
        }
    }
}

fn query_from_skill_name(skill: &Skill) -> Option<String> {
    let name = collapse_whitespace(&skill.name);
    (!name.is_empty()).then(|| format!("Which agent offers {name}?"))
}

/// Builds a query from the first sentence of a skill's description, unless the sentence only repeats the name.
fn query_from_skill_description(skill: &Skill) -> Option<String> {
    let description = collapse_whitespace(skill.description.as_deref()?);
    let first = description.split(". ").next().unwrap_or_default();
    let first = first.trim_end_matches(['.', '!', '?', ' ']);
    let is_new = !first.is_empty() && first.to_lowercase() != skill.name.trim().to_lowercase();
    is_new.then(|| format!("Which agent does this: {first}?"))
}

fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, description: Option<&str>, examples: &[&str]) -> Skill {
        Skill {
            id: name.to_owned(),
            name: name.to_owned(),
            description: description.map(str::to_owned),
            examples: examples.iter().map(|&example| example.to_owned()).collect(),
            ..Skill::default()
        }
    }

    fn card(skills: Vec<Skill>) -> AgentCard {
        AgentCard {
            skills,
            ..AgentCard::default()
        }
    }

    #[test]
    fn examples_come_from_each_skill_in_turn_and_need_no_derivation() {
        let two = card(vec![
            skill("A", None, &["a1", "a2", " "]),
            skill("B", Some("Does B."), &["b1", "a1", "b2", "b3"]),
        ]);
        for derives in [false, true] {
            let queries = representative_queries(&two, derives);
            assert_eq!(queries, ["a1", "b1", "a2", "b2", "b3"]);
        }
    }

    #[test]
    fn too_few_examples_are_followed_by_derived_queries_where_that_is_allowed() {
        let one = card(vec![skill(
            "Currency  conversion",
            Some("Converts amounts\n between currencies. Rates are of the day."),
            &["10 EUR in USD"],
        )]);
        assert!(representative_queries(&one, false).is_empty());
        let expected = [
            "10 EUR in USD",
            "Which agent offers Currency conversion?",
            "Which agent does this: Converts amounts between currencies?",
        ];
        assert_eq!(representative_queries(&one, true), expected);
    }

    #[test]
    fn there_are_two_to_five_of_bounded_length_or_none() {
        let many = (0..9).map(|number| skill(&format!("Skill {number}"), None, &[]));
        let many = representative_queries(&card(many.collect()), true);
        assert_eq!(
            (many.len(), many[4].as_str()),
            (5, "Which agent offers Skill 4?")
        );
        let long = "x".repeat(201);
        for (name, description) in [
            ("Echo", None),
            ("Echo", Some("echo.")),
            ("Echo", Some("  ")),
            ("Echo", Some(long.as_str())),
            (long.as_str(), Some("Says it again.")),
        ] {
            let alone = card(vec![skill(name, description, &[])]);
            let queries = representative_queries(&alone, true);
            assert!(queries.is_empty(), "{name} {description:?}: {queries:?}");
        }
    }
}
