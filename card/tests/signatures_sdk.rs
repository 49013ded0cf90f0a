//! Signatures of other SDKs, and our signatures in their verifiers. `A2A_REGISTRY_TEST_PY1` and
//! `A2A_REGISTRY_TEST_PY03` name a Python with a2a-sdk 1.3.0 or 0.3.26 and `PyJWT`, `A2A_REGISTRY_TEST_NODE` a folder
//! of node modules with @a2a-js/sdk 1.3.0. If an SDK is missing, its tests print a note and pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use a2a_card::{Algorithm, ProtectedHeader, SigningKey, sign_card};
use ring::rand::SystemRandom;
use serde_json::{Value, json};
use support::{KID, key, key_path, published, verdict};

/// A foreign SDK.
#[derive(Debug, Clone, Copy)]
enum Sdk {
    Py1,
    Py03,
    Node,
}

impl Sdk {
    /// Runs all jobs in one process of the SDK's script; `None`, with a loud note, if the SDK is missing.
    fn work(self, jobs: &[Value]) -> Option<Vec<Value>> {
        let (variable, script) = match self {
            Sdk::Py1 => ("A2A_REGISTRY_TEST_PY1", "py1.py"),
            Sdk::Py03 => ("A2A_REGISTRY_TEST_PY03", "py03.py"),
            Sdk::Node => ("A2A_REGISTRY_TEST_NODE", "node.cjs"),
        };
        let Some(place) = std::env::var_os(variable) else {
            eprintln!("SKIPPED: {variable} names no SDK to sign and verify with");
            return None;
        };
        let mut command = if matches!(self, Sdk::Node) {
            let mut node = Command::new("node");
            node.env("NODE_PATH", place);
            node
        } else {
            let mut python = Command::new(place);
            python.args(["-B", "-W", "ignore"]);
            python
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
        command.arg(folder.join(script));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let text = Value::from(jobs).to_string();
        input.write_all(text.as_bytes()).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{self:?} failed");
        let results: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(results.len(), jobs.len());
        Some(results)
    }
}

/// All keys, each with every algorithm it can be used with.
fn all_keys() -> Vec<(&'static str, SigningKey)> {
    let pss = key("rsa.pem").with_algorithm(Algorithm::Ps256).unwrap();
    vec![
        ("ed25519", key("ed25519.pem")),
        ("p256", key("p256.pem")),
        ("p384", key("p384.pem")),
        ("rsa", key("rsa.pem")),
        ("rsa", pss),
    ]
}

/// Cards of 1.0 without security schemes; each has something that SDKs treat differently.
const CARDS_1_0: [(&str, &str); 4] = [
    (
        "small",
        r#"{"name":"A","description":"d","version":"1","capabilities":{},"skills":[],
            "supportedInterfaces":[{"url":"https://a.agents-r-us.io","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#,
    ),
    (
        "texts and numbers",
        r#"{"name":"Zoë 東京 😀","description":"\"<&>\" \u2028 \u007f \t\\","version":"1",
            "supportedInterfaces":[{"url":"https://a.agents-r-us.io","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":"t"}],
            "provider":{"organization":"Größe","url":"https://agents-r-us.io"},
            "capabilities":{"streaming":false,"pushNotifications":true,"extendedAgentCard":false,"extensions":[
                {"uri":"https://x.agents-r-us.io","description":"e","required":true,"params":{
                    "whole":1.0,"third":0.3333333333333333,"large":1e21,"tiny":1e-7,"minus":-0.0,"tie":1424953923781206.2,"exact":9007199254740992,
                    "\ufb33":1,"\ud83d\ude00":2,"10":3,"9":4,"nested":{"b":[1,[2,{"c":true}]],"a":false}}}]},
            "documentationUrl":"https://agents-r-us.io/docs","iconUrl":"https://agents-r-us.io/icon.png",
            "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain","application/json"],
            "skills":[{"id":"s","name":"S","description":"d","tags":["é"],"examples":["e"],"inputModes":["text/plain"]}]}"#,
    ),
    (
        "empties",
        r#"{"name":"A","description":"","version":"1","documentationUrl":"","iconUrl":"",
            "supportedInterfaces":[{"url":"https://a.agents-r-us.io","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":""}],
            "capabilities":{"streaming":false,"extensions":[{"uri":"u:x","required":false,"description":"",
                "params":{"e":"","n":null,"l":[],"o":{},"deep":{"x":[{"y":""}]},"mixed":["",null,1,{}],"zero":0,"no":false}}]},
            "securityRequirements":[{"schemes":{"key":{"list":[]}}},{}],
            "defaultInputModes":[],"defaultOutputModes":[],
            "skills":[{"id":"s","name":"S","description":"","tags":[],"examples":[""],"outputModes":[]}]}"#,
    ),
    (
        "both generations",
        r#"{"name":"A","description":"d","version":"1",
            "supportedInterfaces":[
                {"url":"https://a.agents-r-us.io/1","protocolBinding":"JSONRPC","protocolVersion":"1.0"},
                {"url":"https://a.agents-r-us.io/0","protocolBinding":"HTTP+JSON","protocolVersion":"0.3"}],
            "capabilities":{"streaming":true,"extensions":[{"uri":"u:x","params":{"a":[1,2,3]}}]},
            "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
            "skills":[{"id":"s","name":"S","description":"d","tags":["t"]}]}"#,
    ),
];

/// A card of 1.0 with every kind of security scheme.
const SECURED_1_0: &str = r#"{"name":"A","description":"d","version":"1",
    "supportedInterfaces":[
        {"url":"https://a.agents-r-us.io/1","protocolBinding":"JSONRPC","protocolVersion":"1.0"},
        {"url":"https://a.agents-r-us.io/0","protocolBinding":"JSONRPC","protocolVersion":"0.3"}],
    "capabilities":{"streaming":true},
    "securitySchemes":{
        "key":{"apiKeySecurityScheme":{"location":"header","name":"X-Key","description":"Ask us"}},
        "http":{"httpAuthSecurityScheme":{"scheme":"bearer","bearerFormat":"JWT"}},
        "code":{"oauth2SecurityScheme":{"oauth2MetadataUrl":"https://agents-r-us.io/oauth","flows":{"authorizationCode":{
            "authorizationUrl":"https://agents-r-us.io/a","tokenUrl":"https://agents-r-us.io/t","pkceRequired":true,"scopes":{"r":"read","w":""}}}}},
        "client":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"https://agents-r-us.io/t","refreshUrl":"https://agents-r-us.io/f","scopes":{}}}}},
        "oidc":{"openIdConnectSecurityScheme":{"openIdConnectUrl":"https://agents-r-us.io/oidc"}},
        "tls":{"mtlsSecurityScheme":{}}},
    "securityRequirements":[{"schemes":{"code":{"list":["r"]},"tls":{"list":[]}}},{"schemes":{"key":{"list":[]}}}],
    "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
    "skills":[{"id":"s","name":"S","description":"d","tags":["t"],"securityRequirements":[{"schemes":{"code":{"list":["w"]}}}]}]}"#;

/// Cards of 0.3, with and without members that the SDK leaves out of the payload.
const CARDS_0_3: [(&str, &str); 3] = [
    (
        "small",
        r#"{"name":"A","description":"","version":"1","url":"https://a.agents-r-us.io","protocolVersion":"0.3.0",
            "preferredTransport":"JSONRPC","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}"#,
    ),
    (
        "texts and numbers",
        r#"{"name":"Zoë 東京 😀","description":"\"<&>\" \u2028 \u007f \t\\","version":"1","url":"https://a.agents-r-us.io",
            "protocolVersion":"0.3.1","preferredTransport":"GRPC",
            "additionalInterfaces":[{"transport":"HTTP+JSON","url":"https://b.agents-r-us.io"}],
            "provider":{"organization":"Größe","url":"https://agents-r-us.io"},
            "capabilities":{"streaming":false,"pushNotifications":true,"stateTransitionHistory":false,"extensions":[
                {"uri":"u:x","required":false,"params":{"i":1,"f":1.0,"third":0.3333333333333333,"large":1e21,"sixteen":1e16,
                    "fifteen":1e15,"tiny":1e-7,"small":0.0001,"smaller":0.00001,"tie":1424953923781206.2,"minus":-2.5,"zero":0.0,"e":"","n":null,"l":[],"\ufb33":1,"\ud83d\ude00":2,"b":[true,[false]]}}]},
            "supportsAuthenticatedExtendedCard":false,"iconUrl":"","documentationUrl":"https://agents-r-us.io",
            "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
            "skills":[{"id":"s","name":"S","description":"d","tags":["é"],"examples":[],"security":[{"key":[]}]}]}"#,
    ),
    (
        "secured",
        r#"{"name":"A","description":"d","version":"1","url":"https://a.agents-r-us.io","capabilities":{"streaming":true},
            "securitySchemes":{
                "key":{"type":"apiKey","in":"header","name":"X-Key","description":"Ask us"},
                "http":{"type":"http","scheme":"bearer","bearerFormat":"JWT"},
                "oauth":{"type":"oauth2","oauth2MetadataUrl":"https://agents-r-us.io/oauth","flows":{
                    "authorizationCode":{"authorizationUrl":"https://agents-r-us.io/a","tokenUrl":"https://agents-r-us.io/t","scopes":{"r":"read","w":""}},
                    "clientCredentials":{"tokenUrl":"https://agents-r-us.io/t","refreshUrl":"https://agents-r-us.io/f","scopes":{}},
                    "implicit":{"authorizationUrl":"https://agents-r-us.io/a","scopes":{"r":"read"}},
                    "password":{"tokenUrl":"https://agents-r-us.io/t","scopes":{"r":"read"}}}},
                "oidc":{"type":"openIdConnect","openIdConnectUrl":"https://agents-r-us.io/oidc"},
                "tls":{"type":"mutualTLS"}},
            "security":[{"oauth":["r"],"tls":[]},{"key":[]}],
            "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
            "skills":[{"id":"s","name":"S","description":"d","tags":["t"],"security":[{"oauth":["w"]}]}]}"#,
    ),
];

/// Checks that each card, signed by the SDK with every key, gets the `wanted` result, and is invalid once a member
/// changes.
fn signed_by(sdk: Sdk, cards: &[(&str, &str)], wanted: &str) {
    let keys = all_keys();
    let (mut jobs, mut about) = (Vec::new(), Vec::new());
    for (name, card) in cards {
        for (file, key) in &keys {
            let pem = std::fs::read_to_string(key_path(&format!("{file}.pem"))).unwrap();
            let alg = key.algorithm().as_str();
            jobs.push(json!({"card": card, "key": pem, "alg": alg, "kid": KID}));
            about.push((name, key));
        }
    }
    let Some(results) = sdk.work(&jobs) else {
        return;
    };
    for (signed, (name, key)) in results.iter().zip(about) {
        let signed = signed.as_str().unwrap();
        let keys = published(key);
        let about = format!("{sdk:?} {name} {}: {signed}", key.algorithm());
        assert_eq!(verdict(signed, &keys), wanted, "{about}");
        let changed = signed.replace("\"version\":\"1\"", "\"version\":\"2\"");
        assert_ne!(signed, changed, "{about}");
        assert_eq!(verdict(&changed, &keys), "invalid mismatch", "{about}");
    }
}

#[test]
fn cards_signed_by_the_python_sdk_1_are_valid() {
    signed_by(Sdk::Py1, &CARDS_1_0, "valid sdk");
    signed_by(Sdk::Py1, &[("secured", SECURED_1_0)], "valid sdk");
}

#[test]
fn cards_signed_by_the_python_sdk_0_3_are_valid() {
    signed_by(Sdk::Py03, &CARDS_0_3, "valid 0.3");
}

#[test]
fn cards_signed_by_the_javascript_sdk_are_valid_unless_it_lost_their_schemes() {
    signed_by(Sdk::Node, &CARDS_1_0, "valid sdk");
    let secured = [("secured", SECURED_1_0)];
    signed_by(Sdk::Node, &secured, "invalid schemes-not-covered");
}

/// The card as signed by `sign`.
fn ours(card: &str, key: &SigningKey) -> String {
    let header = ProtectedHeader {
        kid: KID.into(),
        jku: Some("https://a.agents-r-us.io/keys.json".into()),
    };
    let signed = sign_card(card.as_bytes(), key, &header, &SystemRandom::new()).unwrap();
    String::from_utf8(signed).unwrap()
}

/// Checks that the SDK and our verifier accept each card signed by us with every key, and no changed card.
fn accepted_by(sdk: Sdk, cards: &[(&str, &str)], wanted: &str) {
    let (mut jobs, mut expected) = (Vec::new(), Vec::new());
    for (_, card) in cards {
        for (_, key) in all_keys() {
            let signed = ours(card, &key);
            assert_eq!(verdict(&signed, &published(&key)), wanted, "{signed}");
            let changed = signed.replacen("https://a.", "https://b.", 1);
            assert_ne!(signed, changed);
            let (alg, keys) = (key.algorithm().as_str(), key.public_jwks(KID));
            jobs.push(json!({"card": signed, "alg": alg, "keys": keys}));
            jobs.push(json!({"card": changed, "alg": alg, "keys": keys}));
            expected.extend([true, false]);
        }
    }
    let Some(results) = sdk.work(&jobs) else {
        return;
    };
    for ((accepted, expected), job) in results.iter().zip(expected).zip(jobs) {
        assert_eq!(*accepted, expected, "{sdk:?} {job}");
    }
}

#[test]
fn the_python_sdk_1_accepts_what_we_sign() {
    accepted_by(Sdk::Py1, &CARDS_1_0, "valid sdk");
    accepted_by(Sdk::Py1, &[("secured", SECURED_1_0)], "valid sdk");
}

#[test]
fn the_python_sdk_0_3_accepts_what_we_sign() {
    accepted_by(Sdk::Py03, &CARDS_0_3, "valid 0.3");
}

#[test]
fn the_javascript_sdk_accepts_what_we_sign() {
    accepted_by(Sdk::Node, &CARDS_1_0, "valid sdk");
}
