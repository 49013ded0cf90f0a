//! Signing a card by hand, and the registry's verdict on the signature.

use a2a_card::{KeySet, SignatureResult, verify_signatures};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use tempfile::TempDir;

use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{
    FinishedProgram, Program, assert_exit, join_lines, registry_command,
};
use crate::support::setup::RegistrySetup;

/// A folder with a private key in it.
fn folder_with_key() -> TempDir {
    let folder = TempDir::new().unwrap();
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    std::fs::write(folder.path().join("key.der"), key.as_ref()).unwrap();
    folder
}

async fn sign(folder: &TempDir, arguments: &[&str]) -> FinishedProgram {
    let mut command = registry_command(["sign"]);
    command.args(arguments).current_dir(folder.path());
    Program::run(command).await
}

/// The card signed with a new key, whose key set is on that origin.
async fn sign_with_new_key(origin: &Origin, card: &str) -> String {
    let folder = folder_with_key();
    std::fs::write(folder.path().join("card.json"), card).unwrap();
    let jku = origin.url("/keys.json");
    let key = ["card.json", "--key", "key.der", "--jku", &jku];
    let files = ["--out", "signed.json", "--jwks", "keys.json"];
    let done = sign(&folder, &[&key[..], &files[..]].concat()).await;
    assert_exit(&done, 0, "");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    origin.set_reply("/keys.json", OriginReply::json(read("keys.json")));
    read("signed.json")
}

fn entries(folder: &TempDir) -> Vec<SignatureResult> {
    let signed = std::fs::read(folder.path().join("signed.json")).unwrap();
    let keys = std::fs::read(folder.path().join("keys.json")).unwrap();
    let keys = KeySet::from_jwks(&keys).unwrap();
    verify_signatures(&a2a_card::parse_card(&signed).unwrap(), &signed, &keys)
}

#[tokio::test]
async fn a_card_is_signed_and_its_key_set_written() {
    let folder = folder_with_key();
    std::fs::write(folder.path().join("card.json"), card_json("Echo", "repeat")).unwrap();
    let files = ["--out", "signed.json", "--jwks", "keys.json"];
    let jku = "https://echo.agents.dev/keys.json";
    let whole = [
        &[
            "card.json",
            "--key",
            "key.der",
            "--kid",
            "mine",
            "--jku",
            jku,
        ],
        &files[..],
    ]
    .concat();
    assert_exit(&sign(&folder, &whole).await, 0, "signed with ES256 as mine");
    let signed = entries(&folder);
    assert_eq!(signed.len(), 1);
    assert_eq!(signed[0].result.as_str(), "valid");
    assert_eq!(signed[0].kid.as_deref(), Some("mine"));
    assert_eq!(signed[0].jku.as_deref(), Some(jku));

    // Without a name the key's identifier is its thumbprint; a second signature is added beside the first.
    let again = [&["signed.json", "--key", "key.der"], &files[..]].concat();
    assert_exit(&sign(&folder, &again).await, 0, "");
    let signed = entries(&folder);
    assert_eq!(signed.len(), 2);
    assert_eq!(signed[1].result.as_str(), "valid");
    assert_eq!(signed[1].kid.as_ref().map(String::len), Some(43));

    let written = sign(&folder, &["card.json", "--key", "key.der"]).await;
    assert!(join_lines(&written.stdout).contains("\"signatures\""));
}

#[tokio::test]
async fn unsignable_input_is_reported_in_one_line() {
    let folder = folder_with_key();
    std::fs::write(folder.path().join("card.json"), card_json("Echo", "repeat")).unwrap();
    std::fs::write(
        folder.path().join("twice.json"),
        r#"{"name": "A", "name": "B"}"#,
    )
    .unwrap();
    for (arguments, said) in [
        (["card.json", "--key", "missing"], "missing cannot be used"),
        (
            ["card.json", "--key", "card.json"],
            "card.json cannot be used",
        ),
        (
            ["missing.json", "--key", "key.der"],
            "missing.json cannot be read",
        ),
        (["twice.json", "--key", "key.der"], "a name twice"),
        (["key.der", "--key", "key.der"], "key.der is not signed"),
    ] {
        let refused = sign(&folder, &arguments).await;
        assert_exit(&refused, 2, said);
        assert_eq!(join_lines(&refused.stdout), "", "{arguments:?}");
    }
}

/// A signature made by hand is crawled with its key set, verified, and shown to every caller.
#[tokio::test]
async fn a_registry_verifies_a_hand_made_signature() {
    let served = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let signed = sign_with_new_key(&origin, &card_json("Echo", "repeat")).await;
    origin.set_reply("/a.json", OriginReply::json(signed));
    served.register(&origin.url("/a.json")).await;
    let hit = served.wait_for_hit("q=repeat").await;
    assert_eq!(
        hit.summary.trust.signature.as_str(),
        "untrusted",
        "the domain is not proved"
    );
    assert_eq!(
        hit.summary.trust.level, None,
        "the card was fetched without TLS"
    );
}

/// `send` prints the registry's warnings about an agent before it sends the first byte, and with `--strict` sends
/// nothing to such an agent.
#[tokio::test]
async fn warnings_are_printed_before_anything_is_sent() {
    let served = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let answer = serde_json::json!({
        "jsonrpc": "2.0", "id": 1,
        "result": {"kind": "message", "role": "agent", "messageId": "m",
                   "parts": [{"kind": "text", "text": "well"}]}
    });
    origin.set_reply("/talk", OriginReply::json(answer.to_string()));
    let plain =
        card_json("Echo", "repeat").replace("https://echo.agents.dev/a2a", &origin.url("/talk"));
    let signed = sign_with_new_key(&origin, &plain).await;
    let forged = signed.replace("Does repeat", "Does something else");
    assert_ne!(forged, signed);
    origin.set_reply("/forged.json", OriginReply::json(forged));
    origin.set_reply("/plain.json", OriginReply::json(plain.clone()));
    let card = plain;
    let mut sent = 0;
    let mut speaks = async |agent: &str, against: &[&str]| {
        let strict = served
            .run_admin_command(&["send", agent, "hello", "--strict"])
            .await;
        if against.is_empty() {
            assert_exit(&strict, 0, "");
            assert!(strict.stderr.is_empty(), "{strict:#?}");
            sent += 1;
        } else {
            assert_eq!(strict.status.code(), Some(1), "{strict:#?}");
            assert!(strict.stdout.is_empty(), "{strict:#?}");
        }
        assert_eq!(origin.requests_to("/talk").len(), sent, "{strict:#?}");
        let delivered = served.run_admin_command(&["send", agent, "hello"]).await;
        assert_exit(&delivered, 0, "");
        assert_eq!(join_lines(&delivered.stdout), "well");
        for words in against {
            for finished in [&strict, &delivered] {
                assert!(
                    join_lines(&finished.stderr).contains(words),
                    "{words}: {finished:#?}"
                );
            }
        }
        sent += 1;
    };
    let plain = origin.url("/plain.json");
    assert_exit(
        &served.run_admin_command(&["register", &plain]).await,
        0,
        "",
    );
    speaks(&plain, &["is not approved"]).await;
    assert_exit(
        &served
            .run_admin_command(&["register", &plain, "--approve"])
            .await,
        0,
        "",
    );
    speaks(&plain, &[]).await;

    // The agent shows another card, which nobody has approved.
    let other = card.replace("Does repeat", "Does repeat, and more");
    origin.set_reply("/plain.json", OriginReply::json(other.clone()));
    served
        .api
        .recrawl_and_wait(&origin.address().to_string())
        .await;
    let changed = "has changed its card since it was approved; see ";
    speaks(&plain, &[changed, "show ", " --diff"]).await;
    assert_exit(
        &served
            .run_admin_command(&["register", &plain, "--approve"])
            .await,
        0,
        "",
    );
    speaks(&plain, &[]).await;

    // Policies let it be found, and not called.
    let policies = TempDir::new().unwrap();
    let open = "permit (principal, action, resource);";
    let closed = "forbid (principal, action == Action::\"invoke\", resource) when { resource.tags.contains(\"repeat\") };";
    std::fs::write(policies.path().join("open.cedar"), open).unwrap();
    std::fs::write(policies.path().join("closed.cedar"), closed).unwrap();
    let folder = policies.path().to_str().unwrap();
    let apply = [
        "policy", "apply", folder, "--reason", "a test", "--wait", "--yes",
    ];
    assert_exit(&served.run_admin_command(&apply).await, 0, "");
    speaks(
        &plain,
        &[
            "may not be called by you: A policy forbids it",
            "(decision ",
        ],
    )
    .await;
    std::fs::remove_file(policies.path().join("closed.cedar")).unwrap();
    assert_exit(&served.run_admin_command(&apply).await, 0, "");
    speaks(&plain, &[]).await;

    let act = |verb: &'static str| ["agent", verb, &plain, "--reason", "ask the other one"];
    assert_exit(&served.run_admin_command(&act("deprecate")).await, 0, "");
    speaks(&plain, &["is deprecated: ask the other one"]).await;
    assert_exit(&served.run_admin_command(&act("suspend")).await, 0, "");
    let both = [
        "is on hold (operator: ask the other one)",
        "is deprecated: ask the other one",
    ];
    speaks(&plain, &both).await;

    let forged = origin.url("/forged.json");
    let registered = served.run_admin_command(&["register", &forged]).await;
    assert_exit(&registered, 0, "");
    assert!(
        join_lines(&registered.stdout).contains("signature: invalid: "),
        "{registered:#?}"
    );
    assert_exit(
        &served
            .run_admin_command(&["register", &forged, "--approve"])
            .await,
        0,
        "",
    );
    let keys = format!("from {}", origin.url("/keys.json"));
    let broken = [
        "has an invalid signature: ",
        "signature: invalid: ",
        "algorithm ES256",
        &keys,
    ];
    speaks(&forged, &broken).await;
}
