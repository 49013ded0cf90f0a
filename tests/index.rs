//! The search index of a running registry: the effect of changes, and missing or damaged files.

mod other_processes;

use std::fs;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{ApiResponse, RegistryClient};
use crate::support::both_databases;
use crate::support::cards::card_json;
use crate::support::database::Database;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

const AGENTS: usize = 4;
const ENDINGS: [&str; 6] = ["pos", "idx", "term", "store", "fast", "fieldnorm"];

/// A registry with approved agents, and the origin of their cards.
struct IndexSetup {
    setup: RegistrySetup,
    _origin: Origin,
    serving: ServingRegistry,
}

impl IndexSetup {
    async fn start(setup: RegistrySetup) -> Self {
        let setup = setup.approve_all();
        let origin = Origin::start();
        let serving = setup.start().await;
        for number in 0..AGENTS {
            let path = format!("/{number}.json");
            let text = card_json(&format!("Agent {number}"), "search flights");
            origin.set_reply(&path, OriginReply::json(text));
            serving.api.register(&origin.url(&path)).await;
        }
        let registry = Self {
            setup,
            _origin: origin,
            serving,
        };
        registry.finds(AGENTS).await;
        registry
    }

    fn api(&self) -> &RegistryClient {
        &self.serving.api
    }

    /// Waits until a search finds this number of agents.
    async fn finds(&self, count: usize) {
        eventually("agents are found", async || {
            let answer = self.api().get("/v1/agents?q=flights&explain=true").await;
            let list: Value = serde_json::from_slice(&answer.body).ok()?;
            (answer.status == 200 && list["total"] == count).then_some(())
        })
        .await;
    }

    /// The index files with this extension.
    fn index_files(&self, ending: &str) -> Vec<PathBuf> {
        files_in(&self.setup.data_folder().join("index"), ending)
    }

    /// Damages every file with this extension, once while the process runs and once between two processes, and waits
    /// each time until the index is repaired.
    async fn damage_and_repair(mut self, ending: &str, damage: impl Fn(&Path)) -> Self {
        let generation = self.index_files("pos")[0].parent().unwrap().to_owned();
        self.index_files(ending)
            .iter()
            .for_each(|file| damage(file));
        eventually("the index is rebuilt", async || {
            // The damage is noticed by a search, or by the index check of `/readyz`.
            self.api().get("/v1/agents?q=%22search+flights%22").await;
            self.api().get("/readyz").await;
            (!generation.exists()).then_some(())
        })
        .await;
        self.is_repaired().await;
        self.serving.stop().await;
        let index = self.setup.data_folder().join("index");
        files_in(&index, ending)
            .iter()
            .for_each(|file| damage(file));
        self.serving = self.setup.start().await;
        self.is_repaired().await;
        self
    }

    /// Waits until every agent is found and the registry is ready.
    async fn is_repaired(&self) {
        self.finds(AGENTS).await;
        eventually("the registry is ready", async || {
            (self.api().get("/readyz").await.status == 200).then_some(())
        })
        .await;
    }
}

/// Overwrites everything in a file but its last bytes, and keeps its length, so that memory maps stay valid.
fn overwrite(file: &Path) {
    let length = fs::metadata(file).unwrap().len();
    let body = usize::try_from(length.saturating_sub(140).max(8)).unwrap();
    let mut file = fs::OpenOptions::new().write(true).open(file).unwrap();
    file.rewind().unwrap();
    file.write_all(&vec![0xa5; body]).unwrap();
}

/// The files with this extension, in all generations of an index.
fn files_in(index: &Path, ending: &str) -> Vec<PathBuf> {
    let generations = fs::read_dir(index).unwrap();
    let files = generations
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .flat_map(|path| fs::read_dir(path).unwrap())
        .map(|entry| entry.unwrap().path());
    let ends = |path: &PathBuf| path.extension().is_some_and(|found| found == ending);
    files.filter(ends).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_index_file_is_repaired_while_serving_and_at_start() {
    let mut registry = IndexSetup::start(RegistrySetup::new()).await;
    for ending in ENDINGS {
        registry = registry
            .damage_and_repair(ending, |file| fs::remove_file(file).unwrap())
            .await;
    }
    registry.serving.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_index_file_is_repaired_while_serving_and_at_start() {
    let mut registry = IndexSetup::start(RegistrySetup::new()).await;
    for ending in ENDINGS {
        registry = registry.damage_and_repair(ending, overwrite).await;
    }
    registry.serving.stop().await;
}

async fn patch(api: &RegistryClient, path: &str, body: &Value) -> Value {
    let request = api.admin_request(Method::PATCH, path);
    ApiResponse::send(request.json(body))
        .await
        .expect_status(200)
}

both_databases!(
    acts_keep_agents_in_search,
    an_approved_change_keeps_its_agent_in_search
);

/// An act that leaves an agent listed keeps it in every search, and the first search afterwards finds its new state.
async fn acts_keep_agents_in_search(url: &str) {
    let registry = IndexSetup::start(RegistrySetup::new().with_database(url)).await;
    let api = registry.api();
    let list = api.search("q=flights").await;
    let id = list["agents"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/agents/{id}");
    for round in 0..12 {
        // Another client searches all the while, and misses no agent.
        let watching = async {
            for _ in 0..6 {
                assert_eq!(api.search("q=flights").await["total"], AGENTS);
            }
        };
        let body = json!({"labels": {"round": round.to_string()}});
        let (_, ()) = tokio::join!(patch(api, &path, &body), watching);
        let found = api.search(&format!("label=round%3D{round}")).await;
        assert_eq!(
            found["total"], 1,
            "the label is found once the change is acknowledged"
        );
    }
    let act = json!({"reason": "a test"});
    api.post_as_admin(&format!("{path}:suspend"), &act)
        .await
        .expect_status(200);
    assert_eq!(api.search("q=flights").await["total"], AGENTS - 1);
    // Public metrics count only agents that anyone may find.
    eventually("the metrics count the listed agents", async || {
        let metrics = api.get_as_admin("/metrics").await.text();
        let counted = format!("a2a_registry_index_agents {}\n", AGENTS - 1);
        metrics.contains(&counted).then_some(())
    })
    .await;
    api.post_as_admin(&format!("{path}:resume"), &act)
        .await
        .expect_status(200);
    assert_eq!(api.search("q=flights").await["total"], AGENTS);
    patch(api, &path, &json!({"visibility": "internal"})).await;
    assert_eq!(api.search("q=flights").await["total"], AGENTS - 1);
    patch(api, &path, &json!({"visibility": "public"})).await;
    assert_eq!(api.search("q=flights").await["total"], AGENTS);
    api.post_as_admin(&format!("{path}:deprecate"), &act)
        .await
        .expect_status(200);
    let found = api.search("q=flights&lifecycle=deprecated").await;
    assert_eq!(found["agents"][0]["id"], id.as_str());
    api.post_as_admin(&format!("{path}:retire"), &act)
        .await
        .expect_status(200);
    assert_eq!(api.search("q=flights").await["total"], AGENTS - 1);
    registry.serving.stop().await;
}

/// A changed card waits for a decision: the approved one is found until then, and the new one afterwards, without a
/// gap.
async fn an_approved_change_keeps_its_agent_in_search(url: &str) {
    let serving = RegistrySetup::new().with_database(url).start().await;
    let api = &serving.api;
    let origin = Origin::start();
    let domain = origin.address().to_string();
    let approve = async || {
        let review = api.wait_for_open_review(|_| true).await;
        let path = format!("/v1/reviews/{}:approve", review.id);
        let decision = json!({"digest": review.digest, "reason": "a test"});
        api.post_as_admin(&path, &decision).await.expect_status(200);
    };
    origin.set_reply(
        "/a.json",
        OriginReply::json(card_json("Agent", "search flights")),
    );
    api.register(&origin.url("/a.json")).await;
    approve().await;
    assert_eq!(api.search("q=flights").await["total"], 1);
    for round in 0..6 {
        let skill = format!("search flights and word{round}");
        origin.set_reply("/a.json", OriginReply::json(card_json("Agent", &skill)));
        api.recrawl_and_wait(&domain).await;
        let watching = async {
            for _ in 0..6 {
                assert_eq!(api.search("q=flights").await["total"], 1);
            }
        };
        tokio::join!(approve(), watching);
        let found = api.search(&format!("q=word{round}")).await;
        assert_eq!(
            found["total"], 1,
            "the new words are found once the approval is acknowledged"
        );
    }
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_without_a_common_address_warn() {
    let database = Database::postgres().await;
    let setup = || RegistrySetup::new().with_database(database.url());
    let first = setup().start_without_proxy().await;
    let second = setup().start_without_proxy().await;
    let warning = "server.public_url is not set";
    // The process that listens later sees the other.
    let line = tokio::select! {
        line = first.program.wait_for_line(warning) => line,
        line = second.program.wait_for_line(warning) => line,
    };
    assert!(
        line.contains("another process serves this database"),
        "{line}"
    );
    first.stop().await;
    second.stop().await;
}
