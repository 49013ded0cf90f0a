//! Tests of the texts of an agent that are encoded, of the cache of query vectors, and of the shown progress.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_domain::facet::{Facet, FacetMap};
use a2a_registry_search::vectors::MAX_VECTORS;
use a2a_registry_search::{AgentDocument, SkillText};

use super::{ModelProgress, QUERY_CACHE_MEGABYTES, SemanticSearchState, search_method_text};
use crate::embeddings::embedded_texts::{embedding_texts, text_digest};
use crate::process_state::embedding_pace::EmbeddingPace;

fn skill(name: &str) -> SkillText {
    SkillText {
        name: name.into(),
        description: "Books a seat.".into(),
        tags: vec!["travel".into(), "air".into()],
        examples: vec!["Two to Tokyo?".into(), "  ".into()],
        ..SkillText::default()
    }
}

#[test]
fn a_whole_card_its_description_and_each_of_its_first_skills_are_texts() {
    let document = AgentDocument {
        name: "Wings".into(),
        description: "Flies people".into(),
        facets: FacetMap::from([(Facet::Tag, vec!["air".into(), "travel".into()])]),
        other_texts: vec!["Mind the quorum".into()],
        skills: (0..30)
            .map(|number| skill(&format!("Skill {number}")))
            .collect(),
        ..AgentDocument::default()
    };
    let texts = embedding_texts(&document);
    assert_eq!(texts.len(), MAX_VECTORS);
    assert!(
        texts[0].starts_with("Wings. Flies people. Skill 0. Books a seat. Two to Tokyo? Skill 1.")
            && texts[0].ends_with("Two to Tokyo? air, travel. Mind the quorum"),
        "{}",
        texts[0]
    );
    assert_eq!(texts[1], "Wings. Flies people");
    assert_eq!(texts[2], "Skill 0. Books a seat. travel, air");
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let document = AgentDocument {
        description: "ä".repeat(20_000),
        ..AgentDocument::default()
    };
    let texts = embedding_texts(&document);
    assert_eq!(texts[0].chars().count(), 8_000);
}

#[test]
fn other_texts_have_another_digest() {
    let of = |texts: &[&str]| {
        text_digest(
            &texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
    let others = [
        of(&["a", "bc"]),
        of(&["abc"]),
        of(&["ab", "c", ""]),
        of(&[]),
    ];
    assert!(!others.contains(&of(&["ab", "c"])));
    assert_eq!(of(&["ab", "c"]).len(), "2-".len() + 64);
}

#[test]
fn the_vectors_of_recent_queries_take_no_more_than_their_memory() {
    let state = SemanticSearchState::new(Duration::ZERO);
    let model: Arc<str> = "a model".into();
    let vector: Arc<[f32]> = vec![0.0; 384].into();
    let limit = QUERY_CACHE_MEGABYTES * 1024 * 1024;
    let count = 2 * limit / size_of_val(&*vector) as u64;
    for number in 0..count {
        let key = (Arc::clone(&model), format!("question {number}"));
        state.query_vectors.insert(key, Arc::clone(&vector));
    }
    state.query_vectors.run_pending_tasks();
    let used = state.query_vectors.weighted_size();
    assert!(used > limit / 2 && used <= limit, "{used} of {limit}");
}

#[test]
fn only_who_sees_all_agents_gets_their_numbers() {
    let half = ModelProgress {
        model: "id".into(),
        name: "small".into(),
        agents: 210,
        total: 420,
        complete: false,
        pace: EmbeddingPace::estimate(210, Duration::from_secs(10), 210),
        memory: 0,
        cutoff: None,
        serving: false,
    };
    let page_text =
        |model: &ModelProgress, sees_all| search_method_text(std::slice::from_ref(model), sees_all);
    assert_eq!(
        page_text(&half, true),
        "by words; by meaning as soon as the model small has read every agent: \
         210 of 420 agents, 1260 a minute, about 10 seconds left"
    );
    assert_eq!(
        page_text(&half, false),
        "by words; by meaning as soon as the model small has read every agent: 50 %"
    );
    let renewed = ModelProgress {
        serving: true,
        ..half.clone()
    };
    assert!(page_text(&renewed, false).ends_with("are being renewed: 50 %"));
    let done = ModelProgress {
        agents: 420,
        complete: true,
        pace: None,
        ..renewed
    };
    for sees_all in [true, false] {
        assert_eq!(
            page_text(&done, sees_all),
            "by words and by meaning, with the model small"
        );
    }
    assert_eq!(
        done.status_text(),
        "searches use \"small\", with vectors of 420 of 420 agents"
    );
}

#[test]
fn a_model_that_serves_is_not_denied_while_another_is_prepared() {
    let model = |name: &str, agents: u64| ModelProgress {
        model: format!("id of {name}"),
        name: name.to_owned(),
        agents,
        total: 420,
        complete: agents == 420,
        pace: None,
        memory: 0,
        cutoff: None,
        serving: agents == 420,
    };
    let (old, new) = (model("small", 420), model("large", 210));
    // Whichever has reported last.
    for models in [[old.clone(), new.clone()], [new, old]] {
        assert_eq!(
            search_method_text(&models, false),
            "by words and by meaning, with the model small; \
             with the model large as soon as it has read every agent: 50 %"
        );
    }
    assert_eq!(search_method_text(&[], false), "by words");
}
