//! Sign-in at an authorization server that a card names, after the user has agreed.

use std::sync::Arc;

use a2a_client::oauth::{
    AuthorizationServer, GrantType, LoopbackRedirect, OauthClientConfig, OauthEndpoints,
    OauthScheme, OauthServerMetadata, SIGN_IN_TIMEOUT, TokenSet,
};
use a2a_crawler::{Clock, SystemClock};
use a2a_registry_domain::identifiers::{Entropy, SystemEntropy};
use clap::{Args, ValueEnum};
use data_encoding::BASE64URL_NOPAD;
use url::Url;

use super::browser;
use super::consent::SignInConsent;
use crate::agent_credentials::file_format::StoredSignIn;
use crate::agent_credentials::map_oauth_error;
use crate::agent_credentials::secret::{Secret, SecretSources, prompt_visible};
use crate::command_error::CommandError;
use crate::terminal;

/// Options of a sign-in.
#[derive(Args, Clone)]
#[command(next_help_heading = "Sign-in")]
pub(crate) struct SignInArgs {
    /// The client that you have registered with the authorization server (or in `A2A_AGENT_CLIENT_ID`)
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Secret of the client, if it has one: `@FILE`, `@-` for standard input, or the secret itself, which other users
    /// of this machine can see (or in `A2A_AGENT_CLIENT_SECRET`)
    #[arg(long, value_name = "@FILE|SECRET")]
    client_secret: Option<String>,
    /// Flow to sign in with, if the card or the server offers several [default: the first one offered]
    #[arg(long, value_name = "FLOW")]
    flow: Option<SignInFlowArg>,
    /// A scope to request, instead of those in the card
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Open the browser for `--flow code`, instead of only printing the address
    #[arg(long)]
    browser: bool,
    /// Trust this origin with the sign-in without a prompt: a token, authorization, device or discovery address of the
    /// card
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    confirm_token_endpoint: Vec<String>,
}

/// Flow, as given on the command line.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum SignInFlowArg {
    /// In a browser on this machine
    Code,
    /// On any device, with a code to type
    Device,
    /// As the client itself, without a person
    Client,
}

impl SignInArgs {
    /// Origins that the user confirmed with a flag.
    pub fn confirmed_origins(&self) -> &[String] {
        &self.confirm_token_endpoint
    }

    /// Whether the user gave a client, and so wants to sign in.
    pub fn is_requested(&self) -> bool {
        self.client_id.is_some() || self.flow.is_some()
    }

    /// Warns once about a secret that others can see in the list of processes.
    pub fn warn_about_exposure(&self) {
        if self.secret_sources().is_exposed() {
            terminal::eprint_note(
                "warning: --client-secret on the command line is visible to other users of this machine; use @FILE or \
                 A2A_AGENT_CLIENT_SECRET",
            );
        }
    }

    fn secret_sources(&self) -> SecretSources<'_> {
        SecretSources {
            flag: "--client-secret",
            flag_value: self.client_secret.as_deref(),
            variable: "A2A_AGENT_CLIENT_SECRET",
        }
    }

    fn resolve_client(&self) -> Result<OauthClientConfig, CommandError> {
        let set = || std::env::var("A2A_AGENT_CLIENT_ID").ok();
        let id = self.client_id.clone().or_else(set);
        let id = match id.filter(|id| !id.is_empty()) {
            Some(id) => id,
            None => prompt_visible(
                "Client id",
                "register a client with the authorization server, and give its id with --client-id",
            )?,
        };
        Ok(OauthClientConfig {
            id,
            secret: self.secret_sources().read()?.map(|secret| secret.0),
        })
    }

    /// Grants that the user accepts, the preferred one first.
    fn preferred_grants(&self, has_secret: bool) -> Vec<GrantType> {
        match self.flow {
            Some(SignInFlowArg::Code) => vec![GrantType::AuthorizationCode],
            Some(SignInFlowArg::Device) => vec![GrantType::DeviceCode],
            Some(SignInFlowArg::Client) => vec![GrantType::ClientCredentials],
            None => {
                let mut all = vec![GrantType::AuthorizationCode, GrantType::DeviceCode];
                all.extend(has_secret.then_some(GrantType::ClientCredentials));
                all
            }
        }
    }
}

pub(super) async fn sign_in(
    scheme: &OauthScheme,
    arguments: &SignInArgs,
    consent: &mut SignInConsent,
) -> Result<StoredSignIn, CommandError> {
    let client = arguments.resolve_client()?;
    let scopes = match arguments.scope.is_empty() {
        true => scheme.scopes.clone(),
        false => arguments.scope.clone(),
    };
    let grants = arguments.preferred_grants(client.secret.is_some());
    let chosen = choose_sign_in_flow(scheme, &grants, &scopes, consent).await?;
    let provider =
        AuthorizationServer::new(chosen.endpoints.clone(), &client).map_err(map_oauth_error)?;
    let tokens = match chosen.grant {
        GrantType::AuthorizationCode => {
            sign_in_with_browser(&provider, &chosen.endpoints, &scopes, arguments.browser).await
        }
        GrantType::DeviceCode => run_device_flow(&provider, &scopes).await,
        GrantType::ClientCredentials => provider
            .exchange_client_credentials(&scopes)
            .await
            .map_err(map_oauth_error),
    }?;
    let text = |url: &Url| url.to_string();
    let mut stored = StoredSignIn {
        declared: text(&chosen.declared),
        token_endpoint: text(&chosen.endpoints.token),
        refresh_endpoint: chosen.endpoints.refresh.as_ref().map(text),
        client_id: client.id,
        client_secret: client.secret.map(Secret),
        secret_in_body: chosen.endpoints.sends_secret_in_body,
        unattended: chosen.grant == GrantType::ClientCredentials,
        scopes,
        access_token: Secret(String::new()),
        expires_at: None,
        renew_at: None,
        refresh_token: None,
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    stored.set_tokens(&tokens, clock.now().into());
    Ok(stored)
}

/// Flow that is used.
struct ChosenSignInFlow {
    grant: GrantType,
    endpoints: OauthEndpoints,
    /// The address in the card.
    declared: Url,
}

/// Chooses the first of these grants that the card, or the document that it names, offers; confirms its addresses.
async fn choose_sign_in_flow(
    scheme: &OauthScheme,
    grants: &[GrantType],
    scopes: &[String],
    consent: &mut SignInConsent,
) -> Result<ChosenSignInFlow, CommandError> {
    if let Some(flow) = grants.iter().find_map(|grant| scheme.flow_for(*grant)) {
        consent.require(&flow.endpoints.urls_for_grant(flow.grant_type), scopes)?;
        return Ok(ChosenSignInFlow {
            grant: flow.grant_type,
            endpoints: flow.endpoints.clone(),
            declared: flow.endpoints.token.clone(),
        });
    }
    let Some(document) = &scheme.metadata_url else {
        return Err(CommandError::new(format!(
            "the card describes no way to sign in for {} that can be used here; see --flow, and --client-secret for \
             clients that sign in for themselves",
            scheme.scheme_name
        )));
    };
    let what = match scheme.is_openid {
        true => "OpenID issuer",
        false => "metadata",
    };
    consent.require(&[(what, document)], scopes)?;
    let read = OauthServerMetadata::fetch(document)
        .await
        .map_err(map_oauth_error)?;
    let endpoints = read.endpoints(document).map_err(map_oauth_error)?;
    let supports_grant = |grant: &GrantType| match grant {
        GrantType::AuthorizationCode => endpoints.authorization.is_some(),
        GrantType::DeviceCode => endpoints.device.is_some(),
        GrantType::ClientCredentials => true,
    };
    let grant = grants.iter().copied().find(supports_grant).ok_or_else(|| {
        CommandError::new(format!(
            "{document} offers no way to sign in that can be used here; see --flow"
        ))
    })?;
    consent.require_for_document_addresses(document, &endpoints.urls_for_grant(grant), scopes)?;
    Ok(ChosenSignInFlow {
        grant,
        endpoints,
        declared: document.clone(),
    })
}

async fn sign_in_with_browser(
    provider: &AuthorizationServer,
    endpoints: &OauthEndpoints,
    scopes: &[String],
    open_browser: bool,
) -> Result<TokenSet, CommandError> {
    let loopback = LoopbackRedirect::open().await.map_err(map_oauth_error)?;
    let redirect_uri = loopback.url().clone();
    let (state, verifier) = (random_token(), random_token());
    let url = provider.authorization_url(&redirect_uri, &state, &verifier, scopes);
    let url = url.map_err(map_oauth_error)?;
    terminal::eprint_note(&format!("sign in at {url}"));
    if open_browser && let Err(reason) = browser::open_browser(&url) {
        terminal::eprint_note(&format!(
            "the browser cannot be opened ({reason}); open the address yourself"
        ));
    }
    let issuer = endpoints
        .issuer
        .as_deref()
        .filter(|_| endpoints.requires_issuer_parameter);
    let server = endpoints
        .authorization
        .as_ref()
        .map_or("the server", Url::as_str);
    let code = loopback
        .wait_for_code(&state, issuer, server)
        .await
        .map_err(map_oauth_error)?;
    let tokens = provider.exchange_code(code, &redirect_uri, &verifier).await;
    tokens.map_err(map_oauth_error)
}

async fn run_device_flow(
    provider: &AuthorizationServer,
    scopes: &[String],
) -> Result<TokenSet, CommandError> {
    let device = provider
        .start_device_authorization(scopes)
        .await
        .map_err(map_oauth_error)?;
    terminal::eprint_note(&format!(
        "sign in at {} with the code {}",
        terminal::escape_and_truncate(device.verification_uri(), 300),
        terminal::escape_and_truncate(device.user_code(), 100)
    ));
    provider
        .wait_for_device(&device, SIGN_IN_TIMEOUT)
        .await
        .map_err(map_oauth_error)
}

/// 32 random bytes as 43 characters.
pub(crate) fn random_token() -> String {
    let mut bytes = [0; 32];
    SystemEntropy::default().fill(&mut bytes);
    BASE64URL_NOPAD.encode(&bytes)
}

/// Parses an origin.
fn parse_origin(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.filter(|url| url.path() == "/" && url.query().is_none());
    let origin = url.map(|url| url.origin().ascii_serialization());
    origin
        .ok_or_else(|| "an origin must have the form https://HOST or https://HOST:PORT".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        assert_eq!(
            parse_origin("https://L.example:443/").unwrap(),
            "https://l.example"
        );
        assert_eq!(
            parse_origin("http://127.0.0.1:9").unwrap(),
            "http://127.0.0.1:9"
        );
        for wrong in [
            "l.example",
            "https://l.example/token",
            "file:///x",
            "https://l.example?x",
            "",
        ] {
            assert!(parse_origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn verifiers_are_long_enough_and_differ() {
        let (one, two) = (random_token(), random_token());
        assert_eq!((one.len(), two.len()), (43, 43));
        assert_ne!(one, two);
    }
}
