//! `migrate`, `reindex`, `openapi`, `completions`, `man`: maintenance of a registry and its command line.

use std::path::PathBuf;
use std::sync::Arc;

use a2a_crawler::SystemClock;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_http::routes::openapi;
use a2a_registry_server::maintenance;
use clap::{Args, CommandFactory};
use serde_json::json;

use super::client::Client;
use super::client_error::ClientError;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::offline_args::OfflineArgs;

/// Arguments of `completions`.
#[derive(Args, Debug, Clone)]
pub struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug, Clone)]
pub struct ManArgs {
    /// Existing folder for the pages
    folder: PathBuf,
}

/// Migrates the database to this program's schema.
pub async fn migrate_database(arguments: &OfflineArgs, console: &Console) -> CommandResult {
    let migrations = maintenance::migrate_database(&arguments.load_config()?).await?;
    console.print_result(&json!({ "migrations": migrations }), || {
        if migrations.is_empty() {
            console.print_line("the database is up to date; nothing was changed")?;
        }
        for name in &migrations {
            console.print_line(&format!("migrated: {name}"))?;
        }
        Ok(())
    })
}

/// Rebuilds the index: through the running registry or, if there is none, in the data folder.
pub async fn rebuild_index(
    arguments: &OfflineArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    match client.reindex().await {
        Ok(()) => console.print_result(&json!({ "registry": client.base_url() }), || {
            console.print_line(&format!(
                "{} is rebuilding its index; searches use the old one until it is done",
                client.base_url()
            ))
        }),
        Err(ClientError::Unreachable { .. }) => {
            let config = arguments.load_config()?;
            if !config.store.data_dir.is_dir() {
                return Err(CommandError::new(format!(
                    "no registry runs at {}, and the data folder {} does not exist; give --registry or --data-dir",
                    client.base_url(),
                    config.store.data_dir.display()
                )));
            }
            let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy::default()));
            let agents = maintenance::rebuild_index_offline(config, clock, entropy).await?;
            console.print_result(&json!({ "agents": agents }), || {
                console.print_line(&format!("the index was rebuilt: {agents} agents"))
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints the API description, an `OpenAPI` 3.1 document.
pub fn print_openapi(console: &Console) -> CommandResult {
    console.print_raw_json(openapi::default_openapi_text().as_bytes())?;
    Ok(CommandOutcome::Done)
}

pub fn print_completions(arguments: &CompletionsArgs, console: &Console) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut super::Cli::command(),
        "a2a-registry",
        &mut script,
    );
    console.write_bytes(&script)?;
    Ok(CommandOutcome::Done)
}

/// Writes a manual page for each command into a folder, such as `a2a-registry-serve.1`.
pub fn write_manual_pages(arguments: &ManArgs) -> CommandResult {
    let folder = &arguments.folder;
    let written = clap_mangen::generate_to(super::Cli::command(), folder);
    written.map_err(|error| {
        CommandError::new(format!(
            "the manual pages cannot be written to {}: {error}; give an existing folder",
            folder.display()
        ))
    })?;
    Ok(CommandOutcome::Done)
}
