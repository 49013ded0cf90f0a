//! Callers: no response to one leaks to another, and tokens are sent only where they belong.

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use super::{McpClient, REVISIONS, TOOLS, publish, show_to};
use crate::support::api::ApiResponse;
use crate::support::setup::RegistrySetup;

/// Requests of two callers and of nobody that are under way at once are each answered for their own caller.
#[tokio::test]
async fn callers_in_flight_together_are_kept_apart() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let published = publish(&registry, &["Open", "Of-one", "Of-two"]).await;
    let ids = &published.ids;
    let mut clients = vec![(McpClient::new(&registry.api, REVISIONS[0], None), None)];
    for (number, group) in ["one", "two"].into_iter().enumerate() {
        let token = registry.create_token(group, "reader").await;
        let made = registry.admin_request(Method::PUT, &format!("/v1/groups/{group}"));
        let made = ApiResponse::send(made.json(&json!({"members": [group]}))).await;
        assert!(made.status.is_success());
        let audience = json!({"visibility": "restricted", "groups": [group]});
        show_to(&registry, &ids[number + 1], audience).await;
        let revision = REVISIONS[number];
        clients.push((
            McpClient::new(&registry.api, revision, Some(&token)),
            Some(number + 1),
        ));
    }
    let asked = (0..60).map(|round| {
        let (client, own) = &clients[round % clients.len()];
        async move {
            let found = client
                .structured("search_agents", json!({"sort": "name"}))
                .await;
            let found: Vec<&str> = found["agents"]
                .as_array()
                .unwrap()
                .iter()
                .map(|agent| agent["id"].as_str().unwrap())
                .collect();
            let mut expected = vec![ids[0].as_str()];
            expected.extend(own.map(|own| ids[own].as_str()));
            found
                .iter()
                .for_each(|id| assert!(expected.contains(id), "{round}: {found:?}"));
            assert_eq!(found.len(), expected.len(), "{round}");
            for (at, id) in ids.iter().enumerate() {
                let result = client.call("get_agent", json!({"agent": id})).await;
                let sees = at == 0 || *own == Some(at);
                assert_eq!(result["isError"], !sees, "{round}: {result}");
            }
        }
    });
    join_all(asked).await;
}

/// To a caller who may not see an agent, it does not exist: every tool answers as about an id that never was.
#[tokio::test]
async fn a_hidden_agent_is_answered_like_none() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let published = publish(&registry, &["Open", "Inside", "Held"]).await;
    let ids = &published.ids;
    show_to(&registry, &ids[1], json!({"visibility": "internal"})).await;
    let held = format!("/v1/agents/{}:suspend", ids[2]);
    registry
        .post_as_admin(&held, &json!({"reason": "a test"}))
        .await
        .expect_status(200);
    let nobody = Uuid::from_u128(7).to_string();
    for revision in REVISIONS {
        let client = McpClient::new(&registry.api, revision, None);
        for tool in &TOOLS[1..4] {
            let of = async |agent: &str| {
                let params = json!({"name": tool, "arguments": {"agent": agent}});
                client.ask("tools/call", params).await
            };
            let none = of(&nobody).await;
            let said = String::from_utf8_lossy(&none.body).into_owned();
            assert!(said.contains("The agent does not exist"), "{said}");
            for hidden in [
                &ids[1],
                &ids[2],
                "urn:air:hidden.example:agent:x",
                "no id at all",
            ] {
                let other = of(hidden).await;
                assert_eq!(other.body, none.body, "{tool} about {hidden} in {revision}");
                assert_eq!(other.status, none.status);
            }
            assert_ne!(of(&ids[0]).await.body, none.body, "{tool}");
        }
    }
}

/// A token that is revoked, or was never made, is refused as everywhere; one that is good appears nowhere.
#[tokio::test]
async fn tokens_are_judged_by_each_request_and_appear_nowhere() {
    let setup = RegistrySetup::new()
        .approve_all()
        .with_config_lines("[log]\nfilter = \"trace\"");
    let registry = setup.start().await;
    let made = json!({"account": "reader", "role": "reader", "name": "a test"});
    let made = registry
        .post_as_admin("/v1/tokens", &made)
        .await
        .expect_status(201);
    let (secret, id) = (
        made["secret"].as_str().unwrap(),
        made["id"].as_str().unwrap(),
    );
    for revision in REVISIONS {
        let client = McpClient::new(&registry.api, revision, Some(secret));
        for tool in TOOLS {
            let about = match tool {
                "search_agents" | "list_facets" => json!({}),
                _ => json!({"agent": "none"}),
            };
            let answer = client
                .ask("tools/call", json!({"name": tool, "arguments": about}))
                .await;
            assert!(!answer.text().contains(secret), "{tool}");
        }
        let listed = client.ask("tools/list", json!({})).await;
        assert!(!listed.text().contains(secret));
        assert!(
            !listed.text().contains("authorization"),
            "a tool takes a credential"
        );
    }
    let revoked = registry.admin_request(Method::DELETE, &format!("/v1/tokens/{id}"));
    assert!(ApiResponse::send(revoked).await.status.is_success());
    for token in [secret, "a2ar_never-made"] {
        for revision in REVISIONS {
            let client = McpClient::new(&registry.api, revision, Some(token));
            let refused = client.ask("tools/list", json!({})).await;
            refused.expect_problem(401, "unauthenticated");
            assert_eq!(refused.headers["www-authenticate"], "Bearer");
        }
    }
    let ended = registry.stop().await;
    let logged = ended.stderr.join("\n");
    assert!(logged.contains("rmcp"), "the library logs nothing at trace");
    assert!(!logged.contains(secret), "the log holds a token");
}
