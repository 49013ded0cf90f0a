//! Authorisation: every operation of the document, called with every role (docs/governance.md#who-may-do-what).

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use a2a_registry_api::{DomainView, Hit};
use a2a_registry_server::openapi::operations::{Operation, all as operations};
use reqwest::RequestBuilder;
use sea_orm::{ConnectionTrait as _, Database};
use serde_json::{Value, json};

use super::{filled, method};
use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::serving::ServingRegistry;
use crate::support::setup::{ADMIN, Setup};

/// The account that owns targets.
const OWNER: &str = "owner";

/// The expected response to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
    /// 2xx: done.
    Do,
    /// 401: a token is needed.
    SignIn,
    /// 403: another role is needed.
    Not,
    /// 409: permitted, but impossible for this target.
    Clash,
    /// 404: it belongs to another account.
    Missing,
}
use May::{Clash, Do, Missing, Not, SignIn};

/// Anyone, a reader, a publisher who has registered nothing, a curator, an auditor, an admin who is no curator, and one who
/// is: in this order.
type Row = [May; 7];

const ANYONE: Row = [Do; 7];
const ASKERS: Row = [Do, Not, Do, Do, Not, Do, Do];
const ACCOUNTS: Row = [SignIn, Do, Do, Do, Do, Do, Do];
const PUBLISHERS: Row = [SignIn, Not, Do, Do, Not, Do, Do];
const SEEING: Row = [SignIn, Not, Not, Do, Do, Do, Do];
const CURATORS: Row = [SignIn, Not, Not, Do, Not, Do, Do];
const APPROVERS: Row = [SignIn, Not, Not, Do, Not, Not, Do];
const PEOPLE: Row = [SignIn, Not, Not, Not, Do, Do, Do];
/// Of the admin alone, who has made it.
const OTHERS: Row = [SignIn, Missing, Missing, Missing, Missing, Missing, Do];
const ADMINS: Row = [SignIn, Not, Not, Not, Not, Do, Do];

/// What each may do.
const TABLE: &[(&str, Row)] = &[
    ("own_card", ANYONE),
    ("own_card_0_2", ANYONE),
    ("own_keys", ANYONE),
    ("agent_search", ANYONE),
    ("agent_suggest", ANYONE),
    ("agent_lookup", ANYONE),
    ("agent_show", ANYONE),
    ("agent_card", ANYONE),
    ("agent_card_well_known", ANYONE),
    ("agent_card_well_known_0_2", ANYONE),
    ("agent_card_as_well_known", ANYONE),
    ("agent_card_as_well_known_0_2", ANYONE),
    ("agent_versions", ANYONE),
    ("agent_diff", ANYONE),
    ("agent_findings", ANYONE),
    ("agent_similar", ANYONE),
    ("agent_suspend", CURATORS),
    ("agent_recertify", CURATORS),
    ("agent_resume", CURATORS),
    ("agent_deprecate", CURATORS),
    ("agent_undeprecate", CURATORS),
    ("agent_retire", CURATORS),
    ("agent_patch", CURATORS),
    ("card_lint", ANYONE),
    ("domain_register", PUBLISHERS),
    // Each registration has a result of its own.
    ("domain_register_all", PUBLISHERS),
    ("domain_list", ACCOUNTS),
    ("domain_show", ANYONE),
    ("domain_recrawl", ASKERS),
    ("domain_vouch", ADMINS),
    ("owner_vouch_set", ADMINS),
    ("owner_vouch_end", ADMINS),
    // An address on loopback has no name to prove.
    (
        "domain_verify",
        [SignIn, Not, Clash, Clash, Not, Clash, Clash],
    ),
    ("domain_transfer", CURATORS),
    ("domain_patch", CURATORS),
    ("domain_new_generation", ADMINS),
    ("key_enrol", CURATORS),
    ("key_withdraw", CURATORS),
    ("domain_delete", CURATORS),
    // The admin has registered the source, and its agent is approved.
    (
        "source_withdraw",
        [SignIn, Not, Missing, Missing, Not, Missing, Clash],
    ),
    ("review_list", ACCOUNTS),
    // Of an agent that the admin has registered.
    ("review_show", [SignIn, Missing, Missing, Do, Do, Do, Do]),
    // Each decision has a result of its own.
    ("review_decide_all", APPROVERS),
    // Nobody has approved it yet.
    (
        "approval_withdraw",
        [SignIn, Not, Not, Clash, Not, Not, Clash],
    ),
    ("comment_add", [SignIn, Not, Missing, Do, Not, Do, Do]),
    ("review_patch", CURATORS),
    ("agent_report", ANYONE),
    ("me_waiting", ACCOUNTS),
    ("me_seen", ACCOUNTS),
    ("review_approve", APPROVERS),
    // Only an admin who is a curator too, who may approve it anyway.
    (
        "review_break_glass",
        [SignIn, Not, Not, Not, Not, Not, Clash],
    ),
    ("review_reject", APPROVERS),
    ("event_list", SEEING),
    ("peer_list", SEEING),
    ("policies_show", SEEING),
    ("policies_put", ADMINS),
    ("policy_history", SEEING),
    ("policy_decide", ANYONE),
    ("policies_preview", ADMINS),
    ("policies_test", SEEING),
    ("policy_dry_run", SEEING),
    ("waiver_list", SEEING),
    ("waiver_grant", APPROVERS),
    ("waiver_end", CURATORS),
    ("reindex", ADMINS),
    // Of another account.
    ("token_create", ADMINS),
    ("token_list", ACCOUNTS),
    (
        "token_revoke",
        [SignIn, Missing, Missing, Missing, Missing, Do, Do],
    ),
    ("session_list", ACCOUNTS),
    // There is none with that id.
    (
        "session_show",
        [SignIn, Missing, Missing, Missing, Missing, Missing, Missing],
    ),
    (
        "session_revoke",
        [SignIn, Missing, Missing, Missing, Missing, Missing, Missing],
    ),
    ("me", ACCOUNTS),
    ("account_list", PEOPLE),
    ("account_create", ADMINS),
    ("account_show", PEOPLE),
    ("account_patch", ADMINS),
    ("saved_search_list", ACCOUNTS),
    ("saved_search_put", ACCOUNTS),
    ("saved_search_delete", OTHERS),
    ("feed_renew", ACCOUNTS),
    ("feed_revoke", ACCOUNTS),
    ("ard_search", ANYONE),
    ("ard_explore", ANYONE),
    ("ard_list", ANYONE),
    ("ard_retrieve", [Missing; 7]),
    ("ard_collection_search", ANYONE),
    ("ard_collection_explore", ANYONE),
    ("ard_collection_list", ANYONE),
    ("ard_collection_retrieve", [Missing; 7]),
    ("ard_catalog", ANYONE),
    ("ai_catalog", ANYONE),
    ("collection_list", ANYONE),
    ("collection_show", ANYONE),
    ("collection_put", CURATORS),
    ("collection_delete", CURATORS),
    ("group_list", PEOPLE),
    ("group_show", PEOPLE),
    ("group_put", ADMINS),
    ("group_delete", ADMINS),
    ("livez", ANYONE),
    ("readyz", ANYONE),
    ("metrics", ANYONE),
];

/// What a publisher may other than [`TABLE`] says of a stranger: its domain is proved for it, or it has registered the card that
/// waits.
const OWNERS: &[(&str, May)] = &[
    ("agent_deprecate", Do),
    ("agent_undeprecate", Do),
    ("agent_retire", Do),
    ("agent_patch", Do),
    ("domain_patch", Do),
    ("domain_delete", Do),
    ("domain_transfer", Do),
    ("key_enrol", Do),
    ("key_withdraw", Do),
    ("review_show", Do),
    ("comment_add", Do),
];

/// A public key, that of RFC 8037 appendix A.2.
fn key() -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
}

/// Makes the target of an operation, anew for each caller, so that no act affects another one.
struct Stage<'a> {
    served: &'a ServingRegistry,
    /// The token of the publisher whose the targets are, if they are anybody's but the admin's.
    owner: Option<&'a str>,
    made: AtomicU32,
    /// Of every origin so far. The system gives the port of one that has ended to a later one, whose domain the registry
    /// then has, decided on, already.
    addresses: Mutex<BTreeSet<SocketAddr>>,
}

/// An agent that everyone sees, and the origin of its card.
struct Listed {
    origin: Origin,
    hit: Hit,
}

impl Stage<'_> {
    fn origin(&self) -> (Origin, String) {
        let origin = loop {
            let origin = Origin::start();
            if self.addresses.lock().unwrap().insert(origin.address()) {
                break origin;
            }
        };
        let skill = format!("skill{}", self.made.fetch_add(1, Ordering::Relaxed));
        origin.answer("/a.json", OriginReply::json(card("Echo", &skill)));
        (origin, skill)
    }

    /// A waiver of a policy that forbids, which this has put in force, for what an agent shows.
    async fn waiver(&self, agent: &Listed) -> Value {
        let open = json!({"id": "everybody", "text": "permit (principal, action, resource);"});
        let forbids =
            "forbid (principal, action, resource) when { resource.tags.contains(\"draft\") };";
        let new =
            json!({"policies": [open, {"id": "drafts", "text": forbids}], "reason": "a test"});
        let put = self.served.as_admin(reqwest::Method::PUT, "/v1/policies");
        assert_eq!(put.json(&new).send().await.unwrap().status(), 202);
        json!({"policy": "drafts", "agent": agent.hit.summary.id,
            "digest": agent.hit.summary.card_digest, "reason": "a test", "expires_in_days": 1})
    }

    /// Has the owner have proved a domain: an address on loopback has no name that anybody could prove.
    async fn give_to_owner(&self, domain: &str) {
        let file = self.served.setup.data().join("registry.sqlite");
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

    async fn listed(&self) -> Listed {
        let (origin, skill) = self.origin();
        let body = json!({"card_url": origin.url("/a.json"), "approve": true});
        let request = self
            .served
            .as_admin(reqwest::Method::POST, "/v1/domains")
            .json(&body);
        assert_eq!(request.send().await.unwrap().status(), 202);
        let hit = self.served.found(&format!("skill={skill}")).await;
        if self.owner.is_some() {
            self.give_to_owner(&origin.address().to_string()).await;
        }
        Listed { origin, hit }
    }

    /// A review that waits for a decision: its id and its subject.
    async fn review(&self) -> (String, String) {
        let (origin, _) = self.origin();
        let body = json!({"card_url": origin.url("/a.json")});
        let register = self.served.request(reqwest::Method::POST, "/v1/domains");
        let register = register
            .bearer_auth(self.owner.unwrap_or(ADMIN))
            .json(&body);
        assert_eq!(register.send().await.unwrap().status(), 202);
        let domain = origin.address().to_string();
        let review = self
            .served
            .open_review(|review| review.domain == domain)
            .await;
        (review.id.to_string(), review.digest)
    }

    async fn token_id(&self) -> String {
        let body = json!({"account": "spare", "role": "publisher", "name": "spare"});
        let request = self
            .served
            .as_admin(reqwest::Method::POST, "/v1/tokens")
            .json(&body);
        let made: Value = request.send().await.unwrap().json().await.unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    /// A request that succeeds for permitted callers, and what must stay alive until then.
    async fn request(&self, operation: &Operation) -> (RequestBuilder, Option<Listed>) {
        let (mut parameters, mut body, mut listed) = (Vec::new(), None, None);
        let act = json!({"reason": "a test"});
        if operation.path.contains("{agent}") || operation.path.contains("{domain}") {
            let made = self.listed().await;
            parameters.push(("agent", made.hit.summary.id.to_string()));
            parameters.push(("domain", made.origin.address().to_string()));
            listed = Some(made);
        } else if operation.path.contains("{review}") {
            let (id, digest) = self.review().await;
            parameters.push(("review", id));
            body = Some(json!({"digest": digest, "reason": "a test"}));
        } else if operation.path.contains("{token}") {
            parameters.push(("token", self.token_id().await));
        } else if operation.path.contains("{session}") {
            let id = "018f0000-0000-7000-8000-000000000000";
            parameters.push(("session", id.to_owned()));
        } else if operation.path.contains("{group}") {
            let name = format!("group{}", self.made.fetch_add(1, Ordering::Relaxed));
            let path = format!("/v1/groups/{name}");
            let members = json!({"members": ["publisher"]});
            let put = self.served.as_admin(reqwest::Method::PUT, &path);
            assert_eq!(put.json(&members).send().await.unwrap().status(), 200);
            parameters.push(("group", name));
        } else if operation.path.contains("{search}") {
            let content = json!({"name": "a test", "query": "tag=travel"});
            let saved = self.served.post("/v1/searches", &content).await.expect(201);
            let id = saved["id"].as_str().unwrap().to_owned();
            parameters.push(("search", id));
        } else if operation.path.contains("{collection}") {
            let name = format!("made-{}", self.made.fetch_add(1, Ordering::Relaxed));
            let path = format!("/v1/collections/{name}");
            let content = json!({"filter": "tag:finance"});
            let put = self.served.as_admin(reqwest::Method::PUT, &path);
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
            | "domain_new_generation" => body = Some(act),
            "agent_patch" => body = Some(json!({"visibility": "public"})),
            "agent_report" => body = Some(json!({"reason": "a test"})),
            "comment_add" => body = Some(json!({"text": "a test"})),
            "review_patch" => body = Some(json!({"due": ""})),
            "me_seen" => body = Some(json!({"at": "2020-01-01T00:00:00Z"})),
            "review_decide_all" => {
                let (id, digest) = self.review().await;
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
                let put = self.served.as_admin(reqwest::Method::PUT, &path);
                assert_eq!(put.json(&content).send().await.unwrap().status(), 200);
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
                    .as_admin(reqwest::Method::PUT, &path)
                    .json(&key());
                assert_eq!(named.send().await.unwrap().status(), 200);
            }
            "source_withdraw" => {
                let path = format!("/v1/domains/{}", parameters[1].1);
                let shown = self.served.as_admin(reqwest::Method::GET, &path);
                let shown: DomainView = shown.send().await.unwrap().json().await.unwrap();
                parameters.push(("source", shown.sources[0].id.clone()));
            }
            "agent_resume" => {
                let path = format!("/v1/agents/{}:suspend", parameters[0].1);
                let suspended = self
                    .served
                    .as_admin(reqwest::Method::POST, &path)
                    .json(&act);
                assert_eq!(suspended.send().await.unwrap().status(), 200);
                body = Some(act);
            }
            "agent_undeprecate" => {
                let path = format!("/v1/agents/{}:deprecate", parameters[0].1);
                let deprecated = self
                    .served
                    .as_admin(reqwest::Method::POST, &path)
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
            "saved_search_put" => body = Some(json!({"name": "mine", "query": "tag=travel"})),
            "collection_put" => body = Some(json!({"filter": "tag:travel"})),
            "policies_put" | "policies_preview" => {
                let open =
                    json!({"id": "everybody", "text": "permit (principal, action, resource);"});
                body = Some(json!({"policies": [open], "reason": "a test"}));
            }
            "policies_test" => {
                let case =
                    json!({"action": "register", "resource": "example.com", "expect": "allow"});
                body = Some(json!({"cases": [case]}));
            }
            "policy_dry_run" => parameters.push(("policy", "everybody".to_owned())),
            "waiver_grant" => {
                let made = self.listed().await;
                body = Some(self.waiver(&made).await);
                listed = Some(made);
            }
            "waiver_end" => {
                let made = self.listed().await;
                let new = self.waiver(&made).await;
                let granted = self.served.as_admin(reqwest::Method::POST, "/v1/waivers");
                let granted = granted.json(&new).send().await.unwrap();
                let granted: Value = granted.json().await.unwrap();
                parameters.push(("waiver", granted["id"].as_str().unwrap().to_owned()));
                listed = Some(made);
            }
            "policy_decide" => {
                let made = self.listed().await;
                body = Some(json!({"action": "invoke", "agent": made.hit.summary.id}));
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
                let made = self.listed().await;
                query = format!("?url={}", made.origin.url("/a.json"));
                listed = Some(made);
            }
            _ => {}
        }
        let parameters: Vec<_> = parameters
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let path = format!("{}{query}", filled(operation, &parameters));
        let request = self.served.request(method(operation), &path);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        (request, listed)
    }
}

#[tokio::test]
async fn every_operation_is_open_to_its_documented_roles() {
    let served = Setup::new().start().await;
    let mut tokens = Vec::new();
    for role in ["reader", "publisher", "curator", "auditor", "admin"] {
        let account = if role == "admin" { "operator" } else { role };
        tokens.push(served.token(account, role).await);
    }
    let mut callers: Vec<Option<&str>> = vec![None];
    callers.extend(tokens.iter().map(|token| Some(&**token)));
    callers.push(Some(ADMIN));
    let stage = Stage {
        served: &served,
        owner: None,
        made: AtomicU32::new(0),
        addresses: Mutex::default(),
    };
    let mut wrong = Vec::new();
    for operation in operations() {
        let row = TABLE.iter().find(|(id, _)| *id == operation.id);
        let Some((_, expected)) = row else {
            wrong.push(format!("{} is missing in the table", operation.id));
            continue;
        };
        // What is refused or only read leaves the target as it was, so the next caller has the same one.
        let mut target = None;
        for (caller, may) in callers.iter().copied().zip(expected) {
            let made = match target.take() {
                Some(made) => made,
                None => stage.request(operation).await,
            };
            let mut request = made.0.try_clone().unwrap();
            if let Some(token) = caller {
                request = request.bearer_auth(token);
            }
            let answer = request.send().await.unwrap();
            if !answer.status().is_success() || operation.method.eq_ignore_ascii_case("get") {
                target = Some(made);
            }
            if !is_as_expected(*may, &answer) {
                let (status, said) = (answer.status(), answer.text().await.unwrap_or_default());
                let who = callers.iter().position(|other| *other == caller);
                wrong.push(format!(
                    "{} by {who:?}: {may:?}, not {status}: {said}",
                    operation.id
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Each of these responses was checked against the document by the tap.
    let checked = served.tap.as_ref().unwrap().tally();
    for operation in operations() {
        let times: u64 = checked
            .get(&operation.id)
            .into_iter()
            .flat_map(|statuses| statuses.values())
            .sum();
        assert!(times >= 7, "{}: {times}", operation.id);
    }
    for (id, _) in TABLE {
        assert!(
            operations().iter().any(|operation| operation.id == *id),
            "{id} is in the table, but not in the document"
        );
    }
}

/// Whether a response is what a caller must get.
fn is_as_expected(may: May, answer: &reqwest::Response) -> bool {
    let status = answer.status();
    match may {
        Do => status.is_success(),
        SignIn => status == 401 && answer.headers().contains_key("www-authenticate"),
        Not => status == 403,
        Clash => status == 409,
        Missing => status == 404,
    }
}

/// The column of the publisher whose the target is.
#[tokio::test]
async fn an_owner_may_what_a_stranger_may_and_what_is_its_own() {
    let served = Setup::new().start().await;
    served.token("operator", "admin").await;
    for role in ["reader", "publisher", "curator"] {
        served.token(role, role).await;
    }
    let token = served.token(OWNER, "publisher").await;
    let stage = Stage {
        served: &served,
        owner: Some(&token),
        made: AtomicU32::new(0),
        addresses: Mutex::default(),
    };
    let mut wrong = Vec::new();
    for operation in operations() {
        let row = TABLE.iter().find(|(id, _)| *id == operation.id);
        let own = OWNERS.iter().find(|(id, _)| *id == operation.id);
        // The place of the publisher who has registered nothing.
        let may = own.map_or(row.unwrap().1[2], |(_, may)| *may);
        let (request, _listed) = stage.request(operation).await;
        let answer = request.bearer_auth(&token).send().await.unwrap();
        if !is_as_expected(may, &answer) {
            let (status, said) = (answer.status(), answer.text().await.unwrap_or_default());
            wrong.push(format!("{}: {may:?}, not {status}: {said}", operation.id));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An unknown token is refused even for operations that need none.
#[tokio::test]
async fn an_unknown_token_is_refused_everywhere() {
    let served = Setup::new().start().await;
    for path in [
        "/v1/agents",
        "/v1/agents:suggest?q=a",
        "/v1/agents:lookup?url=https://a.example/",
        "/v1/agents/01890a5d-ac96-774b-bcce-b302099a8057",
        "/v1/domains",
        "/v1/domains/a.example",
        "/v1/reviews",
        "/v1/events",
        "/v1/tokens",
        "/v1/sessions",
        "/v1/me",
        "/v1/accounts",
        "/v1/groups",
    ] {
        let request = served.request(reqwest::Method::GET, path);
        let answer = request.bearer_auth("nobody-has-this-one").send().await;
        assert_eq!(answer.unwrap().status(), 401, "{path}");
    }
}
