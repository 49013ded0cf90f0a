//! A real identity provider in a process of its own: `tests/interop/provider.cjs`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use super::program::Program;
use super::setup::RegistrySetup;
use super::{http_client, required_variable};

/// The audience of access tokens for the registry.
pub const AUDIENCE: &str = "https://registry.example";

/// A request with a form.
pub fn with_form(
    request: reqwest::RequestBuilder,
    fields: &[(&str, &str)],
) -> reqwest::RequestBuilder {
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
    /// Starts a provider without people, which stores its data in that folder.
    ///
    /// # Panics
    ///
    /// If `tests/run` has not prepared it, or it does not start.
    pub async fn start(folder: &Path, name: &str) -> Self {
        Self::start_on(0, folder.join(format!("{name}.json"))).await
    }

    async fn start_on(port: u16, file: PathBuf) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/provider.cjs");
        let mut command = Command::new("node");
        command
            .env("NODE_PATH", required_variable("A2A_REGISTRY_TEST_NODE"))
            .arg(script)
            .arg(port.to_string())
            .arg(&file);
        let program = Program::start(command);
        let issuer = program
            .wait_for_match(|line| line.strip_prefix("READY ").map(str::to_owned))
            .await;
        Self {
            issuer,
            file,
            program,
        }
    }

    /// Ends the provider; [`StoppedProvider::restart`] starts it again at the same address, with the same keys and
    /// people.
    pub async fn stop(self) -> StoppedProvider {
        let port = url::Url::parse(&self.issuer).unwrap().port().unwrap();
        self.program.terminate().await;
        StoppedProvider {
            port,
            file: self.file,
        }
    }

    async fn post_test_command(&self, what: &str, body: Value) -> String {
        let request = http_client().post(format!("{}/test/{what}", self.issuer));
        let answer = request.json(&body).send().await.unwrap();
        assert!(answer.status().is_success());
        answer.text().await.unwrap()
    }

    /// Replaces the people, each with claims, or other parts of the provider's data.
    pub async fn set_parts(&self, parts: Value) {
        self.post_test_command("set", parts).await;
    }

    /// Allows the callback of a registry at that URL, in whose configuration the provider has this name.
    pub async fn allow_callback_of(&self, registry: &str, name: &str) {
        let back = format!("{registry}/sign-in/{name}/callback");
        self.set_parts(json!({"redirects": [back]})).await;
    }

    /// Signs with a new key from now on; the earlier keys stay published.
    pub async fn rotate_key(&self, kid: &str) {
        self.post_test_command("rotate", json!({"kid": kid})).await;
    }

    /// A token with any header and claims, signed `by` its `key`, by its public key as a shared secret (`hmac`), or
    /// `none`.
    pub async fn sign_token(&self, by: &str, header: Value, claims: &Value) -> String {
        let wanted = json!({"by": by, "header": header, "claims": claims});
        self.post_test_command("sign", wanted).await
    }

    /// An access token issued to a service for its own credentials.
    pub async fn service_token(&self, service: &str) -> String {
        let request = http_client()
            .post(format!("{}/token", self.issuer))
            .basic_auth(service, Some("the-secret-of-a-service"));
        let request = with_form(request, &[("grant_type", "client_credentials")]);
        let answer = request.send().await.unwrap().text().await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["access_token"].as_str().unwrap().to_owned()
    }
}

/// A provider that was ended.
pub struct StoppedProvider {
    port: u16,
    file: PathBuf,
}

impl StoppedProvider {
    /// Starts the provider again.
    pub async fn restart(self) -> IdentityProvider {
        IdentityProvider::start_on(self.port, self.file).await
    }
}

impl RegistrySetup {
    /// Allows the registry to connect to identity providers on loopback.
    #[must_use]
    pub fn allow_loopback_identity(self) -> Self {
        self.with_config_lines(
            "[identity]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"",
        )
    }

    /// Adds an identity provider, with these lines beside the usual ones.
    #[must_use]
    pub fn add_identity_provider(
        self,
        name: &str,
        provider: &IdentityProvider,
        lines: &str,
    ) -> Self {
        self.with_config_lines(&format!(
            "[identity.providers.{name}]\nissuer = \"{}\"\nclient_id = \"registry\"\n\
             client_secret = \"the-secret-of-the-registry\"\naudiences = [\"{AUDIENCE}\"]\n{lines}",
            provider.issuer
        ))
    }
}
