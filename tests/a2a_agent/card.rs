//! The registry's own card and its keys.

use std::path::Path;

use a2a_card::{KeySet, Severity, VerificationResult, all_findings, parse_card, verify_signatures};
use a2a_registry_core::config::Config;
use futures::future::join_all;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::listening_registry::{ListeningRegistry, V1, admin, message};
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::program::{Program, join_lines, registry_command};

/// The paths of the card and of its keys.
pub(super) const CARD: &str = "/.well-known/agent-card.json";
/// The path of the card for clients of 0.2.
const OLD_CARD: &str = "/.well-known/agent.json";
const KEYS: &str = "/.well-known/jwks.json";

both_databases!(
    the_card_is_signed_and_the_same_for_everybody_everywhere,
    of_settings_written_together_one_stays
);

struct CardResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

async fn get_response(
    served: &ListeningRegistry,
    path: &str,
    headers: &[(&str, &str)],
) -> CardResponse {
    let mut request = served.request(Method::GET, path, None, None);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    CardResponse {
        status: answer.status(),
        headers: answer.headers().clone(),
        body: answer.bytes().await.unwrap().to_vec(),
    }
}

/// The verdicts on the signatures of a card by a key set.
fn verdicts(card: &[u8], keys: &[u8]) -> Vec<VerificationResult> {
    let keys = KeySet::from_jwks(keys).unwrap();
    let parsed = parse_card(card).unwrap();
    verify_signatures(&parsed, card, &keys)
        .into_iter()
        .map(|one| one.result)
        .collect()
}

fn is_valid(verdicts: &[VerificationResult]) -> bool {
    matches!(verdicts, [VerificationResult::Valid { .. }])
}

async fn the_card_is_signed_and_the_same_for_everybody_everywhere(url: &str) {
    let served = ListeningRegistry::new(url).await;
    let got = get_response(&served, CARD, &[]).await;
    let keys = get_response(&served, KEYS, &[]).await;
    for (one, path) in [(&got, CARD), (&keys, KEYS)] {
        assert_eq!(one.status, StatusCode::OK, "{path}");
        assert_eq!(one.headers["content-type"], "application/json");
        assert_eq!(one.headers["cache-control"], "public, max-age=300");
        assert_eq!(one.headers["access-control-allow-origin"], "*");
        let sum = digest(&SHA256, &one.body);
        let hex: String = sum
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(one.headers["etag"], format!("\"{hex}\""));
        let (tag, modified) = (&one.headers["etag"], &one.headers["last-modified"]);
        for condition in [("if-none-match", tag), ("if-modified-since", modified)] {
            let again = get_response(
                &served,
                path,
                &[(condition.0, condition.1.to_str().unwrap())],
            )
            .await;
            assert_eq!(
                again.status,
                StatusCode::NOT_MODIFIED,
                "{path} {condition:?}"
            );
            assert_eq!(
                (&again.headers["etag"], &again.headers["last-modified"]),
                (tag, modified)
            );
            assert!(again.body.is_empty());
        }
        let earlier = [("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT")];
        assert_eq!(
            get_response(&served, path, &earlier).await.status,
            StatusCode::OK
        );
        // A tag that is not this one outweighs the date.
        let other = [
            ("if-none-match", "\"x\""),
            ("if-modified-since", modified.to_str().unwrap()),
        ];
        assert_eq!(
            get_response(&served, path, &other).await.status,
            StatusCode::OK
        );
        let bearer = format!("Bearer {}", admin().unwrap());
        for headers in [
            &[("authorization", bearer.as_str())][..],
            &[("a2a-version", "1.0")],
            &[("a2a-version", "0.3")],
            &[("accept-encoding", "br, gzip")],
        ] {
            assert_eq!(
                get_response(&served, path, headers).await.body,
                one.body,
                "{path} {headers:?}"
            );
        }
    }
    let old = get_response(&served, OLD_CARD, &[]).await;
    assert_eq!((old.status, &old.body), (StatusCode::OK, &got.body));
    assert_eq!(old.headers["etag"], got.headers["etag"]);
    let verdict = verdicts(&got.body, &keys.body);
    assert!(is_valid(&verdict), "{verdict:?}");
    let tampered = String::from_utf8(got.body.clone())
        .unwrap()
        .replace("/a2a\"", "/evil\"");
    assert!(!is_valid(&verdicts(tampered.as_bytes(), &keys.body)));
    let errors = all_findings(&parse_card(&got.body).unwrap(), &got.body);
    let errors: Vec<_> = errors
        .iter()
        .filter(|one| one.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let keys_json: Value = serde_json::from_slice(&keys.body).unwrap();
    for key in keys_json["keys"].as_array().unwrap() {
        assert_eq!(
            (&key["kty"], &key["crv"], key.get("d")),
            (&json!("EC"), &json!("P-256"), None)
        );
    }
    let card: Value = serde_json::from_slice(&got.body).unwrap();
    let jku = format!("{}{KEYS}", served.url);
    let protected = card["signatures"][0]["protected"].as_str().unwrap();
    let header = data_encoding::BASE64URL_NOPAD
        .decode(protected.as_bytes())
        .unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(
        (&header["alg"], &header["typ"]),
        (&json!("ES256"), &json!("JOSE"))
    );
    assert_eq!(header["jku"], jku);
    assert_eq!(header["kid"], keys_json["keys"][0]["kid"]);
}

/// Every replica serves the same bytes, and so does a later start.
#[tokio::test]
async fn replicas_and_later_starts_serve_the_same_card() {
    let database = Database::postgres().await;
    let first = ListeningRegistry::new(database.url()).await;
    let second = first.second_replica().await;
    let card = get_response(&first, CARD, &[]).await;
    let keys = get_response(&first, KEYS, &[]).await;
    for (path, one) in [(CARD, &card), (KEYS, &keys)] {
        let other = get_response(&second, path, &[]).await;
        assert_eq!(other.body, one.body);
        assert_eq!(other.headers["etag"], one.headers["etag"]);
        assert_eq!(other.headers["last-modified"], one.headers["last-modified"]);
    }
    // With another address it is another card, signed by the same key.
    first.stop().await;
    let third = ListeningRegistry::new(database.url()).await;
    let moved = get_response(&third, CARD, &[]).await;
    assert_ne!(moved.body, card.body);
    assert!(is_valid(&verdicts(&moved.body, &keys.body)));
}

/// A key file takes the place of the key that was made, whose public part stays published, as those of old files do.
#[tokio::test]
async fn keys_are_rotated() {
    let database = Database::sqlite();
    let first = ListeningRegistry::new(database.url()).await;
    let made: Value = serde_json::from_slice(&get_response(&first, KEYS, &[]).await.body).unwrap();
    let before = get_response(&first, CARD, &[]).await.body;
    first.stop().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../card/tests/keys");
    let second = ListeningRegistry::with_config(database.url(), |config: &mut Config| {
        config.a2a.key_file = Some(folder.join("p384.pem"));
        config.a2a.kid = "of-2026".into();
        config.a2a.old_key_files = vec![folder.join("ed25519.json")];
    })
    .await;
    let keys = get_response(&second, KEYS, &[]).await.body;
    let listed: Value = serde_json::from_slice(&keys).unwrap();
    let kids: Vec<&Value> = listed["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| &key["kid"])
        .collect();
    assert_eq!(kids.len(), 3, "{listed}");
    assert_eq!(kids[0], "of-2026");
    assert_eq!(kids[1], &made["keys"][0]["kid"]);
    let after = get_response(&second, CARD, &[]).await.body;
    assert!(is_valid(&verdicts(&after, &keys)));
    // Whoever has kept the card of before still verifies it.
    assert!(is_valid(&verdicts(&before, &keys)));
    assert!(!String::from_utf8(keys).unwrap().contains("\"d\""));
}

/// The program itself finds the signature valid, over HTTP as any other card's.
#[tokio::test]
async fn the_linter_of_the_program_has_nothing_to_say_against_it() {
    let database = Database::sqlite();
    let served = ListeningRegistry::new(database.url()).await;
    let linted = Program::run(registry_command(["lint", &format!("{}{CARD}", served.url)])).await;
    let said = join_lines(&linted.stdout);
    assert!(linted.status.success(), "{linted:#?}");
    assert!(!said.contains("error"), "{said}");
}

/// What the configuration says is on the card; an empty provider is none.
#[tokio::test]
async fn the_card_says_what_is_configured() {
    let database = Database::sqlite();
    let served = ListeningRegistry::with_config(database.url(), |config: &mut Config| {
        config.a2a.name = "Front desk".into();
        config.a2a.description = "Knows whom to ask.".into();
        config.a2a.provider = "Acme".into();
    })
    .await;
    let card: Value = serde_json::from_slice(&get_response(&served, CARD, &[]).await.body).unwrap();
    assert_eq!(
        (&card["name"], &card["description"]),
        (&json!("Front desk"), &json!("Knows whom to ask."))
    );
    assert_eq!(
        card["provider"],
        json!({"organization": "Acme", "url": served.url})
    );
    assert_eq!(card["version"], env!("CARGO_PKG_VERSION"));
    let skills: Vec<&Value> = card["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| &skill["id"])
        .collect();
    assert_eq!(skills, ["find-agents", "describe-agent", "check-agent"]);
}

/// A registry that is no agent has neither card nor interfaces.
#[tokio::test]
async fn a_registry_that_is_no_agent_has_none_of_it() {
    let database = Database::sqlite();
    let served = ListeningRegistry::with_config(database.url(), |config: &mut Config| {
        config.a2a.enabled = false
    })
    .await;
    for path in [CARD, OLD_CARD, KEYS, "/a2a/v1/tasks", "/a2a/tasks/x"] {
        assert_eq!(
            get_response(&served, path, &[]).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    for path in [
        "/a2a",
        "/a2a/",
        "/a2a/v1/message:send",
        "/a2a/message:stream",
    ] {
        let body = json!({"message": message(&json!([{"text": "fly"}]))});
        let request = served.request(Method::POST, path, V1, None).json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

async fn of_settings_written_together_one_stays(url: &str) {
    let served = ListeningRegistry::new(url).await;
    let settle = async |round: &str, number: usize| {
        let fresh = format!("{round} {number}");
        let is_right = |kept: &str| kept.starts_with(round);
        let settled = served
            .inner
            .store
            .get_or_replace_setting("test", &fresh, is_right);
        settled.await.unwrap()
    };
    let mut before = String::new();
    // The second round finds the value of the first one, which is not right any more.
    for round in ["first", "second"] {
        let all = join_all((0..8).map(|number| settle(round, number))).await;
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        assert!(all[0].starts_with(round) && all[0] != before);
        before.clone_from(&all[0]);
    }
}
