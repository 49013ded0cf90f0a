//! Tests of the texts outside the model.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::parse_card;

/// The texts of a card with these further members.
fn texts(members: &Value) -> Vec<String> {
    let mut card =
        json!({"name": "Quiet", "description": "Says little.", "url": "https://quiet.io"});
    for (name, value) in members.as_object().unwrap() {
        card[name] = value.clone();
    }
    parse_card(card.to_string().as_bytes())
        .unwrap()
        .card
        .other_texts
}

#[test]
fn a_plain_card_has_no_other_texts() {
    let card = json!({
        "version": "1.0.0", "protocolVersion": "0.3.0", "preferred_transport": "JSONRPC",
        "provider": {"organization": "Quiet Ltd", "url": "https://quiet.io"},
        "capabilities": {"streaming": true, "push_notifications": false},
        "default_input_modes": ["text/plain"], "security": [{"key": []}],
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X", "description": "A secret word"}},
        "skills": [{"id": "wait", "name": "Wait", "description": "Waits.", "tags": ["patience"], "examples": ["wait"], "input_modes": ["text"]}],
        "signatures": [{"protected": "some words", "signature": "more words"}],
    });
    assert!(texts(&card).is_empty());
}

#[test]
fn words_of_members_beyond_the_model_are_collected_in_their_order() {
    let card = json!({
        "keywords": ["quorum", "votes of members"],
        "metadata": {"audience": {"who": "town councils"}},
        "provider": {"organization": "Quiet Ltd", "motto": "Less is more"},
        "capabilities": {
            "streaming": true, "shell_exec": true, "file_write": false, "note": "runs at night",
            "extensions": [{"uri": "https://quiet.io/ext", "description": "Counts silence", "params": {"unit": "hours"}}],
        },
        "skills": [{"id": "wait", "name": "Wait", "category": "meetings", "inputSchema": {
            "type": "object", "required": ["room"], "properties": {"room": {"type": "string", "description": "Name of the room"}},
        }}],
    });
    assert_eq!(
        texts(&card),
        [
            "quorum",
            "votes of members",
            "town councils",
            "Less is more",
            "shell_exec",
            "runs at night",
            "Counts silence",
            "hours",
            "meetings",
            "Name of the room",
        ]
    );
}

#[test]
fn what_only_machines_read_is_left_out() {
    let card = json!({
        "agent_id": "wanderer", "cardUrl": "see there", "statusURL": "see there", "publicKey": "some words",
        "created_at": "last Monday", "ed25519_pubkey": "mFzq", "proof": "of words", "$schema": "https://json.example/schema",
        "auth": {"note": "send the word", "token": "hush"},
        "number": 7, "flag": true, "empty": "", "digits": "2026-08-10T09:39:58Z", "short": "T 7",
        "values": [
            "https://quiet.io/more", "mailto:ann@quiet.io", "ann@quiet.io", "/srv/notes", "did:web:quiet.io", "#/schemas/Input",
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "123e4567-e89b-12d3-a456-426614174000", "Rhh5652iVmY6uiYlR8apFOrxjOUBSNUWnjHp8VG", "x".repeat(65),
        ],
    });
    assert!(texts(&card).is_empty(), "{:?}", texts(&card));
}

#[test]
fn addresses_within_a_sentence_are_cut_out() {
    let card = json!({"notes": [
        "See https://quiet.io or (/srv/x) for hours",
        "詳細はhttps://quiet.io/まで",
        "Room 12, 2nd floor",
    ]});
    assert_eq!(
        texts(&card),
        ["See … or … for hours", "詳細は…まで", "Room 12, 2nd floor"]
    );
}

#[test]
fn a_text_that_the_model_has_is_not_repeated() {
    let card = json!({
        "title": " Quiet ", "summary": "Says little.", "labels": ["calm", "calm", "Wait"],
        "skills": ["Wait"], "agent": {"name": "Quiet", "description": "Another text"},
    });
    assert_eq!(texts(&card), ["calm", "Another text"]);
    // Skills read from a list of another name are in the model.
    let card = json!({"capabilities": ["plan walks", "streaming"], "tools": ["map_route"]});
    assert_eq!(texts(&card), ["map_route"]);
}

#[test]
fn count_bytes_depth_and_work_are_bounded() {
    let many: Vec<String> = (0..2 * MAX_OTHER_TEXTS)
        .map(|n| format!("word {n}"))
        .collect();
    assert_eq!(texts(&json!({"keywords": many})).len(), MAX_OTHER_TEXTS);
    let long: Vec<String> = (0..20)
        .map(|n| format!("{n} {}", "word ".repeat(1_000)))
        .collect();
    let kept = texts(&json!({"notes": long}));
    assert!(kept.iter().all(|text| text.len() <= MAX_SINGLE_TEXT_BYTES));
    let bytes: usize = kept.iter().map(String::len).sum();
    assert!(bytes <= MAX_OTHER_TEXT_BYTES && bytes > MAX_OTHER_TEXT_BYTES - MAX_SINGLE_TEXT_BYTES);
    let nested = |levels: usize| {
        let mut value = json!("deep words");
        for _ in 0..levels {
            value = json!([value]);
        }
        texts(&json!({ "x": value }))
    };
    assert_eq!(nested(MAX_TEXT_DEPTH - 1), ["deep words"]);
    assert!(nested(MAX_TEXT_DEPTH).is_empty());
    let mut flags = vec![json!(1); MAX_VISITED_VALUES];
    flags.push(json!("too late"));
    assert!(texts(&json!({ "x": flags })).is_empty());
}
