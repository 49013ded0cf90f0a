//! Texts of a card outside its model: searched at a low weight.

use super::*;

/// An agent whose card contains these texts outside the model.
fn saying(number: u64, other: &[&str]) -> AgentDocument {
    AgentDocument {
        other_texts: other.iter().map(|text| (*text).to_owned()).collect(),
        ..agent(number, "Council clerk")
    }
}

#[test]
fn a_word_outside_the_model_finds_its_agent_behind_all_others() {
    let dir = tempfile::tempdir().unwrap();
    let often = "quorum ".repeat(200);
    let agents = vec![
        saying(1, &["needs a quorum"]),
        saying(2, &[&often, "Quorum!", "quorum votes"]),
        agent(3, "Quorum"),
        AgentDocument {
            description: "Counts the votes of members, and says whether there is a quorum"
                .to_owned(),
            ..agent(4, "Council clerk")
        },
        AgentDocument {
            skills: vec![SkillText {
                examples: vec!["Is there a quorum?".to_owned()],
                ..SkillText::default()
            }],
            ..agent(5, "Council clerk")
        },
        agent(6, "Council clerk"),
    ];
    let index = built(dir.path(), agents);
    let order = names(&index, &text("quorum"));
    assert_eq!(order.len(), 5);
    assert_eq!(order[0], id(3));
    let last: Vec<Uuid> = order[3..].to_vec();
    assert!(last.contains(&id(1)) && last.contains(&id(2)), "{order:?}");
}

#[test]
fn texts_outside_the_model_obey_the_query_language() {
    let dir = tempfile::tempdir().unwrap();
    let agents = vec![
        saying(1, &["votes of members", "minutes"]),
        saying(2, &["members of the board"]),
    ];
    let index = built(dir.path(), agents);
    for (query, expected) in [
        ("\"votes of members\"", vec![id(1)]),
        ("\"members of\" -minutes", vec![id(2)]),
        ("minut*", vec![id(1)]),
        ("members AND minutes", vec![id(1)]),
        // No phrase spans two texts.
        ("\"members minutes\" AND votes", vec![]),
    ] {
        assert_eq!(names(&index, &text(query)), expected, "{query}");
    }
    let hit = index.search(&text("minutes")).unwrap().hits.remove(0);
    let shown: Vec<(&str, &str)> = hit
        .highlights
        .iter()
        .map(|one| (one.field, one.text.as_str()))
        .collect();
    assert_eq!(shown, [("other", "minutes")]);
    assert!(hit.matched_skills.is_empty());
}

#[test]
fn texts_outside_the_model_are_cut_at_their_limit() {
    let dir = tempfile::tempdir().unwrap();
    let filler = |bytes: usize| "x ".repeat(bytes / 2);
    let (fits, beyond) = (
        filler(MAX_OTHER_TEXT_BYTES - 6),
        filler(MAX_OTHER_TEXT_BYTES),
    );
    let index = built(
        dir.path(),
        vec![
            saying(1, &[&fits, "quorum"]),
            saying(2, &[&beyond, "quorum"]),
        ],
    );
    assert_eq!(names(&index, &text("quorum")), [id(1)]);
}
