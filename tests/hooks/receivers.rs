//! A receiver on the libraries `standardwebhooks` and `cloudevents`.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::api::ApiResponse;
use crate::support::cards::card_json;
use crate::support::http_client;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::Program;
use crate::support::required_variable;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// The receiver of `tests/interop/webhooks_receiver.py`.
struct Receiver {
    program: Program,
    url: String,
}

impl Receiver {
    async fn start() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop");
        let mut command = Command::new(required_variable("A2A_REGISTRY_TEST_WEBHOOKS"));
        command.args(["-B", "-u", "-W", "ignore"]);
        command.arg(folder.join("webhooks_receiver.py")).arg("0");
        let program = Program::start(command);
        let url = program.wait_for_match(|line| line.strip_prefix("READY ").map(str::to_owned));
        Self {
            url: url.await,
            program,
        }
    }

    async fn set(&self, path: &str, value: &Value) {
        let request = http_client().post(format!("{}{path}", self.url));
        let answer = request.json(value).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }

    /// Waits until a notice of a kind about an agent has arrived and verified.
    async fn wait_for(&self, kind: &str, agent: &str) {
        let is_told = |line: &str| {
            let read: Value = serde_json::from_str(line.strip_prefix("DELIVERY ")?).unwrap();
            let has_kind = read["type"] == format!("a2a-registry.{kind}");
            (has_kind && read["subject"] == agent).then_some(())
        };
        self.program.wait_for_match(is_told).await;
    }

    /// Ends the receiver, which has refused nothing.
    async fn stop(self) {
        let ended = self.program.terminate().await;
        let refused = ended.stdout.iter().find(|line| line.starts_with("REFUSED"));
        assert_eq!(refused, None);
    }
}

pub(super) fn setup() -> RegistrySetup {
    RegistrySetup::new().approve_all().with_config_lines(
        "[webhooks]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"\n\
         per_target_per_second = 1000",
    )
}

/// A confirmed hook, with its keys.
async fn create_hook(registry: &ServingRegistry, receiver: &Receiver) -> Value {
    let new = json!({"name": "all", "url": format!("{}/hook", receiver.url),
        "filter": {"kinds": ["agent.appeared", "agent.changed", "agent.disappeared"]}});
    let made = registry.post_as_admin("/v1/hooks", &new).await;
    let made = made.expect_status(201);
    assert_eq!(made["state"], "active", "{made}");
    made
}

/// A POST without a body as the admin.
async fn post(registry: &ServingRegistry, path: &str) -> Value {
    let request = registry.admin_request(Method::POST, path);
    ApiResponse::send(request).await.expect_status(200)
}

fn keys(made: &Value) -> Value {
    json!({"secret": made["secret"], "public_key": made["public_key"]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn third_party_libraries_verify_and_read_every_message() {
    let receiver = Receiver::start().await;
    let registry = setup().start().await;
    let made = create_hook(&registry, &receiver).await;
    receiver.set("/keys", &json!([keys(&made)])).await;
    let hook = format!("/v1/hooks/{}", made["id"].as_str().unwrap());
    let test = post(&registry, &format!("{hook}:test")).await;
    assert_eq!(test["delivered"], true, "{test}");
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "echo")));
    let agent = registry.publish(&origin.url("/a.json")).await;
    receiver.wait_for("agent.appeared", &agent).await;
    // During the overlap of a rotation both sets of keys verify.
    let rotated = post(&registry, &format!("{hook}:rotate")).await;
    let both = json!([keys(&made), keys(&rotated)]);
    receiver.set("/keys", &both).await;
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "other")));
    registry
        .recrawl_and_wait(&origin.address().to_string())
        .await;
    receiver.wait_for("agent.changed", &agent).await;
    registry.stop().await;
    receiver.stop().await;
}
