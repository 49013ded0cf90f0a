//! Tests of the search labels of a card.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::parse_card;

fn card(members: &serde_json::Value) -> AgentCard {
    let mut document = json!({"name": "A", "url": "https://a.example"});
    for (name, value) in members.as_object().unwrap() {
        document[name] = value.clone();
    }
    parse_card(document.to_string().as_bytes()).unwrap().card
}

#[test]
fn a_card_that_asks_for_nothing_is_none() {
    assert_eq!(auth_labels(&card(&json!({}))), ["none"]);
    assert_eq!(auth_labels(&card(&json!({"security": [{}]}))), ["none"]);
    let labels = auth_labels(&card(&json!({"authentication": {"schemes": ["public"]}})));
    assert_eq!(labels, ["none"]);
}

#[test]
fn nothing_is_claimed_of_security_that_cannot_be_read() {
    let unread = card(&json!({"security": {"authRequired": true}}));
    assert_eq!(auth_labels(&unread), ["unknown"]);
    let sentences = crate::security_sentences(&unread);
    assert_eq!(
        sentences,
        ["The card requires credentials in a form that cannot be read"]
    );
}

#[test]
fn labels_follow_the_requirements_and_the_forms_of_both_generations() {
    let labels = auth_labels(&card(&json!({
        "securitySchemes": {
            "unused": {"type": "mutualTLS"},
            "a": {"apiKeySecurityScheme": {"location": "header", "name": "X"}},
            "b": {"type": "http", "scheme": "Bearer"},
            "c": {"type": "openIdConnect", "openIdConnectUrl": "https://a.example"},
            "x": {"type": "x402"}
        },
        "security": [{"b": []}, {"a": [], "x": []}, {}, {"forgotten": []}]
    })));
    assert_eq!(
        labels,
        ["http:bearer", "apiKey", "x402", "none", "forgotten"]
    );
}

#[test]
fn schemes_that_are_only_declared_count_where_nothing_is_required() {
    let labels = auth_labels(&card(&json!({
        "securitySchemes": {"o": {"type": "oauth2", "flows": {}}, "m": {"mtlsSecurityScheme": {}}}
    })));
    assert_eq!(labels, ["mutualTLS", "oauth2"]);
}

#[test]
fn tags_are_lower_case_and_come_once() {
    let card = card(&json!({"skills": [
        {"id": "1", "name": "1", "tags": ["Travel", "b"]},
        {"id": "2", "name": "2", "tags": ["travel", "a"]}
    ]}));
    assert_eq!(skill_tags(&card), ["travel", "b", "a"]);
}

#[test]
fn modes_of_card_and_skills_are_united() {
    let card = card(&json!({
        "defaultInputModes": ["text"], "defaultOutputModes": ["Text/Plain"],
        "skills": [{"id": "1", "name": "1", "inputModes": ["text/plain", "image/png"]}]
    }));
    assert_eq!(all_input_modes(&card), ["text/plain", "image/png"]);
    assert_eq!(all_output_modes(&card), ["text/plain"]);
}

#[test]
fn capabilities_are_labelled_in_a_fixed_order() {
    let card = card(&json!({"capabilities": {
        "extensions": [{"uri": "https://e.example/1"}, {"uri": "https://e.example/1"}],
        "pushNotifications": "True", "streaming": true
    }}));
    assert_eq!(
        capability_labels(&card),
        ["streaming", "push_notifications", "https://e.example/1"]
    );
}
