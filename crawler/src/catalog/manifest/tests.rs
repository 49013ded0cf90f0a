//! The profile step by step: a manifest that holds, and each step broken once.

#![allow(clippy::unwrap_used)]

use a2a_card::{SigningKey, canonical_json};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::macros::datetime;

use super::*;

const SIGNER: &str = "did:web:house.example.com";
const KID: &str = "did:web:house.example.com#key-1";
const ID: &str = "urn:air:house.example.com:sorter";
const TYPE: &str = "application/mcp-server-card+json";
const URL: &str = "https://house.example.com/mcp.json";
const NOW: OffsetDateTime = datetime!(2026-10-01 12:00 UTC);
/// The digest of `content`.
const DIGEST: &str = "sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73";

fn key() -> SigningKey {
    let random = SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    SigningKey::from_bytes(der.as_ref(), &random).unwrap()
}

/// Everything that a verification reads, before it is signed.
struct Case {
    key: SigningKey,
    kind: ManifestKind,
    manifest: Value,
    header: Value,
    document: Value,
    facts: EntryFacts<'static>,
    now: OffsetDateTime,
    /// Changes the manifest after it was signed.
    afterwards: fn(&mut Value),
    /// Changes its text after that.
    text: fn(String) -> String,
}

impl Case {
    fn good() -> Self {
        let key = key();
        let jwks: Value = serde_json::from_str(&key.public_jwks("key-1")).unwrap();
        let method = json!({
            "id": KID, "type": "JsonWebKey", "controller": SIGNER, "publicKeyJwk": jwks["keys"][0],
        });
        Self {
            key,
            kind: ManifestKind::Entry,
            manifest: json!({
                "contributor": SIGNER,
                "subject": {"identifier": ID, "type": TYPE, "digest": DIGEST, "url": URL, "version": "1.0"},
                "unknown": {"kept": [1, 2.5]},
                "signature": {
                    "signer": SIGNER, "profile": PROFILE, "issuedAt": "2026-09-30T00:00:00Z",
                    "expiresAt": "2026-12-31T00:00:00Z",
                },
                "additionalSignatures": [{"not": "signed"}],
            }),
            header: json!({"alg": "ES256", "typ": "ai-catalog-trust-manifest+jws", "kid": KID}),
            document: json!({
                "id": SIGNER, "verificationMethod": [method], "assertionMethod": [KID],
            }),
            facts: EntryFacts {
                identifier: ID,
                media_type: TYPE,
                version: Some("1.0"),
                url: Some(URL),
                digest: Some(DIGEST),
                content: Some(DIGEST),
            },
            now: NOW,
            afterwards: |_| (),
            text: |text| text,
        }
    }

    /// A whole catalog that is signed.
    fn catalog() -> Self {
        let mut case = Self::good();
        case.kind = ManifestKind::Catalog;
        case.header["typ"] = json!("ai-catalog+jws");
        let signature = case.manifest["signature"].clone();
        case.manifest = json!({
            "specVersion": "1.0", "host": {"identifier": SIGNER, "displayName": "House"},
            "entries": [{"identifier": ID}], "signature": signature,
        });
        case
    }

    fn result(self) -> Result<(), ManifestFault> {
        let mut signed = self.manifest.clone();
        signed
            .as_object_mut()
            .unwrap()
            .remove("additionalSignatures");
        let payload = canonical_json(&signed).unwrap();
        let random = SystemRandom::new();
        let jws = self
            .key
            .sign_detached(&self.header, &payload, &random)
            .unwrap();
        let mut manifest = self.manifest;
        manifest["signature"]["jws"] = json!(jws);
        (self.afterwards)(&mut manifest);
        let text = (self.text)(manifest.to_string());
        let read = SignedManifest::read(text.as_bytes(), self.kind)?;
        assert_eq!(read.domain(), "house.example.com");
        assert_eq!(
            read.did_document_url(),
            "https://house.example.com/.well-known/did.json"
        );
        read.check(self.document.to_string().as_bytes(), &self.facts, self.now)
    }
}

#[test]
fn a_manifest_that_keeps_to_the_profile_is_verified() {
    assert_eq!(Case::good().result(), Ok(()));
    assert_eq!(Case::catalog().result(), Ok(()));
    // Own additional signatures are not signed; neither is order, space or the form of a number.
    let mut case = Case::good();
    case.afterwards = |manifest| manifest["additionalSignatures"] = json!([]);
    assert_eq!(case.result(), Ok(()));
    let mut case = Case::good();
    case.text = |text| {
        text.replace("2.5", "25e-1")
            .replace(":", " : ")
            .replace("https : ", "https:")
            .replace("did : web : ", "did:web:")
            .replace(
                "urn : air : house.example.com : ",
                "urn:air:house.example.com:",
            )
            .replace("sha256 : ", "sha256:")
            .replace("T00 : 00 : 00Z", "T00:00:00Z")
    };
    assert_eq!(case.result(), Ok(()));
}

/// Breaks one thing.
type Break = fn(&mut Case);

#[test]
fn each_step_refuses_what_breaks_it() {
    use ManifestFault::{
        Ambiguous, Digest, Document, Header, Key, Mismatch, NotJws, Profile, Signer, Subject, Time,
    };
    let table: &[(&str, ManifestFault, Break)] = &[
        // 1: profile.
        ("another profile", Profile, |c| {
            c.manifest["signature"]["profile"] = json!("did-web-v2")
        }),
        ("no profile", Profile, |c| {
            c.manifest["signature"]["profile"] = Value::Null
        }),
        ("no signature", Profile, |c| {
            c.afterwards = |m| m["signature"] = json!("x")
        }),
        // 2: signer.
        ("a signer with a path", Signer, |c| {
            c.manifest["signature"]["signer"] = json!("did:web:house.example.com:a")
        }),
        ("a signer with a port", Signer, |c| {
            c.manifest["signature"]["signer"] = json!("did:web:house.example.com%3A8443")
        }),
        ("a signer in capitals", Signer, |c| {
            c.manifest["signature"]["signer"] = json!("did:web:House.example.com")
        }),
        ("a signer by another method", Signer, |c| {
            c.manifest["signature"]["signer"] = json!("did:key:z6Mk")
        }),
        ("an address as the signer", Signer, |c| {
            c.manifest["signature"]["signer"] = json!("did:web:127.0.0.1");
            c.manifest["contributor"] = json!("did:web:127.0.0.1");
        }),
        ("another contributor", Signer, |c| {
            c.manifest["contributor"] = json!("did:web:other.example")
        }),
        ("a contributor in capitals", Signer, |c| {
            c.manifest["contributor"] = json!("did:web:house.Example.com")
        }),
        ("another host of the catalog", Signer, |c| {
            *c = Case::catalog();
            c.manifest["host"]["identifier"] = json!("did:web:other.example");
        }),
        // 3: payload.
        ("a name twice", Ambiguous, |c| {
            c.text = |t| t.replacen("{\"contributor\"", "{\"x\":1,\"x\":1,\"contributor\"", 1)
        }),
        ("half a character", Ambiguous, |c| {
            c.text = |t| t.replacen("\"kept\"", "\"k\\ud800\"", 1)
        }),
        ("a number too long", Ambiguous, |c| {
            c.text = |t| t.replacen("2.5", "9007199254740993", 1)
        }),
        ("an unknown member changed", Mismatch, |c| {
            c.afterwards = |m| m["unknown"] = json!(2)
        }),
        ("an unknown member added", Mismatch, |c| {
            c.afterwards = |m| m["new"] = json!(2)
        }),
        ("the time of the signature changed", Mismatch, |c| {
            c.afterwards = |m| m["signature"]["issuedAt"] = json!("2026-09-29T00:00:00Z")
        }),
        // 4: header.
        ("no jws", NotJws, |c| {
            c.afterwards = |m| m["signature"]["jws"] = Value::Null
        }),
        ("an attached payload", NotJws, |c| {
            c.afterwards = |m| {
                m["signature"]["jws"] = json!(
                    m["signature"]["jws"]
                        .as_str()
                        .unwrap()
                        .replace("..", ".e30.")
                )
            }
        }),
        ("another algorithm", Header, |c| {
            c.header["alg"] = json!("ES384")
        }),
        ("no algorithm", Header, |c| c.header["alg"] = json!("none")),
        ("another type", Header, |c| c.header["typ"] = json!("JWT")),
        ("the type of a catalog", Header, |c| {
            c.header["typ"] = json!("ai-catalog+jws")
        }),
        ("another signer's key", Header, |c| {
            c.header["kid"] = json!("did:web:other.example#key-1")
        }),
        ("a key without a name", Header, |c| {
            c.header["kid"] = json!("did:web:house.example.com#")
        }),
        ("a relative key", Header, |c| {
            c.header["kid"] = json!("#key-1")
        }),
        ("b64", Header, |c| c.header["b64"] = json!(true)),
        ("jku", Header, |c| {
            c.header["jku"] = json!("https://house.example.com/k")
        }),
        ("jwk", Header, |c| c.header["jwk"] = json!({})),
        ("x5u", Header, |c| {
            c.header["x5u"] = json!("https://house.example.com/c")
        }),
        ("x5c", Header, |c| c.header["x5c"] = json!([])),
        ("crit", Header, |c| c.header["crit"] = json!(["exp"])),
        // 5: key.
        ("no DID document", Document, |c| c.document = json!([])),
        ("somebody else's document", Document, |c| {
            c.document["id"] = json!("did:web:other.example")
        }),
        ("a key for something else", Key, |c| {
            c.document["assertionMethod"] = json!([])
        }),
        ("no list of assertions", Key, |c| {
            c.document["assertionMethod"] = json!(KID)
        }),
        ("the key listed twice", Key, |c| {
            c.document["assertionMethod"] = json!([KID, KID])
        }),
        ("the key kept twice", Key, |c| {
            let method = c.document["verificationMethod"][0].clone();
            c.document["verificationMethod"] = json!([method, method]);
        }),
        ("the key gone", Key, |c| {
            c.document["verificationMethod"] = json!([])
        }),
        ("somebody else's key", Key, |c| {
            c.document["verificationMethod"][0]["controller"] = json!("did:web:other.example")
        }),
        ("a private key", Key, |c| {
            c.document["verificationMethod"][0]["publicKeyJwk"]["d"] = json!("AA")
        }),
        ("another curve", Key, |c| {
            c.document["verificationMethod"][0]["publicKeyJwk"]["crv"] = json!("P-384")
        }),
        ("a key for encryption", Mismatch, |c| {
            c.document["verificationMethod"][0]["publicKeyJwk"]["use"] = json!("enc")
        }),
        ("a key to sign with", Mismatch, |c| {
            c.document["verificationMethod"][0]["publicKeyJwk"]["key_ops"] = json!(["sign"])
        }),
        ("a key for another algorithm", Mismatch, |c| {
            c.document["verificationMethod"][0]["publicKeyJwk"]["alg"] = json!("ES384")
        }),
        ("another key", Mismatch, |c| {
            let jwks: Value = serde_json::from_str(&key().public_jwks("key-1")).unwrap();
            c.document["verificationMethod"][0]["publicKeyJwk"] = jwks["keys"][0].clone();
        }),
        // 6: time.
        ("not valid yet", Time, |c| {
            c.now = datetime!(2026-09-29 23:58 UTC)
        }),
        ("expired", Time, |c| c.now = datetime!(2026-12-31 00:01 UTC)),
        ("no time of issue", Time, |c| {
            c.manifest["signature"]["issuedAt"] = Value::Null
        }),
        ("no time", Time, |c| {
            c.manifest["signature"]["expiresAt"] = json!("next year")
        }),
        // 7: subject.
        ("another identifier", Subject, |c| {
            c.facts.identifier = "urn:air:house.example.com:other"
        }),
        ("another type", Subject, |c| {
            c.facts.media_type = "text/markdown"
        }),
        ("another version", Subject, |c| {
            c.facts.version = Some("1.1")
        }),
        ("a version only in the manifest", Subject, |c| {
            c.facts.version = None
        }),
        ("a digest only in the manifest", Subject, |c| {
            c.facts.digest = None
        }),
        ("another digest", Subject, |c| {
            c.facts.digest = Some("sha256:00")
        }),
        ("another url", Subject, |c| {
            c.facts.url = Some("https://house.example.com/other.json")
        }),
        ("a url without TLS", Subject, |c| {
            c.manifest["subject"]["url"] = json!("http://house.example.com/mcp.json");
            c.facts.url = Some("http://house.example.com/mcp.json");
        }),
        ("neither digest nor url", Subject, |c| {
            c.manifest["subject"] = json!({"identifier": ID, "type": TYPE})
        }),
        ("no subject", Subject, |c| {
            c.manifest["subject"] = Value::Null
        }),
        ("other content", Digest, |c| {
            c.facts.content = Some("sha256:00")
        }),
        ("content that was not fetched", Digest, |c| {
            c.facts.content = None
        }),
    ];
    for (what, expected, break_it) in table {
        let mut case = Case::good();
        break_it(&mut case);
        assert_eq!(case.result(), Err(*expected), "{what}");
    }
}

/// A key may be described in place, and clocks may differ a little.
#[test]
fn what_the_profile_leaves_open_is_taken() {
    let open: [Break; 5] = [
        |c| {
            let method = c.document["verificationMethod"][0].take();
            c.document = json!({"id": SIGNER, "assertionMethod": ["did:web:x.example#y", method]});
        },
        |c| c.now = datetime!(2026-09-29 23:59:10 UTC),
        |c| c.now = datetime!(2026-12-31 00:00:50 UTC),
        |c| {
            c.manifest["signature"]
                .as_object_mut()
                .unwrap()
                .remove("expiresAt");
            c.now = datetime!(2036-01-01 00:00 UTC);
        },
        |c| {
            c.manifest["subject"] = json!({"identifier": ID, "type": TYPE, "url": URL});
            c.facts = EntryFacts {
                version: None,
                digest: None,
                content: None,
                ..c.facts
            };
        },
    ];
    for (number, change) in open.into_iter().enumerate() {
        let mut case = Case::good();
        change(&mut case);
        assert_eq!(case.result(), Ok(()), "{number}");
    }
}

#[test]
fn every_fault_has_a_name_and_a_sentence() {
    use ManifestFault as F;
    let all = [
        F::Profile,
        F::Signer,
        F::Ambiguous,
        F::NotJws,
        F::Header,
        F::Document,
        F::Key,
        F::Mismatch,
        F::Time,
        F::Subject,
        F::Digest,
    ];
    let names: std::collections::BTreeSet<&str> = all.iter().map(|one| one.as_str()).collect();
    assert_eq!(names.len(), all.len());
    assert!(all.iter().all(|one| one.to_string().len() > 20));
}
