//! `domain credential`: credentials with which the registry fetches sources that are not public.

use a2a_registry_api::{DomainView, NewSourceCredential, SourceView};
use a2a_registry_domain::source::CredentialKind;
use clap::{Args, Subcommand};
use serde_json::json;

use super::DomainArg;
use crate::agent_credentials::secret::SecretSources;
use crate::client::Client;
use crate::command_error::{CommandError, CommandResult};
use crate::console::Console;

/// Subcommands of `domain credential`.
#[derive(Subcommand, Debug, Clone)]
pub enum CredentialCommand {
    /// Set the credential of a source; it is sent to the source's origin only, over https only
    Set(SetCredentialArgs),
    /// Show which sources have a credential, without the secrets
    Show(DomainArg),
    /// Remove the credential of a source, which is fetched without one from then on
    Remove {
        #[command(flatten)]
        name: DomainArg,
        #[command(flatten)]
        source: SourceArg,
    },
}

/// A source of the domain.
#[derive(Args, Debug, Clone)]
pub struct SourceArg {
    /// The source, given by its URL or id, as `domain show` lists them
    #[arg(value_name = "SOURCE")]
    source: String,
}

/// Arguments of `domain credential set`.
#[derive(Args, Debug, Clone)]
pub struct SetCredentialArgs {
    #[command(flatten)]
    name: DomainArg,
    #[command(flatten)]
    source: SourceArg,
    #[arg(
        help = "Kind: bearer, basic, header or client_credentials",
        long,
        value_name = "KIND",
        default_value = "bearer"
    )]
    kind: CredentialKind,
    /// The user name, the name of the header field, or the client id
    #[arg(long = "name", value_name = "NAME")]
    part_name: Option<String>,
    /// File with the token, the password, the value of the header field, or the client secret; `-` reads standard
    /// input
    #[arg(long, value_name = "FILE")]
    secret_file: String,
    #[arg(
        help = "The https URL that issues access tokens, for client_credentials",
        long,
        value_name = "URL"
    )]
    token_url: Option<String>,
    #[arg(
        help = "The scopes to ask for, separated by spaces, for client_credentials",
        long,
        value_name = "SCOPES"
    )]
    scope: Option<String>,
}

pub async fn run_domain_credential(
    command: &CredentialCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    match command {
        CredentialCommand::Set(arguments) => set_credential(arguments, client, console).await,
        CredentialCommand::Show(name) => show_credentials(&name.domain, client, console).await,
        CredentialCommand::Remove { name, source } => {
            let view = client.domain(&name.domain).await?.value;
            let found = find_source(&view, &source.source)?;
            client.remove_credential(&view.domain, &found.id).await?;
            let document = json!({"domain": view.domain, "source": found.url, "credential": null});
            console.print_result(&document, || {
                console.print_line(&format!("{} is fetched without a credential", found.url))
            })
        }
    }
}

async fn set_credential(
    arguments: &SetCredentialArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let file = format!("@{}", arguments.secret_file);
    let sources = SecretSources {
        flag: "--secret-file",
        flag_value: Some(&file),
        variable: "",
    };
    let secret = sources.read()?.map(|secret| secret.0).unwrap_or_default();
    let credential = NewSourceCredential {
        kind: arguments.kind,
        name: arguments.part_name.clone(),
        secret: secret.into(),
        token_url: arguments.token_url.clone(),
        scope: arguments.scope.clone(),
    };
    let view = client.domain(&arguments.name.domain).await?.value;
    let source = find_source(&view, &arguments.source.source)?;
    let reply = client
        .set_credential(&view.domain, &source.id, &credential)
        .await?;
    console.print_result(&reply, || {
        console.print_line(&format!(
            "{} is fetched with this credential, which is sent to {} only and never shown again",
            source.url, reply.value.origin
        ))
    })
}

async fn show_credentials(domain: &str, client: &Client, console: &Console) -> CommandResult {
    let view = client.domain(domain).await?.value;
    let sources = view.sources.iter();
    let with_one: Vec<_> = sources
        .filter_map(|source| Some((source, source.credential.as_ref()?)))
        .collect();
    let entries = with_one
        .iter()
        .map(|(source, credential)| json!({"id": source.id, "source": source.url, "credential": credential}));
    let document = json!({"domain": view.domain, "sources": entries.collect::<Vec<_>>()});
    console.print_result(&document, || {
        if with_one.is_empty() {
            return console.print_line(&format!(
                "no source of {} that you see has a credential",
                view.domain
            ));
        }
        with_one.iter().try_for_each(|(source, credential)| {
            let by = credential.set_by.as_ref();
            let by = by.map(|by| format!(" by {by}"));
            console.print_line(&format!(
                "{}: {}, set at {}{}",
                source.url,
                credential.kind,
                credential.set_at.to_readable(),
                by.unwrap_or_default()
            ))
        })
    })
}

/// Source with that URL or id.
fn find_source<'a>(view: &'a DomainView, url_or_id: &str) -> Result<&'a SourceView, CommandError> {
    let mut sources = view.sources.iter();
    sources
        .find(|source| source.url == url_or_id || source.id == url_or_id)
        .ok_or_else(|| {
            CommandError::Negative(format!(
                "{} has no source {url_or_id} that you see; `a2a-registry domain show {0}` lists them",
                view.domain
            ))
        })
}
