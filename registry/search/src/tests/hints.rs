//! Hints of a search response.

use super::*;

fn traveller(number: u64, tag: &str) -> AgentDocument {
    let traveller = AgentDocument {
        description: "Books flights and hotels".to_owned(),
        provider: "Acme Tours".to_owned(),
        ..agent(number, "Traveller")
    };
    let traveller = with(traveller, Facet::Provider, &["acme tours"]);
    with(traveller, Facet::Tag, &[tag])
}

fn crowd(dir: &Path) -> Index {
    let hidden = AgentDocument {
        visible_to: vec!["group:x".to_owned()],
        ..traveller(4, "finance")
    };
    let agents = vec![
        traveller(1, "travel"),
        traveller(2, "travel"),
        traveller(3, "music"),
        hidden,
    ];
    built(dir, agents)
}

fn told(index: &Index, request: &SearchRequest) -> Vec<(HintKind, String, Option<u64>)> {
    let answer = index.search(request).unwrap();
    let hints = answer.hints.into_iter();
    hints
        .map(|hint| (hint.kind, hint.text, hint.matches_without))
        .collect()
}

#[test]
fn conditions_of_a_query_are_told_of_like_filters() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    let hides = |text: &str, hidden| (HintKind::Filter, text.to_owned(), Some(hidden));
    for (query, expected) in [
        ("flights tag:nowhere", vec![hides("tag:nowhere", 3)]),
        (
            "flights skill:\"no such\"",
            vec![hides("skill:\"no such\"", 3)],
        ),
        ("flights provider:globex", vec![hides("provider:globex", 3)]),
        ("flights tag:a OR tag:b", vec![hides("tag:a OR tag:b", 3)]),
        ("traveller -books", vec![hides("-books", 3)]),
        (
            "traveller -\"books flights\"",
            vec![hides("-\"books flights\"", 3)],
        ),
        // An agent that is hidden from the caller has this tag; it does not count.
        ("tag:finance", vec![hides("tag:finance", 3)]),
        (
            "tag:travel -flights",
            vec![hides("tag:travel", 0), hides("-flights", 2)],
        ),
        // The search has hits only without both of them.
        ("tag:nowhere -flights", vec![hides("", 3)]),
        ("tag:nowhere tag:nothing", vec![hides("", 3)]),
    ] {
        let expected: Vec<_> = expected
            .into_iter()
            .filter(|(_, _, hidden)| *hidden != Some(0))
            .collect();
        assert_eq!(told(&index, &text(query)), expected, "{query}");
    }
    // A filter next to a condition of the query.
    let mut request = text("flights tag:nowhere");
    request.filters = by(Facet::Trust, &["L1", "L2", "L3", "L4"]);
    assert_eq!(told(&index, &request), [hides("", 3)]);
    request.text = Some("flights tag:travel".to_owned());
    assert_eq!(told(&index, &request), [hides("trust", 2)]);
}

#[test]
fn who_may_see_nobody_is_told_that_there_is_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    for (query, labels) in [
        (all(), vec![]),
        (text("flights"), vec!["group:y".to_owned()]),
    ] {
        let request = SearchRequest {
            visible_to: labels,
            ..query
        };
        let hints = index.search(&request).unwrap().hints;
        assert!(
            hints.len() == 1 && hints[0].kind == HintKind::Empty,
            "{hints:?}"
        );
    }
    let hints = index.search(&text("submarine")).unwrap().hints;
    assert!(!hints.iter().any(|hint| hint.kind == HintKind::Empty));
}

#[test]
fn a_quotation_that_demands_nothing_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    let said = (HintKind::Syntax, "hotels flights".to_owned(), None);
    let request = text("\"hotels flights\" for me");
    assert_eq!(index.search(&request).unwrap().total, 3);
    assert_eq!(told(&index, &request), [said]);
    // Joined operands are required in a sentence too.
    let joined = text("the \"hotels flights\" AND me");
    assert_eq!(index.search(&joined).unwrap().total, 0);
    let found = text("flights AND \"flights and hotels\" for me");
    assert_eq!(index.search(&found).unwrap().total, 3);
    assert_eq!(told(&index, &found), []);
}

#[test]
fn a_beginning_of_too_many_words_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let named = |number: u64| agent(number, &format!("zz{number}"));
    let mut agents: Vec<AgentDocument> = (1..=64).map(named).collect();
    // Words that only hidden agents contain, more than are read, neither count nor displace others.
    agents.extend((100..400).map(|number| AgentDocument {
        visible_to: vec!["group:x".to_owned()],
        ..agent(number, &format!("zz{}", 1_000 + number / 3))
    }));
    let index = built(dir.path(), agents.clone());
    let answer = index.search(&text("zz*")).unwrap();
    assert_eq!((answer.total, answer.hints.len()), (64, 0));
    index.apply_changes(vec![named(65)], &[], 2).unwrap();
    let answer = index.search(&text("zz*")).unwrap();
    assert_eq!(answer.total, 64);
    let hint = &answer.hints[0];
    assert_eq!(
        (hint.kind, hint.text.as_str()),
        (HintKind::TooManyWords, "zz*")
    );
}

#[test]
fn a_beginning_that_finds_nothing_is_told_of_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    let unknown = |text: &str| (HintKind::UnknownWord, text.to_owned(), None);
    assert_eq!(told(&index, &text("trans*")), [unknown("trans*")]);
    let several = text("submarine trans* quanti*");
    let expected = ["submarine", "trans*", "quanti*"].map(unknown);
    assert_eq!(told(&index, &several), expected);
    // A prefix has no similar words.
    let near = text("hotle*");
    assert!(
        index.search(&near).unwrap().hints[0]
            .similar_words
            .is_empty()
    );
    // Words that only hidden agents contain do not match a prefix.
    assert_eq!(told(&index, &text("finan*")), [unknown("finan*")]);
}

#[test]
fn quotations_that_match_nothing_are_words_and_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    let relaxed = || (HintKind::Quotation, String::new(), None);
    let call =
        "{\"jsonrpc\": \"2.0\", \"method\": \"message/send\", \"params\": {\"text\": \"flights\"}}";
    for query in ["hotels \"quarterly report\"", "\"hotels flights\"", call] {
        let answer = index.search(&text(query)).unwrap();
        assert_eq!(answer.total, 3, "{query}");
        assert!(told(&index, &text(query)).contains(&relaxed()), "{query}");
        // The pages go on where they began.
        let first = SearchRequest {
            limit: 2,
            ..text(query)
        };
        let page = index.search(&first).unwrap();
        let second = SearchRequest {
            after: page.hits.last().map(|hit| hit.position.clone()),
            ..first
        };
        let all = [ids(&page), names(&index, &second)].concat();
        assert_eq!(all, ids(&answer), "{query}");
    }
    assert_eq!(told(&index, &text("\"flights and hotels\" submarine")), []);
    let travel = told(&index, &text("\"hotels flights\" tag:travel"));
    assert_eq!(travel, [relaxed()]);
    // Where the words match nothing either, the hints are about the query as it is.
    let nothing = told(&index, &text("\"submarine engines\""));
    let unknown = |text: &str| (HintKind::UnknownWord, text.to_owned(), None);
    assert_eq!(nothing, [unknown("submarine"), unknown("engines")]);
    // Who joins parts means them.
    assert_eq!(
        index
            .search(&text("\"hotels flights\" AND books"))
            .unwrap()
            .total,
        0
    );
    // Counts of values are of the same agents.
    let values = ValueCountRequest {
        property: AgentProperty::Facet(Facet::Tag),
        limit: 10,
        min_count: 1,
    };
    let counts = index.count_values(&text("\"hotels flights\""), &[values]);
    let expected = [("travel".to_owned(), 2), ("music".to_owned(), 1)];
    assert_eq!(counts.unwrap()[0].values, expected);
}

#[test]
fn a_query_without_a_word_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    let ignored = || (HintKind::NoWords, String::new(), None);
    for query in ["\u{1f680}", "???", "+ #"] {
        assert_eq!(told(&index, &text(query)), [ignored()], "{query}");
        assert_eq!(index.search(&text(query)).unwrap().total, 3, "{query}");
    }
    for query in [
        "",
        "  ",
        "tag:travel",
        "flights \u{1f680}",
        "fli*",
        "-submarine",
    ] {
        assert_eq!(told(&index, &text(query)), [], "{query}");
    }
    assert_eq!(told(&index, &all()), []);
}
