//! Tests of reading catalogs: which entries are read, and which are skipped.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};
use url::Url;

use super::EntrySkipReason::{
    AlreadyFetched, Ambiguous, DigestMismatch, DuplicateIdentifier, ForeignOrigin, ForeignSite,
    LimitReached, Malformed, NotACard, PublisherMismatch, RegistryOfOtherPublisher,
    RejectedByGuard, TooDeep, TooManyInline,
};
use super::{
    CatalogCardEntry, CatalogContents, CatalogDocument, CatalogError, CatalogReadOptions,
    CatalogWalk, EntrySkipReason, MAX_CATALOG_REQUESTS, MAX_DEPTH, MAX_ENTRIES,
    MAX_IDENTIFIER_BYTES, MAX_INLINE_CARDS, MAX_REGISTRIES, MAX_SKIPPED_ENTRIES, SkippedEntryList,
    parse_catalog,
};
use crate::guard::{GuardConfig, SsrfGuard};

const CARD: &str = "application/a2a-agent-card+json";
const CATALOG: &str = "application/ai-catalog+json";

fn base() -> Url {
    "https://house.example.com/.well-known/ard.json"
        .parse()
        .unwrap()
}

fn card(identifier: &str, url: &str) -> Value {
    json!({"identifier": identifier, "displayName": "An agent", "type": CARD, "url": url})
}

fn options(depth: usize, most: usize) -> CatalogReadOptions {
    CatalogReadOptions {
        depth,
        max_entries: most,
        read_registries: false,
    }
}

fn reading(entries: &[Value]) -> CatalogDocument {
    let document = json!({"specVersion": "1.0", "entries": entries}).to_string();
    parse_catalog(document.as_bytes(), &base(), options(0, usize::MAX)).unwrap()
}

fn passed(findings: &SkippedEntryList) -> Vec<EntrySkipReason> {
    findings
        .entries
        .iter()
        .map(|finding| finding.reason)
        .collect()
}

#[test]
fn an_entry_is_read_member_by_member() {
    let with = |member: &str, value: Value| {
        let mut entry = card("urn:air:house.example.com:a", "/a.json");
        entry[member] = value;
        entry
    };
    let without = |member: &str| {
        let mut entry = card("urn:air:house.example.com:a", "/a.json");
        entry.as_object_mut().unwrap().remove(member);
        entry
    };
    let long = "x".repeat(MAX_IDENTIFIER_BYTES + 1);
    for (entry, expected) in [
        (with("displayName", json!(7)), None),
        (
            with("type", json!("Application/A2A-Agent-Card+JSON; v=1")),
            None,
        ),
        (with("data", Value::Null), None),
        (with("identifier", json!("free text")), None),
        (with("identifier", json!(&long[1..])), None),
        (with("updatedAt", json!("yesterday")), None),
        (with("trustManifest", json!("not an object")), None),
        (
            with(
                "trustManifest",
                json!({"identity": "did:web:House.example.com"}),
            ),
            None,
        ),
        (
            with(
                "trustManifest",
                json!({"identity": "spiffe://house.example.com/a"}),
            ),
            None,
        ),
        (
            with("trustManifest", json!({"identity": "did:key:z6Mk"})),
            None,
        ),
        (
            with(
                "trustManifest",
                json!({"identity": "https://other.example/x"}),
            ),
            Some(PublisherMismatch),
        ),
        (
            with("trustManifest", json!({"identity": "example.com"})),
            Some(PublisherMismatch),
        ),
        (
            with("type", json!("application/mcp-server-card+json")),
            Some(NotACard),
        ),
        (
            with("type", json!("application/ai-registry+json")),
            Some(NotACard),
        ),
        (
            with("type", json!(["application/a2a-agent-card+json"])),
            Some(Malformed),
        ),
        (without("type"), Some(Malformed)),
        (without("identifier"), Some(Malformed)),
        (with("identifier", json!(" ")), Some(Malformed)),
        (with("identifier", json!("a\nb")), Some(Malformed)),
        (with("identifier", json!(long)), Some(Malformed)),
        (without("url"), Some(Malformed)),
        (with("url", json!(7)), Some(Malformed)),
        (with("url", json!("https://[broken")), Some(Malformed)),
        (with("url", json!("x".repeat(3_000))), Some(Malformed)),
        (with("data", json!({"name": "both"})), Some(Malformed)),
        (
            json!({"identifier": "a", "type": CARD, "data": {"name": "inline"}}),
            None,
        ),
        (with("digest", json!("sha256:short")), Some(DigestMismatch)),
        (with("digest", json!("md5:whatever")), None),
        (with("digest", json!(7)), None),
        (json!("no object"), Some(Malformed)),
        (json!(null), Some(Malformed)),
    ] {
        let shown = entry.to_string();
        // Whatever happens to this entry, the next one is read.
        let found = reading(&[entry, card("urn:air:house.example.com:b", "/b.json")]);
        assert_eq!(
            found.cards.len(),
            1 + usize::from(expected.is_none()),
            "{shown}"
        );
        assert_eq!(passed(&found.skipped), Vec::from_iter(expected), "{shown}");
        assert!(found.is_complete);
    }
}

#[test]
fn urls_are_resolved_and_brought_to_one_form() {
    let found = reading(&[
        card("a", "../cards/%7Ea.json#part"),
        card("b", "HTTPS://House.example.com:443/x/../b.json"),
        card("urn:ai:house.example.com:c", "/c.json"),
    ]);
    let urls: Vec<&str> = found.cards.iter().map(|card| card.url.as_str()).collect();
    assert_eq!(
        urls,
        [
            "https://house.example.com/cards/~a.json",
            "https://house.example.com/b.json",
            "https://house.example.com/c.json"
        ]
    );
    assert_eq!(found.cards[2].identifier, "urn:air:house.example.com:c");
}

#[test]
fn only_a_document_with_entries_is_a_catalog() {
    for (document, expected) in [
        (r#"{"entries":[]}"#, Ok(0)),
        ("\u{feff}{\"entries\":[]}", Ok(0)),
        (r#"{"specVersion":"1.7","entries":[1]}"#, Ok(1)),
        (r#"{"specVersion":[2],"entries":[]}"#, Ok(0)),
        (
            r#"{"specVersion":"2.0","entries":[]}"#,
            Err(CatalogError::UnsupportedVersion("2.0".into())),
        ),
        (r#"{"entries":{}}"#, Err(CatalogError::NoEntries)),
        (r#"{"name":"a card"}"#, Err(CatalogError::NoEntries)),
        ("[]", Err(CatalogError::NoEntries)),
        ("null", Err(CatalogError::NoEntries)),
    ] {
        let found = parse_catalog(document.as_bytes(), &base(), options(0, 10));
        assert_eq!(
            found.map(|reading| reading.entry_count),
            expected,
            "{document}"
        );
    }
    for broken in [
        "",
        "<!doctype html>",
        "{\"entries\":[",
        &"[".repeat(100_000),
    ] {
        let found = parse_catalog(broken.as_bytes(), &base(), options(0, 10));
        assert!(matches!(found, Err(CatalogError::NotJson(_))));
    }
}

/// A catalog nested inline `levels` deep, with one card at the bottom.
fn inline(levels: usize) -> Value {
    let mut document = json!({"entries": [card("deep", "/deep.json")]});
    for _ in 0..levels {
        document = json!({"entries": [{"identifier": "n", "type": CATALOG, "data": document}]});
    }
    document
}

#[test]
fn inline_catalogs_count_for_the_depth() {
    for levels in 0..=MAX_DEPTH + 2 {
        let bytes = inline(levels).to_string();
        let found = parse_catalog(bytes.as_bytes(), &base(), options(0, 100)).unwrap();
        let reached = levels <= MAX_DEPTH;
        assert_eq!(found.cards.len(), usize::from(reached), "{levels}");
        assert_eq!(
            passed(&found.skipped),
            if reached { vec![] } else { vec![TooDeep] }
        );
    }
    let elsewhere = json!({"entries": [{"type": CATALOG, "url": "/next.json"}]}).to_string();
    let at = |depth| parse_catalog(elsewhere.as_bytes(), &base(), options(depth, 10)).unwrap();
    assert_eq!(at(MAX_DEPTH - 1).nested_urls[0].1, MAX_DEPTH);
    assert_eq!(at(MAX_DEPTH).nested_urls, []);
    assert_eq!(passed(&at(MAX_DEPTH).skipped), [TooDeep]);
}

#[test]
fn entries_and_findings_are_bounded() {
    let cards = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|number| card(&format!("a{number}"), &format!("/{number}.json")))
            .collect()
    };
    let whole = reading(&cards(MAX_ENTRIES));
    assert_eq!((whole.cards.len(), whole.is_complete), (MAX_ENTRIES, true));
    assert_eq!(whole.skipped, SkippedEntryList::default());
    let cut = reading(&cards(MAX_ENTRIES + 1));
    assert_eq!((cut.cards.len(), cut.is_complete), (MAX_ENTRIES, false));
    assert_eq!(passed(&cut.skipped), [LimitReached]);

    let broken = reading(&vec![json!({}); MAX_SKIPPED_ENTRIES + 7]);
    assert_eq!(broken.skipped.entries.len(), MAX_SKIPPED_ENTRIES);
    let told = broken.skipped.summary().unwrap();
    assert!(
        told.starts_with("entry 0 is not a complete entry; "),
        "{told}"
    );
    assert!(told.ends_with("; and 49 more"), "{told}");
    let mut mixed = vec![json!({"type": "text/markdown"}); MAX_SKIPPED_ENTRIES];
    mixed.push(json!({}));
    mixed.swap(3, MAX_SKIPPED_ENTRIES);
    let told = reading(&mixed).skipped.summary().unwrap();
    assert!(
        told.starts_with("entry 3 is not a complete entry; "),
        "{told}"
    );
    assert_eq!(SkippedEntryList::default().summary(), None);
}

fn walked(
    documents: &[(&str, Vec<Value>)],
) -> (Vec<CatalogCardEntry>, Vec<EntrySkipReason>, bool, usize) {
    let guard = SsrfGuard::new(GuardConfig::default());
    let first = base();
    let mut walk = CatalogWalk::new(&guard, &first);
    walk.add_document(&first, 10, reading(&documents[0].1));
    let mut asked = 1;
    while let Some(nested) = walk.take_next_nested_catalog() {
        asked += 1;
        let found = documents
            .iter()
            .find(|(url, _)| nested.url.path() == *url)
            .unwrap();
        let document = json!({"entries": found.1}).to_string();
        let reading = parse_catalog(
            document.as_bytes(),
            &nested.url,
            options(nested.depth, 1_000),
        )
        .unwrap();
        walk.add_document(&nested.url, 10, reading);
    }
    let CatalogContents {
        cards,
        skipped: findings,
        is_complete: complete,
        ..
    } = walk.into_contents();
    (cards, passed(&findings), complete, asked)
}

fn nested(url: &str) -> Value {
    json!({"identifier": url, "type": CATALOG, "url": url})
}

#[test]
fn cards_of_other_hosts_and_catalogs_of_other_sites_are_passed_over() {
    let (cards, findings, complete, asked) = walked(&[(
        "",
        vec![
            card("a", "/a.json"),
            card("b", "https://other.example/b.json"),
            card("c", "https://sub.house.example.com/c.json"),
            card("d", "http://house.example.com/d.json"),
            card("e", "https://house.example.com:444/e.json"),
            card("f", "https://user@house.example.com/f.json"),
            card("g", "file:///etc/passwd"),
            nested("https://evil.example/c.json"),
            nested("http://house.example.com/c.json"),
        ],
    )]);
    assert_eq!(cards.len(), 1);
    assert_eq!(
        findings,
        [
            ForeignOrigin,
            ForeignOrigin,
            ForeignOrigin,
            ForeignOrigin,
            RejectedByGuard,
            ForeignOrigin,
            ForeignSite,
            ForeignSite
        ]
    );
    assert!(complete, "nothing of this domain's own is missing");
    assert_eq!(asked, 1);
}

/// A URL on the catalog's own host is not reported as being on another host.
#[test]
fn findings_tell_a_scheme_and_a_port_from_a_host() {
    let guard = SsrfGuard::new(GuardConfig::default());
    let first = base();
    let mut walk = CatalogWalk::new(&guard, &first);
    let entries = [
        card("a", "http://house.example.com/a.json"),
        card("b", "https://house.example.com:444/b.json"),
        nested("http://house.example.com/c.json"),
    ];
    walk.add_document(&first, 1, reading(&entries));
    let findings = walk.into_contents().skipped;
    let texts: Vec<String> = findings.entries.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "http://house.example.com/a.json is not on the scheme, host and port of the domain's catalog",
            "https://house.example.com:444/b.json is not on the scheme, host and port of the domain's catalog",
            "http://house.example.com/c.json is on another registrable domain, or not https",
        ]
    );
}

#[test]
fn two_names_on_one_public_suffix_are_strangers() {
    let guard = SsrfGuard::new(GuardConfig::default());
    let first: Url = "https://one.github.io/c.json".parse().unwrap();
    let mut walk = CatalogWalk::new(&guard, &first);
    walk.add_document(
        &first,
        1,
        reading(&[nested("https://two.github.io/c.json")]),
    );
    assert_eq!(walk.take_next_nested_catalog(), None);
    assert_eq!(passed(&walk.into_contents().skipped), [ForeignSite]);
}

#[test]
fn loops_end_and_diamonds_are_asked_once() {
    let (cards, findings, complete, asked) = walked(&[
        (
            "",
            vec![nested("/1.json"), nested("/2.json"), nested("/%31.json")],
        ),
        (
            "/1.json",
            vec![nested("/2.json"), nested("/1.json"), card("a", "/a")],
        ),
        (
            "/2.json",
            vec![nested("/.well-known/ard.json"), card("b", "/b")],
        ),
    ]);
    assert_eq!((cards.len(), asked, complete), (2, 3, true));
    assert_eq!(
        findings,
        [
            AlreadyFetched,
            AlreadyFetched,
            AlreadyFetched,
            AlreadyFetched
        ]
    );
}

#[test]
fn requests_are_bounded() {
    let wide: Vec<Value> = (1..=MAX_CATALOG_REQUESTS)
        .map(|number| nested(&format!("/{number}.json")))
        .collect();
    let mut documents = vec![("", wide)];
    let paths: Vec<String> = (1..=MAX_CATALOG_REQUESTS)
        .map(|number| format!("/{number}.json"))
        .collect();
    for path in &paths {
        documents.push((path, vec![card(path, "/x.json")]));
    }
    let (cards, findings, complete, asked) = walked(&documents);
    assert_eq!(
        (asked, cards.len()),
        (MAX_CATALOG_REQUESTS, MAX_CATALOG_REQUESTS - 1)
    );
    assert_eq!(findings, [LimitReached]);
    assert!(!complete);
}

#[test]
fn of_two_entries_with_one_identifier_the_later_counts() {
    let dated = |url: &str, at: &str| {
        let mut entry = card("a", url);
        entry["updatedAt"] = json!(at);
        entry
    };
    let (old, new) = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00+01:00");
    for (entries, expected) in [
        (vec![card("a", "/1"), card("a", "/2")], "/1"),
        (vec![dated("/1", old), dated("/2", new)], "/2"),
        (vec![dated("/1", new), dated("/2", old)], "/1"),
        (vec![card("a", "/1"), dated("/2", new)], "/1"),
    ] {
        let (cards, findings, ..) = walked(&[("", entries)]);
        assert_eq!(cards.len(), 1);
        assert_eq!(cards[0].url.path(), expected);
        assert_eq!(findings, [DuplicateIdentifier]);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just(CARD.to_owned()),
        Just(CATALOG.to_owned()),
        Just("https://house.example.com/a".to_owned()),
        Just("urn:air:x.example:y".to_owned()),
        ".*",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    let names = prop_oneof![
        Just("entries"),
        Just("type"),
        Just("url"),
        Just("data"),
        Just("identifier"),
        Just("trustManifest"),
        Just("identity"),
        Just("specVersion"),
        Just("updatedAt"),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_document_breaks_the_reader(entries in prop::collection::vec(any_json(), 0..8), depth in 0..7_usize) {
        let document = json!({"entries": entries}).to_string();
        let found = parse_catalog(document.as_bytes(), &base(), options(depth, 5)).unwrap();
        prop_assert!(found.entry_count <= 5 && found.cards.len() <= found.entry_count);
        prop_assert!(found.nested_urls.iter().all(|(_, depth)| *depth <= MAX_DEPTH.max(1)));
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..400_usize) {
        let _any = parse_catalog(&bytes, &base(), options(0, 5));
        let whole = inline(4).to_string();
        let _cut = parse_catalog(&whole.as_bytes()[..cut.min(whole.len())], &base(), options(0, 5));
    }
}

/// A card inside an entry is kept byte for byte, at a URL of its own.
#[test]
fn a_card_inside_an_entry_is_taken_as_it_stands() {
    let data = "{ \"name\":\"A\",\n  \"name\" : \"B\", \"n\": 1.0 }";
    let document = format!(
        r#"{{"entries":[{{"identifier":"urn:air:house.example.com:a b","type":"{CARD}","data":{data}}}]}}"#
    );
    let found = parse_catalog(document.as_bytes(), &base(), options(0, 10)).unwrap();
    assert_eq!(passed(&found.skipped), []);
    let card = &found.cards[0];
    assert_eq!(card.inline_card.as_deref(), Some(data.as_bytes()));
    assert_eq!(
        card.url.as_str(),
        "https://house.example.com/.well-known/ard.json#urn:air:house.example.com:a%20b"
    );
}

/// The digest of `data` is the digest of its canonical form; data without a canonical form cannot be compared.
#[test]
fn a_stated_digest_of_data_is_compared() {
    let digest = a2a_card::bytes_digest(br#"{"name":"A","n":1}"#);
    let canonical = a2a_card::bytes_digest(br#"{"n":1,"name":"A"}"#);
    for (data, stated, expected) in [
        (r#"{"name":"A","n":1.0}"#, canonical.as_str(), None),
        (r#"{"name":"A","n":1}"#, &digest, Some(DigestMismatch)),
        (
            r#"{"name":"A","name":"A","n":1}"#,
            &canonical,
            Some(DigestMismatch),
        ),
        (r#"{"name":"A","n":1}"#, "sha256:AA", Some(DigestMismatch)),
    ] {
        let document = format!(
            r#"{{"entries":[{{"identifier":"a","type":"{CARD}","digest":"{stated}","data":{data}}}]}}"#
        );
        let found = parse_catalog(document.as_bytes(), &base(), options(0, 10)).unwrap();
        assert_eq!(passed(&found.skipped), Vec::from_iter(expected), "{data}");
    }
}

#[test]
fn cards_inside_catalogs_are_bounded() {
    let one = |number: usize| json!({"identifier": format!("a{number}"), "type": CARD, "data": {"name": "A"}});
    let entries: Vec<Value> = (0..MAX_INLINE_CARDS + 2).map(one).collect();
    let (cards, findings, ..) = walked(&[("", entries.clone())]);
    assert_eq!(cards.len(), MAX_INLINE_CARDS);
    assert_eq!(findings, [TooManyInline, TooManyInline]);
    // Replacing cards that have a URL does not let more inline cards in.
    let mut urls: Vec<Value> = (0..MAX_INLINE_CARDS + 2)
        .map(|number| card(&format!("a{number}"), &format!("/{number}")))
        .collect();
    urls.iter_mut()
        .for_each(|one| one["updatedAt"] = json!("2026-01-01T00:00:00Z"));
    urls.extend(entries.into_iter().map(|mut one| {
        one["updatedAt"] = json!("2026-02-01T00:00:00Z");
        one
    }));
    let (cards, ..) = walked(&[("", urls)]);
    let inline = cards.iter().filter(|card| card.inline_card.is_some());
    assert_eq!(inline.count(), MAX_INLINE_CARDS);
}

fn with_registries(entries: &str) -> CatalogDocument {
    let document = format!(r#"{{"entries":[{entries}]}}"#);
    let all = CatalogReadOptions {
        read_registries: true,
        ..options(0, 100)
    };
    parse_catalog(document.as_bytes(), &base(), all).unwrap()
}

/// MCP servers, skills and all other entry types are skipped, and named as skipped.
#[test]
fn entries_of_other_types_are_skipped_by_name() {
    let other = |kind: &str| json!({"identifier": "urn:air:house.example.com:tools:sorter", "type": kind, "url": "/a"});
    for kind in [
        "application/mcp-server-card+json",
        "application/mcp-server+json",
        "text/markdown",
        "never/heard-of-it",
    ] {
        let entries = [other(kind), card("a", "/a.json")].map(|entry| entry.to_string());
        let found = with_registries(&entries.join(","));
        assert_eq!(
            found.skipped.summary().as_deref(),
            Some("urn:air:house.example.com:tools:sorter is not an A2A agent card")
        );
        assert_eq!((found.cards.len(), found.registries.len()), (1, 0));
    }
    let registry = reading(&[other("application/ai-registry+json")]);
    assert_eq!(passed(&registry.skipped), [NotACard]);
}

/// A broken registry causes that entry to be skipped, not the document.
#[test]
fn registries_are_read_unless_parsers_disagree() {
    let id = r#""identifier":"urn:air:house.example.com:x""#;
    let kind = r#""type":"application/ai-registry+json""#;
    for (entry, expected) in [
        (format!(r#"{{{id},{kind},"url":"/a"}}"#), None),
        (
            format!(r#"{{{id},"type":"Application/AI-Registry; v=1","url":"/a"}}"#),
            None,
        ),
        (
            format!(r#"{{{id},{kind},"url":"/a","metadata":{{"big":9007199254740993}}}}"#),
            Some(Ambiguous),
        ),
        (
            format!(r#"{{{id},{id},{kind},"url":"/a"}}"#),
            Some(Ambiguous),
        ),
        (
            format!(r#"{{{id},{kind},"url":"/a","x":"\ud800"}}"#),
            Some(Malformed),
        ),
        (
            format!(r#"{{{id},{kind},"url":"javascript:alert(1)"}}"#),
            Some(Malformed),
        ),
        (format!(r#"{{{id},{kind},"data":{{}}}}"#), Some(Malformed)),
        (
            format!(r#"{{{id},{kind},"url":"/a","data":1}}"#),
            Some(Malformed),
        ),
        (format!(r#"{{{id},{kind}}}"#), Some(Malformed)),
        (format!(r#"{{{kind},"url":"/a"}}"#), Some(Malformed)),
        (
            format!(r#"{{{id},{kind},"url":"/a","trustManifest":{{"identity":"other.example"}}}}"#),
            Some(PublisherMismatch),
        ),
    ] {
        let found = with_registries(&format!(r#"{entry},{{{id},{kind},"url":"/next"}}"#));
        assert_eq!(passed(&found.skipped), Vec::from_iter(expected), "{entry}");
        let read = 1 + usize::from(expected.is_none());
        assert_eq!(found.registries.len(), read, "{entry}");
    }
    let found = with_registries(&format!(
        r#"{{"identifier":"urn:ai:house.example.com:r",{kind},"url":"ard","displayName":" Our \u202e registry\n"}},
           {{{id},{kind},"url":"https://search.example/ard"}}"#
    ));
    let names = found.registries.iter().map(|one| {
        (
            one.identifier.as_str(),
            one.display_name.as_str(),
            one.url.as_str(),
        )
    });
    assert_eq!(
        Vec::from_iter(names),
        [
            (
                "urn:air:house.example.com:r",
                "Our registry",
                "https://house.example.com/.well-known/ard"
            ),
            (
                "urn:air:house.example.com:x",
                "x",
                "https://search.example/ard"
            ),
        ]
    );
}

/// Only the host that serves the catalog can name registries, and only its own.
#[test]
fn registries_of_other_publishers_are_skipped() {
    let registry = |identifier: &str| {
        let kind = "application/ai-registry+json";
        json!({"identifier": identifier, "type": kind, "url": "/ard"}).to_string()
    };
    let walk = |documents: &[(&str, &[String])]| {
        let guard = SsrfGuard::new(GuardConfig::default());
        let first = documents[0].0.parse().unwrap();
        let mut walk = CatalogWalk::new(&guard, &first);
        for (url, entries) in documents {
            let url = url.parse().unwrap();
            walk.add_document(&url, 10, with_registries(&entries.join(",")));
        }
        walk.into_contents()
    };
    let ours = registry("urn:air:house.example.com:r");
    let own = "https://house.example.com/.well-known/ard.json";
    for (url, entry, expected) in [
        (own, &ours, None),
        (
            own,
            &registry("urn:air:neighbour.example.com:r"),
            Some(RegistryOfOtherPublisher),
        ),
        (
            own,
            &registry("urn:air:example.com:r"),
            Some(RegistryOfOtherPublisher),
        ),
        (
            own,
            &registry("urn:air:a.house.example.com:r"),
            Some(RegistryOfOtherPublisher),
        ),
        (
            own,
            &registry("urn:air:House.example.com:r"),
            Some(RegistryOfOtherPublisher),
        ),
        (own, &registry("free text"), Some(RegistryOfOtherPublisher)),
        (
            "https://house.example.com:8443/ard.json",
            &ours,
            Some(RegistryOfOtherPublisher),
        ),
        (
            "http://house.example.com/ard.json",
            &ours,
            Some(RegistryOfOtherPublisher),
        ),
        (
            "https://example.com/ard.json",
            &ours,
            Some(RegistryOfOtherPublisher),
        ),
    ] {
        let walked = walk(&[(url, std::slice::from_ref(entry))]);
        assert_eq!(
            passed(&walked.skipped),
            Vec::from_iter(expected),
            "{url} {entry}"
        );
        assert_eq!(walked.registries.len(), usize::from(expected.is_none()));
    }
    // A catalog elsewhere on the site, named by ours, can speak neither for us nor for itself.
    let theirs = registry("urn:air:a.house.example.com:r");
    let walked = walk(&[
        (own, &[]),
        (
            "https://a.house.example.com/c.json",
            &[ours.clone(), theirs],
        ),
    ]);
    assert_eq!(
        passed(&walked.skipped),
        [RegistryOfOtherPublisher, RegistryOfOtherPublisher]
    );
    assert_eq!(walked.registries, []);
    // An identifier yields one registry, and the number of registries is limited.
    let mut many: Vec<String> = (0..=MAX_REGISTRIES)
        .map(|number| registry(&format!("urn:air:house.example.com:r{number}")))
        .collect();
    many.insert(1, many[0].clone());
    let walked = walk(&[(own, &many)]);
    assert_eq!(walked.registries.len(), MAX_REGISTRIES);
    assert_eq!(passed(&walked.skipped), [DuplicateIdentifier, LimitReached]);
}
