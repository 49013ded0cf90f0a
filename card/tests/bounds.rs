//! Behaviour at each limit and just beyond it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use a2a_card::{
    MAX_CARD_BYTES, MAX_DEPTH, MAX_FINDINGS, MAX_LIST_ELEMENTS, ParseError, ParsedCard, lint_card,
    parse_card,
};
use serde_json::{Value, json};

/// A card with one more member.
fn with(name: &str, value: Value) -> ParsedCard {
    let mut card = json!({"name": "A", "url": "https://a.agents-r-us.io"});
    card[name] = value;
    parse_card(card.to_string().as_bytes()).unwrap()
}

/// Number of findings of a rule.
fn count(parsed: &ParsedCard, rule: &str) -> usize {
    parsed.findings.iter().filter(|f| f.rule == rule).count()
}

#[test]
fn size_ends_at_one_mebibyte() {
    let frame = r#"{"name":"A","x":""}"#.len();
    let card = |size: usize| format!(r#"{{"name":"A","x":"{}"}}"#, "y".repeat(size - frame));
    assert_eq!(card(MAX_CARD_BYTES).len(), MAX_CARD_BYTES);
    assert!(parse_card(card(MAX_CARD_BYTES).as_bytes()).is_ok());
    let size = MAX_CARD_BYTES + 1;
    let error = parse_card(card(size).as_bytes()).unwrap_err();
    assert_eq!(error, ParseError::TooLarge { size });
}

#[test]
fn depth_ends_at_sixty_four() {
    // The card itself counts as the first level.
    let card = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"name":"A","x":{open}{close}}}"#)
    };
    assert!(parse_card(card(MAX_DEPTH).as_bytes()).is_ok());
    let error = parse_card(card(MAX_DEPTH + 1).as_bytes()).unwrap_err();
    assert_eq!(error, ParseError::TooDeep);
    let bottomless = "[".repeat(MAX_CARD_BYTES);
    assert_eq!(parse_card(bottomless.as_bytes()), Err(ParseError::TooDeep));
}

#[test]
fn lists_end_at_a_thousand() {
    let skills = |n: usize| -> Value {
        (0..n)
            .map(|i| json!({"id": i.to_string(), "name": "n", "tags": ["t"]}))
            .collect()
    };
    let full = with("skills", skills(MAX_LIST_ELEMENTS));
    assert_eq!(full.card.skills.len(), MAX_LIST_ELEMENTS);
    assert_eq!(count(&full, "list.cut"), 0);
    let cut = with("skills", skills(MAX_LIST_ELEMENTS + 1));
    assert_eq!(cut.card.skills.len(), MAX_LIST_ELEMENTS);
    assert_eq!(cut.card.skills[MAX_LIST_ELEMENTS - 1].id, "999");
    assert_eq!(count(&cut, "list.cut"), 1);

    let many: Value = vec!["x/y"; MAX_LIST_ELEMENTS + 1].into();
    for name in ["defaultInputModes", "security", "signatures"] {
        assert_eq!(count(&with(name, many.clone()), "list.cut"), 1, "{name}");
    }
    let interfaces: Value = (0..=MAX_LIST_ELEMENTS)
        .map(|i| json!({"url": format!("https://{i}.io"), "protocolBinding": "JSONRPC"}))
        .collect();
    let cut = with("supportedInterfaces", interfaces);
    assert_eq!(
        cut.card.interfaces.len(),
        MAX_LIST_ELEMENTS + 1,
        "and the flat one"
    );
    assert_eq!(count(&cut, "list.cut"), 1);
    let schemes: serde_json::Map<String, Value> = (0..=MAX_LIST_ELEMENTS)
        .map(|i| (i.to_string(), json!({"type": "mutualTLS"})))
        .collect();
    let cut = with("securitySchemes", schemes.into());
    assert_eq!(cut.card.security_schemes.len(), MAX_LIST_ELEMENTS);
    assert_eq!(count(&cut, "list.cut"), 1);
}

#[test]
fn texts_end_at_their_lengths() {
    let text = |n: usize| Value::from("é".repeat(n));
    for (name, bound) in [("version", 1_024), ("description", 16_384)] {
        let read = |n: usize| {
            let parsed = with(name, text(n));
            let card = &parsed.card;
            let kept = card.version.as_ref().or(card.description.as_ref());
            let kept = kept.map(|text| text.chars().count());
            (kept, count(&parsed, "text.too-long"))
        };
        assert_eq!(read(bound), (Some(bound), 0), "{name}");
        assert_eq!(read(bound + 1), (Some(bound), 1), "{name}");
    }
    let address = |n: usize| {
        let start = "https://a.io/";
        let parsed = with(
            "iconUrl",
            format!("{start}{}", "x".repeat(n - start.len())).into(),
        );
        (
            parsed.card.icon_url.is_some(),
            count(&parsed, "text.too-long"),
        )
    };
    assert_eq!(address(4_096), (true, 0));
    assert_eq!(address(4_097), (false, 1), "half an address is another one");
    let spaced = format!("{} y", "x".repeat(1_023));
    let cut = with("version", spaced.into()).card.version;
    assert_eq!(cut, Some("x".repeat(1_023)), "no space is left at the cut");
}

#[test]
fn no_skill_is_without_an_id() {
    let skills = with("skills", json!({"": {"name": "Book"}, "b": {}}))
        .card
        .skills;
    let ids: Vec<&str> = skills.iter().map(|skill| skill.id.as_str()).collect();
    assert_eq!(ids, ["Book", "b"]);
}

#[test]
fn findings_end_at_a_thousand_and_say_so() {
    let wrong = |n: usize| {
        with(
            "skills",
            json!([{"id": "a", "name": "a", "tags": vec![true; n]}]),
        )
    };
    let before = wrong(1).findings.len() - 1;
    let full = wrong(MAX_FINDINGS - 1 - before);
    assert_eq!(full.findings.len(), MAX_FINDINGS - 1);
    assert_eq!(count(&full, "findings.cut"), 0);
    let cut = wrong(MAX_LIST_ELEMENTS);
    assert_eq!(cut.findings.len(), MAX_FINDINGS);
    assert_eq!(cut.findings[MAX_FINDINGS - 1].rule, "findings.cut");

    let skills: Value = (0..MAX_LIST_ELEMENTS)
        .map(|i| json!({"id": i.to_string(), "name": "n"}))
        .collect();
    let bytes = json!({"name": "A", "skills": skills}).to_string();
    let parsed = parse_card(bytes.as_bytes()).unwrap();
    assert_eq!(lint_card(&parsed, bytes.as_bytes()).len(), MAX_FINDINGS);
}

#[test]
fn a_hundred_thousand_odd_members_are_bounded_work() {
    let duplicates = r#""a":1,"#.repeat(100_000);
    let parsed = parse_card(format!(r#"{{{duplicates}"name":"A"}}"#).as_bytes()).unwrap();
    assert_eq!(parsed.findings.len(), MAX_FINDINGS);
    // Findings inside a member with a huge name point to an ancestor, so that the name is not repeated.
    let (name, flaws) = ("n".repeat(500_000), r#""\u202e","#.repeat(2_000));
    let card = format!(r#"{{"name":"A","{name}":[{flaws}1]}}"#);
    let parsed = parse_card(card.as_bytes()).unwrap();
    assert_eq!(parsed.findings.len(), MAX_FINDINGS);
    assert!(
        parsed
            .findings
            .iter()
            .all(|finding| finding.pointer.len() < 2_000)
    );
}

#[test]
fn other_encodings_are_named() {
    let card = r#"{"name":"A","url":"https://a.io"}"#;
    let marked = format!("\u{feff}{card}");
    let parsed = parse_card(marked.as_bytes()).unwrap();
    assert_eq!(parsed.card, parse_card(card.as_bytes()).unwrap().card);
    assert_eq!(count(&parsed, "json.bom"), 1);
    let wide = |order: fn(u16) -> [u8; 2], mark: bool| -> Vec<u8> {
        let mark = mark.then_some('\u{feff}').into_iter().collect::<String>();
        format!("{mark}{card}")
            .encode_utf16()
            .flat_map(order)
            .collect()
    };
    for bytes in [
        wide(u16::to_le_bytes, true),
        wide(u16::to_be_bytes, true),
        wide(u16::to_le_bytes, false),
        wide(u16::to_be_bytes, false),
    ] {
        let error = parse_card(&bytes).unwrap_err().to_string();
        assert!(error.contains("UTF-16"), "{error}");
    }
    let latin = b"{\"name\":\"Caf\xe9\"}";
    assert!(matches!(
        parse_card(latin),
        Err(ParseError::NotJson { line: 1, .. })
    ));
}

#[test]
fn every_error_is_one_line_that_helps() {
    for (bytes, part) in [
        ("{\"name\": 'A'}", "line 1"),
        ("{\"name\":\"A\"} x", "trailing"),
        ("17", "a number, not an object"),
        ("null", "null, not an object"),
        ("<html>", "HTML"),
        ("", "empty"),
        ("{}", "`name`"),
        (r#"{"name": {"a": 1}}"#, "`name`"),
    ] {
        let error = parse_card(bytes.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{bytes}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_hundred_thousand_skills_are_bounded_work() {
    for skill in ["7,", "{},", "\"s\",", "[],", "null,"] {
        let skills = skill.repeat(100_000);
        let card = format!(
            r#"{{"name":"A","skills":[{}]}}"#,
            skills.trim_end_matches(',')
        );
        let parsed = parse_card(card.as_bytes()).unwrap();
        assert!(parsed.card.skills.len() <= MAX_LIST_ELEMENTS, "{skill}");
        assert_eq!(count(&parsed, "list.cut"), 1, "{skill}");
        assert!(parsed.findings.len() <= MAX_FINDINGS, "{skill}");
        assert!(lint_card(&parsed, card.as_bytes()).len() <= MAX_FINDINGS);
    }
}

#[test]
fn ambiguous_and_hidden_text_is_flagged_where_it_stands() {
    for (members, rule) in [
        (r#""name":"B""#, "json.duplicate-name"),
        (r#""x":"\ud800""#, "json.surrogate"),
        (r#""\udc00":1"#, "json.surrogate"),
        (r#""x":1e999"#, "json.number-huge"),
        (r#""x":9007199254740993"#, "json.number-inexact"),
        (r#""x":"\u0000""#, "text.nul"),
        (r#""x":"\u001b[2J""#, "text.hidden"),
        (r#""x":"\u202e""#, "text.hidden"),
        (r#""x":"\u200b""#, "text.hidden"),
        (r#""x":"\udb40\udc41""#, "text.hidden"),
        (r#""\u2066":1"#, "text.hidden"),
    ] {
        let parsed = parse_card(format!(r#"{{"name":"A",{members}}}"#).as_bytes()).unwrap();
        assert_eq!(count(&parsed, rule), 1, "{members}: {:?}", parsed.findings);
    }
}
