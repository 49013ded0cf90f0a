//! A real identity provider as a process of a test: `tests/interop/provider.cjs`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use super::program::Program;
use super::setup::Setup;
use super::{http, prepared};

/// The audience of access tokens that are for the registry.
pub const AUDIENCE: &str = "https://registry.example";

/// A request with a form.
pub fn form(request: reqwest::RequestBuilder, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields);
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body.finish())
}

/// A running identity provider; dropping it ends it.
pub struct IdentityProvider {
    /// Its issuer.
    pub issuer: String,
    file: PathBuf,
    program: Program,
}

impl IdentityProvider {
    /// Starts a provider with nobody in it, which keeps its data in that folder.
    ///
    /// # Panics
    ///
    /// If `tests/run` has not prepared it, or it does not start.
    pub async fn start(folder: &Path, name: &str) -> Self {
        Self::on(0, folder.join(format!("{name}.json"))).await
    }

    async fn on(port: u16, file: PathBuf) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/provider.cjs");
        let mut command = Command::new("node");
        command
            .env("NODE_PATH", prepared("A2A_REGISTRY_TEST_NODE"))
            .arg(script)
            .arg(port.to_string())
            .arg(&file);
        let program = Program::start(command);
        let issuer = program
            .find(|line| line.strip_prefix("READY ").map(str::to_owned))
            .await;
        Self {
            issuer,
            file,
            program,
        }
    }

    /// Ends it; [`Away::back`] starts it again at the same address, with the same keys and people.
    pub async fn go_away(self) -> Away {
        let port = url::Url::parse(&self.issuer).unwrap().port().unwrap();
        self.program.terminate().await;
        Away {
            port,
            file: self.file,
        }
    }

    async fn tested(&self, what: &str, body: Value) -> String {
        let request = http().post(format!("{}/test/{what}", self.issuer));
        let answer = request.json(&body).send().await.unwrap();
        assert!(answer.status().is_success());
        answer.text().await.unwrap()
    }

    /// Replaces the people, each with claims, or other parts of what it keeps.
    pub async fn set(&self, parts: Value) {
        self.tested("set", parts).await;
    }

    /// Lets a registry at that URL sign people in, which knows it by that name.
    pub async fn admit(&self, registry: &str, name: &str) {
        let back = format!("{registry}/sign-in/{name}/callback");
        self.set(json!({"redirects": [back]})).await;
    }

    /// Signs with a new key from now on; the ones before stay published.
    pub async fn rotate(&self, kid: &str) {
        self.tested("rotate", json!({"kid": kid})).await;
    }

    /// A token of any header and claims: signed `by` its `key`, by its public key as a shared secret (`hmac`), or `none`.
    pub async fn sign(&self, by: &str, header: Value, claims: &Value) -> String {
        let wanted = json!({"by": by, "header": header, "claims": claims});
        self.tested("sign", wanted).await
    }

    /// An access token that a service gets with its own credentials.
    pub async fn token_of(&self, service: &str) -> String {
        let request = http()
            .post(format!("{}/token", self.issuer))
            .basic_auth(service, Some("the-secret-of-a-service"));
        let request = form(request, &[("grant_type", "client_credentials")]);
        let answer = request.send().await.unwrap().text().await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["access_token"].as_str().unwrap().to_owned()
    }
}

/// A provider that was ended.
pub struct Away {
    port: u16,
    file: PathBuf,
}

impl Away {
    /// Starts it again.
    pub async fn back(self) -> IdentityProvider {
        IdentityProvider::on(self.port, self.file).await
    }
}

impl Setup {
    /// Lets the registry ask identity providers on loopback.
    #[must_use]
    pub fn with_identity(self) -> Self {
        self.configure(
            "[identity]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"",
        )
    }

    /// Adds an identity provider, with these lines beside the usual ones.
    #[must_use]
    pub fn provider(self, name: &str, provider: &IdentityProvider, lines: &str) -> Self {
        self.configure(&format!(
            "[identity.providers.{name}]\nissuer = \"{}\"\nclient_id = \"registry\"\n\
             client_secret = \"the-secret-of-the-registry\"\naudiences = [\"{AUDIENCE}\"]\n{lines}",
            provider.issuer
        ))
    }
}
