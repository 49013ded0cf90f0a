//! `credentials`: what is kept for agents that are spoken to directly, each for the origin of its interface alone.

mod browser;
mod consent;
mod file;
mod given;
mod plain_http;
mod secret;
mod sign_in;
mod stored;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use a2a_card::{AgentCard, AuthScheme, SchemeKind, auth_requirements};
use a2a_client::choice::takes_key;
use a2a_client::oauth::sign_ins;
use a2a_client::{BasicLogin, SendOptions, chosen_interface};
use a2a_crawler::SystemClock;
use a2a_registry_domain::timestamp::Timestamp;
use clap::{Args, Subcommand};
use serde_json::json;
use url::Url;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandResult, Failure};
use super::list::Listing;
use super::send::agent::{self, AgentArgs, CalledAgent};
use consent::Consent;
use file::CredentialsFile;
pub(crate) use given::CredentialArgs;
pub(crate) use given::GivenCredentials;
pub(crate) use plain_http::warn_of_plain_http;
use secret::{Secret, ask_hidden, ask_shown};
use sign_in::SignInArgs;
use stored::{AgentCredentials, StoredCertificate, StoredLogin};
use tokens::StoredTokens;

/// What `credentials` takes.
#[derive(Subcommand, Clone)]
pub enum CredentialsCommand {
    /// Keep a token, key, password or certificate for an agent, or sign in to it; asks for what the card requires.
    /// Agents at the same origin share what is kept
    Add(Box<AddArgs>),
    /// List the agents for which something is kept, without the secrets
    List,
    /// Forget everything that is kept for an agent
    Remove {
        /// The origin of its interface, as `list` shows it, or the interface's URL
        #[arg(value_name = "ORIGIN")]
        origin: String,
    },
}

/// What is kept, and for which agent.
#[derive(Args, Clone)]
pub struct AddArgs {
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    sign_in: SignInArgs,
    /// The scheme of the card to meet, where it has several
    #[arg(long, value_name = "NAME")]
    scheme: Option<String>,
}

pub async fn run(
    command: &CredentialsCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let file = CredentialsFile::of_user()?;
    match command {
        CredentialsCommand::Add(arguments) => add(arguments, &file, client, console).await,
        CredentialsCommand::List => list(&file, console),
        CredentialsCommand::Remove { origin } => remove(origin, &file, console).await,
    }
}

/// Adds credentials to the options of a call: those that were given, and `with_kept` those that are kept for the origin of
/// the interface that is called.
pub(crate) fn equip(
    options: &mut SendOptions,
    mut given: GivenCredentials,
    card: &AgentCard,
    with_kept: bool,
) -> Result<(), Failure> {
    given.ignore_needless_variables(card);
    let GivenCredentials {
        bearer,
        api_key,
        basic,
        certificate,
        headers,
        ..
    } = given;
    options.bearer = bearer;
    options.api_key = api_key;
    options.basic = basic;
    options.certificate = certificate;
    options.headers = headers;
    if !with_kept {
        return Ok(());
    }
    let Ok(interface) = chosen_interface(card, &options.choice) else {
        // Why none can be called is said where the agent is made.
        return Ok(());
    };
    let Ok(file) = CredentialsFile::of_user() else {
        return Ok(());
    };
    let origin = origin_of(&interface);
    let Some(kept) = file.read()?.agents.remove(&origin) else {
        return Ok(());
    };
    if let Some(files) = kept.certificate.filter(|_| options.certificate.is_none()) {
        options.certificate = Some(given::certificate(&files.chain, &files.key)?);
    }
    let secret = |secret: Secret| secret.0;
    // Another agent at that origin may be the one that takes a key.
    let kept_key = kept.api_key.filter(|_| takes_key(card)).map(secret);
    options.api_key = options.api_key.take().or(kept_key);
    // One header carries either of them, so what was given decides.
    if options.bearer.is_some() || options.basic.is_some() {
        return Ok(());
    }
    options.bearer = kept.bearer.map(secret);
    options.basic = kept.basic.map(|login| BasicLogin {
        user: login.user,
        password: login.password.0,
    });
    if let Some(sign_in) = kept.sign_in.filter(|_| options.bearer.is_none()) {
        same_server(card, &sign_in.declared, &origin)?;
        options.tokens = Some(Arc::new(StoredTokens {
            file,
            origin,
            clock: Arc::new(SystemClock),
        }));
    }
    Ok(())
}

/// Refuses a sign-in at another server than the card names now: the user has to agree to that one.
fn same_server(card: &AgentCard, declared: &str, origin: &str) -> Result<(), Failure> {
    let offered = sign_ins(card).map_err(sign_in::failure)?;
    let mut addresses = offered.iter().flat_map(|offered| offered.addresses());
    if offered.is_empty() || addresses.any(|address| address.as_str() == declared) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the card of {origin} names another place to sign in than {declared}, at which you signed in; nothing was sent; \
         sign in again with `credentials add` if you trust it"
    )))
}

fn origin_of(interface: &Url) -> String {
    interface.origin().ascii_serialization()
}

async fn add(
    arguments: &AddArgs,
    file: &CredentialsFile,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let given = &arguments.agent.credentials;
    if given.has_header() {
        return Err(Failure::new(
            "headers are not kept; give --header to each command",
        ));
    }
    // Said before anything else is asked for: a file that cannot be used makes all that worthless.
    file.read()?;
    let called = agent::card(&arguments.agent, client, console).await?;
    let interface = own_interface(&called)?;
    let mut consent = Consent {
        agent: arguments.agent.agent.clone(),
        origin: origin_of(&interface),
        given: arguments.sign_in.confirmed().to_vec(),
        confirmed: file
            .read()?
            .confirmed
            .remove(&origin_of(&interface))
            .unwrap_or_default(),
    };
    given.warn();
    arguments.sign_in.warn();
    let new = match given.is_given() {
        true => kept(given)?,
        false => asked(arguments, &called.card, &mut consent).await?,
    };
    let mut locked = file.lock().await?;
    let agents = &mut locked.stored.agents;
    merge(agents.entry(consent.origin.clone()).or_default(), new);
    if !consent.confirmed.is_empty() {
        let confirmed = &mut locked.stored.confirmed;
        confirmed.insert(consent.origin.clone(), consent.confirmed);
    }
    locked.save()?;
    let document = json!({"origin": consent.origin, "file": file.path()});
    console.show(&document, || {
        console.line(&format!(
            "kept for {} in {}",
            consent.origin,
            file.path().display()
        ))
    })
}

/// The interface for which something can be kept: one that the card or the user names.
fn own_interface(called: &CalledAgent) -> Result<Url, Failure> {
    if called.is_assumed {
        return Err(Failure::new(
            "nothing is kept for an address that is only assumed; name the agent's own with --url",
        ));
    }
    Ok(chosen_interface(&called.card, &called.choice)?)
}

/// What was given on the command line, to be kept.
fn kept(given: &CredentialArgs) -> Result<AgentCredentials, Failure> {
    let absolute = |path: &Path| -> Result<PathBuf, Failure> {
        let path = std::path::absolute(path);
        path.map_err(|error| Failure::new(format!("the path of the certificate: {error}")))
    };
    let read = given.read_typed()?;
    let certificate = match given.certificate_files() {
        Some((chain, key)) => Some(StoredCertificate {
            chain: absolute(chain)?,
            key: absolute(key)?,
        }),
        None => None,
    };
    Ok(AgentCredentials {
        bearer: read.bearer.map(Secret),
        api_key: read.api_key.map(Secret),
        basic: read.basic.map(|login| StoredLogin {
            user: login.user,
            password: Secret(login.password),
        }),
        certificate,
        sign_in: None,
    })
}

/// What the card requires, asked for or signed in for.
async fn asked(
    arguments: &AddArgs,
    card: &AgentCard,
    consent: &mut Consent,
) -> Result<AgentCredentials, Failure> {
    let requirements = auth_requirements(card);
    let wanted = arguments.scheme.as_deref();
    let mut alternatives = requirements.alternatives.into_iter();
    let fits = |alternative: &Vec<AuthScheme<'_>>| {
        let mut schemes = alternative.iter();
        match wanted {
            Some(name) => schemes.any(|asked| asked.name == name),
            None if arguments.sign_in.is_given() => schemes.any(signs_in),
            None => !alternative.is_empty(),
        }
    };
    let Some(alternative) = alternatives.find(fits) else {
        return Err(Failure::new(match wanted {
            Some(name) => format!("the card requires no scheme {name}"),
            None if arguments.sign_in.is_given() => {
                "the card describes no way to sign in; keep a token with --bearer @FILE".to_owned()
            }
            None => "the card says of no credentials that it requires; keep some with --bearer @FILE, --api-key @FILE, \
                     --basic USER or --cert"
                .to_owned(),
        }));
    };
    let mut new = AgentCredentials::default();
    for asked in &alternative {
        ask_for(asked, arguments, card, consent, &mut new).await?;
    }
    if new == AgentCredentials::default() {
        return Err(Failure::new(
            "the card requires no credentials, so nothing is kept",
        ));
    }
    Ok(new)
}

fn signs_in(asked: &AuthScheme<'_>) -> bool {
    matches!(
        asked.kind.as_deref(),
        Some(SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. })
    )
}

async fn ask_for(
    asked: &AuthScheme<'_>,
    arguments: &AddArgs,
    card: &AgentCard,
    consent: &mut Consent,
    new: &mut AgentCredentials,
) -> Result<(), Failure> {
    let origin = consent.origin.clone();
    match asked.kind.as_deref() {
        Some(SchemeKind::None) => {}
        Some(SchemeKind::Http { scheme, .. }) if scheme == "bearer" => {
            let what = format!("Token for {origin}");
            new.bearer = Some(ask_hidden(&what, "give it with --bearer @FILE")?);
        }
        Some(SchemeKind::Http { scheme, .. }) if scheme == "basic" => {
            let instead = "give it with --basic USER and --password @FILE";
            let user = ask_shown(&format!("User at {origin}"), instead)?;
            let password = ask_hidden("Password", instead)?;
            new.basic = Some(StoredLogin { user, password });
        }
        Some(SchemeKind::ApiKey { .. }) => {
            let what = format!("API key for {origin}");
            new.api_key = Some(ask_hidden(&what, "give it with --api-key @FILE")?);
        }
        Some(SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. }) => {
            let offered = sign_ins(card).map_err(sign_in::failure)?;
            let mut offered = offered.iter();
            let offered = offered.find(|offered| offered.scheme == asked.name);
            let offered = offered.ok_or_else(|| {
                Failure::new(format!(
                    "the card describes {} too late in its list",
                    asked.name
                ))
            })?;
            let signed_in = sign_in::sign_in(offered, &arguments.sign_in, consent);
            new.sign_in = Some(signed_in.await?);
        }
        Some(SchemeKind::MutualTls) => {
            return Err(Failure::new(
                "the card requires a client certificate; keep it with --cert FILE --key FILE",
            ));
        }
        Some(SchemeKind::Http { .. } | SchemeKind::Other { .. }) | None => {
            return Err(Failure::new(format!(
                "the card requires {}, which is not known here; give it with --header to each command",
                asked.name
            )));
        }
    }
    Ok(())
}

/// What is new replaces what was kept. One header carries tokens and passwords, so a new one replaces each of them.
fn merge(old: &mut AgentCredentials, new: AgentCredentials) {
    if new.bearer.is_some() || new.basic.is_some() || new.sign_in.is_some() {
        old.bearer = new.bearer;
        old.basic = new.basic;
        old.sign_in = new.sign_in;
    }
    old.api_key = new.api_key.or(old.api_key.take());
    old.certificate = new.certificate.or(old.certificate.take());
}

fn list(file: &CredentialsFile, console: &Console) -> CommandResult {
    let stored: Vec<_> = file.read()?.agents.into_iter().collect();
    let entries = stored.iter().map(|(origin, kept)| {
        let sign_in = kept.sign_in.as_ref();
        json!({
            "origin": origin,
            "kinds": kinds(kept),
            "token_endpoint": sign_in.map(|sign_in| &sign_in.token_endpoint),
            "client_id": sign_in.map(|sign_in| &sign_in.client_id),
            "scopes": sign_in.map(|sign_in| &sign_in.scopes),
            "expires_at": sign_in.and_then(|sign_in| sign_in.expires_at).map(shown),
        })
    });
    let document = json!({"credentials": entries.collect::<Vec<_>>()});
    let listing = Listing {
        command: "credentials list",
        limit: None,
        header: ["ORIGIN", "KEPT", "SIGNED IN AT", "TOKEN ENDS"],
        empty: "nothing is kept for any agent",
    };
    listing.show(console, &document, &stored, None, |(origin, kept)| {
        let sign_in = kept.sign_in.as_ref();
        let end = sign_in.and_then(|sign_in| sign_in.expires_at).map(shown);
        [
            origin.clone(),
            kinds(kept).join(", "),
            sign_in.map_or_else(String::new, |sign_in| sign_in.token_endpoint.clone()),
            end.unwrap_or_default(),
        ]
    })
}

fn shown(at: i64) -> String {
    Timestamp(at).to_readable()
}

fn kinds(kept: &AgentCredentials) -> Vec<&'static str> {
    [
        ("token", kept.bearer.is_some()),
        ("API key", kept.api_key.is_some()),
        ("password", kept.basic.is_some()),
        ("certificate", kept.certificate.is_some()),
        ("sign-in", kept.sign_in.is_some()),
    ]
    .into_iter()
    .filter_map(|(kind, is)| is.then_some(kind))
    .collect()
}

async fn remove(word: &str, file: &CredentialsFile, console: &Console) -> CommandResult {
    let url = Url::parse(word).ok().filter(Url::has_host);
    let origin = url.map_or_else(|| word.to_owned(), |url| origin_of(&url));
    let mut locked = file.lock().await?;
    let had = locked.stored.agents.remove(&origin).is_some();
    let agreed = locked.stored.confirmed.remove(&origin).is_some();
    if !had && !agreed {
        return Err(Failure::No(format!(
            "nothing is kept for {origin}; `credentials list` shows the origins"
        )));
    }
    locked.save()?;
    console.show(&json!({"removed": origin}), || {
        console.line(&format!("nothing is kept for {origin} any more"))
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
        merge(&mut old, new);
        assert_eq!(kinds(&old), ["token", "API key"]);
    }

    #[test]
    fn a_sign_in_is_good_only_where_the_card_still_names_its_server() {
        let card = |token: &str| {
            let card = json!({"name": "A", "url": "https://a.example", "securitySchemes": {"o": {"type": "oauth2",
                "flows": {"clientCredentials": {"tokenUrl": token}}}}, "security": [{"o": []}]});
            a2a_card::parse(card.to_string().as_bytes()).unwrap().card
        };
        let token = "https://l.example/t";
        let checked = |named: &str| same_server(&card(named), token, "https://a.example");
        assert!(checked(token).is_ok());
        for other in [
            "https://m.example/t",
            "https://l.example/u",
            "http://m.example/t",
        ] {
            assert!(checked(other).is_err(), "{other}");
        }
    }
}
