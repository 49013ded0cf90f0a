//! Access tokens on the API.

use a2a_crawler::{Clock as _, SystemClock};
use reqwest::Method;
use serde_json::{Value, json};

use super::{account, patch, with_corp};
use crate::support::cards::card_json;
use crate::support::identity_provider::{AUDIENCE, IdentityProvider};
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::{Program, join_lines};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// The status and the body of a GET with this bearer token.
async fn get_with_token(registry: &ServingRegistry, token: &str, path: &str) -> (u16, Value) {
    let request = registry.request(Method::GET, path).bearer_auth(token);
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or(Value::Null))
}

/// The card of an agent that does not exist.
const CARD: &str = "/agents/018f0000-0000-7000-8000-000000000000/.well-known/agent-card.json";

fn claims(provider: &IdentityProvider) -> Value {
    let now = SystemClock.now().unix_timestamp();
    json!({
        "iss": provider.issuer, "aud": AUDIENCE, "sub": "pipeline", "client_id": "pipeline",
        "iat": now - 5, "exp": now + 300, "groups": ["robots"],
    })
}

#[tokio::test]
async fn a_service_is_an_account_by_its_access_token() {
    let (corp, registry) = with_corp().await;
    let token = corp.service_token("pipeline").await;
    let (status, me) = get_with_token(&registry, &token, "/v1/me").await;
    assert_eq!(status, 200, "{me}");
    assert_eq!(me["name"], "pipeline@corp");
    assert_eq!(me["roles"], json!(["reader", "publisher"]));
    assert_eq!(me["issuer"], json!(corp.issuer));
    assert_eq!(me["token"], Value::Null);
    let group = json!([{"origin": corp.issuer, "name": "robots"}]);
    assert_eq!(me["groups"], group);
    assert_eq!(me["scopes"], json!(["read", "register"]));
    assert_eq!(get_with_token(&registry, &token, "/v1/events").await.0, 403);
    let mut command = registry.anonymous_command(&["whoami"]);
    command.args(["--token", &token]);
    let printed = join_lines(&Program::run(command).await.stdout);
    assert!(printed.contains("an access token of http://"), "{printed}");
    // The same account by the next token, and once only.
    let again = corp.service_token("pipeline").await;
    assert_ne!(again, token);
    assert_eq!(
        get_with_token(&registry, &again, "/v1/me").await.1["id"],
        me["id"]
    );
    // Who is not let in is not, and no account is made.
    let stranger = corp.service_token("stranger").await;
    let (status, problem) = get_with_token(&registry, &stranger, "/v1/me").await;
    assert_eq!(status, 403, "{problem}");
    let none = registry.get_as_admin("/v1/accounts/stranger@corp").await;
    assert_eq!(none.status, 404);
    registry.stop().await;
}

#[tokio::test]
async fn a_bad_access_token_is_refused_everywhere_and_a_foreign_one_is_none() {
    let (corp, registry) = with_corp().await;
    let typ = json!({"typ": "at+jwt"});
    let good = corp.sign_token("key", typ.clone(), &claims(&corp)).await;
    assert_eq!(get_with_token(&registry, &good, "/v1/me").await.0, 200);
    let with = |name: &str, value: Value| {
        let mut claims = claims(&corp);
        claims[name] = value;
        claims
    };
    let now = SystemClock.now().unix_timestamp();
    let plain = claims(&corp);
    let mut bad = Vec::new();
    for (header, claims) in [
        (typ.clone(), with("aud", json!("https://other.example"))),
        (typ.clone(), with("exp", json!(now - 120))),
        (typ.clone(), with("nbf", json!(now + 600))),
        (typ.clone(), with("iat", json!(now + 600))),
        (typ.clone(), with("sub", Value::Null)),
        (typ.clone(), with("cnf", json!({"jkt": "a key"}))),
        (json!({"typ": "JWT"}), plain.clone()),
        (json!({}), plain.clone()),
        (json!({"typ": "at+jwt", "kid": "nobody's"}), plain.clone()),
    ] {
        bad.push(corp.sign_token("key", header, &claims).await);
    }
    for (by, alg) in [("none", "none"), ("hmac", "HS256"), ("hmac", "RS256")] {
        let header = json!({"typ": "at+jwt", "alg": alg, "kid": "one"});
        bad.push(corp.sign_token(by, header, &plain).await);
    }
    let mut changed: Vec<&str> = good.split('.').collect();
    let other = corp
        .sign_token("key", typ.clone(), &with("sub", json!("ann")))
        .await;
    changed[1] = other.split('.').nth(1).unwrap();
    bad.push(changed.join("."));
    // Even where no token is needed, and where a foreign one counts as none.
    for token in &bad {
        for path in ["/v1/me", "/v1/agents", CARD] {
            let (status, problem) = get_with_token(&registry, token, path).await;
            assert_eq!(status, 401, "{path} {token}: {problem}");
        }
    }
    // Of an issuer that nobody has configured.
    let foreign = with("iss", json!("https://elsewhere.example"));
    let foreign = corp.sign_token("key", typ, &foreign).await;
    assert_eq!(get_with_token(&registry, &foreign, "/v1/me").await.0, 401);
    assert_eq!(get_with_token(&registry, &foreign, CARD).await.0, 404);
    registry.stop().await;
}

#[tokio::test]
async fn changes_here_act_at_the_next_request_and_changes_at_the_provider_at_the_next_token() {
    let (corp, registry) = with_corp().await;
    let token = corp.service_token("pipeline").await;
    let roles =
        async |token: &str| get_with_token(&registry, token, "/v1/me").await.1["roles"].clone();
    assert_eq!(roles(&token).await, json!(["reader", "publisher"]));
    corp.set_parts(json!({"services": {"pipeline": {"groups": ["robots", "leads"]}}}))
        .await;
    assert_eq!(roles(&token).await, json!(["reader", "publisher"]));
    let newer = corp.service_token("pipeline").await;
    let grown = json!(["reader", "publisher", "curator"]);
    assert_eq!(roles(&newer).await, grown);
    assert_eq!(get_with_token(&registry, &newer, "/v1/events").await.0, 200);
    // What an admin sets holds, whatever the provider says.
    patch(&registry, "pipeline@corp", json!({"roles": ["reader"]})).await;
    assert_eq!(roles(&newer).await, json!(["reader"]));
    assert_eq!(get_with_token(&registry, &newer, "/v1/events").await.0, 403);
    corp.set_parts(json!({"services": {"pipeline": {"groups": ["robots"]}}}))
        .await;
    let newest = corp.service_token("pipeline").await;
    assert_eq!(roles(&newest).await, json!(["reader"]));
    let group = json!([{"origin": corp.issuer, "name": "robots"}]);
    assert_eq!(account(&registry, "pipeline@corp").await["groups"], group);
    patch(&registry, "pipeline@corp", json!({"disabled": true})).await;
    for token in [&token, &newest, &corp.service_token("pipeline").await] {
        assert_eq!(get_with_token(&registry, token, "/v1/me").await.0, 401);
        assert_eq!(get_with_token(&registry, token, "/v1/agents").await.0, 401);
    }
    patch(&registry, "pipeline@corp", json!({"disabled": false})).await;
    assert_eq!(get_with_token(&registry, &newest, "/v1/me").await.0, 200);
    registry.stop().await;
}

#[tokio::test]
async fn keys_are_rotated_under_way_and_go_on_while_the_provider_is_away() {
    let (corp, registry) = with_corp().await;
    let before = corp.service_token("pipeline").await;
    assert_eq!(get_with_token(&registry, &before, "/v1/me").await.0, 200);
    corp.rotate_key("two").await;
    let after = corp.service_token("pipeline").await;
    assert_eq!(get_with_token(&registry, &after, "/v1/me").await.0, 200);
    assert_eq!(get_with_token(&registry, &before, "/v1/me").await.0, 200);
    let away = corp.stop().await;
    for token in [&before, &after] {
        assert_eq!(get_with_token(&registry, token, "/v1/me").await.0, 200);
    }
    let corp = away.restart().await;
    let back = corp.service_token("pipeline").await;
    assert_eq!(get_with_token(&registry, &back, "/v1/me").await.0, 200);
    registry.stop().await;
}

/// A provider without `require`, and two that give the same service other roles.
#[tokio::test]
async fn providers_are_kept_apart() {
    let setup = RegistrySetup::new();
    let corp = IdentityProvider::start(setup.scratch_folder(), "corp").await;
    let open = IdentityProvider::start(setup.scratch_folder(), "open").await;
    let closed = IdentityProvider::start(setup.scratch_folder(), "closed").await;
    for provider in [&corp, &open, &closed] {
        let services = json!({"pipeline": {"groups": ["leads"], "robot": true}});
        provider.set_parts(json!({"services": services})).await;
    }
    let robots = "require = { claim = \"robot\", values = [\"true\"] }";
    let leads = format!("{robots}\nroles = {{ leads = [\"curator\"] }}");
    let registry = setup
        .allow_loopback_identity()
        .add_identity_provider("corp", &corp, &leads)
        .add_identity_provider("open", &open, robots)
        .add_identity_provider("closed", &closed, "")
        .start()
        .await;
    let of_corp = corp.service_token("pipeline").await;
    let of_open = open.service_token("pipeline").await;
    let mine = get_with_token(&registry, &of_corp, "/v1/me").await.1;
    let other = get_with_token(&registry, &of_open, "/v1/me").await.1;
    assert_eq!(mine["roles"], json!(["reader", "curator"]));
    assert_eq!(other["roles"], json!(["reader"]));
    assert_ne!(mine["id"], other["id"]);
    assert_eq!(other["groups"][0]["origin"], json!(open.issuer));
    let nobody = closed.service_token("pipeline").await;
    let (status, problem) = get_with_token(&registry, &nobody, "/v1/me").await;
    assert_eq!(status, 403, "{problem}");
    // A token of one with the keys of another is one of neither.
    let mut claims = claims(&corp);
    claims["iss"] = json!(open.issuer);
    let mixed = corp
        .sign_token("key", json!({"typ": "at+jwt"}), &claims)
        .await;
    assert_eq!(get_with_token(&registry, &mixed, "/v1/me").await.0, 401);
    registry.stop().await;
}

/// The group of one name at another provider, and the one that an admin has made, are other groups.
#[tokio::test]
async fn a_policy_about_a_group_of_one_provider_is_about_no_other() {
    let setup = RegistrySetup::new().approve_all();
    let corp = IdentityProvider::start(setup.scratch_folder(), "corp").await;
    let open = IdentityProvider::start(setup.scratch_folder(), "open").await;
    let require = "require = { claim = \"groups\", values = [\"leads\"] }";
    for provider in [&corp, &open] {
        let services = json!({"pipeline": {"groups": ["leads"]}});
        provider.set_parts(json!({"services": services})).await;
    }
    let registry = setup
        .allow_loopback_identity()
        .add_identity_provider("corp", &corp, require)
        .add_identity_provider("open", &open, require)
        .start()
        .await;
    let origin = Origin::start();
    origin.set_reply("/card.json", OriginReply::json(card_json("Echo", "repeat")));
    registry.register(&origin.url("/card.json")).await;
    registry.wait_for_hit("skill=repeat").await;
    let of_corp = corp.service_token("pipeline").await;
    let of_open = open.service_token("pipeline").await;
    let total =
        async |token: &str| get_with_token(&registry, token, "/v1/agents").await.1["total"].clone();
    assert_eq!(
        (total(&of_corp).await, total(&of_open).await),
        (json!(1), json!(1))
    );
    let group = format!("{}#leads", corp.issuer);
    let policies = json!({"reason": "a test", "policies": [
        {"id": "all", "text": "permit (principal, action, resource);"},
        {"id": "leads", "text": format!(
            "forbid (principal in Group::\"{group}\", action == Action::\"discover\", resource);"
        )},
        {"id": "own", "text": "forbid (principal in Group::\"leads\", action, resource);"},
    ]});
    let put = registry
        .admin_request(Method::PUT, "/v1/policies")
        .json(&policies);
    assert!(put.send().await.unwrap().status().is_success());
    eventually("the policy decides", || async {
        (total(&of_corp).await == 0).then_some(())
    })
    .await;
    assert_eq!(total(&of_open).await, 1);
    registry.stop().await;
}
