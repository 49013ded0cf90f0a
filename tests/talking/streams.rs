//! Streamed answers of agents on the SDKs, in every dialect that the SDKs speak.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};

use super::card_of;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, join_lines, registry_command};
use crate::support::sdk::{Sdk, SdkAgent};

/// An agent that is called over one binding, by a card that names no other.
pub struct StreamingAgent {
    pub sdk: Sdk,
    pub binding: Binding,
    /// Held, because dropping it ends it.
    _agent: Arc<SdkAgent>,
    /// Where `send` reads the card.
    pub card: String,
    only: Option<(String, &'static str)>,
    /// Held like the agent.
    _origin: Option<Origin>,
}

/// A binding of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

impl StreamingAgent {
    fn new(sdk: Sdk, binding: Binding, agent: &Arc<SdkAgent>) -> Self {
        let version = match sdk {
            Sdk::Py03 | Sdk::Node03 => "0.3",
            _ => "1.0",
        };
        let only = match binding {
            Binding::JsonRpc => None,
            Binding::HttpJson => Some((format!("{}/rest", agent.base_url), "HTTP+JSON")),
            Binding::Grpc => {
                let address = agent.grpc_address.as_deref().unwrap();
                Some((format!("http://{address}"), "GRPC"))
            }
        };
        let origin = only.as_ref().map(|(url, binding)| match sdk {
            Sdk::A2aProtocolSkill => snake_card_of(url),
            _ => card_of(url, binding, version),
        });
        let card = match &origin {
            Some(origin) => origin.url(super::CARD),
            None => agent.card_url(sdk),
        };
        Self {
            sdk,
            binding,
            _agent: Arc::clone(agent),
            card,
            only,
            _origin: origin,
        }
    }

    /// The agent and how it is called, for messages of tests.
    pub fn name(&self) -> String {
        format!("{:?} over {:?}", self.sdk, self.binding)
    }

    /// The interface that the card names alone, and its binding; `None` if the agent's own card is read.
    pub fn single_interface(&self) -> Option<(&str, &'static str)> {
        let (url, binding) = self.only.as_ref()?;
        Some((url, binding))
    }

    /// Whether `task list` works: 1.0 has it over every binding, and so has `PromptKit`.
    pub fn lists_tasks(&self) -> bool {
        matches!(
            self.sdk,
            Sdk::A2aProtocolSkill | Sdk::PromptKit | Sdk::Py1 | Sdk::Node
        )
    }
}

/// Each dialect of each SDK's agent, and of those of our own; one process serves all dialects of an agent.
pub async fn streamers() -> Vec<StreamingAgent> {
    let three = &[Binding::JsonRpc, Binding::HttpJson, Binding::Grpc][..];
    let served = [
        (Sdk::OwnV01, &three[..1]),
        (Sdk::A2aProtocolSkill, &three[..2]),
        (Sdk::PromptKit, &three[..1]),
        (Sdk::Py02, &three[..1]),
        (Sdk::Py03, three),
        (Sdk::Py1, three),
        (Sdk::Fasta2a, &three[..1]),
        (Sdk::Node03, three),
        (Sdk::Node, three),
    ];
    let started = served.map(|(sdk, bindings)| async move {
        let agent = Arc::new(sdk.start_agent().await);
        let streamer = |binding: &Binding| StreamingAgent::new(sdk, *binding, &agent);
        bindings.iter().map(streamer).collect::<Vec<_>>()
    });
    join_all(started).await.into_iter().flatten().collect()
}

/// A host with a card as the a2a-protocol skill has it, with an interface for HTTP+JSON and no other.
fn snake_card_of(url: &str) -> Origin {
    let origin = Origin::start();
    let card = json!({
        "name": "Snail mail",
        "description": "Carries every word on its belly.",
        "supported_interfaces": [
            {"url": url, "protocol_binding": "http+json", "protocol_version": "1.0", "tenant": "garden"},
        ],
        "version": "1.0.0",
        "capabilities": {"streaming": true, "push_notifications": true},
        "default_input_modes": ["text/plain"],
        "default_output_modes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "S.", "tags": ["s"]}],
    });
    origin.set_reply(super::CARD, OriginReply::json(card.to_string()));
    origin
}

pub(super) async fn answers_of_every_sdk_are_printed_as_they_stream(streamers: &[StreamingAgent]) {
    join_all(streamers.iter().map(|streamer| async move {
        let name = streamer.name();
        let sent = registry_command(["send", "--direct", &streamer.card, "work in pieces"]);
        let finished = Program::run(sent).await;
        assert_eq!(finished.status.code(), Some(0), "{name}: {finished:#?}");
        assert_eq!(
            finished.stdout,
            ["one, two, three"],
            "{name}: {finished:#?}"
        );
        let mut said = finished.stderr.clone();
        if streamer.sdk == Sdk::PromptKit {
            let assumed = said.remove(0);
            assert!(
                assumed.contains("/a2a is assumed; set another with --url"),
                "{assumed}"
            );
        }
        assert_eq!(said, ["working: counting"], "{name}: {finished:#?}");

        let sent = registry_command([
            "send",
            "--direct",
            &streamer.card,
            "work in pieces",
            "--json",
        ]);
        let finished = Program::run(sent).await;
        assert_eq!(finished.status.code(), Some(0), "{name}: {finished:#?}");
        let events: Vec<Value> = finished
            .stdout
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        // Events of 0.1 have no kind.
        let artifacts = events
            .iter()
            .filter(|event| event["artifact"].is_object() || event["artifactUpdate"].is_object());
        assert_eq!(artifacts.count(), 3, "{name}: {events:#?}");
        let last = events.last().unwrap();
        let state = last
            .pointer("/statusUpdate/status/state")
            .or_else(|| last.pointer("/status/state"));
        let completed = ["TASK_STATE_COMPLETED", "completed"];
        assert!(
            completed.contains(&state.unwrap().as_str().unwrap()),
            "{name}: {last}"
        );

        // A message is the whole stream.
        let sent = registry_command(["send", "--direct", &streamer.card, "hello"]);
        let finished = Program::run(sent).await;
        assert_eq!(finished.status.code(), Some(0), "{name}: {finished:#?}");
        assert_eq!(
            join_lines(&finished.stdout),
            streamer.sdk.reply_to("hello"),
            "{name}"
        );
    }))
    .await;
}
