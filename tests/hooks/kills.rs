//! Processes that are killed while they send: each of twenty receivers is told of each agent at least once.
//!
//! `HOOK_AGENTS` (100) agents appear, a quarter before each kill, and the last one after all of them: 2000 deliveries.
//! With 500 there are 10 000.

use std::collections::BTreeSet;
use std::ops::Range;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::api::ApiResponse;
use crate::support::cards::minimal_card_json;
use crate::support::database::Database;
use crate::support::origin::{Origin, OriginReply, ResponseGate};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;
use crate::support::{DEADLINE, number_from_env};

const HOOKS: usize = 20;
const KILLS: usize = 3;

/// What the receivers have got: the path of a hook and the agent of each notice.
struct Received {
    receiver: Origin,
    /// Requests that were read.
    count: usize,
    notices: BTreeSet<(String, String)>,
}

impl Received {
    fn hold_answers(&self, gate: &ResponseGate) {
        for number in 0..HOOKS {
            let reply = OriginReply::json("{}").gated_by(gate);
            self.receiver.set_reply(&format!("/hook{number}"), reply);
        }
    }

    /// Waits for requests until so many different notices have arrived. Each further request restarts the time limit.
    async fn wait_for(&mut self, notices: usize) {
        let mut requests = self.receiver.subscribe_requests();
        while self.notices.len() < notices {
            let seen = self.count;
            let more = requests.wait_for(|all| all.len() > seen);
            let arrived = timeout(DEADLINE, more).await;
            let Ok(Ok(all)) = arrived else {
                panic!("{} of {notices} notices arrived", self.notices.len());
            };
            for request in &all[seen..] {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                if body["type"] == "a2a-registry.agent.appeared" {
                    let agent = body["subject"].as_str().unwrap().to_owned();
                    self.notices.insert((request.path.clone(), agent));
                }
            }
            self.count = all.len();
        }
    }
}

/// Creates a hook for each path, and confirms it by the challenge that arrived there.
async fn create_hooks(registry: &ServingRegistry, receiver: &Origin) {
    for number in 0..HOOKS {
        let path = format!("/hook{number}");
        receiver.set_reply(&path, OriginReply::json("{}"));
        let new = json!({"name": path[1..], "url": receiver.url(&path), "filter": {"kinds": ["agent.appeared"]}});
        let made = registry.post_as_admin("/v1/hooks", &new).await;
        let made = made.expect_status(201);
        let challenge = receiver.wait_for_request(&path, 1).await;
        let challenge: Value = serde_json::from_slice(&challenge.body).unwrap();
        let confirmation = json!({"challenge": challenge["data"]["challenge"]});
        let hook = format!("/v1/hooks/{}:confirm", made["id"].as_str().unwrap());
        let confirmed = registry.post_as_admin(&hook, &confirmation).await;
        assert_eq!(confirmed.expect_status(200)["state"], "active");
    }
}

async fn register_agents(registry: &ServingRegistry, origin: &Origin, numbers: Range<usize>) {
    for number in numbers {
        let path = format!("/{number}.json");
        let card = minimal_card_json(&format!("Agent {number}"));
        origin.set_reply(&path, OriginReply::json(card));
        registry.register(&origin.url(&path)).await;
    }
}

/// The ids of all agents.
async fn discovered_agents(registry: &ServingRegistry) -> BTreeSet<String> {
    let (mut agents, mut token) = (BTreeSet::new(), String::new());
    loop {
        let path = format!("/v1/events?kind=agent.discovered&page_size=100{token}");
        let page = ApiResponse::send(registry.admin_request(Method::GET, &path)).await;
        let page = page.expect_status(200);
        let events = page["events"].as_array().unwrap().iter();
        agents.extend(events.map(|event| event["subject"].as_str().unwrap().to_owned()));
        match page["next_page_token"].as_str() {
            Some(next) => token = format!("&page_token={next}"),
            None => return agents,
        }
    }
}

/// Kills the processes in turns, each in the middle of sending, and starts each again.
async fn nothing_is_lost(setups: &[RegistrySetup]) {
    let agents = usize::try_from(number_from_env("HOOK_AGENTS", 100)).unwrap();
    let origin = Origin::start();
    let mut processes = Vec::new();
    for setup in setups {
        processes.push(Some(setup.start_without_proxy().await));
    }
    let first = processes[0].as_ref().unwrap();
    let mut received = Received {
        receiver: Origin::start(),
        count: 0,
        notices: BTreeSet::new(),
    };
    create_hooks(first, &received.receiver).await;
    for kill in 0..=KILLS {
        let killed = kill % setups.len();
        let process = processes[killed].as_ref().unwrap();
        let (begin, last) = (
            kill * agents / (KILLS + 1),
            (kill + 1) * agents / (KILLS + 1) - 1,
        );
        register_agents(process, &origin, begin..last).await;
        // A visit that is cut off would be made again only after its lease, so visits end first.
        let mut feed = process.open_event_stream(0).await;
        for _ in 0..last {
            feed.wait_for("agent.discovered").await;
        }
        // What is sent from here on gets no answer before the process is killed.
        let gate = ResponseGate::default();
        received.hold_answers(&gate);
        register_agents(process, &origin, last..last + 1).await;
        feed.wait_for("agent.discovered").await;
        if kill < KILLS {
            received.wait_for(received.notices.len() + 1).await;
            let process = processes[killed].take().unwrap();
            process.program.kill().await;
            gate.open();
            processes[killed] = Some(setups[killed].start_without_proxy().await);
        }
        gate.open();
    }
    received.wait_for(HOOKS * agents).await;
    let process = processes[0].as_ref().unwrap();
    let expected: BTreeSet<(String, String)> = discovered_agents(process)
        .await
        .into_iter()
        .flat_map(|agent| (0..HOOKS).map(move |number| (format!("/hook{number}"), agent.clone())))
        .collect();
    assert_eq!(received.notices, expected);
    for process in processes.into_iter().flatten() {
        process.stop().await;
    }
}

fn setup() -> RegistrySetup {
    super::receivers::setup()
        .with_config_lines("[limits]\nagents_per_domain = 100000\nagents_reserved = 0")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_with_killed_processes_on_sqlite() {
    nothing_is_lost(&[setup()]).await;
}

/// Two processes share the database: while one is killed, the other goes on, and takes over what it had begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_with_killed_replicas_on_postgres() {
    let database = Database::postgres().await;
    let key = super::key_file();
    let lines = format!(
        "[secrets]\nkey_file = {:?}\n[server]\npublic_url = \"https://registry.example\"",
        key.path()
    );
    let replicas = [(); 2].map(|()| {
        setup()
            .with_database(database.url())
            .with_config_lines(&lines)
    });
    nothing_is_lost(&replicas).await;
}
