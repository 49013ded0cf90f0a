//! `send` in conversation: with agents on the SDKs, and with agents that break or mean harm.

mod conversation;
mod credentials;
mod described;
mod descriptions;
mod faults;
mod files;
#[path = "../registry/a2a/tests/talk/raw.rs"]
#[allow(dead_code, reason = "the tests of the client use more of it")]
mod raw;
mod sign_in;
mod snippets;
mod streams;
mod tasks;
mod terminal;

use serde_json::{Value, json};

use crate::support::origin::{Origin, OriginReply};

/// Path of a card.
const CARD: &str = "/.well-known/agent-card.json";

/// A host with the card of an agent that streams, with this one interface.
fn card_of(url: &str, binding: &str, version: &str) -> Origin {
    let origin = Origin::start();
    let card = card(&json!([{"url": url, "protocolBinding": binding, "protocolVersion": version}]));
    origin.answer(CARD, OriginReply::json(card.to_string()));
    origin
}

fn card(interfaces: &Value) -> Value {
    json!({
        "name": "Streamer",
        "description": "Streams.",
        "version": "1.0.0",
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "S.", "tags": ["s"]}],
    })
}
