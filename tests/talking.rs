//! Conversations with `send`: with agents on the SDKs, and with broken or malicious agents.

mod broken_agents;
mod conversation;
mod credentials;
mod files;
mod nonstandard_agents;
mod nonstandard_cards;
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

/// What is tried with the agents on the SDKs, one after the other, because all of them take longer to start than it takes.
/// The last two leave tasks that never end.
#[tokio::test]
async fn agents_of_every_sdk_are_talked_to_in_every_dialect() {
    let streamers = &streams::streamers().await;
    streams::answers_of_every_sdk_are_printed_as_they_stream(streamers).await;
    conversation::lines_are_turns_of_one_conversation(streamers).await;
    files::files_and_data_come_back_as_they_were_sent(streamers).await;
    tasks::a_question_is_answered_with_the_printed_command(streamers).await;
    tasks::an_extended_card_is_shown(streamers).await;
    tasks::a_task_is_read_listed_followed_and_cancelled(streamers).await;
    terminal::a_binding_is_chosen_among_those_of_the_card(streamers).await;
    snippets::each_snippet_runs_as_pasted(streamers).await;
    terminal::text_is_printed_while_the_agent_works_and_an_interruption_leaves_the_task(streamers)
        .await;
    terminal::at_a_terminal_an_interruption_asks_before_it_cancels(streamers).await;
}

/// Path of a card.
const CARD: &str = "/.well-known/agent-card.json";

/// A host with the card of an agent that streams, with this one interface.
fn card_of(url: &str, binding: &str, version: &str) -> Origin {
    let origin = Origin::start();
    let card = card(&json!([{"url": url, "protocolBinding": binding, "protocolVersion": version}]));
    origin.set_reply(CARD, OriginReply::json(card.to_string()));
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
