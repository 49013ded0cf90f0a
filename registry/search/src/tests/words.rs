//! Query words that differ from the card's (typing errors, synonyms, prefixes), and the query syntax.

use super::*;

fn crowd(dir: &Path) -> Index {
    let described = |number, name: &str, description: &str| AgentDocument {
        description: description.to_owned(),
        ..agent(number, name)
    };
    built(
        dir,
        vec![
            described(1, "Kubernetes planner", "Upgrades clusters"),
            described(2, "Currency converter", "Exchange rates of today"),
            described(3, "Transcriber", "Transcription of audio"),
            described(4, "Flight finder", "Books cheap flights to Tokyo"),
            with(
                described(
                    5,
                    "Hotel finder",
                    "Books hotels, and flights to go with them",
                ),
                Facet::Tag,
                &["travel"],
            ),
            AgentDocument {
                visible_to: vec!["group:x".into()],
                ..described(6, "Kubernets", "A secret with a typing error")
            },
        ],
    )
}

fn found(index: &Index, query: &str) -> Vec<u128> {
    let hits = index.search(&text(query)).unwrap().hits;
    hits.iter().map(|hit| hit.id.as_u128()).collect()
}

fn numbers(ids: &[u64]) -> Vec<u128> {
    ids.iter().map(|number| id(*number).as_u128()).collect()
}

#[test]
fn one_typing_error_still_finds() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    for (query, expected) in [
        ("kuberntes", 1),
        ("kubernetse", 1),
        ("kkubernetes", 1),
        ("curency", 2),
        ("transcripton", 3),
        // A caller who may not see agent 6 does not learn that it contains this word.
        ("kubernets", 1),
        // Two errors in a long word, and one in the stem of another inflection.
        ("kubrntes", 1),
        ("curenncy", 2),
        ("upgrdading", 1),
    ] {
        assert_eq!(found(&index, query), numbers(&[expected]), "{query}");
    }
    // Two errors in a short word, an error in the first letter, and words of four letters have no matches.
    for query in ["tkioo", "uberknetes", "gurrency", "tokio9", "rtes", "boks"] {
        assert!(found(&index, query).is_empty(), "{query}");
    }
    let highlights = &index.search(&text("kuberntes")).unwrap().hits[0].highlights;
    assert_eq!(highlights[0].text, "Kubernetes planner");
}

#[test]
fn a_word_that_is_there_is_no_typing_error() {
    let dir = tempfile::tempdir().unwrap();
    let described = |number, name: &str| AgentDocument {
        description: String::new(),
        ..agent(number, name)
    };
    let index = built(
        dir.path(),
        vec![described(1, "mouse"), described(2, "house")],
    );
    assert_eq!(found(&index, "mouse"), numbers(&[1]));
    assert_eq!(found(&index, "mouze"), numbers(&[1]));
    assert_eq!(found(&index, "hause"), numbers(&[2]));
}

#[test]
fn other_words_for_it_find_less_well() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    assert_eq!(found(&index, "k8s"), numbers(&[1]));
    assert_eq!(found(&index, "forex"), numbers(&[2]));
    // A phrase that is a synonym only as a whole.
    let dir = tempfile::tempdir().unwrap();
    let forex = built(dir.path(), vec![agent(1, "Forex desk"), agent(2, "OCR")]);
    for query in [
        "currency exchange",
        "exchange of currency for money",
        "text recognition",
    ] {
        let expected: &[u64] = match query {
            "currency exchange" => &[1],
            "text recognition" => &[2],
            _ => &[],
        };
        assert_eq!(found(&forex, query), numbers(expected), "{query}");
    }
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![agent(1, "hotel"), agent(2, "lodging")]);
    assert_eq!(found(&index, "lodging"), numbers(&[2, 1]));
    assert_eq!(found(&index, "hotel"), numbers(&[1, 2]));
}

#[test]
fn the_query_syntax_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    for (query, expected) in [
        ("\"cheap flights\"", vec![4]),
        ("\"flights cheap\" AND books", vec![]),
        ("\"cheap flying\" AND books", vec![]),
        ("\"cheap flights\" OR \"of audio\"", vec![3, 4]),
        ("\"cheap flights\" OR tag:travel", vec![4, 5]),
        ("flights cheap OR hotels", vec![4, 5]),
        ("flights tokyo OR audio", vec![3, 4]),
        ("hotels OR cheap AND tokyo", vec![4, 5]),
        ("fli* AND hotels", vec![5]),
        ("flights AND hot*", vec![5]),
        ("flights AND nowhere*", vec![]),
        ("tag:Travel", vec![5]),
        ("tag:nothing OR tag:TRAVEL", vec![5]),
        ("books AND hotels", vec![5]),
        ("flights -tokyo", vec![5]),
        ("flights -\"cheap flights\"", vec![5]),
        ("flights tag:travel", vec![5]),
        ("tag:travel", vec![5]),
        ("kub*", vec![1]),
        ("-flights", vec![1, 2, 3]),
        ("-flights -kubernetes -currency -audio", vec![]),
    ] {
        let mut found = found(&index, query);
        found.sort_unstable();
        let mut expected = numbers(&expected);
        expected.sort_unstable();
        assert_eq!(found, expected, "{query}");
    }
    assert_eq!(found(&index, "cheap OR audio").len(), 2);
    let hints = index.search(&text("flights \"to")).unwrap().hints;
    assert_eq!(hints[0].kind, HintKind::Syntax);
    assert!(index.search(&text("flights to")).unwrap().hints.is_empty());
}

#[test]
fn several_demands_are_met_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let words = ["book", "flight", "cheap", "hotel", "tokyo"];
    let mut dice = Dice(11);
    let agents: Vec<AgentDocument> = (1..=300)
        .map(|number| AgentDocument {
            description: (0..12)
                .map(|_| dice.pick(&words))
                .collect::<Vec<_>>()
                .join(" "),
            ..agent(number, "Agent")
        })
        .collect();
    let holds = |agent: &AgentDocument, phrase: &str| agent.description.contains(phrase);
    let index = built(dir.path(), agents.clone());
    for (query, required, excluded) in [
        (
            "\"book flight\" \"cheap hotel\" tokyo",
            vec!["book flight", "cheap hotel"],
            vec![],
        ),
        (
            "\"book flight\" AND tokyo -\"hotel hotel\"",
            vec!["book flight", "tokyo"],
            vec!["hotel hotel"],
        ),
        (
            "\"tokyo tokyo\" \"hotel tokyo\" \"flight book\"",
            vec!["tokyo tokyo", "hotel tokyo", "flight book"],
            vec![],
        ),
    ] {
        let expected = agents.iter().filter(|agent| {
            required.iter().all(|phrase| holds(agent, phrase))
                && !excluded.iter().any(|phrase| holds(agent, phrase))
        });
        let mut expected: Vec<Uuid> = expected.map(|agent| agent.id).collect();
        expected.sort_unstable();
        let request = SearchRequest {
            limit: 1_000,
            explain: true,
            ..text(query)
        };
        let mut found = names(&index, &request);
        found.sort_unstable();
        assert!(!expected.is_empty());
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn who_finds_nothing_is_told_what_is_near() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    let near = |query: &str| {
        let hints = index.search(&text(query)).unwrap().hints;
        hints
            .into_iter()
            .flat_map(|hint| hint.similar_words)
            .collect::<Vec<_>>()
    };
    assert_eq!(near("ubernetes"), ["kubernetes"]);
    assert_eq!(near("tkyoo"), ["tokyo"]);
    assert!(near("submarine").is_empty());
    // Words that only hidden agents contain are never suggested.
    assert_eq!(near("kubernxxs"), Vec::<String>::new());
    assert_eq!(near("seecrrt"), Vec::<String>::new());
}

#[test]
fn a_single_character_and_any_way_to_write_a_mark_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let described = |number, description: &str| AgentDocument {
        description: description.to_owned(),
        ..agent(number, "Agent")
    };
    let index = built(
        dir.path(),
        vec![
            described(1, "電車の時刻"),
            described(2, "車両を探す"),
            described(3, "電気"),
            described(4, "旅行ガイド"),
            described(5, "旅行ｶﾞｲﾄﾞ"),
            described(6, "bookAFlight"),
        ],
    );
    let sorted = |query: &str| {
        let mut found = found(&index, query);
        found.sort_unstable();
        found
    };
    let expected = |ids: &[u64]| {
        let mut ids = numbers(ids);
        ids.sort_unstable();
        ids
    };
    assert_eq!(sorted("車"), expected(&[1, 2]));
    assert_eq!(sorted("電 AND 車"), expected(&[1]));
    // Several characters match only next to each other.
    assert_eq!(sorted("電車"), expected(&[1]));
    assert_eq!(sorted("車電"), expected(&[]));
    assert_eq!(sorted("\"旅行ガイド\""), expected(&[4, 5]));
    for query in ["ガイド", "ｶﾞｲﾄﾞ", "カ\u{3099}イト\u{3099}"] {
        assert_eq!(sorted(query), expected(&[4, 5]), "{query}");
    }
    let hit = index.search(&text("車")).unwrap().hits.remove(0);
    let shown = &hit.highlights[0];
    assert_eq!(&shown.text[shown.ranges[0].clone()], "車");
    for query in ["flight", "book", "\"book a flight\""] {
        assert_eq!(sorted(query), expected(&[6]), "{query}");
    }
}

#[test]
fn a_synonym_is_found_by_its_word_and_not_by_another_with_its_stem() {
    let dir = tempfile::tempdir().unwrap();
    let described = |number, description: &str| AgentDocument {
        description: description.to_owned(),
        ..agent(number, "Nameless")
    };
    let agents = vec![
        described(1, "Localization of websites"),
        described(2, "Local news of your town"),
        described(3, "Custom coffee for customers"),
    ];
    let index = built(dir.path(), agents);
    assert_eq!(names(&index, &text("translate")), [id(1)]);
    let marked = |query: &str| -> Vec<String> {
        let hit = index.search(&text(query)).unwrap().hits.remove(0);
        let highlights = hit.highlights.into_iter();
        let marked = highlights.flat_map(|one| {
            let text = one.text.clone();
            one.ranges
                .into_iter()
                .map(move |range| text[range].to_owned())
        });
        marked.collect()
    };
    assert_eq!(marked("translate"), ["Localization"]);
    assert_eq!(marked("client"), ["customers"]);
}

#[test]
fn names_with_symbols_are_found_as_words_and_highlighted() {
    let dir = tempfile::tempdir().unwrap();
    let described = |number, description: &str| AgentDocument {
        description: description.to_owned(),
        ..agent(number, "Nameless")
    };
    let index = built(
        dir.path(),
        vec![
            described(1, "Reviews C++ and Rust"),
            described(2, "Reviews C# for ASP.NET"),
            described(3, "Plain C"),
            described(4, "Servers in Node.js"),
            described(5, "Upgrades NodeJS"),
            described(6, "Runs on k8s"),
            described(7, "Registers names such as example.net"),
        ],
    );
    for (query, expected, shown) in [
        ("c++", vec![1], "C++"),
        ("cpp", vec![1], "C++"),
        ("C#", vec![2], "C#"),
        (".net", vec![2], ".NET"),
        ("dotnet", vec![2], ".NET"),
        ("c", vec![3], "C"),
        ("nodejs", vec![4, 5], "Node.js"),
        ("kubernetes", vec![6], "k8s"),
        ("net", vec![7], "net"),
    ] {
        let mut hits = index.search(&text(query)).unwrap().hits;
        hits.sort_unstable_by_key(|hit| hit.id.as_u64_pair().1);
        let found: Vec<u128> = hits.iter().map(|hit| hit.id.as_u128()).collect();
        assert_eq!(found, numbers(&expected), "{query}");
        let highlight = &hits[0].highlights[0];
        let marked = &highlight.text[highlight.ranges[0].clone()];
        assert_eq!(marked, shown, "{query}");
    }
    let mut both = found(&index, "Node.js");
    both.sort_unstable();
    let mut expected = numbers(&[4, 5]);
    expected.sort_unstable();
    assert_eq!(both, expected);
}

#[test]
fn words_of_a_family_and_everyday_synonyms_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let described = |number, description: &str| AgentDocument {
        description: description.to_owned(),
        ..agent(number, "Nameless")
    };
    let index = built(
        dir.path(),
        vec![
            described(1, "Conversion of units"),
            described(2, "Keeps a conversation going"),
            described(3, "Flight search"),
            described(4, "Support tickets"),
        ],
    );
    for (query, expected) in [
        ("convert", vec![1]),
        ("converter", vec![1]),
        ("cheap air ticket", vec![3, 4]),
        ("plane tickets", vec![3, 4]),
        ("flight", vec![3]),
    ] {
        let mut found = found(&index, query);
        found.sort_unstable();
        let mut expected = numbers(&expected);
        expected.sort_unstable();
        assert_eq!(found, expected, "{query}");
    }
}
