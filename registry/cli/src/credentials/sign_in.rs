//! Signs in at an authorization server that a card names, once the user agrees.

use std::sync::Arc;

use a2a_client::oauth::{
    Endpoints, Grant, LoopbackRedirect, OauthClient, OauthError, Provider, ProviderDocument,
    SignIn, TokenSet, WAIT_LIMIT,
};
use a2a_crawler::{Clock, SystemClock};
use a2a_registry_domain::ids::{Entropy, SystemEntropy};
use clap::{Args, ValueEnum};
use data_encoding::BASE64URL_NOPAD;
use url::Url;

use super::browser;
use super::consent::Consent;
use super::secret::{Secret, SecretPlaces, ask_shown};
use super::stored::StoredSignIn;
use crate::failure::Failure;
use crate::terminal;

/// How a sign-in is made.
#[derive(Args, Clone)]
#[command(next_help_heading = "Sign-in")]
pub(crate) struct SignInArgs {
    /// The client that you have registered with the authorization server (or in `A2A_AGENT_CLIENT_ID`)
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Its secret, if it has one: `@FILE`, `@-` for standard input, or the secret itself, which other users of this machine
    /// can see (or in `A2A_AGENT_CLIENT_SECRET`)
    #[arg(long, value_name = "@FILE|SECRET")]
    client_secret: Option<String>,
    /// How to sign in, where the card or the server offers several ways [default: the first one offered]
    #[arg(long, value_name = "FLOW")]
    flow: Option<Flow>,
    /// A scope to ask for, instead of those that the card names
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Open the browser for `--flow code`, rather than only print its address
    #[arg(long)]
    browser: bool,
    /// Trust this origin with the sign-in, instead of being asked: a token, authorization, device or discovery address of
    /// the card
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    confirm_token_endpoint: Vec<String>,
}

/// A flow, as it is typed.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// In a browser on this machine
    Code,
    /// On any device, with a code to type
    Device,
    /// As the client itself, without a person
    Client,
}

impl SignInArgs {
    /// Origins that the user confirms.
    pub fn confirmed(&self) -> &[String] {
        &self.confirm_token_endpoint
    }

    /// Whether the user named a client, and so wants to sign in.
    pub fn is_given(&self) -> bool {
        self.client_id.is_some() || self.flow.is_some()
    }

    /// Says once that a secret can be seen in the list of processes.
    pub fn warn(&self) {
        if self.secret().is_exposed() {
            terminal::note(
                "warning: --client-secret on the command line is visible to other users of this machine; use @FILE or \
                 A2A_AGENT_CLIENT_SECRET",
            );
        }
    }

    fn secret(&self) -> SecretPlaces<'_> {
        SecretPlaces {
            flag: "--client-secret",
            given: self.client_secret.as_deref(),
            variable: "A2A_AGENT_CLIENT_SECRET",
        }
    }

    fn client(&self) -> Result<OauthClient, Failure> {
        let set = || std::env::var("A2A_AGENT_CLIENT_ID").ok();
        let id = self.client_id.clone().or_else(set);
        let id = match id.filter(|id| !id.is_empty()) {
            Some(id) => id,
            None => ask_shown(
                "Client id",
                "register a client with the authorization server, and give its id with --client-id",
            )?,
        };
        Ok(OauthClient {
            id,
            secret: self.secret().read()?.map(|secret| secret.0),
        })
    }

    /// The ways that the user wants, the preferred one first.
    fn grants(&self, has_secret: bool) -> Vec<Grant> {
        match self.flow {
            Some(Flow::Code) => vec![Grant::AuthorizationCode],
            Some(Flow::Device) => vec![Grant::DeviceCode],
            Some(Flow::Client) => vec![Grant::ClientCredentials],
            None => {
                let mut all = vec![Grant::AuthorizationCode, Grant::DeviceCode];
                all.extend(has_secret.then_some(Grant::ClientCredentials));
                all
            }
        }
    }
}

pub(super) async fn sign_in(
    offered: &SignIn,
    arguments: &SignInArgs,
    consent: &mut Consent,
) -> Result<StoredSignIn, Failure> {
    let client = arguments.client()?;
    let scopes = match arguments.scope.is_empty() {
        true => offered.scopes.clone(),
        false => arguments.scope.clone(),
    };
    let grants = arguments.grants(client.secret.is_some());
    let found = find(offered, &grants, &scopes, consent).await?;
    let provider = Provider::new(found.endpoints.clone(), &client).map_err(failure)?;
    let tokens = match found.grant {
        Grant::AuthorizationCode => {
            in_browser(&provider, &found.endpoints, &scopes, arguments.browser).await
        }
        Grant::DeviceCode => at_device(&provider, &scopes).await,
        Grant::ClientCredentials => provider.client_credentials(&scopes).await.map_err(failure),
    }?;
    let text = |url: &Url| url.to_string();
    let mut kept = StoredSignIn {
        declared: text(&found.declared),
        token_endpoint: text(&found.endpoints.token),
        refresh_endpoint: found.endpoints.refresh.as_ref().map(text),
        client_id: client.id,
        client_secret: client.secret.map(Secret),
        secret_in_body: found.endpoints.secret_in_body,
        unattended: found.grant == Grant::ClientCredentials,
        scopes,
        access_token: Secret(String::new()),
        expires_at: None,
        renew_at: None,
        refresh_token: None,
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    kept.take(&tokens, clock.now().into());
    Ok(kept)
}

/// The way that is taken.
struct Found {
    grant: Grant,
    endpoints: Endpoints,
    /// The address in the card.
    declared: Url,
}

/// The first of these ways that the card, or the document that it names, offers; its addresses are confirmed.
async fn find(
    offered: &SignIn,
    grants: &[Grant],
    scopes: &[String],
    consent: &mut Consent,
) -> Result<Found, Failure> {
    if let Some(flow) = grants.iter().find_map(|grant| offered.flow(*grant)) {
        consent.require(&flow.endpoints.of_grant(flow.grant), scopes)?;
        return Ok(Found {
            grant: flow.grant,
            endpoints: flow.endpoints.clone(),
            declared: flow.endpoints.token.clone(),
        });
    }
    let Some(document) = &offered.document else {
        return Err(Failure::new(format!(
            "the card describes no way to sign in for {} that can be used here; see --flow, and --client-secret for \
             clients that sign in for themselves",
            offered.scheme
        )));
    };
    let what = match offered.openid {
        true => "OpenID issuer",
        false => "metadata",
    };
    consent.require(&[(what, document)], scopes)?;
    let read = ProviderDocument::fetch(document).await.map_err(failure)?;
    let endpoints = read.endpoints(document).map_err(failure)?;
    let has = |grant: &Grant| match grant {
        Grant::AuthorizationCode => endpoints.authorization.is_some(),
        Grant::DeviceCode => endpoints.device.is_some(),
        Grant::ClientCredentials => true,
    };
    let grant = grants.iter().copied().find(has).ok_or_else(|| {
        Failure::new(format!(
            "{document} offers no way to sign in that can be used here; see --flow"
        ))
    })?;
    consent.require_of(document, &endpoints.of_grant(grant), scopes)?;
    Ok(Found {
        grant,
        endpoints,
        declared: document.clone(),
    })
}

async fn in_browser(
    provider: &Provider,
    endpoints: &Endpoints,
    scopes: &[String],
    open: bool,
) -> Result<TokenSet, Failure> {
    let back = LoopbackRedirect::open().await.map_err(failure)?;
    let redirect = back.url().clone();
    let (state, verifier) = (random(), random());
    let url = provider.authorization(&redirect, &state, &verifier, scopes);
    let url = url.map_err(failure)?;
    terminal::note(&format!("sign in at {url}"));
    if open && let Err(reason) = browser::open(&url) {
        terminal::note(&format!(
            "the browser cannot be opened ({reason}); open the address yourself"
        ));
    }
    let issuer = endpoints
        .issuer
        .as_deref()
        .filter(|_| endpoints.names_issuer);
    let server = endpoints
        .authorization
        .as_ref()
        .map_or("the server", Url::as_str);
    let code = back.code(&state, issuer, server).await.map_err(failure)?;
    let tokens = provider.exchange(code, &redirect, &verifier).await;
    tokens.map_err(failure)
}

async fn at_device(provider: &Provider, scopes: &[String]) -> Result<TokenSet, Failure> {
    let device = provider.device(scopes).await.map_err(failure)?;
    terminal::note(&format!(
        "sign in at {} with the code {}",
        terminal::short(device.address(), 300),
        terminal::short(device.code(), 100)
    ));
    provider.wait(&device, WAIT_LIMIT).await.map_err(failure)
}

/// 32 random bytes as 43 characters.
fn random() -> String {
    let mut bytes = [0; 32];
    SystemEntropy::default().fill(&mut bytes);
    BASE64URL_NOPAD.encode(&bytes)
}

pub(super) fn failure(error: OauthError) -> Failure {
    match error {
        OauthError::Refused { .. } | OauthError::NobodyCame { .. } => {
            Failure::No(error.to_string())
        }
        other => Failure::new(other.to_string()),
    }
}

/// The origin of an address, as it is typed.
fn origin(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.filter(|url| url.path() == "/" && url.query().is_none());
    let origin = url.map(|url| url.origin().ascii_serialization());
    origin.ok_or_else(|| "an origin is written as https://HOST or https://HOST:PORT".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        assert_eq!(
            origin("https://L.example:443/").unwrap(),
            "https://l.example"
        );
        assert_eq!(origin("http://127.0.0.1:9").unwrap(), "http://127.0.0.1:9");
        for wrong in [
            "l.example",
            "https://l.example/token",
            "file:///x",
            "https://l.example?x",
            "",
        ] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn verifiers_are_long_enough_and_differ() {
        let (one, two) = (random(), random());
        assert_eq!((one.len(), two.len()), (43, 43));
        assert_ne!(one, two);
    }
}
