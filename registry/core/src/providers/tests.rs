//! Tests of the validation of tokens. Tokens of a real provider are covered by the integration tests.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_card::SigningKey;
use a2a_crawler::Clock;
use a2a_crawler::dns::EmptyResolver;
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{AllowedPorts, GuardConfig, SsrfGuard};
use a2a_registry_domain::role::Role;
use actix_web::{App, HttpResponse, HttpServer, web};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use url::Url;

use super::id_token::ExpectedClaims;
use super::token_subject::{ClaimCompleteness, MAX_GROUP_NAME_BYTES, MAX_GROUPS};
use super::*;
use crate::config::{IdentityProviderConfig, RequiredClaimConfig};
use crate::error::ErrorKind;

const NOW: i64 = 2_000_000_000;
const ISSUER: &str = "https://login.example.com";

fn claims(changes: Value) -> Map<String, Value> {
    let mut claims = json!({
        "iss": ISSUER, "aud": "registry", "sub": "ann", "nonce": "n", "client_id": "service",
        "exp": NOW + 300, "iat": NOW - 5, "groups": ["staff"],
    });
    let claims = claims.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => claims.remove(name),
            value => claims.insert(name.clone(), value.clone()),
        };
    }
    claims.clone()
}

#[test]
fn an_identity_token_is_refused_for_each_thing_that_is_wrong() {
    use TokenRejection::{
        Audience, AuthorizedParty, Expired, IssuedAt, Issuer, Nonce, NotYetValid, Type,
    };
    let check = |typ: Option<&str>, changes: Value| {
        let expected = ExpectedClaims {
            issuer: ISSUER,
            client_id: "registry",
            nonce: "n",
            now: NOW,
        };
        id_token::check_id_token_claims(typ, &claims(changes), &expected)
    };
    for good in [
        json!({}),
        json!({"aud": ["registry"]}),
        json!({"aud": ["registry", "other"], "azp": "registry"}),
        json!({"exp": NOW - 59, "nbf": NOW + 59, "iat": NOW + 59}),
        json!({"exp": NOW as f64 + 0.5}),
    ] {
        assert!(check(Some("JWT"), good.clone()).is_ok(), "{good}");
    }
    assert_eq!(check(None, json!({})), Ok(NOW - 5));
    for (changes, why) in [
        (json!({"iss": "https://login.example.com/"}), Issuer),
        (json!({"iss": null}), Issuer),
        (json!({"iss": [ISSUER]}), Issuer),
        (json!({"aud": "other"}), Audience),
        (json!({"aud": null}), Audience),
        (json!({"aud": []}), Audience),
        (json!({"aud": ["registry", "other"]}), AuthorizedParty),
        (json!({"azp": "other"}), AuthorizedParty),
        (json!({"azp": 1}), AuthorizedParty),
        (json!({"exp": NOW - 60}), Expired),
        (json!({"exp": null}), Expired),
        (json!({"exp": "soon"}), Expired),
        (json!({"exp": 1e300}), Expired),
        (json!({"nbf": NOW + 61}), NotYetValid),
        (json!({"nbf": "soon"}), NotYetValid),
        (json!({"iat": NOW + 61}), IssuedAt),
        (json!({"iat": null}), IssuedAt),
        (json!({"iat": -1}), IssuedAt),
        (json!({"nonce": "m"}), Nonce),
        (json!({"nonce": null}), Nonce),
    ] {
        assert_eq!(check(None, changes.clone()), Err(why), "{changes}");
    }
    for typ in ["at+jwt", "logout+jwt", "", "JWT "] {
        assert_eq!(check(Some(typ), json!({})), Err(Type), "{typ}");
    }
}

#[test]
fn an_access_token_is_refused_for_each_thing_that_is_wrong() {
    use TokenRejection::{
        Audience, AuthorizedParty, Expired, IssuedAt, Issuer, KeyBound, NotYetValid, Type,
    };
    let check = |typ: Option<&str>, changes: Value| {
        access_token::check_access_token_claims(
            typ,
            &claims(changes),
            ISSUER,
            &["registry".into()],
            NOW,
        )
    };
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt"] {
        assert!(check(Some(typ), json!({"nonce": null})).is_ok(), "{typ}");
    }
    let several = json!({"aud": ["other", "registry"]});
    assert!(check(Some("at+jwt"), several).is_ok());
    for (changes, why) in [
        (json!({"iss": "https://evil.example"}), Issuer),
        (json!({"aud": "registry2"}), Audience),
        (json!({"aud": null}), Audience),
        (json!({"client_id": null}), AuthorizedParty),
        (json!({"exp": NOW - 61}), Expired),
        (json!({"exp": null}), Expired),
        (json!({"nbf": NOW + 100}), NotYetValid),
        (json!({"iat": null}), IssuedAt),
        (json!({"cnf": {"jkt": "x"}}), KeyBound),
    ] {
        assert_eq!(
            check(Some("at+jwt"), changes.clone()),
            Err(why),
            "{changes}"
        );
    }
    for typ in [None, Some("JWT"), Some("at+jwt+x")] {
        assert_eq!(check(typ, json!({})), Err(Type), "{typ:?}");
    }
    // Without a configured audience no token is for this registry.
    let none = access_token::check_access_token_claims(
        Some("at+jwt"),
        &claims(json!({})),
        ISSUER,
        &[],
        NOW,
    );
    assert_eq!(none, Err(Audience));
}

fn config() -> IdentityProviderConfig {
    IdentityProviderConfig {
        issuer: ISSUER.into(),
        client_id: "registry".into(),
        audiences: vec!["registry".into()],
        roles: [("leads".to_owned(), vec![Role::Curator])].into(),
        require: Some(RequiredClaimConfig {
            claim: "groups".into(),
            values: vec!["staff".into(), "true".into()],
        }),
        ..IdentityProviderConfig::default()
    }
}

fn held(
    config: &IdentityProviderConfig,
    changes: Value,
    access: bool,
) -> Result<AccountGrant, ErrorKind> {
    let completeness = match access {
        true => ClaimCompleteness::AccessToken,
        false => ClaimCompleteness::Complete,
    };
    let found =
        token_subject::build_token_subject("corp", config, &claims(changes), NOW, completeness);
    let entry = found.map_err(|error| error.kind)?.grant;
    entry.map_err(|_| ErrorKind::Forbidden)
}

#[test]
fn nobody_enters_but_by_what_is_required() {
    assert!(held(&config(), json!({}), false).is_ok());
    assert!(held(&config(), json!({"groups": "staff"}), false).is_ok());
    assert!(held(&config(), json!({"groups": true}), false).is_ok());
    for groups in [
        json!(null),
        json!([]),
        json!(["Staff"]),
        json!({"staff": true}),
        json!([["staff"]]),
    ] {
        let refused = held(&config(), json!({"groups": groups}), false);
        assert_eq!(refused, Err(ErrorKind::Forbidden), "{groups}");
    }
    let nobody = IdentityProviderConfig {
        require: None,
        ..config()
    };
    assert_eq!(held(&nobody, json!({}), false), Err(ErrorKind::Forbidden));
    let no_role = IdentityProviderConfig {
        default_roles: Vec::new(),
        ..config()
    };
    assert_eq!(held(&no_role, json!({}), false), Err(ErrorKind::Forbidden));
    let lead = json!({"groups": ["staff", "leads"]});
    assert!(held(&no_role, lead, false).is_ok());
}

/// Whether claims are refused, and if so whether that ends the access of an account.
fn ends_access(
    config: &IdentityProviderConfig,
    changes: Value,
    of: ClaimCompleteness,
) -> Option<bool> {
    let found = token_subject::build_token_subject("corp", config, &claims(changes), NOW, of);
    found
        .unwrap()
        .grant
        .err()
        .map(|refusal| refusal.ends_access)
}

/// Only an explicit statement of a provider ends access: a claim that is missing from an access token, cannot be read
/// or is kept elsewhere says nothing.
#[test]
fn claims_end_access_only_where_they_say_enough() {
    use ClaimCompleteness::{AccessToken, Complete, WithoutUserinfo};
    let elsewhere = json!({"groups": null, "_claim_names": {"groups": "src1"}});
    let overage = json!({"groups": null, "hasgroups": true});
    for (changes, whole, partial, access) in [
        (json!({}), None, None, None),
        (
            json!({"groups": ["visitors"]}),
            Some(true),
            Some(true),
            Some(true),
        ),
        (json!({"groups": []}), Some(true), Some(true), Some(true)),
        (
            json!({"groups": null}),
            Some(true),
            Some(false),
            Some(false),
        ),
        (elsewhere, Some(false), Some(false), Some(false)),
        (overage, Some(false), Some(false), Some(false)),
    ] {
        for (of, wanted) in [
            (Complete, whole),
            (WithoutUserinfo, partial),
            (AccessToken, access),
        ] {
            let found = ends_access(&config(), changes.clone(), of);
            assert_eq!(found, wanted, "{changes} {of:?}");
        }
    }
    let mut null = claims(json!({}));
    null.insert("groups".into(), Value::Null);
    for (of, wanted) in [
        (Complete, true),
        (WithoutUserinfo, false),
        (AccessToken, false),
    ] {
        let found = token_subject::build_token_subject("corp", &config(), &null, NOW, of).unwrap();
        assert_eq!(found.grant.unwrap_err().ends_access, wanted, "{of:?}");
    }
    // A null together with the mark that the groups are elsewhere is not an empty list of groups either.
    null.insert("hasgroups".into(), true.into());
    for of in [Complete, WithoutUserinfo, AccessToken] {
        let found = token_subject::build_token_subject("corp", &config(), &null, NOW, of).unwrap();
        assert!(!found.grant.unwrap_err().ends_access, "{of:?}");
    }
    // Too many groups, while another claim admits the person.
    let by_kind = IdentityProviderConfig {
        require: Some(RequiredClaimConfig {
            claim: "kind".into(),
            values: vec!["employee".into()],
        }),
        ..config()
    };
    let many: Vec<usize> = (0..101).collect();
    let many = json!({"kind": "employee", "groups": many});
    assert_eq!(ends_access(&by_kind, many, Complete), Some(false));
    // No role counts as not admitted, if the groups are known.
    let no_role = IdentityProviderConfig {
        default_roles: Vec::new(),
        ..by_kind
    };
    let staff = json!({"kind": "employee"});
    assert_eq!(ends_access(&no_role, staff, AccessToken), Some(true));
    let silent = json!({"kind": "employee", "groups": null});
    assert_eq!(
        ends_access(&no_role, silent.clone(), AccessToken),
        Some(false)
    );
    assert_eq!(ends_access(&no_role, silent, Complete), Some(true));
    // A missing `require` in the configuration ends nothing.
    let nobody = IdentityProviderConfig {
        require: None,
        ..config()
    };
    assert_eq!(ends_access(&nobody, json!({}), Complete), Some(false));
}

/// A null removes no groups: an access token with a null says nothing about groups, and if they are kept elsewhere
/// they are required to be admitted.
#[test]
fn a_claim_that_is_null_is_as_one_that_is_left_out() {
    let by_kind = IdentityProviderConfig {
        require: Some(RequiredClaimConfig {
            claim: "kind".into(),
            values: vec!["employee".into()],
        }),
        ..config()
    };
    let entry = |more: Value, of: ClaimCompleteness| {
        let mut claims = claims(json!({"kind": "employee"}));
        claims.insert("groups".into(), Value::Null);
        claims.extend(more.as_object().unwrap().clone());
        let found = token_subject::build_token_subject("corp", &by_kind, &claims, NOW, of);
        found.unwrap().grant
    };
    let silent = entry(json!({}), ClaimCompleteness::AccessToken).unwrap();
    assert_eq!(silent.groups, None);
    let whole = entry(json!({}), ClaimCompleteness::Complete).unwrap();
    assert_eq!(whole.groups, Some(Vec::new()));
    for of in [ClaimCompleteness::AccessToken, ClaimCompleteness::Complete] {
        let elsewhere = entry(json!({"hasgroups": true}), of).unwrap_err();
        assert!(!elsewhere.ends_access, "{of:?}");
    }
}

/// Entra sends up to 200 groups, of which few matter.
#[test]
fn the_limit_of_groups_holds_for_those_that_are_selected() {
    let selecting = |entries: &[&str]| IdentityProviderConfig {
        select_groups: entries.iter().map(ToString::to_string).collect(),
        ..config()
    };
    let some = selecting(&["a2a-*", "leads"]);
    let mut groups: Vec<String> = (0..200).map(|number| format!("g{number}")).collect();
    groups.extend(["staff", "leads", "leads-2", "a2a-x", "a2a-"].map(str::to_owned));
    groups.push("x".repeat(MAX_GROUP_NAME_BYTES + 1));
    let entry = held(&some, json!({"groups": groups}), false).unwrap();
    assert_eq!(entry.groups.unwrap(), ["a2a-", "a2a-x", "leads"]);
    assert!(entry.roles.contains(Role::Curator));
    // `require` checks the whole claim.
    let none = selecting(&["a2a-*"]);
    let entry = held(&none, json!({}), false).unwrap();
    assert_eq!(entry.groups, Some(Vec::new()));
    let many = |count: usize| {
        let groups = (0..count).map(|number| format!("a2a-{number}"));
        json!({"groups": groups.chain(["staff".to_owned()]).collect::<Vec<_>>()})
    };
    assert!(held(&some, many(MAX_GROUPS), false).is_ok());
    assert!(held(&some, many(MAX_GROUPS + 1), false).is_err());
    assert!(held(&config(), many(MAX_GROUPS), false).is_err());
}

#[test]
fn groups_that_a_provider_leaves_out_are_refused_with_what_to_configure() {
    let by_kind = IdentityProviderConfig {
        require: Some(RequiredClaimConfig {
            claim: "kind".into(),
            values: vec!["employee".into()],
        }),
        ..config()
    };
    for changes in [
        json!({"groups": null, "hasgroups": true}),
        json!({"groups": null, "hasgroups": "true"}),
        json!({"groups": null, "_claim_names": {"groups": "src1"}}),
    ] {
        for config in [&config(), &by_kind] {
            let mut changes = changes.clone();
            changes["kind"] = json!("employee");
            let found = token_subject::build_token_subject(
                "corp",
                config,
                &claims(changes),
                NOW,
                ClaimCompleteness::Complete,
            );
            let text = found.unwrap().grant.unwrap_err().text;
            assert!(text.contains("groups_claim = \"roles\""), "{text}");
        }
    }
    // A statement about `groups` says nothing about another claim.
    let by_roles = IdentityProviderConfig {
        groups_claim: "roles".into(),
        ..by_kind
    };
    let told = json!({"kind": "employee", "groups": null, "hasgroups": true, "roles": ["leads"]});
    assert!(held(&by_roles, told, false).is_ok());
}

#[test]
fn groups_are_those_of_the_claim_and_give_the_roles_of_the_map() {
    let lead = json!({"groups": ["staff", "leads", "staff"]});
    let lead = held(&config(), lead, false).unwrap();
    assert_eq!(lead.groups.unwrap(), ["leads", "staff"]);
    assert_eq!(lead.roles.to_string(), "reader,curator");
    let apart = IdentityProviderConfig {
        groups_claim: "teams".into(),
        ..config()
    };
    // An identity token without the claim means that there are no groups; an access token says nothing.
    assert_eq!(
        held(&apart, json!({}), false).unwrap().groups,
        Some(Vec::new())
    );
    assert_eq!(held(&apart, json!({}), true).unwrap().groups, None);
    let many = |count: usize| json!({"teams": (0..count).collect::<Vec<_>>()});
    assert!(held(&apart, many(100), false).is_ok());
    for teams in [
        many(101),
        json!({"teams": [""]}),
        json!({"teams": ["a\nb"]}),
        json!({"teams": "x".repeat(201)}),
        // An unreadable group is not ignored: a policy may forbid something to it.
        json!({"teams": [{"name": "contractors"}]}),
        json!({"teams": {"name": "contractors"}}),
        json!({"teams": [["contractors"]]}),
        json!({"_claim_names": {"teams": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://a.example"}}}),
    ] {
        assert_eq!(held(&apart, teams, false), Err(ErrorKind::Forbidden));
    }
}

#[test]
fn the_name_of_an_account_ends_with_its_provider() {
    let named = |name: Value| {
        let held = held(&config(), json!({"preferred_username": name}), false).unwrap();
        assert!(
            held.account_name.len() <= 100 && held.alternative_account_name("ann").len() <= 100
        );
        held.account_name
    };
    assert_eq!(named(json!("ann.lee")), "ann.lee@corp");
    assert_eq!(named(json!("admin")), "admin@corp");
    assert_eq!(named(json!("bob@other")), "bob@other@corp");
    assert_eq!(named(json!("\u{202e}<b>")), "b@corp");
    assert_eq!(named(json!(7)), "ann@corp");
    assert!(named(json!("x".repeat(5000))).ends_with("@corp"));
    let odd = named(json!("\u{5f20}\u{4f1f}"));
    assert_eq!(odd.len(), "01234567@corp".len(), "{odd}");
    for sub in [
        json!(null),
        json!(""),
        json!("a\0b"),
        json!(7),
        json!("x".repeat(256)),
    ] {
        let refused = held(&config(), json!({"sub": sub}), false);
        assert_eq!(refused, Err(ErrorKind::Unauthenticated), "{sub}");
    }
}

#[test]
fn what_an_attempt_keeps_secret_depends_on_its_secret_and_state() {
    let attempt = |secret, state| SignInAttemptSecrets { secret, state };
    let one = attempt("b", "s");
    let others = [attempt("c", "s"), attempt("b", "t")];
    for other in others {
        assert_ne!(one.nonce(), other.nonce());
        assert_ne!(one.code_verifier(), other.code_verifier());
    }
    assert_ne!(one.nonce(), one.code_verifier());
    assert_eq!(one.code_verifier().len(), 43);
}

/// A clock that only changes when it is set.
#[derive(Debug)]
struct MovedClock(Mutex<OffsetDateTime>);

impl Clock for MovedClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }
}

/// A provider on loopback whose keys a test changes.
struct Site {
    issuer: String,
    keys: Arc<Mutex<Vec<(String, SigningKey)>>>,
    is_away: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    clock: Arc<MovedClock>,
}

fn new_key() -> SigningKey {
    let random = SystemRandom::new();
    let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    SigningKey::from_bytes(key.as_ref(), &random).unwrap()
}

impl Site {
    async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let site = Self {
            keys: Arc::new(Mutex::new(vec![("one".into(), new_key())])),
            is_away: Arc::default(),
            asked: Arc::default(),
            clock: Arc::new(MovedClock(Mutex::new(
                OffsetDateTime::from_unix_timestamp(NOW).unwrap(),
            ))),
            issuer,
        };
        let document = json!({"issuer": site.issuer, "jwks_uri": format!("{}/keys", site.issuer)});
        let (keys, away, asked) = (site.keys.clone(), site.is_away.clone(), site.asked.clone());
        let server = HttpServer::new(move || {
            let (keys, away, asked) = (keys.clone(), away.clone(), asked.clone());
            let document = document.clone();
            App::new().default_service(web::to(move |request: actix_web::HttpRequest| {
                let answer = if away.load(Ordering::SeqCst) {
                    HttpResponse::ServiceUnavailable().finish()
                } else if request.path() == "/userinfo" {
                    HttpResponse::Ok().json(json!({"sub": "ann", "groups": ["leads"], "kind": 1}))
                } else if request.path() == "/keys" {
                    let keys = keys.lock().unwrap();
                    let sets = keys.iter().map(|(kid, key)| key.public_jwks(kid));
                    let sets = sets.map(|set| serde_json::from_str::<Value>(&set).unwrap());
                    let keys: Vec<Value> = sets.map(|set| set["keys"][0].clone()).collect();
                    HttpResponse::Ok().json(json!({"keys": keys}))
                } else {
                    asked.fetch_add(1, Ordering::SeqCst);
                    HttpResponse::Ok().json(&document)
                };
                async move { answer }
            }))
        });
        let server = server.workers(1).disable_signals();
        tokio::spawn(server.listen(listener).unwrap().run());
        site
    }

    fn provider(&self) -> Arc<IdentityProvider> {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let guard = GuardConfig {
            allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
            allow_http: true,
            allow_ports: AllowedPorts::Any,
            ..GuardConfig::default()
        };
        let fetcher = FetcherConfig {
            guard: SsrfGuard::new(guard),
            limits: FetchLimits::default(),
            contact_url: None,
            extra_ca: Vec::new(),
            key_hosts: Vec::new(),
        };
        let resolver = Arc::new(EmptyResolver);
        let fetcher = Fetcher::new(fetcher, resolver, Arc::clone(&clock)).unwrap();
        let config = IdentityProviderConfig {
            issuer: self.issuer.clone(),
            ..config()
        };
        Arc::new(IdentityProvider::new("corp", &config, Arc::new(fetcher), clock).unwrap())
    }

    /// Makes a token signed with the key at this position.
    fn token(&self, at: usize) -> String {
        let keys = self.keys.lock().unwrap();
        let (kid, key) = &keys[at];
        let now = self.clock.now().unix_timestamp();
        let claims = claims(json!({"iss": self.issuer, "iat": now, "exp": now + 300}));
        let random = SystemRandom::new();
        key.sign_claims(&Value::Object(claims), "at+jwt", kid, &random)
            .unwrap()
    }

    fn rotate(&self, kid: &str) {
        self.keys.lock().unwrap().insert(0, (kid.into(), new_key()));
    }

    fn wait(&self, seconds: u64) {
        *self.clock.0.lock().unwrap() += Duration::from_secs(seconds);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn outcome(provider: &Arc<IdentityProvider>, token: &str) -> Result<String, ErrorKind> {
    let held = provider.verify_access_token(token).await;
    held.map(|holder| holder.subject)
        .map_err(|error| error.kind)
}

/// A null claim in the identity token counts as missing: it is requested from userinfo like an absent one.
#[actix_web::test]
async fn userinfo_adds_what_is_missing_or_null_and_nothing_else() {
    let site = Site::start().await;
    let provider = site.provider();
    let endpoint = Url::parse(&format!("{}/userinfo", site.issuer)).unwrap();
    let full = claims(json!({"kind": 0}));
    let left_out = claims(json!({"kind": 0, "groups": null}));
    let mut null = full.clone();
    null.insert("groups".into(), Value::Null);
    for (mut told, lacks, groups) in [
        (full, false, "staff"),
        (left_out, true, "leads"),
        (null, true, "leads"),
    ] {
        assert_eq!(provider.lacks_needed_claims(&told), lacks, "{told:?}");
        let added = provider
            .fetch_and_add_userinfo(&mut told, &endpoint, "token")
            .await;
        added.unwrap();
        assert_eq!(
            (&told["groups"], &told["kind"]),
            (&json!([groups]), &json!(0))
        );
    }
}

#[actix_web::test]
async fn a_new_key_is_asked_for_at_once_and_then_once_a_minute() {
    let site = Site::start().await;
    let provider = site.provider();
    for _ in 0..3 {
        assert_eq!(outcome(&provider, &site.token(0)).await.unwrap(), "ann");
    }
    assert_eq!(site.asked(), 1);
    site.rotate("two");
    assert_eq!(outcome(&provider, &site.token(0)).await.unwrap(), "ann");
    assert_eq!(outcome(&provider, &site.token(1)).await.unwrap(), "ann");
    assert_eq!(site.asked(), 2);
    site.rotate("three");
    for _ in 0..3 {
        let refused = outcome(&provider, &site.token(0)).await;
        assert_eq!(refused, Err(ErrorKind::Unauthenticated));
    }
    assert_eq!(site.asked(), 2);
    site.wait(61);
    assert_eq!(outcome(&provider, &site.token(0)).await.unwrap(), "ann");
    assert_eq!(site.asked(), 3);
}

#[actix_web::test]
async fn people_who_sign_in_have_a_provider_asked_once_a_minute_until_it_fails_one() {
    let site = Site::start().await;
    let provider = site.provider();
    let document = async || {
        provider
            .current_metadata()
            .await
            .map_err(|error| error.kind)
    };
    for _ in 0..3 {
        document().await.unwrap();
    }
    assert_eq!(site.asked(), 1);
    site.wait(59);
    document().await.unwrap();
    assert_eq!(site.asked(), 1);
    site.wait(1);
    document().await.unwrap();
    assert_eq!(site.asked(), 2);
    // The code of a sign-in could not be exchanged.
    site.is_away.store(true, Ordering::SeqCst);
    provider.mark_suspect().await;
    for _ in 0..2 {
        assert_eq!(document().await.unwrap_err(), ErrorKind::Unavailable);
    }
    // The provider is queried at once when it responds again.
    site.is_away.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        document().await.unwrap();
    }
    assert_eq!(site.asked(), 3);
}

#[actix_web::test]
async fn known_keys_go_on_while_a_provider_is_away() {
    let site = Site::start().await;
    let provider = site.provider();
    site.is_away.store(true, Ordering::SeqCst);
    let first = outcome(&provider, &site.token(0)).await;
    assert_eq!(first, Err(ErrorKind::Unavailable));
    site.is_away.store(false, Ordering::SeqCst);
    // A second query is not sent at once.
    let first = outcome(&provider, &site.token(0)).await;
    assert_eq!(first, Err(ErrorKind::Unavailable));
    site.wait(5);
    assert_eq!(outcome(&provider, &site.token(0)).await.unwrap(), "ann");
    site.is_away.store(true, Ordering::SeqCst);
    site.wait(24 * 3600);
    assert_eq!(outcome(&provider, &site.token(0)).await.unwrap(), "ann");
    let attempt = SignInAttemptSecrets {
        secret: "b",
        state: "s",
    };
    let begun = provider.authorization_url(&attempt, "https://a/").await;
    let error = begun.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.public.contains("corp"), "{error:?}");
    // A token with an unknown key is refused meanwhile, without side effects.
    site.rotate("two");
    let refused = outcome(&provider, &site.token(0)).await;
    assert_eq!(refused, Err(ErrorKind::Unauthenticated));
    assert_eq!(outcome(&provider, &site.token(1)).await.unwrap(), "ann");
}

#[actix_web::test]
async fn the_document_of_another_issuer_is_worth_nothing() {
    let site = Site::start().await;
    let clock: Arc<dyn Clock> = site.clock.clone();
    let genuine = site.provider();
    let config = IdentityProviderConfig {
        issuer: format!("{}/", site.issuer),
        ..config()
    };
    let fetcher = Arc::clone(&genuine.fetcher);
    let other = Arc::new(IdentityProvider::new("corp", &config, fetcher, clock).unwrap());
    let error = other.verify_access_token(&site.token(0)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.internal.unwrap().contains("another issuer"));
}
