//! Bounds of a page: its bytes, the skills of a hit, and explanations.

use std::collections::HashSet;

use serde_json::Value;

use super::*;

/// Agents that all contain the word, with hits of this many bytes.
fn large(count: u64, bytes: usize) -> Vec<AgentDocument> {
    let agents = (1..=count).map(|number| AgentDocument {
        hit: format!("{{\"n\":{number},\"x\":\"{}\"}}", "x".repeat(bytes)).into_bytes(),
        description: "flight ".repeat(usize::try_from(number % 7 + 1).unwrap()),
        identifier: format!("urn:air:a.example:{number:04}"),
        ..agent(number, &format!("Agent {number:04}"))
    });
    agents.collect()
}

#[test]
fn a_page_ends_where_its_bytes_do_and_the_next_goes_on_there() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), large(50, 1_000));
    for sort in [SortOrder::Relevance, SortOrder::Name] {
        let mut request = SearchRequest {
            sort,
            max_bytes: Some(5_500),
            ..text("flight")
        };
        let whole = SearchRequest {
            max_bytes: None,
            ..request.clone()
        };
        let whole = names(&index, &whole);
        let mut visited = Vec::new();
        loop {
            let answer = index.search(&request).unwrap();
            assert_eq!(answer.total, 50);
            assert_eq!(answer.has_more, visited.len() + answer.hits.len() < 50);
            assert_eq!(answer.hits.len(), 5.min(50 - visited.len()));
            visited.extend(ids(&answer));
            match answer.has_more {
                true => request.after = answer.hits.last().map(|hit| hit.position.clone()),
                false => break,
            }
        }
        assert_eq!(visited, whole, "{sort:?}");
    }
}

#[test]
fn a_list_ends_where_its_bytes_do() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), large(20, 1_000));
    let mut request = AgentListRequest {
        visible_to: public(),
        limit: 100,
        max_bytes: Some(3_500),
        ..AgentListRequest::default()
    };
    let mut visited = HashSet::new();
    loop {
        let page = index.list_agents(&request).unwrap();
        assert_eq!(page.total, 20);
        assert!((1..=3).contains(&page.rows.len()));
        visited.extend(page.rows.iter().map(|row| row.hit.clone()));
        match page.has_more {
            true => request.after = page.rows.last().map(|row| row.position.clone()),
            false => break,
        }
    }
    assert_eq!(visited.len(), 20);
}

#[test]
fn a_page_has_one_hit_however_large() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), large(3, 100_000));
    let mut request = SearchRequest {
        max_bytes: Some(1),
        ..text("flight")
    };
    for left in (0..3).rev() {
        let page = index.search(&request).unwrap();
        assert_eq!((page.hits.len(), page.has_more), (1, left > 0));
        request.after = Some(page.hits[0].position.clone());
    }
    let list = AgentListRequest {
        visible_to: public(),
        limit: 10,
        max_bytes: Some(1),
        ..AgentListRequest::default()
    };
    let page = index.list_agents(&list).unwrap();
    assert_eq!((page.rows.len(), page.has_more), (1, true));
}

/// An agent with this many skills, each with a unique word, all with the same id.
fn skilled(number: u64, skills: usize) -> AgentDocument {
    let skills = (0..skills).map(|place| SkillText {
        id: "same".to_owned(),
        name: format!("skill number w{place}"),
        rendered: format!("{{\"at\":{place},\"text\":\"a\\n,\\n\\\"b\"}}"),
        ..SkillText::default()
    });
    AgentDocument {
        skills: skills.collect(),
        lookup_keys: vec!["urn:one".to_owned()],
        ..agent(number, "flight")
    }
}

/// The skills that a hit shows, by their numbers.
fn skill_numbers(hit: &HitRow) -> Vec<u64> {
    let hit: Value = serde_json::from_slice(&hit.hit).unwrap();
    let skills = hit["skills"].as_array().unwrap().iter();
    skills.map(|skill| skill["at"].as_u64().unwrap()).collect()
}

#[test]
fn a_hit_shows_the_skills_that_matched_and_then_the_first_ones() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![skilled(1, 300)]);
    let first: Vec<u64> = (0..10).collect();
    let hits = |request: &SearchRequest| index.search(request).unwrap().hits;
    assert_eq!(skill_numbers(&hits(&all())[0]), first);
    assert_eq!(skill_numbers(&hits(&text("flight"))[0]), first);
    let matched = &hits(&text("w250 w7 w299"))[0];
    assert_eq!(skill_numbers(matched)[..3], [7, 250, 299]);
    assert_eq!(skill_numbers(matched)[3..], [0, 1, 2, 3, 4, 5, 6]);
    let every = &hits(&text("skill"))[0];
    assert_eq!(skill_numbers(every), first);
    // The same holds for a hit that is read individually.
    let found = index.lookup_agents_by_key("urn:one", &public(), 5).unwrap();
    assert_eq!(skill_numbers(&found[0]), first);
}

#[test]
fn the_skills_of_a_usual_agent_stay_in_the_order_of_its_card() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(
        dir.path(),
        vec![skilled(1, MAX_SHOWN_SKILLS), skilled(2, 12)],
    );
    let hits = index.search(&text("w9")).unwrap().hits;
    let usual = hits.iter().find(|hit| hit.id == id(1)).unwrap();
    let first: Vec<u64> = (0..10).collect();
    assert_eq!(skill_numbers(usual), first);
    let similar = SimilarRequest {
        id: id(1),
        visible_to: public(),
        class_labels: public(),
        limit: 5,
        vectors: None,
    };
    let similar = index.find_similar_agents(&similar).unwrap();
    assert_eq!(skill_numbers(&similar.hits[0]), first);
}

/// The number of parts of a computation on all levels.
fn parts(explained: &Value) -> usize {
    let details = explained["details"].as_array();
    1 + details.map_or(0, |details| details.iter().map(parts).sum())
}

#[test]
fn ten_hits_are_explained_by_the_terms_that_matter_most() {
    let dir = tempfile::tempdir().unwrap();
    let letters: Vec<char> = ('a'..='p').collect();
    // Each of these is a prefix of hundreds of words, of which all agents have many.
    let words = |number: u64| {
        let words = letters.iter().flat_map(|letter| {
            (0..40).map(move |place| format!("{letter}zz{}", (place * 7 + number) % 97))
        });
        words.collect::<Vec<String>>().join(" ")
    };
    let agents = (1..=60).map(|number| AgentDocument {
        description: words(number),
        ..agent(number, "One")
    });
    let index = built(dir.path(), agents.collect());
    let prefixes: Vec<String> = letters
        .iter()
        .map(|letter| format!("{letter}zz*"))
        .collect();
    let mut request = SearchRequest {
        explain: true,
        limit: 30,
        ..text(&prefixes.join(" "))
    };
    let answer = index.search(&request).unwrap();
    let check = |hits: &[HitRow]| {
        let explained: Vec<bool> = hits.iter().map(|hit| hit.explain.is_some()).collect();
        let first = explained.iter().take_while(|one| **one).count();
        assert_eq!(first, MAX_EXPLAINED_HITS);
        assert!(explained[first..].iter().all(|one| !one));
        for hit in &hits[..first] {
            let explain = hit.explain.as_ref().unwrap();
            assert!(parts(explain) < 400, "{} parts", parts(explain));
            let sentences = explain["summary"].as_array().unwrap();
            assert!(sentences.len() <= 40, "{sentences:?}");
            let value = explain["value"].as_f64().unwrap();
            let score = f64::from(hit.score.unwrap());
            assert!((value - score).abs() < 0.01 * score, "{value} {score}");
            let details = explain["details"].as_array().unwrap().iter();
            let details: f64 = details.map(|part| part["value"].as_f64().unwrap()).sum();
            assert!((details - score).abs() < 0.01 * score, "{details} {score}");
        }
    };
    check(&answer.hits);
    request.after = answer.hits.last().map(|hit| hit.position.clone());
    check(&index.search(&request).unwrap().hits);
}

/// A hit has the requested parts, and nothing else depends on them: neither the order, nor the skills that come first,
/// nor the next page.
#[test]
fn a_hit_has_the_parts_that_are_asked_for() {
    let skill = |number: usize| SkillText {
        id: format!("s{number}"),
        name: match number {
            0..20 => "Other things".to_owned(),
            _ => "Book a flight".to_owned(),
        },
        rendered: format!("{{\"id\":\"s{number}\"}}"),
        ..SkillText::default()
    };
    let agents = (1..=8).map(|number| AgentDocument {
        hit: format!("{{\"n\":{number}}}").into_bytes(),
        catalog_entry: format!("{{\"e\":{number}}}").into_bytes(),
        description: "flight ".repeat(usize::try_from(number).unwrap()),
        skills: (0..22).map(skill).collect(),
        ..agent(number, &format!("Agent {number}"))
    });
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), agents.collect());
    let none = RequestedHitParts {
        hit: false,
        catalog_entry: false,
        highlights: false,
        computation: false,
    };
    let whole = SearchRequest {
        limit: 3,
        ..text("flight")
    };
    let asked = |parts| SearchRequest {
        parts,
        ..whole.clone()
    };
    let full = index.search(&whole).unwrap();
    assert!(full.hits.iter().all(|hit| !hit.highlights.is_empty()));
    for (hit, entry, highlights) in [
        (true, false, false),
        (false, true, false),
        (true, false, true),
        (false, false, false),
    ] {
        let request = asked(RequestedHitParts {
            hit,
            catalog_entry: entry,
            highlights,
            ..none
        });
        let answer = index.search(&request).unwrap();
        assert_eq!((ids(&answer), answer.has_more), (ids(&full), full.has_more));
        for (one, all) in answer.hits.iter().zip(&full.hits) {
            assert_eq!((one.id, one.weak), (all.id, all.weak));
            assert!(one.hit == if hit { &all.hit[..] } else { &[] });
            assert!(one.catalog_entry == if entry { &all.catalog_entry[..] } else { &[] });
            let excerpts: &[Highlight] = if highlights { &all.highlights } else { &[] };
            assert_eq!(one.highlights, excerpts);
            if hit {
                assert_eq!(one.matched_skills, ["s20", "s21"]);
            }
        }
    }
}
