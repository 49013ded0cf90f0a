//! Tests that hidden agents, domains and collections get the same responses as missing ones, with the same reads.

use a2a_registry_api::{Act, AgentPatch, CollectionContent, GroupMembers};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::agents::owner_updates::agent_patch;
use a2a_registry_core::collections::actions::collection_put;
use a2a_registry_core::database_health::record_database_contact;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::reviews::open_reviews_by_agent;
use a2a_registry_store::statements::record_statements;
use actix_web::http::Method;
use actix_web::test::TestRequest;
use uuid::Uuid;

use crate::tests::cards::with_agents;
use crate::tests::{ADMIN, Registry};

/// An identifier that no agent has.
const NOBODY: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);
/// A well-formed URN that no agent has.
const URN: &str = "urn:air:agents.example.com:agents:hidden";
const NO_URN: &str = "urn:air:agents.example.com:agents:nobody";
/// A domain that is not registered.
const NO_HOST: &str = "127.0.0.1:1";
const REASON: &str = r#"{"reason": "a test"}"#;

/// A request: method, path and body, with `{}` and `$name` as placeholders for the subject.
type Operation = (&'static str, &'static str, &'static str);

/// Requests about an agent.
const OF_AGENT: [Operation; 20] = [
    ("GET", "/v1/agents/{}", ""),
    ("GET", "/v1/agents/{}/card", ""),
    ("GET", "/v1/agents/{}/card?as=0.3", ""),
    ("GET", "/v1/agents/{}/card?version=sha256:00", ""),
    ("GET", "/v1/agents/{}/versions", ""),
    ("GET", "/v1/agents/{}/findings", ""),
    ("GET", "/v1/agents/{}/findings?version=sha256:00", ""),
    ("GET", "/v1/agents/{}/diff?from=sha256:00&to=sha256:01", ""),
    ("GET", "/v1/agents/{}/similar", ""),
    ("GET", "/agents/{}/.well-known/agent-card.json", ""),
    ("GET", "/agents/{}/.well-known/agent.json", ""),
    ("GET", "/agents/{}/as/1.0/.well-known/agent-card.json", ""),
    ("GET", "/agents/{}/as/0.3/.well-known/agent.json", ""),
    ("GET", "/agents/{}/", ""),
    ("GET", "/agents/{}/diff?from=sha256:00&to=sha256:01", ""),
    (
        "POST",
        "/v1/decide",
        r#"{"action": "invoke", "agent": "$name"}"#,
    ),
    ("POST", "/v1/agents/{}:deprecate", REASON),
    ("POST", "/v1/agents/{}:undeprecate", REASON),
    ("POST", "/v1/agents/{}:retire", REASON),
    ("PATCH", "/v1/agents/{}", r#"{"labels": {}}"#),
];
/// Requests about a domain.
const OF_DOMAIN: [Operation; 9] = [
    ("GET", "/v1/domains/{}", ""),
    ("GET", "/domains/{}", ""),
    ("POST", "/v1/domains/{}:verify", REASON),
    (
        "POST",
        "/v1/domains/{}:transfer",
        r#"{"account": "reader"}"#,
    ),
    ("PATCH", "/v1/domains/{}", r#"{"opt_out": true}"#),
    ("PUT", "/v1/domains/{}/keys/k1", r#"{"kty": "OKP"}"#),
    ("DELETE", "/v1/domains/{}/keys/k1", ""),
    ("DELETE", "/v1/domains/{}/sources/s1", ""),
    ("DELETE", "/v1/domains/{}", ""),
];
/// Requests about an agent and about a domain that are rate limited for anonymous callers, so that a later one is
/// rejected earlier.
const COUNTED: [Operation; 2] = [
    ("POST", "/v1/agents/{}:report", REASON),
    ("POST", "/v1/domains/{}:recrawl", ""),
];
/// Requests about a collection.
const OF_COLLECTION: [Operation; 3] = [
    ("GET", "/v1/collections/{}", ""),
    ("GET", "/collections/{}", ""),
    ("GET", "/ard/c/{}/agents", ""),
];

impl Registry {
    /// Status and body of a response, and the SQL statements that were run for it.
    async fn reads(
        &self,
        token: Option<&str>,
        (method, path, body): Operation,
        name: &str,
    ) -> (u16, Vec<String>, String) {
        // No job reads the database here, and without that decisions are denied after some seconds.
        record_database_contact(self.context());
        let path = path.replace("{}", name);
        let mut request = TestRequest::with_uri(&path).method(method.parse::<Method>().unwrap());
        if !body.is_empty() {
            request = request
                .insert_header(("content-type", "application/json"))
                .set_payload(body.replace("$name", name));
        }
        let answer = async {
            match token {
                Some(token) => self.as_with(token, request).await,
                None => self.ask(request).await,
            }
        };
        let (answer, mut statements) = record_statements(answer).await;
        if let Some(token) = token {
            self.remove_second_authentication(token, &mut statements)
                .await;
        }
        // A page reads several things at once.
        statements.sort_unstable();
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        (answer.status.as_u16(), statements, body)
    }

    /// Removes the statements of a second authentication: a caller is authenticated again after the body has arrived,
    /// unless the body arrived first, which differs between requests.
    async fn remove_second_authentication(&self, token: &str, statements: &mut Vec<String>) {
        let (_, authentication) =
            record_statements(authenticate_token(self.context(), token)).await;
        let count = |one: &String| statements.iter().filter(|other| *other == one).count();
        if !authentication.iter().all(|one| count(one) > 1) {
            return;
        }
        for one in &authentication {
            let position = statements.iter().position(|other| other == one);
            statements.remove(position.unwrap());
        }
    }

    /// Checks that a request for a hidden and for a missing subject has the same error status and runs the same
    /// statements.
    async fn compare(
        &self,
        token: Option<&str>,
        operation: Operation,
        hidden: &str,
        missing: &str,
    ) {
        let what = format!("{operation:?} {hidden}, with a token: {}", token.is_some());
        // The first request with a token records its use.
        self.reads(token, operation, missing).await;
        let (status, of_missing, _) = self.reads(token, operation, missing).await;
        assert!((400..500).contains(&status), "{what}: {status}");
        assert_ne!(status, 429, "{what}");
        // Twice, because the first response may have been cached.
        for _ in 0..2 {
            let (found, of_hidden, body) = self.reads(token, operation, hidden).await;
            assert_eq!(found, status, "{what}: {body}");
            assert_eq!(of_hidden, of_missing, "{what}");
        }
    }

    /// Creates the collection `hidden`, which only the members of a group see.
    async fn hide_collection(&self, admin: &Caller) {
        let members = GroupMembers {
            members: vec!["curator".into()],
        };
        self.token(Role::Curator).await;
        let (context, any) = (self.context(), IfMatch::default());
        let made = group_put(context, admin, "team", &members, &any).await;
        made.unwrap();
        let content = CollectionContent {
            filter: "tag:secret".into(),
            audience: Some(vec!["team".into()]),
            ..CollectionContent::default()
        };
        let made = collection_put(context, admin, "hidden", &content, &any).await;
        made.unwrap();
    }
}

#[actix_web::test]
async fn hidden_and_missing_cost_the_same_reads() {
    let registry = Registry::with(|config| config.governance.approve_all = true).await;
    let (id, jobs, _samples) = with_agents(&registry).await;
    let context = registry.context();
    let id: Uuid = id.parse().unwrap();
    let (agent, nobody) = (id.to_string(), NOBODY.to_string());
    // No sample agent is on a domain that can be proved.
    let mut row = agents_by_ids(&context.store, &[id]).await.unwrap();
    let mut row = row.pop().unwrap();
    row.urn = Some(URN.to_owned());
    let host = row.domain.clone();
    let write = context.store.begin_write().await.unwrap();
    write.upsert_agents(vec![row]).await.unwrap();
    write.commit().await.unwrap();
    let admin = registry.admin().await;
    let publisher = registry.token(Role::Publisher).await;
    registry.hide_collection(&admin).await;
    let reader = registry.token(Role::Reader).await;
    // Public agents are found using only the index.
    let similar = ("GET", "/v1/agents/{}/similar", "");
    let (status, statements, body) = registry.reads(None, similar, &agent).await;
    assert_eq!((status, statements), (200, Vec::new()), "{body}");
    let restricted = AgentPatch {
        visibility: Some(Visibility::Restricted),
        ..AgentPatch::default()
    };
    let suspended = Act {
        reason: "a test".into(),
        hold: None,
    };
    for step in ["restricted", "on hold"] {
        match step {
            "restricted" => {
                let any = IfMatch::default();
                let patched = agent_patch(context, &admin, &agent, &restricted, &any).await;
                patched.unwrap();
            }
            _ => {
                let held = agent_suspend(context, &admin, &agent, &suspended).await;
                held.unwrap();
            }
        }
        // Cached data about it must not appear in responses to others.
        for operation in OF_AGENT.into_iter().filter(|(method, ..)| *method == "GET") {
            registry.reads(Some(ADMIN), operation, &agent).await;
        }
        for token in [None, Some(&reader), Some(&publisher)] {
            let token = token.map(String::as_str);
            let names = [(agent.as_str(), nobody.as_str()), (URN, NO_URN)];
            for (hidden, missing) in names {
                for operation in OF_AGENT {
                    registry.compare(token, operation, hidden, missing).await;
                }
            }
            for operation in OF_DOMAIN {
                registry.compare(token, operation, &host, NO_HOST).await;
            }
            for operation in OF_COLLECTION {
                registry
                    .compare(token, operation, "hidden", "missing")
                    .await;
            }
        }
        for token in [&reader, &publisher] {
            let [report, recrawl] = COUNTED;
            let token = Some(token.as_str());
            registry.compare(token, report, &agent, &nobody).await;
            registry.compare(token, recrawl, &host, NO_HOST).await;
        }
    }
    let review = open_reviews_by_agent(&context.store, &[id]).await.unwrap();
    let review = review.first().map_or(NOBODY, |review| review.id);
    for token in [&reader, &publisher] {
        let operation = ("GET", "/v1/reviews/{}", "");
        let review = review.to_string();
        registry
            .compare(Some(token), operation, &review, &nobody)
            .await;
    }
    jobs.stop().await;
}
