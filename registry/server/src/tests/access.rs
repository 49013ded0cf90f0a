//! Authorisation table: one row for each operation of the document, one column for each caller.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::{Clock, SystemClock};
use a2a_registry_domain::role::{Role, Scope};
use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::openapi::operations::{Operation, all as operations};
use crate::tests::{ADMIN, Registry, TestResponse, bearer};

/// A caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Nobody,
    Reader,
    /// A publisher whose the target is not.
    Publisher,
    Curator,
    /// A curator, by a token with the scope `read` alone.
    CuratorReading,
    Auditor,
    /// An admin who is no curator.
    Admin,
    /// The bootstrap token, of an admin who is a curator.
    Bootstrap,
    /// An auditor, by a token with the scope `decide` alone.
    Deciding,
}

use Who::{
    Admin, Auditor, Bootstrap, Curator, CuratorReading, Deciding, Nobody, Publisher, Reader,
};

const ANYONE: &[Who] = &[
    Nobody,
    Reader,
    Publisher,
    Curator,
    CuratorReading,
    Auditor,
    Admin,
    Bootstrap,
    Deciding,
];
const ASKERS: &[Who] = &[Nobody, Publisher, Curator, Admin, Bootstrap];
const ACCOUNTS: &[Who] = &[
    Reader,
    Publisher,
    Curator,
    CuratorReading,
    Auditor,
    Admin,
    Bootstrap,
];
const SIGNED_IN: &[Who] = &[
    Reader,
    Publisher,
    Curator,
    CuratorReading,
    Auditor,
    Admin,
    Bootstrap,
    Deciding,
];
const PUBLISHERS: &[Who] = &[Publisher, Curator, Admin, Bootstrap];

const SEEING: &[Who] = &[Curator, CuratorReading, Auditor, Admin, Bootstrap];
const READERS_OF_EVENTS: &[Who] = &[Curator, Auditor, Admin, Bootstrap];
const CURATORS: &[Who] = &[Curator, Admin, Bootstrap];
const APPROVERS: &[Who] = &[Curator, Bootstrap];
const CURATING_ADMINS: &[Who] = &[Bootstrap];
const PEOPLE: &[Who] = &[Auditor, Admin, Bootstrap];
const ADMINS: &[Who] = &[Admin, Bootstrap];

/// All operations, by id, each with whom it takes. A new operation needs a row here.
pub(super) const TABLE: &[(&str, &[Who])] = &[
    ("agent_card", ANYONE),
    ("own_card", ANYONE),
    ("own_card_0_2", ANYONE),
    ("own_keys", ANYONE),
    ("agent_card_well_known", ANYONE),
    ("agent_card_well_known_0_2", ANYONE),
    ("agent_card_as_well_known", ANYONE),
    ("agent_card_as_well_known_0_2", ANYONE),
    ("agent_deprecate", PUBLISHERS),
    ("agent_undeprecate", PUBLISHERS),
    ("agent_diff", ANYONE),
    ("agent_findings", ANYONE),
    ("agent_lookup", ANYONE),
    ("agent_patch", PUBLISHERS),
    ("agent_recertify", CURATORS),
    ("agent_resume", CURATORS),
    ("agent_retire", PUBLISHERS),
    ("agent_search", ANYONE),
    ("agent_show", ANYONE),
    ("agent_similar", ANYONE),
    ("agent_suggest", ANYONE),
    ("agent_suspend", CURATORS),
    ("agent_versions", ANYONE),
    ("card_lint", ANYONE),
    ("domain_delete", PUBLISHERS),
    ("domain_list", ACCOUNTS),
    ("domain_new_generation", ADMINS),
    ("domain_patch", PUBLISHERS),
    ("domain_recrawl", ASKERS),
    ("domain_register", PUBLISHERS),
    ("domain_register_all", PUBLISHERS),
    ("domain_show", ANYONE),
    ("domain_transfer", PUBLISHERS),
    ("domain_verify", PUBLISHERS),
    ("domain_vouch", ADMINS),
    ("owner_vouch_set", ADMINS),
    ("owner_vouch_end", ADMINS),
    ("event_list", READERS_OF_EVENTS),
    ("key_enrol", PUBLISHERS),
    ("key_withdraw", PUBLISHERS),
    ("source_withdraw", PUBLISHERS),
    ("livez", ANYONE),
    ("metrics", ANYONE),
    ("readyz", ANYONE),
    ("saved_search_list", ACCOUNTS),
    ("saved_search_put", ACCOUNTS),
    ("saved_search_delete", ACCOUNTS),
    ("feed_renew", ACCOUNTS),
    ("feed_revoke", ACCOUNTS),
    ("ard_search", ANYONE),
    ("ard_explore", ANYONE),
    ("ard_list", ANYONE),
    ("ard_retrieve", ANYONE),
    ("ard_collection_search", ANYONE),
    ("ard_collection_explore", ANYONE),
    ("ard_collection_list", ANYONE),
    ("ard_collection_retrieve", ANYONE),
    ("ard_catalog", ANYONE),
    ("ai_catalog", ANYONE),
    ("collection_list", ANYONE),
    ("collection_show", ANYONE),
    ("collection_put", CURATORS),
    ("collection_delete", CURATORS),
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
    ("review_approve", APPROVERS),
    ("review_break_glass", CURATING_ADMINS),
    ("review_list", ACCOUNTS),
    ("review_reject", APPROVERS),
    ("review_show", ACCOUNTS),
    ("review_decide_all", APPROVERS),
    ("approval_withdraw", APPROVERS),
    ("comment_add", PUBLISHERS),
    ("review_patch", CURATORS),
    ("agent_report", ANYONE),
    ("me_waiting", ACCOUNTS),
    ("me_seen", ACCOUNTS),
    ("token_create", ADMINS),
    ("token_list", ACCOUNTS),
    ("token_revoke", ACCOUNTS),
    ("session_list", ACCOUNTS),
    ("session_revoke", ACCOUNTS),
    ("session_show", ACCOUNTS),
    ("me", SIGNED_IN),
    ("account_list", PEOPLE),
    ("account_create", ADMINS),
    ("account_show", PEOPLE),
    ("account_patch", ADMINS),
    ("group_list", PEOPLE),
    ("group_show", PEOPLE),
    ("group_put", ADMINS),
    ("group_delete", ADMINS),
];

/// Well-formed bodies, so that only the caller decides the response.
fn body(id: &str) -> Option<Value> {
    Some(match id {
        "domain_register" => json!({"card_url": "http://10.0.0.1/card.json"}),
        "domain_register_all" => json!({"registrations": [{"domain": "10.0.0.1"}]}),
        "domain_vouch"
        | "domain_new_generation"
        | "agent_recertify"
        | "agent_suspend"
        | "agent_resume"
        | "agent_deprecate"
        | "agent_undeprecate"
        | "agent_retire" => {
            json!({"reason": "a test"})
        }
        "agent_report" => json!({"reason": "a test"}),
        "ard_search" | "ard_collection_search" => json!({"query": {"text": "travel"}}),
        "ard_explore" | "ard_collection_explore" => {
            json!({"resultType": {"facets": [{"field": "tags"}]}})
        }
        "review_decide_all" => {
            json!({"decisions": [{"review": "018f0000-0000-7000-8000-000000000000",
            "digest": "sha256:0", "approve": true, "reason": "a test"}]})
        }
        "comment_add" => json!({"text": "a test"}),
        "me_seen" => json!({"at": "2020-01-01T00:00:00Z"}),
        "review_patch" | "agent_patch" | "domain_patch" | "key_enrol" => json!({}),
        "card_lint" => json!({"name": "Echo"}),
        "domain_transfer" => json!({"account": "another"}),
        "owner_vouch_set" => json!({"account": "another", "reason": "a test"}),
        "review_approve" | "review_reject" | "review_break_glass" => {
            json!({"digest": "sha256:0", "reason": "a test"})
        }
        "token_create" => json!({"account": "another", "role": "publisher", "name": "test"}),
        "account_create" => json!({"name": "somebody", "roles": ["reader"]}),
        "account_patch" => json!({"roles": ["reader"]}),
        "policies_put" | "policies_preview" => {
            json!({"policies": [], "reason": "a test", "allow_no_permit": true})
        }
        "policies_test" => {
            json!({"cases": [{"action": "register", "resource": "example.com", "expect": "allow"}]})
        }
        "waiver_grant" => json!({"policy": "none", "agent": "018f0000-0000-7000-8000-000000000000",
            "digest": format!("sha256:{}", "0".repeat(64)), "reason": "a test", "expires_in_days": 1}),
        "policy_decide" => {
            json!({"action": "invoke", "agent": "018f0000-0000-7000-8000-000000000000"})
        }
        "group_put" => json!({"members": []}),
        "saved_search_put" => json!({"name": "a search", "query": "tag=travel"}),
        "collection_put" => json!({"filter": "tag:finance"}),
        _ => return None,
    })
}

fn path(id: &str, pattern: &str) -> String {
    let none = "018f0000-0000-7000-8000-000000000000";
    let path = pattern
        .replace("{agent}", none)
        .replace("{review}", none)
        .replace("{token}", none)
        .replace("{session}", none)
        .replace("{waiver}", none)
        .replace("{policy}", "everybody")
        .replace("{kid}", "k")
        .replace("{form}", "1.0")
        .replace("{account}", "nobody")
        .replace("{group}", "nothing")
        .replace("{collection}", "nothing")
        .replace("{search}", none)
        .replace("{identifier}", "urn:air:nobody.example:agents:x")
        .replace("{source}", "1")
        .replace("{domain}", "nowhere.example");
    match id {
        "agent_suggest" => format!("{path}?q=a"),
        "agent_lookup" => format!("{path}?url=nowhere.example"),
        _ => path,
    }
}

#[test]
fn every_operation_has_a_row() {
    let documented: BTreeSet<&str> = operations()
        .iter()
        .map(|operation| operation.id.as_str())
        .collect();
    let listed: BTreeSet<&str> = TABLE.iter().map(|(id, _)| *id).collect();
    assert_eq!(documented, listed);
}

/// A request of an operation, well-formed.
pub(super) fn request(operation: &Operation) -> TestRequest {
    let request = TestRequest::default()
        .method(operation.method.parse::<Method>().unwrap())
        .uri(&path(&operation.id, &operation.path));
    match body(&operation.id) {
        Some(body) => request.set_json(body),
        None => request,
    }
}

#[actix_web::test]
async fn each_operation_takes_whom_the_table_says() {
    // Nothing follows the events here, so that nothing but the start notes that the database responds.
    let registry = Registry::with(|config| config.store.stale_limit = 3600).await;
    let callers = [
        (Nobody, None),
        (Reader, Some(registry.token(Role::Reader).await)),
        (Publisher, Some(registry.token(Role::Publisher).await)),
        (Curator, Some(registry.token(Role::Curator).await)),
        (
            CuratorReading,
            Some(registry.scoped(Role::Curator, &[Scope::Read]).await),
        ),
        (Auditor, Some(registry.token(Role::Auditor).await)),
        (Admin, Some(registry.admin_alone().await)),
        (Bootstrap, Some(ADMIN.to_owned())),
        (
            Deciding,
            Some(registry.scoped(Role::Auditor, &[Scope::Decide]).await),
        ),
    ];
    for operation in operations() {
        let takes = TABLE.iter().find(|(id, _)| *id == operation.id).unwrap().1;
        for (caller, token) in &callers {
            let request = match token {
                Some(token) => bearer(request(operation), token),
                None => request(operation),
            };
            let answer = registry.ask(request).await;
            let status = answer.status.as_u16();
            let what = format!("{} as {caller:?}: {answer:?}", operation.id);
            if takes.contains(caller) {
                assert!(!matches!(status, 400 | 401 | 403 | 405 | 415), "{what}");
                // The index falls behind while the table is gone through.
                assert!(status < 500 || operation.id == "readyz", "{what}");
                continue;
            }
            let (expected, slug) = match token {
                None => (401, "unauthenticated"),
                Some(_) => (403, "forbidden"),
            };
            assert_eq!(status, expected, "{what}");
            answer.problem(expected, slug);
        }
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug)]
struct MovedClock(Mutex<OffsetDateTime>);

impl Clock for MovedClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }
}

/// Tokens that have ended in any way, even of an admin, are refused by every operation, those that need none included.
#[actix_web::test]
async fn a_token_that_has_ended_is_refused_everywhere() {
    let clock = Arc::new(MovedClock(Mutex::new(SystemClock.now())));
    let registry = Registry::by(clock.clone(), |_| {}).await;
    let expired = registry.admin_alone().await;
    *clock.0.lock().unwrap() += Duration::from_secs(90 * 24 * 3600);
    let revoked = registry.token(Role::Curator).await;
    let list = registry
        .ask(bearer(TestRequest::get().uri("/v1/tokens"), ADMIN))
        .await;
    let id = list.json()["tokens"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/tokens/{id}");
    let gone = registry
        .ask(bearer(TestRequest::delete().uri(&path), ADMIN))
        .await;
    assert_eq!(gone.status, 204);
    let disabled = registry.token(Role::Auditor).await;
    let patch = TestRequest::patch()
        .uri("/v1/accounts/auditor")
        .set_json(json!({"disabled": true}));
    assert_eq!(registry.ask(bearer(patch, ADMIN)).await.status, 200);
    for operation in operations()
        .iter()
        .filter(|operation| reads_tokens(&operation.id))
    {
        for token in [&expired, &revoked, &disabled] {
            let answer = registry.ask(bearer(request(operation), token)).await;
            unauthenticated(operation, &answer);
        }
    }
}

/// Whether an operation looks at who asks: the state of the process and what is published are the same for everybody.
fn reads_tokens(id: &str) -> bool {
    !matches!(
        id,
        "livez"
            | "readyz"
            | "metrics"
            | "own_card"
            | "own_card_0_2"
            | "own_keys"
            | "ard_catalog"
            | "ai_catalog"
    )
}

/// A token was refused, in the form of the dialect.
fn unauthenticated(operation: &Operation, answer: &TestResponse) {
    if operation.path.starts_with("/ard/") {
        assert_eq!(answer.status, 401, "{answer:?}");
        assert_eq!(answer.json()["errorCode"], "UNAUTHENTICATED");
        return;
    }
    answer.problem(401, "unauthenticated");
}

/// On the paths of cards a header for another host counts as none.
#[actix_web::test]
async fn a_foreign_authorization_on_card_paths_counts_as_none() {
    let registry = Registry::new().await;
    let cards = operations()
        .iter()
        .filter(|operation| operation.id.starts_with("agent_card"));
    for operation in cards {
        let bare = registry.ask(request(operation)).await;
        for foreign in [
            "Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln",
            "Basic YTpi",
            "DPoP a2aq_x",
            "Bearer",
            "nonsense",
        ] {
            let asked = request(operation).insert_header(("authorization", foreign));
            let answer = registry.ask(asked).await;
            assert_eq!(answer.status, bare.status, "{} {foreign}", operation.id);
            assert_ne!(answer.status, 401);
        }
    }
}

#[actix_web::test]
async fn a_bad_token_is_refused_everywhere() {
    let registry = Registry::new().await;
    for operation in operations()
        .iter()
        .filter(|operation| reads_tokens(&operation.id))
    {
        let own = [
            "Bearer a2ar_nonsense",
            "Basic a2ar_nonsense",
            "a2ar_nonsense",
        ];
        let foreign = ["Bearer nonsense", "Bearer ", "Basic YTpi", "Bearer"];
        // The card routes treat an `Authorization` that was meant for another host as none.
        let foreign = match operation.id.starts_with("agent_card") {
            true => &[],
            false => &foreign[..],
        };
        for wrong in own.iter().chain(foreign) {
            let mut request = TestRequest::default()
                .method(operation.method.parse::<Method>().unwrap())
                .uri(&path(&operation.id, &operation.path))
                .insert_header(("authorization", *wrong));
            if let Some(body) = body(&operation.id) {
                request = request.set_json(body);
            }
            let answer = registry.ask(request).await;
            unauthenticated(operation, &answer);
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
}
