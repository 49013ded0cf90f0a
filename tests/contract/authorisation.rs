//! Authorisation: every operation of the document, called with every role (docs/govern/accounts.md#who-may-do-what).

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use a2a_registry_api::{DomainView, Hit};
use a2a_registry_http::routes::openapi::operations::{
    ApiOperation, all_api_operations as operations,
};
use sea_orm::{ConnectionTrait as _, Database};
use serde_json::{Value, json};

use super::authorisation_table::ExpectedResponse::{Clash, Do, Missing, Not, SignIn};
use super::authorisation_table::{ExpectedResponse, TABLE};
use super::{filled, method};
use crate::support::api::ApiResponse;
use crate::support::cards::card_json;
use crate::support::exchange::ApiDocument;
use crate::support::origin::{Origin, OriginReply};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// The account that owns targets.
const OWNER: &str = "owner";

/// A caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallerKind {
    Nobody,
    Reader,
    /// A publisher whose the target is not.
    Stranger,
    /// The publisher for whom the domain is proved, or who has registered the card that waits.
    Owner,
    Curator,
    /// A curator, by a token with the scope `read` alone.
    CuratorReading,
    Auditor,
    /// An auditor, by a token with the scope `decide` alone.
    AuditorDeciding,
    /// An admin who is no curator.
    Admin,
    /// The bootstrap token, of an admin who is a curator.
    Bootstrap,
}

/// Every caller, in the order of the columns.
pub(super) const CALLERS: [CallerKind; 10] = [
    CallerKind::Nobody,
    CallerKind::Reader,
    CallerKind::Stranger,
    CallerKind::Owner,
    CallerKind::Curator,
    CallerKind::CuratorReading,
    CallerKind::Auditor,
    CallerKind::AuditorDeciding,
    CallerKind::Admin,
    CallerKind::Bootstrap,
];

/// Parameters of paths that name nothing.
const UNKNOWN: &[(&str, &str)] = &[
    ("account", "missing"),
    ("agent", NO_ID),
    ("collection", "missing"),
    ("decision", NO_ID),
    ("domain", "missing.example"),
    ("form", "1.0"),
    ("group", "missing"),
    ("hook", NO_ID),
    ("identifier", "urn:air:nobody.example:agents:x"),
    ("kid", "missing"),
    ("policy", "missing"),
    ("review", NO_ID),
    ("search", NO_ID),
    ("session", NO_ID),
    ("source", "1"),
    ("token", NO_ID),
    ("waiver", NO_ID),
];
const NO_ID: &str = "018f0000-0000-7000-8000-000000000000";

/// A public key, that of RFC 8037 appendix A.2.
fn key() -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
}

/// Makes the target of an operation, anew for each caller, so that no act affects another one.
struct TargetFactory<'a> {
    served: &'a ServingRegistry,
    made: AtomicU32,
    /// Of every origin so far. The system gives the port of one that has ended to a later one, whose domain the registry
    /// then has, decided on, already.
    addresses: Mutex<BTreeSet<SocketAddr>>,
}

/// An agent that everyone sees, and the origin of its card.
struct ListedAgent {
    origin: Origin,
    hit: Hit,
}

/// A request that succeeds for permitted callers.
struct TargetRequest {
    path: String,
    query: String,
    body: Option<Value>,
    /// What must stay alive until the request is made.
    _listed: Option<ListedAgent>,
}

impl TargetFactory<'_> {
    fn origin(&self) -> (Origin, String) {
        let origin = loop {
            let origin = Origin::start();
            if self.addresses.lock().unwrap().insert(origin.address()) {
                break origin;
            }
        };
        let skill = format!("skill{}", self.made.fetch_add(1, Ordering::Relaxed));
        origin.set_reply("/a.json", OriginReply::json(card_json("Echo", &skill)));
        (origin, skill)
    }

    /// A waiver of a policy that forbids, which this has put in force, for what an agent shows.
    async fn waiver(&self, agent: &ListedAgent) -> Value {
        let open = json!({"id": "everybody", "text": "permit (principal, action, resource);"});
        let forbids =
            "forbid (principal, action, resource) when { resource.tags.contains(\"draft\") };";
        let new =
            json!({"policies": [open, {"id": "drafts", "text": forbids}], "reason": "a test"});
        let put = self
            .served
            .admin_request(reqwest::Method::PUT, "/v1/policies");
        assert_eq!(put.json(&new).send().await.unwrap().status(), 202);
        json!({"policy": "drafts", "agent": agent.hit.summary.id,
            "digest": agent.hit.summary.card_digest, "reason": "a test", "expires_in_days": 1})
    }

    /// Has the owner have proved a domain: an address on loopback has no name that anybody could prove.
    async fn give_to_owner(&self, domain: &str) {
        let file = self.served.setup.data_folder().join("registry.sqlite");
        let database = Database::connect(format!("sqlite://{}", file.display())).await;
        let owner = format!("(SELECT id FROM accounts WHERE name = '{OWNER}')");
        for change in [
            format!("UPDATE domains SET owner_id = {owner} WHERE name = '{domain}'"),
            format!("UPDATE agents SET owner_id = {owner} WHERE domain = '{domain}'"),
        ] {
            let done = database.as_ref().unwrap().execute_unprepared(&change).await;
            assert_eq!(done.unwrap().rows_affected(), 1, "{change}");
        }
    }

    /// An agent that the admin has registered, of a domain of the owner's where there is a token of one.
    async fn register_listed_agent(&self, owner: Option<&str>) -> ListedAgent {
        let (origin, skill) = self.origin();
        let body = json!({"card_url": origin.url("/a.json"), "approve": true});
        let request = self
            .served
            .admin_request(reqwest::Method::POST, "/v1/domains")
            .json(&body);
        assert_eq!(request.send().await.unwrap().status(), 202);
        let hit = self.served.wait_for_hit(&format!("skill={skill}")).await;
        if owner.is_some() {
            self.give_to_owner(&origin.address().to_string()).await;
        }
        ListedAgent { origin, hit }
    }

    /// A review that waits for a decision, of what the owner or else the admin has registered: its id and its subject.
    async fn review(&self, owner: Option<&str>) -> (String, String) {
        let (origin, _) = self.origin();
        let body = json!({"card_url": origin.url("/a.json")});
        let register = self.served.request(reqwest::Method::POST, "/v1/domains");
        let register = register
            .bearer_auth(owner.unwrap_or(ADMIN_TOKEN))
            .json(&body);
        assert_eq!(register.send().await.unwrap().status(), 202);
        let domain = origin.address().to_string();
        let review = self
            .served
            .wait_for_open_review(|review| review.domain == domain)
            .await;
        (review.id.to_string(), review.digest)
    }

    async fn token_id(&self) -> String {
        let body = json!({"account": "spare", "role": "publisher", "name": "spare"});
        let request = self
            .served
            .admin_request(reqwest::Method::POST, "/v1/tokens")
            .json(&body);
        let made: Value = request.send().await.unwrap().json().await.unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    /// A request of an operation, whose target is of the owner's where there is a token of one.
    async fn target(&self, operation: &ApiOperation, owner: Option<&str>) -> TargetRequest {
        let (mut parameters, mut body, mut listed) = (Vec::new(), None, None);
        let act = json!({"reason": "a test"});
        if operation.path.contains("{agent}") || operation.path.contains("{domain}") {
            let made = self.register_listed_agent(owner).await;
            parameters.push(("agent", made.hit.summary.id.to_string()));
            parameters.push(("domain", made.origin.address().to_string()));
            listed = Some(made);
        } else if operation.path.contains("{review}") {
            let (id, digest) = self.review(owner).await;
            parameters.push(("review", id));
            body = Some(json!({"digest": digest, "reason": "a test"}));
        } else if operation.path.contains("{token}") {
            parameters.push(("token", self.token_id().await));
        } else if operation.path.contains("{session}") {
            parameters.push(("session", NO_ID.to_owned()));
        } else if operation.path.contains("{hook}") {
            parameters.push(("hook", NO_ID.to_owned()));
        } else if operation.path.contains("{decision}") {
            parameters.push(("decision", NO_ID.to_owned()));
        } else if operation.path.contains("{group}") {
            let name = format!("group{}", self.made.fetch_add(1, Ordering::Relaxed));
            let path = format!("/v1/groups/{name}");
            let members = json!({"members": ["publisher"]});
            let put = self.served.admin_request(reqwest::Method::PUT, &path);
            assert_eq!(put.json(&members).send().await.unwrap().status(), 200);
            parameters.push(("group", name));
        } else if operation.path.contains("{search}") {
            let content = json!({"name": "a test", "query": "tag=travel"});
            let saved = self
                .served
                .post_as_admin("/v1/searches", &content)
                .await
                .expect_status(201);
            let id = saved["id"].as_str().unwrap().to_owned();
            parameters.push(("search", id));
        } else if operation.path.contains("{collection}") {
            let name = format!("made-{}", self.made.fetch_add(1, Ordering::Relaxed));
            let path = format!("/v1/collections/{name}");
            let content = json!({"filter": "tag:finance"});
            let put = self.served.admin_request(reqwest::Method::PUT, &path);
            assert_eq!(put.json(&content).send().await.unwrap().status(), 200);
            parameters.push(("collection", name));
        } else if operation.path.contains("{account}") {
            parameters.push(("account", "publisher".to_owned()));
        }
        let unknown = "urn:air:nobody.example:agents:x";
        parameters.push(("identifier", unknown.to_owned()));
        parameters.push(("form", "1.0".to_owned()));
        let mut query = String::new();
        match operation.id.as_str() {
            "agent_suspend"
            | "agent_recertify"
            | "agent_deprecate"
            | "agent_retire"
            | "domain_vouch"
            | "endpoint_vouch_set"
            | "domain_new_generation"
            | "domain_erase" => body = Some(act),
            "agent_patch" => body = Some(json!({"visibility": "public"})),
            "agent_report" => body = Some(json!({"reason": "a test"})),
            "comment_add" => body = Some(json!({"text": "a test"})),
            "review_patch" => body = Some(json!({"due": ""})),
            "me_seen" => body = Some(json!({"at": "2020-01-01T00:00:00Z"})),
            "review_decide_all" => {
                let (id, digest) = self.review(owner).await;
                let one =
                    json!({"review": id, "digest": digest, "approve": true, "reason": "a test"});
                body = Some(json!({"decisions": [one]}));
            }
            "domain_patch" => body = Some(json!({"contact": "mailto:ops@agents.dev"})),
            "domain_transfer" => body = Some(json!({"account": "publisher"})),
            "owner_vouch_set" => {
                body = Some(json!({"account": "publisher", "reason": "a test"}));
            }
            "owner_vouch_end" => {
                let path = format!("/v1/domains/{}/owner-vouch", parameters[1].1);
                let content = json!({"account": "publisher", "reason": "a test"});
                let put = self.served.admin_request(reqwest::Method::PUT, &path);
                assert_eq!(put.json(&content).send().await.unwrap().status(), 200);
            }
            "endpoint_vouch_end" => {
                let path = format!("/v1/domains/{}/endpoint-vouch", parameters[1].1);
                let put = self.served.admin_request(reqwest::Method::PUT, &path);
                let put = put.json(&json!({"reason": "a test"}));
                assert_eq!(put.send().await.unwrap().status(), 200);
            }
            "key_enrol" => {
                parameters.push(("kid", "k1".to_owned()));
                body = Some(key());
            }
            "key_withdraw" => {
                parameters.push(("kid", "k1".to_owned()));
                let path = format!("/v1/domains/{}/keys/k1", parameters[1].1);
                let named = self
                    .served
                    .admin_request(reqwest::Method::PUT, &path)
                    .json(&key());
                assert_eq!(named.send().await.unwrap().status(), 200);
            }
            "source_withdraw" | "source_credential_set" | "source_credential_remove" => {
                let path = format!("/v1/domains/{}", parameters[1].1);
                let shown = self.served.admin_request(reqwest::Method::GET, &path);
                let shown: DomainView = shown.send().await.unwrap().json().await.unwrap();
                parameters.push(("source", shown.sources[0].id.clone()));
                if operation.id == "source_credential_set" {
                    body = Some(json!({"kind": "bearer", "secret": "a-test"}));
                }
            }
            "agent_resume" => {
                let path = format!("/v1/agents/{}:suspend", parameters[0].1);
                let suspended = self
                    .served
                    .admin_request(reqwest::Method::POST, &path)
                    .json(&act);
                assert_eq!(suspended.send().await.unwrap().status(), 200);
                body = Some(act);
            }
            "agent_undeprecate" => {
                let path = format!("/v1/agents/{}:deprecate", parameters[0].1);
                let deprecated = self
                    .served
                    .admin_request(reqwest::Method::POST, &path)
                    .json(&act);
                assert_eq!(deprecated.send().await.unwrap().status(), 200);
                body = Some(act);
            }
            "account_create" => {
                let name = format!("account{}", self.made.fetch_add(1, Ordering::Relaxed));
                body = Some(json!({"name": name, "roles": ["reader", "auditor"]}));
            }
            "account_patch" => body = Some(json!({"roles": ["publisher"]})),
            "group_put" => body = Some(json!({"members": ["curator"]})),
            "hook_create" => {
                let name = format!("hook{}", self.made.fetch_add(1, Ordering::Relaxed));
                // Nobody answers there, so the hook is never confirmed.
                body = Some(json!({"name": name, "url": "http://127.0.0.1:9/hook"}));
            }
            "hook_confirm" => body = Some(json!({"challenge": "a test"})),
            "hook_replay" => body = Some(json!({})),
            "saved_search_put" => body = Some(json!({"name": "mine", "query": "tag=travel"})),
            "collection_put" => body = Some(json!({"filter": "tag:travel"})),
            "policies_put" | "policy_preview_start" => {
                body = Some(open_policies());
            }
            "policy_preview_show" | "policy_preview_cancel" => {
                let requested = self
                    .served
                    .admin_request(reqwest::Method::POST, "/v1/policies/previews");
                let requested = requested.json(&open_policies()).send().await.unwrap();
                let requested: Value = requested.json().await.unwrap();
                parameters.push(("preview", requested["id"].as_str().unwrap().to_owned()));
            }
            "policies_test" => {
                let case =
                    json!({"action": "register", "resource": "example.com", "expect": "allow"});
                body = Some(json!({"cases": [case]}));
            }
            "policy_dry_run" => parameters.push(("policy", "everybody".to_owned())),
            "waiver_grant" => {
                let made = self.register_listed_agent(owner).await;
                body = Some(self.waiver(&made).await);
                listed = Some(made);
            }
            "waiver_end" => {
                let made = self.register_listed_agent(owner).await;
                let new = self.waiver(&made).await;
                let granted = self
                    .served
                    .admin_request(reqwest::Method::POST, "/v1/waivers");
                let granted = granted.json(&new).send().await.unwrap();
                let granted: Value = granted.json().await.unwrap();
                parameters.push(("waiver", granted["id"].as_str().unwrap().to_owned()));
                listed = Some(made);
            }
            "policy_decide" => {
                let made = self.register_listed_agent(owner).await;
                body = Some(json!({"action": "invoke", "agent": made.hit.summary.id}));
                listed = Some(made);
            }
            "policy_decide_batch" => {
                let made = self.register_listed_agent(owner).await;
                let question = json!({"action": "invoke", "agent": made.hit.summary.id});
                body = Some(json!({"questions": [question]}));
                listed = Some(made);
            }
            "gateway_decide" => {
                let made = self.register_listed_agent(owner).await;
                query = format!("?agent={}", made.hit.summary.id);
                listed = Some(made);
            }
            "domain_recrawl" => body = Some(json!({})),
            "ard_search" | "ard_collection_search" => {
                body = Some(json!({"query": {"text": "travel"}}));
            }
            "ard_explore" | "ard_collection_explore" => {
                body = Some(json!({"resultType": {"facets": [{"field": "tags"}]}}));
            }
            "card_lint" => body = Some(json!({"name": "Echo"})),
            "domain_register" => {
                let (origin, _) = self.origin();
                body = Some(json!({"card_url": origin.url("/a.json")}));
            }
            "domain_register_all" => {
                let (origin, _) = self.origin();
                let one = json!({"card_url": origin.url("/a.json")});
                body = Some(json!({"registrations": [one]}));
            }
            "login_exchange" => {
                body = Some(json!({"code": "unknown", "verifier": "unknown"}));
            }
            "token_create" => {
                body = Some(json!({"account": "other", "role": "publisher", "name": "a test"}));
            }
            "agent_diff" => {
                let digest = listed
                    .as_ref()
                    .map(|made| &made.hit.summary.card_digest)
                    .unwrap();
                query = format!("?from={digest}&to={digest}");
            }
            "agent_suggest" => query = "?q=ec".to_owned(),
            "agent_lookup" => {
                let made = self.register_listed_agent(owner).await;
                query = format!("?url={}", made.origin.url("/a.json"));
                listed = Some(made);
            }
            _ => {}
        }
        let parameters: Vec<_> = parameters
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        TargetRequest {
            path: filled(operation, &parameters),
            query,
            body,
            _listed: listed,
        }
    }

    async fn ask(
        &self,
        operation: &ApiOperation,
        (path, target): (&str, &TargetRequest),
        token: Option<&str>,
    ) -> ApiResponse {
        let path = format!("{path}{}", target.query);
        let mut request = self.served.request(method(operation), &path);
        if let Some(body) = &target.body {
            request = request.json(body);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        ApiResponse::send(request).await
    }
}

/// A token of each caller but nobody, in the order of [`CALLERS`].
async fn caller_tokens(served: &ServingRegistry) -> Vec<Option<String>> {
    let scoped = async |account: &str, role: &str, scope: &str| {
        let new = json!({"account": account, "role": role, "name": "narrow", "scopes": [scope]});
        let made = served
            .post_as_admin("/v1/tokens", &new)
            .await
            .expect_status(201);
        made["secret"].as_str().unwrap().to_owned()
    };
    let mut tokens = Vec::new();
    for caller in CALLERS {
        tokens.push(match caller {
            CallerKind::Nobody => None,
            CallerKind::Reader => Some(served.create_token("reader", "reader").await),
            CallerKind::Stranger => Some(served.create_token("publisher", "publisher").await),
            CallerKind::Owner => Some(served.create_token(OWNER, "publisher").await),
            CallerKind::Curator => Some(served.create_token("curator", "curator").await),
            CallerKind::CuratorReading => Some(scoped("second-curator", "curator", "read").await),
            CallerKind::Auditor => Some(served.create_token("auditor", "auditor").await),
            CallerKind::AuditorDeciding => {
                Some(scoped("second-auditor", "auditor", "decide").await)
            }
            CallerKind::Admin => Some(served.create_token("operator", "admin").await),
            CallerKind::Bootstrap => Some(ADMIN_TOKEN.to_owned()),
        });
    }
    tokens
}

#[tokio::test]
async fn every_operation_is_open_to_its_documented_roles() {
    let hooks =
        "[webhooks]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"";
    let served = RegistrySetup::new().with_config_lines(hooks).start().await;
    let tokens = caller_tokens(&served).await;
    let owner = CALLERS
        .iter()
        .position(|who| *who == CallerKind::Owner)
        .unwrap();
    let registry = TargetFactory {
        served: &served,
        made: AtomicU32::new(0),
        addresses: Mutex::default(),
    };
    let mut wrong = Vec::new();
    for operation in operations() {
        let Some((_, row)) = TABLE.iter().find(|(id, _)| *id == operation.id) else {
            wrong.push(format!("{} is missing in the table", operation.id));
            continue;
        };
        // What is refused or only read leaves the target as it was, so the next caller has the same one.
        let mut unused = None;
        for ((who, token), may) in CALLERS.into_iter().zip(&tokens).zip(row) {
            let token = token.as_deref();
            let is_owner = who == CallerKind::Owner;
            let target = match unused.take_if(|_| !is_owner) {
                Some(target) => target,
                None => registry.target(operation, token.filter(|_| is_owner)).await,
            };
            let answer = registry
                .ask(operation, (&target.path, &target), token)
                .await;
            if !is_as_expected(*may, &answer) {
                let (status, text) = (answer.status, answer.text());
                wrong.push(format!(
                    "{} by {who:?}: {may:?}, not {status}: {text}",
                    operation.id
                ));
            }
            // A role is judged before anything is looked up: it is refused for what does not exist too.
            let missing = filled(operation, UNKNOWN);
            if missing != operation.path {
                // A curator may own a domain, so the role alone does not refuse its credentials either.
                let is_curator_of_none =
                    who == CallerKind::Curator && operation.id.starts_with("source_credential_");
                let may = match who == CallerKind::Stranger || is_curator_of_none {
                    true => row[owner],
                    false => *may,
                };
                let answer = registry.ask(operation, (&missing, &target), token).await;
                if !is_judged_alike(may, &answer) {
                    let (status, text) = (answer.status, answer.text());
                    wrong.push(format!("{missing} by {who:?}: {may:?}, {status}: {text}"));
                }
            }
            let is_unused = !answer.status.is_success() || operation.method == "GET";
            if is_unused && !is_owner {
                unused = Some(target);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The validating proxy has checked each of these responses against the document.
    let checked = served.proxy.as_ref().unwrap().counts();
    for operation in operations() {
        let times: usize = checked
            .get(&operation.id)
            .into_iter()
            .flat_map(|statuses| statuses.values())
            .map(|times| usize::try_from(*times).unwrap())
            .sum();
        assert!(times >= CALLERS.len(), "{}: {times}", operation.id);
    }
}

/// Each operation has one row, and where the document says that no token is needed, nobody needs one. To register, nobody
/// needs one only in an open registry.
#[test]
fn the_table_is_about_the_operations_of_the_document() {
    let documented: BTreeSet<&str> = operations().iter().map(|one| one.id.as_str()).collect();
    let listed: BTreeSet<&str> = TABLE.iter().map(|(id, _)| *id).collect();
    assert_eq!(documented, listed);
    assert_eq!(TABLE.len(), listed.len());
    let document = ApiDocument::current();
    for operation in operations() {
        let method = operation.method.to_lowercase();
        let security = &document.json()["paths"][&operation.path][&method]["security"];
        let is_open = match security.as_array() {
            Some(ways) => ways.contains(&json!({})),
            None => true,
        };
        let (_, row) = TABLE.iter().find(|(id, _)| *id == operation.id).unwrap();
        // An exchange needs a code instead of a token, and these callers have none.
        let needs_no_token = row[0] != SignIn
            || ["domain_register", "login_exchange"].contains(&operation.id.as_str());
        assert_eq!(is_open, needs_no_token, "{}", operation.id);
    }
}

/// Whether a response is what a caller must get.
fn is_as_expected(may: ExpectedResponse, answer: &ApiResponse) -> bool {
    let status = answer.status;
    match may {
        Do => status.is_success(),
        SignIn => {
            answer.headers.contains_key("www-authenticate")
                && is_problem(answer, 401, "unauthenticated")
        }
        Not => is_problem(answer, 403, "forbidden"),
        Clash => status == 409,
        Missing => status == 404,
    }
}

/// Whether a response about nothing is a refusal for a caller that is refused, and none for one who may ask.
fn is_judged_alike(may: ExpectedResponse, answer: &ApiResponse) -> bool {
    match may {
        SignIn | Not => is_as_expected(may, answer),
        Do | Clash | Missing => {
            let status = answer.status.as_u16();
            !matches!(status, 400 | 401 | 403 | 405 | 415) && status < 500
        }
    }
}

fn is_problem(answer: &ApiResponse, status: u16, slug: &str) -> bool {
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    answer.status == status && document["type"] == format!("/problems/{slug}")
}

fn open_policies() -> Value {
    let open = json!({"id": "everybody", "text": "permit (principal, action, resource);"});
    json!({"policies": [open], "reason": "a test"})
}
