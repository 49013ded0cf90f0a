//! While one policy set replaces another: no answer mixes two sets, whichever processes die meanwhile, and what both
//! hide is like what does not exist.

use std::collections::BTreeSet;
use std::time::Duration;

use a2a_registry_api::search_query::{SearchQuery, SuggestQuery};
use a2a_registry_api::{AgentList, Policies};
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::search::indexing::apply_next_events;
use a2a_registry_core::search::policy_rollout::roll_out_newest_policies;
use a2a_registry_core::search::suggest_completions;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::policies::{OPEN, caller, policies, put_policies};
use crate::support::api::{ApiResponse, RegistryClient};
use crate::support::cards::minimal_card_json;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, card_bytes};
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::{eventually, sleep_between_samples};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;
use crate::support::{both_databases, free_port};

/// Number of processes.
const REPLICAS: usize = 3;
/// Agents that each set shows.
const SHOWN: usize = 6;
/// The tags of the agents; each set shows those with one of them.
const TAGS: [&str; 2] = ["even", "odd"];
const SEARCH: &str = "/v1/agents?page_size=100&facets=tag";

both_databases!(hidden_equals_missing_while_sets_switch);

/// The agents that a search shows. Its total and its counts are those of a scan of them.
fn shown_agents(list: &AgentList) -> BTreeSet<Uuid> {
    let hits: BTreeSet<Uuid> = list.agents.iter().map(|hit| hit.summary.id).collect();
    assert_eq!(list.total, hits.len() as u64);
    let tags = list.facets.get("tag").into_iter();
    let counts: Vec<u64> = tags
        .flat_map(|facet| facet.values.iter().map(|value| value.count))
        .collect();
    let counted: u64 = counts.iter().sum();
    assert_eq!(counted, list.total, "{counts:?}");
    assert!(counts.len() <= 1, "{counts:?}");
    hits
}

/// Reads from one process until the end; returns how many answers showed each set completely. A process that has
/// started again hides what it has not evaluated yet.
async fn read_until_end(
    api: RegistryClient,
    allowed: [BTreeSet<Uuid>; 2],
    end: CancellationToken,
) -> [u32; 2] {
    let mut met = [0, 0];
    while !end.is_cancelled() {
        // A killed process does not answer, and one that has just started answers 503.
        let response = api.request(Method::GET, SEARCH).send().await;
        let answered = response
            .ok()
            .filter(|response| response.status().is_success());
        let body = match answered {
            Some(response) => response.bytes().await.ok(),
            None => None,
        };
        let Some(body) = body else {
            sleep_between_samples(Duration::from_millis(20)).await;
            continue;
        };
        let list: AgentList = serde_json::from_slice(&body).unwrap();
        let hits = shown_agents(&list);
        let mut sets = allowed.iter();
        assert!(sets.any(|set| hits.is_subset(set)), "{hits:?}");
        for (count, set) in met.iter_mut().zip(&allowed) {
            *count += u32::from(hits == *set);
        }
    }
    met
}

fn setup_at(port: u16, public_port: u16, database: &Database) -> RegistrySetup {
    RegistrySetup::new()
        .with_database(database.url())
        .approve_all()
        .with_argument("--listen")
        .with_argument(&format!("127.0.0.1:{port}"))
        .with_config_lines(&format!(
            "least_rate = 1000.0\n[server]\npublic_url = \"http://127.0.0.1:{public_port}\""
        ))
}

/// Publishes agents with each tag, each at an origin of its own; returns them by their tags.
async fn publish_agents(
    registry: &ServingRegistry,
    origins: &mut Vec<Origin>,
) -> [BTreeSet<Uuid>; 2] {
    let mut published = [BTreeSet::new(), BTreeSet::new()];
    for number in 0..2 * SHOWN {
        let which = number % 2;
        let mut card: Value =
            serde_json::from_str(&minimal_card_json(&format!("Agent {number}"))).unwrap();
        card["skills"][0]["tags"] = json!([TAGS[which]]);
        let origin = Origin::start();
        origin.set_reply("/card.json", OriginReply::json(card.to_string()));
        let agent = registry.publish(&origin.url("/card.json")).await;
        origins.push(origin);
        published[which].insert(agent.parse().unwrap());
    }
    published
}

/// Makes the set that shows the agents with a tag; returns its number.
async fn put_set(registry: &ServingRegistry, tag: &str) -> u64 {
    let text = format!(
        "permit (principal, action, resource) when {{ resource.tags.contains(\"{tag}\") }};"
    );
    let put = registry
        .admin_request(Method::PUT, "/v1/policies")
        .json(&policies(&[("shown", &text)]));
    let accepted = ApiResponse::send(put).await.expect_status(202);
    accepted["number"].as_u64().unwrap()
}

/// Three processes on one PostgreSQL: sets switch, and one process is killed in the middle of each switch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_switch_and_die_without_mixing_sets() {
    let database = Database::postgres().await;
    let ports: Vec<u16> = (0..REPLICAS).map(|_| free_port()).collect();
    let setups = ports
        .iter()
        .map(|port| setup_at(*port, ports[0], &database));
    let setups: Vec<RegistrySetup> = setups.collect();
    let mut replicas = Vec::new();
    for setup in &setups {
        replicas.push(setup.start_without_proxy().await);
    }
    let mut origins = Vec::new();
    let published = publish_agents(&replicas[0], &mut origins).await;
    let is_in_force = async |replicas: &[ServingRegistry], number: u64, shown: &BTreeSet<Uuid>| {
        for registry in replicas {
            eventually("the process has the set in force", async || {
                let policies: Policies = registry.read_as_admin("/v1/policies").await;
                let answer = registry.get(SEARCH).await;
                if answer.status != 200 {
                    return None;
                }
                let list: AgentList = serde_json::from_slice(&answer.body).unwrap();
                (policies.in_force == number && shown_agents(&list) == *shown).then_some(())
            })
            .await;
        }
    };
    let number = put_set(&replicas[0], TAGS[0]).await;
    is_in_force(&replicas, number, &published[0]).await;

    let end = CancellationToken::new();
    let readers = replicas.iter().map(|registry| {
        let reading = read_until_end(registry.api.clone(), published.clone(), end.clone());
        tokio::spawn(reading)
    });
    let readers: Vec<_> = readers.collect();
    for turn in 1..=2 * REPLICAS {
        let at = turn % REPLICAS;
        let number = put_set(&replicas[(at + 1) % REPLICAS], TAGS[turn % 2]).await;
        replicas.remove(at).program.kill().await;
        replicas.insert(at, setups[at].start_without_proxy().await);
        is_in_force(&replicas, number, &published[turn % 2]).await;
    }
    end.cancel();
    for reader in readers {
        let met = reader.await.unwrap();
        assert!(met.iter().all(|count| *count > 0), "{met:?}");
    }
    for registry in replicas {
        registry.stop().await;
    }
}

/// What a caller sees by searching, without what differs between two registries: identifiers and times.
async fn search_view(registry: &InProcessRegistry, caller: &Caller) -> String {
    let mut view = String::new();
    for words in ["", "tests", "zweimaster", "answers questions"] {
        let query = SearchQuery {
            q: (!words.is_empty()).then(|| words.to_owned()),
            sort: Some("name".into()),
            facets: vec!["tag".into(), "domain".into(), "provider".into()],
            ..SearchQuery::default()
        };
        let list = registry.search_all(caller, &query).await;
        let names = list.agents.iter().map(|hit| &hit.summary.name);
        let names: Vec<&String> = names.collect();
        view.push_str(&format!(
            "{words}: {names:?} {} {} {:?}\n",
            list.total, list.total_fitting, list.facets
        ));
    }
    let beginning = SuggestQuery { q: "zwei".into() };
    let completed = suggest_completions(&registry.app, caller, &beginning).await;
    view.push_str(&format!("{:?}", completed.unwrap()));
    view
}

/// Two registries that differ in one agent, which no set shows, give the same answers in every state of a switch, to
/// whoever asks.
async fn hidden_equals_missing_while_sets_switch(url: &str) {
    let other = Database::sqlite();
    let with = InProcessRegistry::new(url).await;
    let without = InProcessRegistry::new(other.url()).await;
    let both = [&with, &without];
    let mut callers = Vec::new();
    for registry in both {
        for (domain, name) in [
            ("one.agents-test.com", "One"),
            ("two.agents-test.com", "Two"),
        ] {
            registry
                .register_approved_card(domain, &card_bytes(name, "x"))
                .await;
        }
        callers.push(caller(registry, "rita", Role::Reader).await);
    }
    let card = card_bytes("Zweimaster", "Sails");
    let hidden = with
        .register_approved_card("hidden.agents-test.com", &card)
        .await;
    let hidden = hidden.id.to_string();
    let assert_same = async |when: &str| {
        for is_signed_in in [false, true] {
            let mut seen = Vec::new();
            for (registry, rita) in both.iter().zip(&callers) {
                let anybody = Caller::default();
                let who = if is_signed_in { rita } else { &anybody };
                let app = &registry.app;
                let card = load_agent_card(app, who, &hidden, None).await;
                let agent = load_cached_agent_view(app, who, &hidden).await;
                let view = search_view(registry, who).await;
                let refusals = [card.map(drop).unwrap_err(), agent.map(drop).unwrap_err()];
                let refusals = refusals.map(|error| (error.kind, error.public));
                seen.push((view, refusals));
            }
            assert_eq!(seen[0], seen[1], "{when}");
        }
    };
    let forbid = "forbid (principal, action, resource) when { resource.domain == \"hidden.agents-test.com\" };";
    let one = "permit (principal, action, resource) when { resource.domain like \"one.*\" };";
    let two = "permit (principal, action, resource) when { resource.domain like \"two.*\" };";
    let sets = [
        vec![("open", OPEN), ("hide", forbid)],
        vec![("shown", one)],
        vec![("shown", two)],
        vec![("hide", forbid), ("open", OPEN)],
        vec![("open", OPEN), ("hide", forbid), ("one", one)],
    ];
    for (number, set) in sets.iter().enumerate() {
        for registry in both {
            put_policies(registry, set).await;
        }
        // The first set hides the agent only once it is in force.
        if number > 0 {
            assert_same("the set is made").await;
            for registry in both {
                apply_next_events(&registry.app).await.unwrap();
            }
            assert_same("its event is known").await;
            for registry in both {
                roll_out_newest_policies(&registry.app, || true)
                    .await
                    .unwrap();
            }
            assert_same("the evaluation was interrupted").await;
        }
        for registry in both {
            registry.catch_up().await;
        }
        assert_same("the set is in force").await;
    }
}
