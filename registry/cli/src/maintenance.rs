//! `migrate`, `reindex`, `openapi`, `completions`: what keeps a registry and its users going.

use a2a_registry_server::openapi;
use clap::{Args, CommandFactory};

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::local;
use super::local::LocalArgs;
use super::refusal::ClientError;

/// What `completions` takes.
#[derive(Args, Debug, Clone)]
pub struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Brings the database to this program's schema.
///
/// # Errors
/// Where the database is away or of a later program.
pub async fn migrate(arguments: &LocalArgs, console: &Console) -> Result<CommandOutcome, Failure> {
    let done = local::migrate(arguments.load()?).await?;
    if console.json {
        console.json(&serde_json::json!({ "migrations": done }))?;
    } else if done.is_empty() {
        console.line("the database is up to date; nothing was changed")?;
    } else {
        for name in done {
            console.line(&format!("migrated: {name}"))?;
        }
    }
    Ok(CommandOutcome::Done)
}

/// Builds the index anew: asks the running registry, or does it in the data folder where none runs.
///
/// # Errors
/// Where the registry refuses, or the data folder cannot be opened.
pub async fn reindex(
    arguments: &LocalArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    match client.reindex().await {
        Ok(()) => {
            if console.json {
                console.json(&serde_json::json!({ "registry": client.base() }))?;
            } else {
                console.line(&format!(
                    "{} rebuilds its index, and serves searches from the old one until it is done",
                    client.base()
                ))?;
            }
        }
        Err(ClientError::Unreachable { .. }) => {
            let config = arguments.load()?;
            if !config.store.data_dir.is_dir() {
                return Err(Failure::new(format!(
                    "no registry runs at {}, and there is no data folder {}; give --registry or --data-dir",
                    client.base(),
                    config.store.data_dir.display()
                )));
            }
            let agents = local::reindex(config).await?;
            if console.json {
                console.json(&serde_json::json!({ "agents": agents }))?;
            } else {
                console.line(&format!("the index was rebuilt: {agents} agents"))?;
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(CommandOutcome::Done)
}

/// Prints the API's description, an `OpenAPI` 3.1 document.
///
/// # Errors
/// Where standard output takes no more.
pub fn openapi(console: &Console) -> Result<CommandOutcome, Failure> {
    console.raw_json(openapi::openapi_document().as_bytes())?;
    Ok(CommandOutcome::Done)
}

/// Prints completions for a shell.
///
/// # Errors
/// Where standard output takes no more.
pub fn completions(
    arguments: &CompletionsArgs,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut super::Cli::command(),
        "a2a-registry",
        &mut script,
    );
    console.write(&script)?;
    Ok(CommandOutcome::Done)
}
