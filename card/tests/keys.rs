//! Keys in files and key sets: which are read, which are skipped, and what is signed with them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use a2a_card::{
    Algorithm, CanonicalForm, KeySet, KeySetError, MAX_CARD_BYTES, MAX_KEY_FILE_BYTES,
    MAX_KEY_SET_BYTES, MAX_KEYS, MAX_SIGNATURES, ProtectedHeader, SignError, SigningKey,
    SigningKeyError, VerificationResult, canonical_payload, parse_card, sign_card,
    verify_signatures,
};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use ring::rand::SystemRandom;
use serde_json::{Value, json};
use support::{KID, describe, judged, jwk, key, key_path, published, set, verdict};

const CARD: &str = r#"{"name":"A","supportedInterfaces":[{"url":"https://a.io"}],"n":1.0}"#;

fn read(bytes: &[u8]) -> Result<SigningKey, SigningKeyError> {
    SigningKey::from_bytes(bytes, &SystemRandom::new())
}

fn header() -> ProtectedHeader {
    ProtectedHeader {
        kid: KID.into(),
        jku: None,
    }
}

fn signed(card: &str, key: &SigningKey) -> Result<String, SignError> {
    let bytes = sign_card(card.as_bytes(), key, &header(), &SystemRandom::new())?;
    Ok(String::from_utf8(bytes).unwrap())
}

/// The key's JWK as JSON.
fn file(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(key_path(name)).unwrap()).unwrap()
}

const NAMES: [(&str, Algorithm); 4] = [
    ("ed25519", Algorithm::EdDsa),
    ("p256", Algorithm::Es256),
    ("p384", Algorithm::Es384),
    ("rsa", Algorithm::Rs256),
];

#[test]
fn thumbprints_are_those_of_the_standards() {
    // RFC 7638 §3.1 and RFC 8037 appendix A.3.
    let rsa = json!({"kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29", "n": concat!(
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMst",
        "n64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajr",
        "n1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw")});
    let okp =
        json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let keys = set(&[rsa, okp]);
    assert_eq!(
        keys.thumbprints().collect::<Vec<_>>(),
        [
            "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        ]
    );
    assert_eq!(keys.kids().collect::<Vec<_>>(), ["2011-04-29"]);
}

#[test]
fn the_key_of_rfc_8037_signs() {
    // Appendix A.1.
    let key = json!({"kty": "OKP", "crv": "Ed25519", "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let key = read(key.to_string().as_bytes()).unwrap();
    assert_eq!(key.algorithm(), Algorithm::EdDsa);
    let first = signed(CARD, &key).unwrap();
    assert_eq!(first, signed(CARD, &key).unwrap(), "Ed25519 rolls no dice");
    assert_eq!(verdict(&first, &published(&key)), "valid sdk");
}

#[test]
fn every_kind_of_key_file_signs_and_verifies() {
    for (name, algorithm) in NAMES {
        let pem = std::fs::read_to_string(key_path(&format!("{name}.pem"))).unwrap();
        let body: String = pem
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .collect();
        let der = BASE64.decode(body.as_ref()).unwrap();
        let jwk = std::fs::read(key_path(&format!("{name}.json"))).unwrap();
        let preamble = format!(
            "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{pem}"
        );
        let files = [pem.as_bytes(), &der, &jwk, preamble.as_bytes()];
        let keys: Vec<SigningKey> = files.iter().map(|bytes| read(bytes).unwrap()).collect();
        for key in &keys {
            assert_eq!(key.algorithm(), algorithm);
            assert_eq!(key.thumbprint(), keys[0].thumbprint(), "{name}");
            let card = signed(CARD, key).unwrap();
            // All file formats give the same key.
            let entries = judged(&card, &published(&keys[0]));
            let VerificationResult::Valid { form, thumbprint } = &entries[0].result else {
                panic!("{name}: {card}");
            };
            assert_eq!((*form, thumbprint), (CanonicalForm::Sdk, &key.thumbprint()));
            assert_eq!(entries[0].alg.as_deref(), Some(algorithm.as_str()));
            assert_eq!(entries[0].kid.as_deref(), Some(KID));
        }
    }
}

#[test]
fn rsa_signs_with_either_padding_and_others_with_one() {
    let mut jwk = file("rsa.json");
    for algorithm in [Algorithm::Ps256, Algorithm::Rs256] {
        jwk["alg"] = algorithm.as_str().into();
        let key = read(jwk.to_string().as_bytes()).unwrap();
        assert_eq!(key.algorithm(), algorithm);
        let card = signed(CARD, &key).unwrap();
        let mut public = jwk.clone();
        for name in ["d", "p", "q", "dp", "dq", "qi"] {
            public.as_object_mut().unwrap().shift_remove(name);
        }
        public["kid"] = KID.into();
        assert_eq!(verdict(&card, &set(&[public.clone()])), "valid sdk");
        // A key with an `alg` can be used with that algorithm only.
        public["alg"] = match algorithm {
            Algorithm::Ps256 => "RS256".into(),
            _ => "PS256".into(),
        };
        assert_eq!(verdict(&card, &set(&[public])), "refused key-algorithm");
    }
    for (name, algorithm) in NAMES {
        for other in Algorithm::ALL {
            let rsa = name == "rsa" && other == Algorithm::Ps256;
            let made = key(&format!("{name}.pem")).with_algorithm(other);
            assert_eq!(made.is_ok(), other == algorithm || rsa, "{name} {other}");
        }
    }
}

#[test]
fn files_that_hold_no_usable_key_say_so_in_one_line() {
    let mut mismatched = file("p256.json");
    mismatched["d"] = BASE64URL_NOPAD.encode(&[9; 32]).into();
    let mut foreign = file("ed25519.json");
    foreign["x"] = file("p256.json")["x"].clone();
    let mut public = file("p256.json");
    public.as_object_mut().unwrap().shift_remove("d");
    let mut hs = file("rsa.json");
    hs["alg"] = "HS256".into();
    let mut es384 = file("p256.json");
    es384["alg"] = "ES384".into();
    let set = json!({"keys": [file("p256.json")]});
    for (bytes, part) in [
        (String::new(), "PKCS#8"),
        ("key".into(), "PKCS#8"),
        ("{".into(), "JSON"),
        ("{}".into(), "members of a private key"),
        (public.to_string(), "members of a private key"),
        (
            json!({"kty": "oct", "k": "AAAA"}).to_string(),
            "members of a private key",
        ),
        (set.to_string(), "set of keys"),
        (hs.to_string(), "HS256"),
        (es384.to_string(), "ES384"),
        (mismatched.to_string(), "InconsistentComponents"),
        (foreign.to_string(), "InconsistentComponents"),
        (r#"{"kty":"OKP","kty":"OKP"}"#.into(), "differently"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into(),
            "openssl",
        ),
        (
            "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n".into(),
            "openssl",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".into(),
            "PKCS#8",
        ),
    ] {
        let error = read(bytes.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{bytes}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let padded = |size: usize| {
        let mut text = file("p256.json").to_string();
        text.push_str(&" ".repeat(size - text.len()));
        text
    };
    assert!(read(padded(MAX_KEY_FILE_BYTES).as_bytes()).is_ok());
    let size = MAX_KEY_FILE_BYTES + 1;
    let error = read(padded(size).as_bytes()).unwrap_err();
    assert_eq!(error, SigningKeyError::TooLarge { size });
}

#[test]
fn nothing_shows_a_private_key() {
    for (name, _) in NAMES {
        let key = key(&format!("{name}.pem"));
        let private = file(&format!("{name}.json"));
        let shown = format!("{key:?} {}", key.public_jwks(KID));
        assert!(shown.contains(&key.thumbprint()));
        for member in ["d", "p", "q", "dp", "dq", "qi"] {
            if let Some(secret) = private.get(member).and_then(Value::as_str) {
                assert!(!shown.contains(secret), "{name} {member}");
            }
        }
    }
}

#[test]
fn keys_that_cannot_verify_a_card_are_passed_over() {
    let with = |member: &str, value: Value| {
        let mut key = jwk();
        key[member] = value;
        key
    };
    let small = json!({"kty": "RSA", "e": "AQAB", "n": "3W1Tb4DnjwMelCIYcCrDIGiY4nGvz9Q5gPkXGsoepjTq9UWtSikp_UVphMLJ2E3y8KPEP9zIHxWcMbp2_Q0HjglM00W5QrVMFas7wzDbf0khVJdPiYOCUQJT1kIwpoY5ipcyHu1XMVCQHNLJAsyJT7H9rRPwc9TpqYdT0uwYV5s"});
    let huge = json!({"kty": "RSA", "e": "AQAB", "n": BASE64URL_NOPAD.encode(&[0xff; 1_025])});
    let mut short = file("p256.json");
    short.as_object_mut().unwrap().shift_remove("d");
    short["x"] = BASE64URL_NOPAD.encode(&[1; 31]).into();
    for unusable in [
        with("use", json!("enc")),
        with("use", json!(1)),
        with("key_ops", json!(["sign"])),
        with("key_ops", json!("verify")),
        with("alg", json!("ES256")),
        with("alg", json!("Ed448")),
        with("alg", json!(null)),
        with("kid", json!(7)),
        with("crv", json!("X25519")),
        with("kty", json!("oct")),
        with("x", json!("AAAA")),
        with("x", json!("oECAGYhqzvMzt2R4G0-vzUituMvU0Lp7xFHRvuCbsMk=")),
        file("ed25519.json"),
        file("rsa.json"),
        small,
        huge,
        short,
        json!("key"),
        json!(null),
    ] {
        let keys = set(&[unusable.clone(), jwk()]);
        assert_eq!((keys.len(), keys.skipped_count()), (1, 1), "{unusable}");
    }
    for usable in [
        with("use", json!("sig")),
        with("key_ops", json!(["verify", "sign"])),
        with("alg", json!("EdDSA")),
        with("kid", json!("")),
        with("x5c", json!(["MII"])),
    ] {
        let keys = set(std::slice::from_ref(&usable));
        assert_eq!((keys.len(), keys.skipped_count()), (1, 0), "{usable}");
    }
}

/// No verifier accepts what such a key has signed.
#[test]
fn a_private_key_for_another_use_signs_nothing() {
    for (member, value, is_usable) in [
        ("use", json!("sig"), true),
        ("use", json!("enc"), false),
        ("key_ops", json!(["sign", "verify"]), true),
        ("key_ops", json!(["verify"]), false),
        ("key_ops", json!(["decrypt"]), false),
        ("key_ops", json!("sign"), false),
    ] {
        let mut private = file("ed25519.json");
        private[member] = value.clone();
        let read = read(private.to_string().as_bytes());
        assert_eq!(read.is_ok(), is_usable, "{member}: {value}");
    }
}

#[test]
fn rsa_keys_may_begin_with_zeros() {
    let key = key("rsa.pem");
    let card = signed(CARD, &key).unwrap();
    let mut jwk = file("rsa.json");
    for name in ["d", "p", "q", "dp", "dq", "qi"] {
        jwk.as_object_mut().unwrap().shift_remove(name);
    }
    let mut bytes = vec![0];
    bytes.extend(
        BASE64URL_NOPAD
            .decode(jwk["n"].as_str().unwrap().as_bytes())
            .unwrap(),
    );
    jwk["n"] = BASE64URL_NOPAD.encode(&bytes).into();
    let keys = set(&[jwk]);
    assert_eq!(verdict(&card, &keys), "valid sdk");
    assert_eq!(keys.thumbprints().collect::<Vec<_>>(), [key.thumbprint()]);
}

#[test]
fn key_sets_end_at_their_bounds() {
    let many = |count: usize| set(&vec![jwk(); count]);
    assert_eq!(
        (many(MAX_KEYS).len(), many(MAX_KEYS).skipped_count()),
        (MAX_KEYS, 0)
    );
    let more = many(MAX_KEYS + 3);
    assert_eq!((more.len(), more.skipped_count()), (MAX_KEYS, 3));
    let padded = |size: usize| {
        let mut text = json!({"keys": [jwk()]}).to_string();
        text.push_str(&" ".repeat(size - text.len()));
        KeySet::from_jwks(text.as_bytes())
    };
    assert!(padded(MAX_KEY_SET_BYTES).is_ok());
    let size = MAX_KEY_SET_BYTES + 1;
    assert_eq!(padded(size), Err(KeySetError::TooLarge { size }));
    for wrong in [
        "",
        "[]",
        "{}",
        r#"{"keys":{}}"#,
        r#"{"keys":[],"keys":[]}"#,
        "<html>",
    ] {
        let error = KeySet::from_jwks(wrong.as_bytes()).unwrap_err();
        assert!(matches!(error, KeySetError::NotAKeySet { .. }), "{wrong}");
        assert!(!error.to_string().contains('\n'));
    }
    assert!(KeySet::from_jwks(br#"{"keys":[]}"#).unwrap().is_empty());
}

#[test]
fn sets_are_joined_without_repetition_up_to_the_bound() {
    let numbered = |from: u8, to: u8| {
        let keys: Vec<Value> = (from..to)
            .map(|n| json!({"kty": "OKP", "crv": "Ed25519", "x": BASE64URL_NOPAD.encode(&[n; 32])}))
            .collect();
        set(&keys)
    };
    let joined = numbered(0, 20).union(numbered(10, 30));
    assert_eq!((joined.len(), joined.skipped_count()), (30, 0));
    let more = [(40, 70), (70, 100), (100, 130), (130, 150)];
    let full = more
        .iter()
        .fold(joined, |full, (from, to)| full.union(numbered(*from, *to)));
    assert_eq!((full.len(), full.skipped_count()), (4 * MAX_KEYS, 12));
    let mut renamed = jwk();
    renamed["kid"] = "other".into();
    assert_eq!(
        set(&[jwk()]).union(set(&[renamed])).len(),
        2,
        "each is a hint"
    );
}

#[test]
fn signing_adds_an_entry_and_changes_nothing_else() {
    let key = key("ed25519.pem");
    let odd = r#"{"z":1.0,"name":"Zoë \u0000","supportedInterfaces":[{"url":"https://a.io"}],"big":1e21,"a":{"z":0,"a":-0.0}}"#;
    let once = signed(odd, &key).unwrap();
    let twice = signed(&once, &key).unwrap();
    let verdicts: Vec<String> = judged(&twice, &published(&key))
        .iter()
        .map(describe)
        .collect();
    assert_eq!(verdicts, ["valid sdk", "valid sdk"]);
    let start = odd.strip_suffix('}').unwrap().replace("1e21", "1e+21");
    assert!(twice.starts_with(&start), "{twice}");
    let plain = |card: &str| canonical_payload(card.as_bytes(), CanonicalForm::Plain);
    assert_eq!(plain(&twice), plain(odd));

    let spread = "{\n  \"name\": \"A\",\n  \"supportedInterfaces\": [{\"url\": \"https://a.io\"}], \"signatures\": null\n}\n";
    let spread = signed(spread, &key).unwrap();
    assert!(spread.starts_with("{\n  \"name\": \"A\",\n"), "{spread}");
    assert_eq!(verdict(&spread, &published(&key)), "valid sdk");
    let named = ProtectedHeader {
        kid: "k\"2".into(),
        jku: Some("https://a.io/keys".into()),
    };
    let bytes = sign_card(CARD.as_bytes(), &key, &named, &SystemRandom::new()).unwrap();
    let keys = KeySet::from_jwks(key.public_jwks(&named.kid).as_bytes()).unwrap();
    let entry = verify_signatures(&parse_card(&bytes).unwrap(), &bytes, &keys).remove(0);
    assert_eq!((entry.kid, entry.jku), (Some(named.kid), named.jku));
}

#[test]
fn a_card_without_interfaces_is_signed_as_0_3() {
    let key = key("p384.pem");
    let card = r#"{"name":"A","url":"https://a.io","protocolVersion":"0.3.0"}"#;
    let card = signed(card, &key).unwrap();
    assert_eq!(verdict(&card, &published(&key)), "valid 0.3");
}

#[test]
fn cards_that_cannot_be_signed_are_told_why() {
    let key = key("ed25519.pem");
    let refused = |card: &str| signed(card, &key).unwrap_err();
    assert!(matches!(refused("{}"), SignError::Card(_)));
    assert_eq!(refused(r#"{"name":"A","name":"B"}"#), SignError::NotIJson);
    assert_eq!(
        refused(r#"{"name":"A","x":9007199254740993}"#),
        SignError::NotIJson
    );
    assert_eq!(
        refused(r#"{"name":"A","skills":1,"url":"u"}"#),
        SignError::WrongMembers
    );
    assert_eq!(
        refused(r#"{"agent":{"name":"A"}}"#),
        SignError::WrongMembers
    );
    assert_eq!(
        refused(r#"{"name":"A","signatures":{}}"#),
        SignError::Signatures
    );
    let with = |count: usize| {
        let full = json!({"name": "A", "signatures": vec![json!({}); count]});
        signed(&full.to_string(), &key)
    };
    assert!(with(MAX_SIGNATURES - 1).is_ok());
    assert_eq!(with(MAX_SIGNATURES), Err(SignError::NoRoom));
    let sized = |size: usize| {
        let frame = r#"{"name":"A","x":""}"#.len();
        let card = format!(r#"{{"name":"A","x":"{}"}}"#, "y".repeat(size - frame));
        signed(&card, &key).map(|signed| signed.len())
    };
    let added = sized(1_000).unwrap() - 1_000;
    assert_eq!(sized(MAX_CARD_BYTES - added), Ok(MAX_CARD_BYTES));
    assert_eq!(sized(MAX_CARD_BYTES - added + 1), Err(SignError::NoRoom));
    let nameless = ProtectedHeader {
        kid: String::new(),
        jku: None,
    };
    let error = sign_card(CARD.as_bytes(), &key, &nameless, &SystemRandom::new());
    assert_eq!(error, Err(SignError::Kid));
}
