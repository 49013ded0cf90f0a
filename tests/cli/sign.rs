//! Signing a card by hand, and what a registry makes of the signature.

use a2a_card::{KeySet, SignatureEntry, verify};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use tempfile::TempDir;

use crate::support::origin::{Origin, Reply};
use crate::support::program::{Finished, Program, registry};
use crate::support::served::{Served, card, ended, text};

/// A folder with a private key in it.
fn folder_with_key() -> TempDir {
    let folder = TempDir::new().unwrap();
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    std::fs::write(folder.path().join("key.der"), key.as_ref()).unwrap();
    folder
}

async fn sign(folder: &TempDir, arguments: &[&str]) -> Finished {
    let mut command = registry(["sign"]);
    command.args(arguments).current_dir(folder.path());
    Program::run(command).await
}

fn entries(folder: &TempDir) -> Vec<SignatureEntry> {
    let signed = std::fs::read(folder.path().join("signed.json")).unwrap();
    let keys = std::fs::read(folder.path().join("keys.json")).unwrap();
    let keys = KeySet::from_jwks(&keys).unwrap();
    verify(&a2a_card::parse(&signed).unwrap(), &signed, &keys)
}

#[tokio::test]
async fn a_card_is_signed_and_its_key_set_written() {
    let folder = folder_with_key();
    std::fs::write(folder.path().join("card.json"), card("Echo", "repeat")).unwrap();
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
    ended(&sign(&folder, &whole).await, 0, "signed with ES256 as mine");
    let signed = entries(&folder);
    assert_eq!(signed.len(), 1);
    assert_eq!(signed[0].verdict.as_str(), "valid");
    assert_eq!(signed[0].kid.as_deref(), Some("mine"));
    assert_eq!(signed[0].jku.as_deref(), Some(jku));

    // Without a name the key is known by its thumbprint; a second signature stands beside the first.
    let again = [&["signed.json", "--key", "key.der"], &files[..]].concat();
    ended(&sign(&folder, &again).await, 0, "");
    let signed = entries(&folder);
    assert_eq!(signed.len(), 2);
    assert_eq!(signed[1].verdict.as_str(), "valid");
    assert_eq!(signed[1].kid.as_ref().map(String::len), Some(43));

    let written = sign(&folder, &["card.json", "--key", "key.der"]).await;
    assert!(text(&written.stdout).contains("\"signatures\""));
}

#[tokio::test]
async fn what_cannot_be_signed_is_told_in_one_line() {
    let folder = folder_with_key();
    std::fs::write(folder.path().join("card.json"), card("Echo", "repeat")).unwrap();
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
        ended(&refused, 2, said);
        assert_eq!(text(&refused.stdout), "", "{arguments:?}");
    }
}

/// The signature travels: signed by hand, crawled with its key set, and told to whoever asks.
#[tokio::test]
async fn a_registry_verifies_what_was_signed() {
    let served = Served::start(&["--approve-all"]).await;
    let origin = Origin::start();
    let folder = folder_with_key();
    std::fs::write(folder.path().join("card.json"), card("Echo", "repeat")).unwrap();
    let (jku, files) = (
        origin.url("/keys.json"),
        ["--out", "signed.json", "--jwks", "keys.json"],
    );
    let whole = [
        &["card.json", "--key", "key.der", "--jku", &jku],
        &files[..],
    ]
    .concat();
    ended(&sign(&folder, &whole).await, 0, "");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    origin.answer("/a.json", Reply::json(read("signed.json")));
    origin.answer("/keys.json", Reply::json(read("keys.json")));
    served.register(&origin.url("/a.json")).await;
    let hit = served.found("q=repeat").await;
    assert_eq!(
        hit.summary.trust.signature, "untrusted",
        "the domain is not proved"
    );
    assert_eq!(hit.summary.trust.level, None, "it came without TLS");
}
