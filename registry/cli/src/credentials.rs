//! `credentials`: stored credentials for agents that are called directly, each only for the origin of its interface.

mod browser;
mod consent;
mod sign_in;

use std::path::{Path, PathBuf};

use a2a_card::{AgentCard, AuthScheme, SchemeKind, auth_requirements};
use a2a_client::oauth::oauth_schemes;
use a2a_client::select_interface_url;
use a2a_registry_domain::timestamp::Timestamp;
use clap::{Args, Subcommand};
use serde_json::json;
use url::Url;

use super::agent_credentials::credentials_file::CredentialsFile;
use super::agent_credentials::file_format::{AgentCredentials, StoredCertificate, StoredLogin};
use super::agent_credentials::secret::{Secret, prompt_hidden, prompt_visible};
use super::agent_credentials::{CredentialArgs, map_oauth_error, url_origin};
use super::client::Client;
use super::command_error::{CommandError, CommandResult};
use super::console::Console;
use super::list_format::ListFormat;
use super::send::agent_call::{self, AgentCallArgs, CalledAgent};
pub(crate) use browser::open_browser;
use consent::SignInConsent;
use sign_in::SignInArgs;
pub(crate) use sign_in::random_token;

/// Subcommands of `credentials`.
#[derive(Subcommand, Clone)]
pub enum CredentialsCommand {
    /// Store a token, key, password or certificate for an agent, or sign in to it; asks for what the card requires.
    /// Agents at the same origin share stored credentials
    Add(Box<AddCredentialsArgs>),
    /// List the agents with stored credentials, without the secrets
    List,
    /// Delete all stored credentials for an agent
    Remove {
        /// Origin of its interface, as `list` shows it, or the interface's URL
        #[arg(value_name = "ORIGIN")]
        origin: String,
    },
}

/// Credentials to store, and the agent that they are for.
#[derive(Args, Clone)]
pub struct AddCredentialsArgs {
    #[command(flatten)]
    agent: AgentCallArgs,
    #[command(flatten)]
    sign_in: SignInArgs,
    /// Security scheme of the card to use, if it has several
    #[arg(long, value_name = "NAME")]
    scheme: Option<String>,
}

pub async fn run_credentials(
    command: &CredentialsCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let file = CredentialsFile::for_user()?;
    match command {
        CredentialsCommand::Add(arguments) => {
            add_credentials(arguments, &file, client, console).await
        }
        CredentialsCommand::List => list_credentials(&file, console),
        CredentialsCommand::Remove { origin } => remove_credentials(origin, &file, console).await,
    }
}

async fn add_credentials(
    arguments: &AddCredentialsArgs,
    file: &CredentialsFile,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let credential_args = &arguments.agent.credentials;
    if credential_args.has_header() {
        return Err(CommandError::new(
            "headers are not stored; give --header to each command",
        ));
    }
    // Checked before any prompt, because an unusable file would make the entered credentials useless.
    file.read()?;
    let called_agent = agent_call::load_called_agent(&arguments.agent, client, console).await?;
    let interface = require_declared_interface(&called_agent)?;
    let mut consent = SignInConsent {
        agent: arguments.agent.agent.clone(),
        origin: url_origin(&interface),
        preconfirmed_origins: arguments.sign_in.confirmed_origins().to_vec(),
        confirmed_urls: file
            .read()?
            .confirmed
            .remove(&url_origin(&interface))
            .unwrap_or_default(),
    };
    credential_args.warn_about_exposure();
    arguments.sign_in.warn_about_exposure();
    let new = match credential_args.has_storable_credentials() {
        true => credentials_to_store(credential_args)?,
        false => prompt_for_credentials(arguments, &called_agent.card, &mut consent).await?,
    };
    let mut locked = file.lock().await?;
    let agents = &mut locked.stored.agents;
    merge_credentials(agents.entry(consent.origin.clone()).or_default(), new);
    if !consent.confirmed_urls.is_empty() {
        let confirmed = &mut locked.stored.confirmed;
        confirmed.insert(consent.origin.clone(), consent.confirmed_urls);
    }
    locked.save()?;
    let document = json!({"origin": consent.origin, "file": file.path()});
    console.print_result(&document, || {
        console.print_line(&format!(
            "stored for {} in {}",
            consent.origin,
            file.path().display()
        ))
    })
}

/// Interface for which credentials can be stored: one that the card or the user names.
fn require_declared_interface(called_agent: &CalledAgent) -> Result<Url, CommandError> {
    if called_agent.is_assumed {
        return Err(CommandError::new(
            "credentials cannot be stored for an assumed address; give the agent's address with --url",
        ));
    }
    Ok(select_interface_url(
        &called_agent.card,
        &called_agent.interface_filter,
    )?)
}

/// Credentials from the command line, to be stored.
fn credentials_to_store(
    credential_args: &CredentialArgs,
) -> Result<AgentCredentials, CommandError> {
    let absolute = |path: &Path| -> Result<PathBuf, CommandError> {
        let path = std::path::absolute(path);
        path.map_err(|error| {
            CommandError::new(format!("the path of the certificate is invalid: {error}"))
        })
    };
    let parsed = credential_args.resolve_flags_only()?;
    let certificate = match credential_args.certificate_files() {
        Some((chain, key)) => Some(StoredCertificate {
            chain: absolute(chain)?,
            key: absolute(key)?,
        }),
        None => None,
    };
    Ok(AgentCredentials {
        bearer: parsed.bearer.map(Secret),
        api_key: parsed.api_key.map(Secret),
        basic: parsed.basic.map(|login| StoredLogin {
            user: login.user,
            password: Secret(login.password),
        }),
        certificate,
        sign_in: None,
    })
}

/// Credentials that the card requires, from prompts or a sign-in.
async fn prompt_for_credentials(
    arguments: &AddCredentialsArgs,
    card: &AgentCard,
    consent: &mut SignInConsent,
) -> Result<AgentCredentials, CommandError> {
    let requirements = auth_requirements(card);
    let scheme_name = arguments.scheme.as_deref();
    let mut alternatives = requirements.alternatives.into_iter();
    let matches_arguments = |alternative: &Vec<AuthScheme<'_>>| {
        let mut schemes = alternative.iter();
        match scheme_name {
            Some(name) => schemes.any(|asked| asked.name == name),
            None if arguments.sign_in.is_requested() => schemes.any(is_sign_in_scheme),
            None => !alternative.is_empty(),
        }
    };
    let Some(alternative) = alternatives.find(matches_arguments) else {
        return Err(CommandError::new(match scheme_name {
            Some(name) => format!("the card requires no scheme {name}"),
            None if arguments.sign_in.is_requested() => {
                "the card describes no way to sign in; store a token with --bearer @FILE".to_owned()
            }
            None => "the card declares no required credentials; if the agent requires some anyway, store them with \
                     --bearer @FILE, --api-key @FILE, --basic USER or --cert"
                .to_owned(),
        }));
    };
    let mut new = AgentCredentials::default();
    for auth_scheme in &alternative {
        prompt_scheme_credentials(auth_scheme, arguments, card, consent, &mut new).await?;
    }
    if new == AgentCredentials::default() {
        return Err(CommandError::new(
            "the card requires no credentials, so nothing is stored",
        ));
    }
    Ok(new)
}

fn is_sign_in_scheme(auth_scheme: &AuthScheme<'_>) -> bool {
    matches!(
        auth_scheme.kind.as_deref(),
        Some(SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. })
    )
}

async fn prompt_scheme_credentials(
    auth_scheme: &AuthScheme<'_>,
    arguments: &AddCredentialsArgs,
    card: &AgentCard,
    consent: &mut SignInConsent,
    new: &mut AgentCredentials,
) -> Result<(), CommandError> {
    let origin = consent.origin.clone();
    match auth_scheme.kind.as_deref() {
        Some(SchemeKind::None) => {}
        Some(SchemeKind::Http { scheme, .. }) if scheme == "bearer" => {
            let what = format!("Token for {origin}");
            new.bearer = Some(prompt_hidden(&what, "give it with --bearer @FILE")?);
        }
        Some(SchemeKind::Http { scheme, .. }) if scheme == "basic" => {
            let instead = "give it with --basic USER and --password @FILE";
            let user = prompt_visible(&format!("User at {origin}"), instead)?;
            let password = prompt_hidden("Password", instead)?;
            new.basic = Some(StoredLogin { user, password });
        }
        Some(SchemeKind::ApiKey { .. }) => {
            let what = format!("API key for {origin}");
            new.api_key = Some(prompt_hidden(&what, "give it with --api-key @FILE")?);
        }
        Some(SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. }) => {
            let offered = oauth_schemes(card).map_err(map_oauth_error)?;
            let mut offered = offered.iter();
            let offered = offered.find(|offered| offered.scheme_name == auth_scheme.name);
            let offered = offered.ok_or_else(|| {
                CommandError::new(format!(
                    "the card lists {} behind too many other schemes",
                    auth_scheme.name
                ))
            })?;
            let signed_in = sign_in::sign_in(offered, &arguments.sign_in, consent);
            new.sign_in = Some(signed_in.await?);
        }
        Some(SchemeKind::MutualTls) => {
            return Err(CommandError::new(
                "the card requires a client certificate; store it with --cert FILE --key FILE",
            ));
        }
        Some(SchemeKind::Http { .. } | SchemeKind::Other { .. }) | None => {
            return Err(CommandError::new(format!(
                "the card requires {}, which this program does not support; give it with --header to each command",
                auth_scheme.name
            )));
        }
    }
    Ok(())
}

/// Replaces stored credentials by new ones. Tokens and passwords share one header, so a new one replaces all of them.
fn merge_credentials(old: &mut AgentCredentials, new: AgentCredentials) {
    if new.bearer.is_some() || new.basic.is_some() || new.sign_in.is_some() {
        old.bearer = new.bearer;
        old.basic = new.basic;
        old.sign_in = new.sign_in;
    }
    old.api_key = new.api_key.or(old.api_key.take());
    old.certificate = new.certificate.or(old.certificate.take());
}

fn list_credentials(file: &CredentialsFile, console: &Console) -> CommandResult {
    let stored: Vec<_> = file.read()?.agents.into_iter().collect();
    let entries = stored.iter().map(|(origin, kept)| {
        let sign_in = kept.sign_in.as_ref();
        json!({
            "origin": origin,
            "kinds": stored_credential_kinds(kept),
            "token_endpoint": sign_in.map(|sign_in| &sign_in.token_endpoint),
            "client_id": sign_in.map(|sign_in| &sign_in.client_id),
            "scopes": sign_in.map(|sign_in| &sign_in.scopes),
            "expires_at": sign_in.and_then(|sign_in| sign_in.expires_at).map(format_expiry),
        })
    });
    let document = json!({"credentials": entries.collect::<Vec<_>>()});
    let list_format = ListFormat {
        command: "credentials list",
        limit: None,
        header: ["ORIGIN", "KEPT", "SIGNED IN AT", "TOKEN ENDS"],
        empty_message: "no credentials are stored",
    };
    list_format.print_page(console, &document, &stored, None, |(origin, kept)| {
        let sign_in = kept.sign_in.as_ref();
        let end = sign_in
            .and_then(|sign_in| sign_in.expires_at)
            .map(format_expiry);
        [
            origin.clone(),
            stored_credential_kinds(kept).join(", "),
            sign_in.map_or_else(String::new, |sign_in| sign_in.token_endpoint.clone()),
            end.unwrap_or_default(),
        ]
    })
}

fn format_expiry(at: i64) -> String {
    Timestamp(at).to_readable()
}

fn stored_credential_kinds(credentials: &AgentCredentials) -> Vec<&'static str> {
    [
        ("token", credentials.bearer.is_some()),
        ("API key", credentials.api_key.is_some()),
        ("password", credentials.basic.is_some()),
        ("certificate", credentials.certificate.is_some()),
        ("sign-in", credentials.sign_in.is_some()),
    ]
    .into_iter()
    .filter_map(|(kind, is)| is.then_some(kind))
    .collect()
}

async fn remove_credentials(
    origin_or_url: &str,
    file: &CredentialsFile,
    console: &Console,
) -> CommandResult {
    let url = Url::parse(origin_or_url).ok().filter(Url::has_host);
    let origin = url.map_or_else(|| origin_or_url.to_owned(), |url| url_origin(&url));
    let mut locked = file.lock().await?;
    let had = locked.stored.agents.remove(&origin).is_some();
    let agreed = locked.stored.confirmed.remove(&origin).is_some();
    if !had && !agreed {
        return Err(CommandError::Negative(format!(
            "no credentials are stored for {origin}; `credentials list` shows the origins"
        )));
    }
    locked.save()?;
    console.print_result(&json!({"removed": origin}), || {
        console.print_line(&format!("the credentials for {origin} are deleted"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_new_token_replaces_a_password_and_leaves_the_key() {
        let secret = |text: &str| Some(Secret(text.to_owned()));
        let mut old = AgentCredentials {
            basic: Some(StoredLogin {
                user: "ann".to_owned(),
                password: Secret("p".to_owned()),
            }),
            api_key: secret("k"),
            ..AgentCredentials::default()
        };
        let new = AgentCredentials {
            bearer: secret("t"),
            ..AgentCredentials::default()
        };
        merge_credentials(&mut old, new);
        assert_eq!(stored_credential_kinds(&old), ["token", "API key"]);
    }
}
