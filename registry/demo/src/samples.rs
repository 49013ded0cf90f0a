//! Sample agents as data: their paths, cards and replies.

use a2a_crawler::fetch::{AGENT_CARD_PATH, LEGACY_AGENT_CARD_PATH};
use serde::Deserialize;
use serde_json::Value;

use super::generation::ProtocolGeneration;

pub(super) struct SampleDefinition {
    pub name: &'static str,
    /// Protocol version and bindings, such as `0.2 over JSON-RPC`.
    pub protocol: &'static str,
    /// An example text to send.
    pub example: &'static str,
    pub generation: ProtocolGeneration,
    pub card_path: &'static str,
    /// Paths of its JSON-RPC interface. Some clients append a slash to the URL.
    pub rpc_paths: &'static [&'static str],
    /// Its [`AgentScript`] as JSON, with `{base}` in place of the agent's base URL.
    script: &'static str,
}

/// One sample per protocol version, in the order 0.2, 0.3, 1.0.
pub(super) static SAMPLES: [SampleDefinition; 3] = [
    SampleDefinition {
        name: "Ledger Converter",
        protocol: "0.2 over JSON-RPC",
        example: "Convert 1250.50 USD to EUR and JPY",
        generation: ProtocolGeneration::V0,
        card_path: LEGACY_AGENT_CARD_PATH,
        rpc_paths: &["/"],
        script: include_str!("../agents/ledger_converter.json"),
    },
    SampleDefinition {
        name: "Recipe Scaler",
        protocol: "0.3 over JSON-RPC",
        example: "Scale from 4 to 6 servings: 200 g flour, 3 eggs, 1 1/2 tsp salt",
        generation: ProtocolGeneration::V0,
        card_path: AGENT_CARD_PATH,
        rpc_paths: &["/a2a"],
        script: include_str!("../agents/recipe_scaler.json"),
    },
    SampleDefinition {
        name: "Trip Planner",
        protocol: "1.0 over JSON-RPC and HTTP+JSON",
        example: "Book a flight from Berlin to Lisbon on 2027-03-14 for 2",
        generation: ProtocolGeneration::V1,
        card_path: AGENT_CARD_PATH,
        rpc_paths: &["/rpc", "/rpc/"],
        script: include_str!("../agents/trip_planner.json"),
    },
];

/// Samples on hosts with names of their own, for what else a registry shows: a changed card, one that waits, and a
/// hold.
pub(super) static NAMED_SAMPLES: [SampleDefinition; 3] = [
    SampleDefinition {
        name: "Menu Translator",
        protocol: "1.0 over JSON-RPC",
        example: "What is Bacalhau à Brás?",
        generation: ProtocolGeneration::V1,
        card_path: AGENT_CARD_PATH,
        rpc_paths: &["/rpc"],
        script: include_str!("../agents/menu_translator.json"),
    },
    SampleDefinition {
        name: "Invoice Reader",
        protocol: "1.0 over JSON-RPC",
        example: "Invoice 17 of Acme: 120.00 EUR, due 2027-02-01",
        generation: ProtocolGeneration::V1,
        card_path: AGENT_CARD_PATH,
        rpc_paths: &["/rpc"],
        script: include_str!("../agents/invoice_reader.json"),
    },
    SampleDefinition {
        name: "Parcel Tracker",
        protocol: "1.0 over JSON-RPC",
        example: "Where is parcel 4711?",
        generation: ProtocolGeneration::V1,
        card_path: AGENT_CARD_PATH,
        rpc_paths: &["/rpc"],
        script: include_str!("../agents/parcel_tracker.json"),
    },
];

/// Card and replies of an agent, parsed from its JSON.
#[derive(Debug, Deserialize)]
pub(super) struct AgentScript {
    pub card: Value,
    /// Prepared replies. The first one that matches a text is used.
    answers: Vec<PreparedReply>,
    /// Message for a text without a prepared reply.
    otherwise: String,
}

#[derive(Debug, Deserialize)]
struct PreparedReply {
    /// Words, in lower case, that a text must contain in any order.
    words: Vec<String>,
    reply: ReplyContent,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReplyContent {
    /// The text of a message.
    Message(String),
    /// The artifacts of a completed task.
    Artifacts(Vec<Value>),
}

impl SampleDefinition {
    /// Path of the agent on a server with several: `/trip-planner`.
    pub fn path_prefix(&self) -> String {
        format!("/{}", self.name.to_lowercase().replace(' ', "-"))
    }

    /// Parses the script for an agent at the URL `base`, which has no trailing slash.
    pub fn parse_script(&self, base: &str) -> serde_json::Result<AgentScript> {
        serde_json::from_str(&self.script.replace("{base}", base))
    }
}

impl AgentScript {
    pub fn reply_to_text(&self, text: &str) -> ReplyContent {
        let text = text.to_lowercase();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let mut answers = self.answers.iter();
        let prepared = answers.find(|answer| {
            let mut wanted = answer.words.iter();
            wanted.all(|word| words.contains(&word.as_str()))
        });
        match prepared {
            Some(answer) => answer.reply.clone(),
            None => ReplyContent::Message(self.otherwise.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_example_has_an_answer() {
        for sample in SAMPLES.iter().chain(&NAMED_SAMPLES) {
            let script = sample.parse_script("http://127.0.0.1:1").unwrap();
            let otherwise = ReplyContent::Message(script.otherwise.clone());
            assert_eq!(script.card["name"], sample.name);
            let skills = script.card["skills"].as_array().unwrap();
            assert_eq!(skills[0]["examples"][0], sample.example);
            for skill in skills {
                for example in skill["examples"].as_array().unwrap() {
                    let reply = script.reply_to_text(example.as_str().unwrap());
                    assert_ne!(reply, otherwise, "{example}");
                }
            }
            for text in ["", "hello", "aromertic"] {
                assert_eq!(script.reply_to_text(text), otherwise, "{text}");
            }
        }
    }

    #[test]
    fn words_count_in_any_case_and_order_but_only_as_a_whole() {
        let script = SAMPLES[2].parse_script("http://127.0.0.1:1").unwrap();
        let rome = script.reply_to_text("Rome");
        assert!(matches!(rome, ReplyContent::Artifacts(_)), "{rome:?}");
        assert_eq!(script.reply_to_text("three days, in ROME!"), rome);
        assert_ne!(script.reply_to_text("Romedale"), rome);
    }

    #[test]
    fn a_card_has_the_address_that_its_agent_is_reached_at() {
        let script = SAMPLES[1].parse_script("http://127.0.0.1:7").unwrap();
        assert_eq!(script.card["url"], "http://127.0.0.1:7/a2a");
    }
}
