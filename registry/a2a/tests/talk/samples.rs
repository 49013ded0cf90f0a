//! Every sample agent answers the client, on each of its interfaces.

use std::sync::Arc;

use a2a_card::{AgentCard, CardFamily};
use a2a_client::{AgentResponse, CallError, ProtocolBinding, SendOptions, send_text};
use a2a_crawler::SystemClock;
use a2a_registry_demo::{SampleAgents, start_sample_agents};
use serde_json::Value;

use super::{card, interface};

async fn agents() -> SampleAgents {
    start_sample_agents(Arc::new(SystemClock)).await.unwrap()
}

async fn ask(card: &AgentCard, text: &str) -> AgentResponse {
    send_text(card, text, &SendOptions::new("message-1"))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_agents_published_card_is_all_the_client_needs() {
    let agents = agents().await;
    let expected = [
        (CardFamily::V0_2, ProtocolBinding::V0JsonRpc),
        (CardFamily::V0_3, ProtocolBinding::V0JsonRpc),
        (CardFamily::V1_0, ProtocolBinding::V1JsonRpc),
    ];
    for (agent, (family, dialect)) in agents.agents.iter().zip(expected) {
        let bytes = super::wire::get(&agent.card_url)
            .await
            .bytes()
            .await
            .unwrap();
        let parsed = a2a_card::parse_card(&bytes).unwrap();
        assert_eq!(parsed.family, family, "{}", agent.name);
        // That the address is a loopback one is the single thing to be said about it.
        for finding in a2a_card::all_findings(&parsed, &bytes) {
            assert_eq!(
                finding.rule, "endpoint.private",
                "{}: {finding:?}",
                agent.name
            );
        }
        let answer = ask(&parsed.card, agent.example).await;
        assert_eq!(answer.protocol_binding, dialect, "{}", agent.name);
        assert!(!answer.text.is_empty(), "{}", agent.name);
        assert_eq!(answer.unfinished_reason, None);
    }
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_0_2_agent_converts_money() {
    let agents = agents().await;
    let agent = &agents.agents[0];
    let card = card(&format!("{}/", agent.base_url), "JSONRPC", Some("0.2"));
    let answer = ask(&card, "Convert 110 USD to EUR").await;
    assert!(
        answer.text.starts_with("110.00 USD = 100.00 EUR"),
        "{}",
        answer.text
    );
    assert_eq!(
        (answer.state, answer.protocol_binding),
        (None, ProtocolBinding::V0JsonRpc)
    );
    assert!(answer.context_id.is_some());
    let example = ask(&card, agent.example).await;
    assert!(
        example.text.contains("1250.50 USD = 1136.82 EUR"),
        "{}",
        example.text
    );
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_0_3_agent_answers_with_a_task_that_can_be_asked_for_again() {
    let agents = agents().await;
    let agent = &agents.agents[1];
    let url = format!("{}/a2a", agent.base_url);
    let answer = ask(&card(&url, "JSONRPC", Some("0.3")), agent.example).await;
    assert_eq!(answer.text, "300 g flour\n4 1/2 eggs\n2 1/4 tsp salt");
    assert_eq!(answer.state.as_deref(), Some("completed"));
    assert_eq!(answer.artifacts[0].name.as_deref(), Some("Ingredients"));
    let get = serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": "tasks/get", "params": {"id": answer.task_id}});
    let again: Value = super::wire::post(&url, &get, None)
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(again["result"], answer.raw);
    assert_eq!(again["id"], 7);
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_1_0_agent_plans_alike_on_both_bindings() {
    let agents = agents().await;
    let agent = &agents.agents[2];
    let rpc = card(&format!("{}/rpc", agent.base_url), "JSONRPC", Some("1.0"));
    let rest = card(
        &format!("{}/rest", agent.base_url),
        "HTTP+JSON",
        Some("1.0"),
    );
    let over_rpc = ask(&rpc, agent.example).await;
    let over_rest = ask(&rest, agent.example).await;
    assert_eq!(
        (over_rpc.protocol_binding, over_rest.protocol_binding),
        (ProtocolBinding::V1JsonRpc, ProtocolBinding::V1Rest)
    );
    assert_eq!(over_rpc.text, over_rest.text);
    assert!(
        over_rpc.text.contains("Berlin (BER) to Lisbon (LIS), 23"),
        "{}",
        over_rpc.text
    );
    assert!(
        over_rpc.text.contains("2027-03-14, 2 travellers"),
        "{}",
        over_rpc.text
    );
    assert_eq!(over_rest.state.as_deref(), Some("completed"));
    assert!(over_rest.artifacts[0].other_parts[0].starts_with("data (application/json): "));
    let unclear = ask(&rest, "hello").await;
    assert_eq!(unclear.state, None);
    assert!(unclear.text.contains("Known cities"), "{}", unclear.text);
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_falls_to_the_next_interface_when_nothing_was_taken_up() {
    let agents = agents().await;
    let (recipe, trip) = (&agents.agents[1], &agents.agents[2]);
    // Nobody listens on the first address; the second speaks 0.3 only; the third is right.
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut card = card(&format!("http://{free}/"), "JSONRPC", Some("1.0"));
    card.interfaces.push(interface(
        &format!("{}/a2a", recipe.base_url),
        "JSONRPC",
        Some("1.0"),
    ));
    card.interfaces.push(interface(
        &format!("{}/rest/", trip.base_url),
        "HTTP+JSON",
        Some("1.0"),
    ));
    let answer = ask(&card, "Plan two days in Rome").await;
    assert_eq!(answer.interface, card.interfaces[2]);
    assert!(answer.text.contains("Day 2:"), "{}", answer.text);
    card.interfaces.pop();
    let error = send_text(&card, "x", &SendOptions::new("m"))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, CallError::Unreachable { url, .. } if url.contains(&free.to_string())),
        "{error}"
    );
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undated_interface_is_spoken_to_in_either_shape() {
    let agents = agents().await;
    let old = ask(
        &card(&format!("{}/", agents.agents[0].base_url), "JSONRPC", None),
        "20 EUR in JPY",
    )
    .await;
    assert_eq!(old.protocol_binding, ProtocolBinding::V0JsonRpc);
    // The 1.0 agent refuses the older call as one without A2A-Version.
    let new = ask(
        &card(
            &format!("{}/rpc", agents.agents[2].base_url),
            "JSONRPC",
            None,
        ),
        "Rome",
    )
    .await;
    assert_eq!(new.protocol_binding, ProtocolBinding::V1JsonRpc);
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_agents_no_longer_answer() {
    let agents = agents().await;
    let card = card(
        &format!("{}/rpc", agents.agents[2].base_url),
        "JSONRPC",
        Some("1.0"),
    );
    ask(&card, "Rome").await;
    agents.stop().await;
    let error = send_text(&card, "Rome", &SendOptions::new("m"))
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error}");
}
