//! Full-text search: matches, scores, highlights.

use super::*;

fn skill(id: &str, name: &str, description: &str) -> SkillText {
    SkillText {
        id: id.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: vec!["tagged".to_owned()],
        examples: vec!["Get me to Tokyo by train".to_owned()],
        rendered: String::new(),
    }
}

fn travel() -> AgentDocument {
    let mut travel = AgentDocument {
        description: "Plans journeys".to_owned(),
        provider: "Acme Tours".to_owned(),
        skills: vec![
            skill("hotel-search", "Hotels", "Finds a bed for the night"),
            skill("bookFlight", "Flight booking", "Books flights and seats"),
        ],
        ..agent(1, "Traveller")
    };
    for (facet, value) in [
        (Facet::Domain, "agents.acme.example"),
        (Facet::Capability, "push_notifications"),
        (Facet::Binding, "GRPC"),
        (Facet::Auth, "oauth2"),
        (Facet::OutputMode, "audio/mpeg"),
    ] {
        travel = with(travel, facet, &[value]);
    }
    travel
}

#[test]
fn every_text_of_an_agent_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![travel()]);
    for query in [
        "traveller",
        "travellers",
        "journey",
        "ACME",
        "acme.example",
        "hotel",
        "flight",
        "bookflight",
        "books",
        "tagged",
        "tokyo",
        "seat",
        "grpc",
        "push notifications",
        "oauth2",
        "audio",
        "find me an agent that can book a flight to Tôkyo",
        "train OR (",
        "\"flight",
    ] {
        assert_eq!(index.search(&text(query)).unwrap().total, 1, "{query}");
    }
    assert_eq!(index.search(&text("submarine")).unwrap().total, 0);
    // A text without words matches every agent.
    for query in ["", " ", "?!", "\u{1}"] {
        let answer = index.search(&text(query)).unwrap();
        assert_eq!((answer.total, answer.hits[0].score), (1, None), "{query:?}");
    }
}

#[test]
fn better_matches_come_first() {
    let dir = tempfile::tempdir().unwrap();
    let described = |number, name: &str, description: &str| AgentDocument {
        description: description.to_owned(),
        ..agent(number, name)
    };
    let mut agents = vec![
        described(1, "Flight booking", "Seats in the air"),
        described(2, "Assistant", "Can do a flight booking and other things"),
        described(3, "Assistant", "Knows about flight"),
        described(4, "Assistant", "Flights"),
        described(5, "Assistant", "Flight"),
    ];
    agents.extend((10..40).map(|number| described(number, "Filler", "something else entirely")));
    let index = built(dir.path(), agents);
    let hits = index.search(&text("flight booking")).unwrap().hits;
    let order: Vec<Uuid> = hits.iter().map(|hit| hit.id).collect();
    assert_eq!(
        order[..2],
        [id(1), id(2)],
        "more words and weightier fields win"
    );
    assert_eq!(order.len(), 5);
    let exact = names(&index, &text("flight"));
    let place = |number| exact.iter().position(|one| *one == id(number)).unwrap();
    assert!(place(1) < place(2));
    let inflected = names(&index, &text("flights"));
    let place = |number| inflected.iter().position(|one| *one == id(number)).unwrap();
    assert!(place(4) < place(5), "the exact form beats the stem alone");
}

#[test]
fn hits_say_where_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![travel()]);
    let mut request = text("book flights");
    request.explain = true;
    let hit = index.search(&request).unwrap().hits.remove(0);
    assert_eq!(hit.matched_skills, ["bookFlight"]);
    let shown: Vec<(&str, Vec<&str>)> = hit
        .highlights
        .iter()
        .map(|one| {
            (
                one.field,
                one.ranges
                    .iter()
                    .map(|range| &one.text[range.clone()])
                    .collect(),
            )
        })
        .collect();
    assert!(
        shown.contains(&("skill.name", vec!["Flight", "booking"])),
        "{shown:?}"
    );
    assert!(
        shown.contains(&("skill.description", vec!["Books", "flights"])),
        "{shown:?}"
    );
    let explained = hit.explain.unwrap();
    let score = explained["value"].as_f64().unwrap();
    assert!(score > 0.0);
    assert_eq!(hit.hit, travel().hit);
    assert!(
        index.search(&text("book")).unwrap().hits[0]
            .explain
            .is_none()
    );
}

#[test]
fn a_word_of_another_agent_does_not_stop_an_explanation() {
    let dir = tempfile::tempdir().unwrap();
    let agents = vec![travel(), agent(2, "Zebra keeper"), agent(3, "Filler")];
    let index = built(dir.path(), agents);
    for query in ["flights zebra", "flights nowhere", "zebra flights keeper"] {
        let mut request = text(query);
        request.explain = true;
        let hits = index.search(&request).unwrap().hits;
        assert!(!hits.is_empty());
        assert!(hits.iter().all(|hit| hit.explain.is_some()), "{query}");
    }
}

#[test]
fn long_texts_are_shown_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let long = format!(
        "{} flïghts {}",
        "längst ".repeat(100),
        "später ".repeat(100)
    );
    let index = built(
        dir.path(),
        vec![AgentDocument {
            description: long,
            ..agent(1, "<b>flights</b>")
        }],
    );
    let hit = index.search(&text("flights")).unwrap().hits.remove(0);
    assert_eq!(
        (
            hit.highlights[0].text.as_str(),
            hit.highlights[0].ranges.first()
        ),
        ("<b>flights</b>", Some(&(3..10)))
    );
    let piece = &hit.highlights[1];
    assert!(
        piece.cut_before && piece.cut_after && piece.text.len() <= 170,
        "{piece:?}"
    );
    assert_eq!(&piece.text[piece.ranges[0].clone()], "flïghts");
    assert!(
        piece.text.starts_with("längst") && piece.text.ends_with("später"),
        "{piece:?}"
    );
}

#[test]
fn an_empty_answer_says_what_to_try() {
    let dir = tempfile::tempdir().unwrap();
    let hidden = AgentDocument {
        visible_to: vec!["group:x".to_owned()],
        ..agent(2, "Submarine")
    };
    let index = built(dir.path(), vec![travel(), hidden]);
    let mut request = text("flight submarine");
    request.filters = by(Facet::Tag, &["nowhere"]);
    request.filters.values[Facet::Trust] = vec!["L1".to_owned(), "L2".to_owned()];
    let hints = index.search(&request).unwrap().hints;
    // Both filters hide the agent, so removing one of them does not help; the hidden agent's word is unknown.
    assert_eq!(
        hints,
        [
            Hint {
                kind: HintKind::UnknownWord,
                text: "submarine".to_owned(),
                matches_without: None,
                similar_words: Vec::new(),
            },
            Hint {
                kind: HintKind::Filter,
                text: String::new(),
                matches_without: Some(1),
                similar_words: Vec::new(),
            }
        ]
    );
    request.filters.values[Facet::Trust].clear();
    assert!(index.search(&request).unwrap().hints.contains(&Hint {
        kind: HintKind::Filter,
        text: "tag".to_owned(),
        matches_without: Some(1),
        similar_words: Vec::new(),
    }));
}

#[test]
fn oversized_cards_are_cut_not_refused() {
    let dir = tempfile::tempdir().unwrap();
    let huge = AgentDocument {
        description: format!("{} beyond", "x".repeat(MAX_TEXT_BYTES)),
        skills: (0..=MAX_SKILLS)
            .map(|number| skill(&format!("s{number}"), &format!("unique{number}"), "d"))
            .collect(),
        ..agent(1, &"näme ".repeat(1_000))
    };
    let (too_long, longest) = ("t".repeat(MAX_VALUE_BYTES + 1), "u".repeat(MAX_VALUE_BYTES));
    let huge = with(huge, Facet::Tag, &[too_long.as_str(), longest.as_str()]);
    let index = built(dir.path(), vec![huge]);
    let total = |request: &SearchRequest| index.search(request).unwrap().total;
    assert_eq!(total(&text("beyond")), 0);
    assert_eq!(total(&text(&format!("unique{}", MAX_SKILLS - 1))), 1);
    assert_eq!(total(&text(&format!("unique{MAX_SKILLS}"))), 0);
    let mut facet = all();
    facet.facets = vec![Facet::Tag];
    facet.sort = SortOrder::Name;
    let answer = index.search(&facet).unwrap();
    assert_eq!(answer.facets[&Facet::Tag].values, [(longest, 1)]);
    assert!(matches!(&answer.hits[0].position.value, SortValue::Name(name) if name.len() <= 256));
}

#[test]
fn suggestions_complete_what_is_visible() {
    let dir = tempfile::tempdir().unwrap();
    let named = |number, name: &str, tag: &str| AgentDocument {
        skills: vec![skill("s", "Translate", "")],
        ..with(agent(number, name), Facet::Tag, &[tag])
    };
    let mut hidden = named(4, "Trainer", "travel");
    hidden.visible_to = vec!["group:x".to_owned()];
    let gone = with(named(5, "Tram", "travel"), Facet::Liveness, &["gone"]);
    let waiting = named(6, "Trolley", "travel");
    let waiting = with(waiting, Facet::Lifecycle, &["pending"]);
    let agents = vec![
        named(1, "Translator", "travel"),
        named(2, "translator", "travel"),
        named(3, "Übung", "music"),
        hidden,
        gone,
        waiting,
    ];
    let index = built(dir.path(), agents);
    let suggest = |prefix: &str, labels: &[String]| -> Vec<(String, &str, u64)> {
        let found = index.suggest(prefix, labels, 10).unwrap();
        found
            .into_iter()
            .map(|one| (one.text, one.kind.as_str(), one.count))
            .collect()
    };
    assert_eq!(
        suggest("TRA", &public()),
        [
            ("Translate".to_owned(), "skill", 3),
            ("Translator".to_owned(), "name", 2),
            ("travel".to_owned(), "tag", 2)
        ]
    );
    assert_eq!(suggest("ub", &public()), [("Übung".to_owned(), "name", 1)]);
    assert_eq!(suggest("trai", &public()), []);
    assert_eq!(
        suggest("trai", &["group:x".to_owned()]),
        [("Trainer".to_owned(), "name", 1)]
    );
    assert_eq!(suggest("", &public()), []);
    assert_eq!(suggest("tra\u{1}", &public()), []);
    assert_eq!(index.suggest("tra", &public(), 1).unwrap().len(), 1);
}

#[test]
fn lookups_are_exact_and_best_first() {
    let dir = tempfile::tempdir().unwrap();
    let keyed = |number, trust: &str, key: &str| AgentDocument {
        lookup_keys: vec![key.to_owned(), format!("urn:{number}")],
        ..with(agent(number, "A"), Facet::Trust, &[trust])
    };
    let mut hidden = keyed(9, "L4", "host:a.example");
    hidden.visible_to.clear();
    let gone = keyed(5, "none", "host:a.example");
    let gone = with(gone, Facet::Liveness, &["gone"]);
    let pending = AgentDocument {
        visible_to: vec!["curators".to_owned()],
        ..keyed(6, "L4", "host:a.example")
    };
    let pending = with(pending, Facet::Lifecycle, &["pending"]);
    let index = built(
        dir.path(),
        vec![
            keyed(1, "none", "host:a.example"),
            keyed(2, "L2", "host:a.example"),
            keyed(3, "L1", "host:a.example.org"),
            keyed(4, "L2", "host:a.example"),
            gone,
            hidden,
            pending,
        ],
    );
    let found_by = |labels: &[String], key: &str, limit| -> Vec<Uuid> {
        let hits = index.lookup_agents_by_key(key, labels, limit).unwrap();
        hits.into_iter().map(|hit| hit.id).collect()
    };
    let found = |key: &str, limit| found_by(&public(), key, limit);
    assert_eq!(found("host:a.example", 10), [id(4), id(2), id(5), id(1)]);
    assert_eq!(found("host:a.example", 1), [id(4)]);
    assert_eq!(found("urn:3", 10), [id(3)]);
    assert!(found("urn:9", 10).is_empty());
    assert!(found("a.example", 10).is_empty());
    // Unlisted agents come last, whatever their trust level, and only for callers who may see them.
    let curators = ["public".to_owned(), "curators".to_owned()];
    let all = [id(4), id(2), id(5), id(1), id(6)];
    assert_eq!(found_by(&curators, "host:a.example", 10), all);
    assert_eq!(found_by(&curators, "host:a.example", 4), all[..4]);
    assert_eq!(found_by(&curators, "urn:6", 10), [id(6)]);
    assert!(found("urn:6", 10).is_empty());
}
