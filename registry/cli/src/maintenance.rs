//! `migrate`, `reindex`, `openapi`, `completions`: what keeps a registry and its users going.

use std::sync::Arc;

use a2a_crawler::SystemClock;
use a2a_registry_domain::ids::SystemEntropy;
use a2a_registry_http::routes::openapi;
use a2a_registry_server::offline;
use clap::{Args, CommandFactory};
use serde_json::json;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::local::LocalArgs;
use super::refusal::ClientError;

/// What `completions` takes.
#[derive(Args, Debug, Clone)]
pub struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Brings the database to this program's schema.
pub async fn migrate(arguments: &LocalArgs, console: &Console) -> CommandResult {
    let done = offline::migrate(&arguments.load()?).await?;
    console.show(&json!({ "migrations": done }), || {
        if done.is_empty() {
            console.line("the database is up to date; nothing was changed")?;
        }
        for name in &done {
            console.line(&format!("migrated: {name}"))?;
        }
        Ok(())
    })
}

/// Builds the index anew: asks the running registry, or does it in the data folder where none runs.
pub async fn reindex(arguments: &LocalArgs, client: &Client, console: &Console) -> CommandResult {
    match client.reindex().await {
        Ok(()) => console.show(&json!({ "registry": client.base() }), || {
            console.line(&format!(
                "{} rebuilds its index, and serves searches from the old one until it is done",
                client.base()
            ))
        }),
        Err(ClientError::Unreachable { .. }) => {
            let config = arguments.load()?;
            if !config.store.data_dir.is_dir() {
                return Err(Failure::new(format!(
                    "no registry runs at {}, and there is no data folder {}; give --registry or --data-dir",
                    client.base(),
                    config.store.data_dir.display()
                )));
            }
            let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy::default()));
            let agents = offline::reindex(config, clock, entropy).await?;
            console.show(&json!({ "agents": agents }), || {
                console.line(&format!("the index was rebuilt: {agents} agents"))
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints the API's description, an `OpenAPI` 3.1 document.
pub fn openapi(console: &Console) -> CommandResult {
    console.raw_json(openapi::openapi_document().as_bytes())?;
    Ok(CommandOutcome::Done)
}

pub fn completions(arguments: &CompletionsArgs, console: &Console) -> CommandResult {
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
