//! A hidden agent and its domain are answered like missing ones, by the same reads.

use a2a_registry_api::{Act, AgentPatch};
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::reviews::reviews_open;
use a2a_registry_store::statements::statements_of;
use actix_web::http::Method;
use actix_web::test::TestRequest;
use uuid::Uuid;

use crate::agents::acts::agent_suspend;
use crate::agents::owner::agent_patch;
use crate::tests::cards::with_agents;
use crate::tests::{ADMIN, Registry};

/// An identifier that no agent has.
const NOBODY: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);
/// A URN in the form of one, and one that no agent has.
const URN: &str = "urn:air:agents.example.com:agents:hidden";
const NO_URN: &str = "urn:air:agents.example.com:agents:nobody";
/// The addresses of an agent, without that of reports: a caller may send only so many, so a later one is refused earlier.
const OF_AGENT: [(&str, &str); 16] = [
    ("GET", "/v1/agents/{}"),
    ("GET", "/v1/agents/{}/card"),
    ("GET", "/v1/agents/{}/card?as=0.3"),
    ("GET", "/v1/agents/{}/card?version=sha256:00"),
    ("GET", "/v1/agents/{}/versions"),
    ("GET", "/v1/agents/{}/findings"),
    ("GET", "/v1/agents/{}/findings?version=sha256:00"),
    ("GET", "/v1/agents/{}/diff?from=sha256:00&to=sha256:01"),
    ("GET", "/v1/agents/{}/similar"),
    ("GET", "/agents/{}/.well-known/agent-card.json"),
    ("GET", "/agents/{}/.well-known/agent.json"),
    ("GET", "/agents/{}/"),
    ("GET", "/agents/{}/diff?from=sha256:00&to=sha256:01"),
    ("POST", "/v1/agents/{}:deprecate"),
    ("POST", "/v1/agents/{}:retire"),
    ("PATCH", "/v1/agents/{}"),
];

impl Registry {
    /// The status of an answer, and the statements that were sent for it.
    async fn reads(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
    ) -> (u16, Vec<String>, String) {
        let mut request = TestRequest::with_uri(path).method(method.parse::<Method>().unwrap());
        if method != "GET" {
            let reason = match method {
                "PATCH" => serde_json::json!({"labels": {}}),
                _ => serde_json::json!({"reason": "a test"}),
            };
            request = request.set_json(reason);
        }
        let answer = async {
            match token {
                Some(token) => self.as_with(token, request).await,
                None => self.ask(request).await,
            }
        };
        let (answer, mut statements) = statements_of(answer).await;
        // A page reads several things at once.
        statements.sort_unstable();
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        (answer.status.as_u16(), statements, body)
    }

    /// Checks that two addresses have the same answer, which is not found, by the same statements.
    async fn equal(&self, token: Option<&str>, method: &str, hidden: &str, missing: &str) {
        let what = format!("{method} {hidden}, with a token: {}", token.is_some());
        // The first request with a token notes its use.
        self.reads(token, method, missing).await;
        let (status, of_missing, _) = self.reads(token, method, missing).await;
        assert!((400..500).contains(&status), "{what}: {status}");
        // Twice, since the first answer may have left something in a cache.
        for _ in 0..2 {
            let (found, of_hidden, body) = self.reads(token, method, hidden).await;
            assert_eq!(found, status, "{what}: {body}");
            assert_eq!(of_hidden, of_missing, "{what}");
        }
    }
}

#[actix_web::test]
async fn hidden_and_missing_cost_the_same_reads() {
    let registry = Registry::with(|config| config.governance.approve_all = true).await;
    let (id, jobs, _samples) = with_agents(&registry).await;
    let context = registry.context();
    let id: Uuid = id.parse().unwrap();
    // No sample agent is on a domain that can be proved.
    let mut row = agents_by_ids(&context.store, &[id]).await.unwrap();
    let mut row = row.pop().unwrap();
    row.urn = Some(URN.to_owned());
    let host = row.domain.clone();
    let write = context.store.write().await.unwrap();
    write.agents_put(vec![row]).await.unwrap();
    write.commit().await.unwrap();
    let admin = registry.admin().await;
    let publisher = registry.token(Role::Publisher).await;
    let reader = registry.token(Role::Reader).await;
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
                let patched = agent_patch(context, &admin, &id.to_string(), &restricted).await;
                patched.unwrap();
            }
            _ => {
                let held = agent_suspend(context, &admin, &id.to_string(), &suspended).await;
                held.unwrap();
            }
        }
        // What is kept of it must not show in the answers to others.
        for (method, path) in OF_AGENT.iter().filter(|(method, _)| *method == "GET") {
            let path = path.replace("{}", &id.to_string());
            registry.reads(Some(ADMIN), method, &path).await;
        }
        for token in [None, Some(&reader), Some(&publisher)] {
            let token = token.map(String::as_str);
            for (method, path) in OF_AGENT {
                let at = |name: &str| path.replace("{}", name);
                let (hidden, missing) = (at(&id.to_string()), at(&NOBODY.to_string()));
                registry.equal(token, method, &hidden, &missing).await;
                registry.equal(token, method, &at(URN), &at(NO_URN)).await;
            }
            for (method, path) in [
                ("GET", "/v1/domains/{}"),
                ("GET", "/domains/{}"),
                ("POST", "/v1/domains/{}:verify"),
                ("DELETE", "/v1/domains/{}"),
            ] {
                let at = |name: &str| path.replace("{}", name);
                let (hidden, missing) = (at(&host), at("127.0.0.1:1"));
                registry.equal(token, method, &hidden, &missing).await;
            }
        }
    }
    let review = reviews_open(&context.store, &[id]).await.unwrap();
    let review = review.first().map_or(NOBODY, |review| review.id);
    for token in [&reader, &publisher] {
        let (hidden, missing) = (
            format!("/v1/reviews/{review}"),
            format!("/v1/reviews/{NOBODY}"),
        );
        registry.equal(Some(token), "GET", &hidden, &missing).await;
    }
    jobs.stop().await;
}
