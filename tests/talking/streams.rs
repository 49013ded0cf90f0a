//! Answers that stream from agents on the SDKs, in every dialect that they have.

use futures::future::join_all;
use serde_json::Value;

use super::card_of;
use crate::support::origin::Origin;
use crate::support::program::{Program, registry, text};
use crate::support::sdk::{Agent, Sdk};

/// The agents, and for those that have one a card that names their HTTP+JSON interface alone.
pub struct Streamer {
    pub sdk: Sdk,
    /// Held, because dropping it ends it.
    _agent: Agent,
    /// Where `send` reads the card.
    pub card: String,
    origin: Option<Origin>,
}

impl Streamer {
    /// Whether it is called over HTTP+JSON.
    pub fn is_rest(&self) -> bool {
        self.origin.is_some()
    }
}

/// An agent for each dialect of each SDK.
pub async fn streamers() -> Vec<Streamer> {
    let wanted = Sdk::ALL.map(|sdk| (sdk, false)).into_iter();
    let rest = [Sdk::Py03, Sdk::Py1, Sdk::Node].map(|sdk| (sdk, true));
    join_all(wanted.chain(rest).map(|(sdk, rest)| async move {
        let agent = sdk.agent().await;
        let version = match sdk {
            Sdk::Py03 => "0.3",
            _ => "1.0",
        };
        let url = format!("{}/rest", agent.base);
        let origin = rest.then(|| card_of(&url, "HTTP+JSON", version));
        let card = match &origin {
            Some(origin) => origin.url(super::CARD),
            None => agent.card_url(sdk),
        };
        Streamer {
            sdk,
            _agent: agent,
            card,
            origin,
        }
    }))
    .await
}

#[tokio::test]
async fn answers_of_every_sdk_are_printed_as_they_stream() {
    join_all(streamers().await.iter().map(|streamer| async move {
        let name = format!("{:?} at {}", streamer.sdk, streamer.card);
        let sent = registry(["send", "--direct", &streamer.card, "work in pieces"]);
        let finished = Program::run(sent).await;
        assert_eq!(finished.status.code(), Some(0), "{name}: {finished:#?}");
        assert_eq!(
            finished.stdout,
            ["one, two, three"],
            "{name}: {finished:#?}"
        );
        assert_eq!(
            finished.stderr,
            ["working: counting"],
            "{name}: {finished:#?}"
        );

        let sent = registry([
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
        let artifacts = events.iter().filter(|event| {
            event["kind"] == "artifact-update" || event["artifactUpdate"].is_object()
        });
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
        let sent = registry(["send", "--direct", &streamer.card, "hello"]);
        let finished = Program::run(sent).await;
        assert_eq!(finished.status.code(), Some(0), "{name}: {finished:#?}");
        assert_eq!(
            text(&finished.stdout),
            streamer.sdk.answer_to("hello"),
            "{name}"
        );
    }))
    .await;
}
