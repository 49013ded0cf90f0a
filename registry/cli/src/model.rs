//! `model install|status`: sentence encoders in the data folder, from a folder or a hub.

mod download;
mod hub;
mod hub_install;
mod pins;

use std::path::{Path, PathBuf};

use a2a_registry_core::config::Config;
use a2a_registry_embed::{InstalledModel, ModelInstallation};
use a2a_registry_server::maintenance::{self, EmbeddingProgress, ModelEmbeddingProgress};
use clap::{Args, Subcommand};
use hub_install::{HubArgs, install_from_hub};
use pins::ModelPins;
use serde::Serialize;
use serde_json::json;

use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::offline_args::{self, OfflineArgs};
use super::table;

/// Columns of an id in a table on a terminal; elsewhere ids are complete.
const ID_COLUMNS: usize = 16;

/// Examples of `model install`, for `--help`.
const INSTALL_EXAMPLES: &str = "Examples:
  a2a-registry model install ./all-MiniLM-L6-v2
  a2a-registry model install intfloat/multilingual-e5-small --trust-on-first-use
  a2a-registry model install intfloat/multilingual-e5-small --revision COMMIT \\
      --sha256 config.json=HASH --sha256 tokenizer.json=HASH --sha256 model.safetensors=HASH ...

The first command for a model from a hub prints the second, which installs the same files anywhere.";

/// Subcommands of `model`.
#[derive(Subcommand, Debug, Clone)]
pub enum ModelCommand {
    /// Check a sentence encoder, copy it into the data folder and make it the one in use
    #[command(after_help = INSTALL_EXAMPLES)]
    Install(InstallModelArgs),
    /// Show which sentence encoders are installed, and which one is in use
    Status(OfflineArgs),
}

/// Arguments of `model install`.
#[derive(Args, Debug, Clone)]
pub struct InstallModelArgs {
    /// Folder with a BERT model in the layout of sentence-transformers, or the name of such a model on a hub
    #[arg(value_name = "FOLDER|NAME")]
    source: PathBuf,
    #[command(flatten)]
    local: OfflineArgs,
    #[command(flatten)]
    hub: HubArgs,
}

/// Model as `--json` shows it.
#[derive(Debug, Serialize)]
struct ModelView {
    /// Whether it is in use.
    current: bool,
    folder: PathBuf,
    /// Whether its folder differs from what was installed; then nothing else is known.
    damaged: bool,
    #[serde(flatten)]
    about: Option<a2a_registry_embed::ModelDescription>,
    /// Progress with the agents; `None` until a server has started with it.
    agents: Option<ModelEmbeddingProgress>,
}

impl From<InstalledModel> for ModelView {
    fn from(model: InstalledModel) -> Self {
        Self {
            current: model.is_current,
            damaged: model.description.is_none(),
            folder: model.folder,
            about: model.description,
            agents: None,
        }
    }
}

/// Installs a model, or shows the installed ones.
pub async fn run_model(command: &ModelCommand, console: &Console) -> CommandResult {
    match command {
        ModelCommand::Install(arguments) => install_model(arguments, console).await,
        ModelCommand::Status(local) => print_model_status(local, console).await,
    }
}

async fn install_model(arguments: &InstallModelArgs, console: &Console) -> CommandResult {
    let config = arguments.local.load_config()?;
    offline_args::require_data_dir(&config)?;
    let takes_effect = model_activation_note(&config);
    let data_dir = config.store.data_dir;
    let (installed, pins) = match arguments.hub.hub_name(&arguments.source) {
        Some(name) => {
            let (installed, pins) = install_from_hub(name, &arguments.hub, &data_dir).await?;
            (installed, Some(pins))
        }
        None => (install_folder(&arguments.source, data_dir).await?, None),
    };
    let about = installed.model.description.clone();
    let document = json!({
        "model": ModelView::from(installed.model),
        "was_there": installed.was_installed,
        "was_current": installed.was_current,
        "takes_effect": takes_effect,
        "pins": pins,
    });
    let message = match (installed.was_installed, installed.was_current) {
        (true, true) => "is already installed and in use; nothing was changed",
        (true, false) => "was already installed, and is now in use",
        (false, _) => "was installed, and is now in use",
    };
    console.print_result(&document, || {
        let name = about.as_ref().map_or("the model", |about| &about.name);
        console.print_line(&format!("{name} {message}"))?;
        console.print_line(takes_effect)?;
        about
            .iter()
            .try_for_each(|about| print_model(console, about))?;
        print_pins(console, &arguments.hub, pins.as_ref())
    })
}

async fn install_folder(
    source: &Path,
    data_dir: PathBuf,
) -> Result<ModelInstallation, CommandError> {
    let source_text = source.display().to_string();
    let source = source.to_owned();
    let installing =
        tokio::task::spawn_blocking(move || a2a_registry_embed::install_model(&data_dir, &source));
    installing
        .await
        .map_err(|error| {
            CommandError::new(format!("{source_text}: the check was aborted: {error}"))
        })?
        .map_err(|error| CommandError::new(format!("{source_text}: {error}")))
}

/// Prints what to pin after files were trusted on first use.
fn print_pins(
    console: &Console,
    hub: &HubArgs,
    pins: Option<&ModelPins>,
) -> Result<(), CommandError> {
    let Some(pins) = pins.filter(|_| hub.trust_on_first_use) else {
        return Ok(());
    };
    console
        .print_line("the files were trusted as they are; this installs the same ones elsewhere:")?;
    console.print_line(&pins.to_command(hub.other_hub()))
}

/// How a server that runs on this data folder will use an installed model.
fn model_activation_note(config: &Config) -> &'static str {
    if !config.embedding.url.is_empty() {
        "searches still use the encoder at embedding.url; remove that key and restart the server to use this model"
    } else if !config.search.model.is_empty() {
        "searches still use what search.model names; remove that key and restart the server to use this model"
    } else {
        "a server that runs on this data folder uses it within seconds, without a restart"
    }
}

async fn print_model_status(arguments: &OfflineArgs, console: &Console) -> CommandResult {
    let config = arguments.load_config()?;
    let data_dir = config.store.data_dir.clone();
    let models = a2a_registry_embed::list_installed_models(&data_dir)?;
    let outcome = CommandOutcome::done_unless_empty(&models);
    if console.json {
        let embedding_progress = load_embedding_progress(&config).await;
        let models = models.into_iter().map(|model| {
            let agents = embedding_progress
                .as_ref()
                .and_then(|known| find_embedding_progress(known, &model))
                .cloned();
            ModelView {
                agents,
                ..ModelView::from(model)
            }
        });
        let models: Vec<_> = models.collect();
        let agents = embedding_progress.map(|known| known.agents);
        console.print_json(&json!({ "models": models, "agents": agents }))?;
        return Ok(outcome);
    }
    if models.is_empty() {
        console.print_line(
            "no sentence encoder is installed; a2a-registry model install FOLDER installs one",
        )?;
        return Ok(outcome);
    }
    let embedding_progress = load_embedding_progress(&config).await;
    let header = [
        "IN USE", "NAME", "ID", "NUMBERS", "TOKENS", "POOLING", "SIZE", "AGENTS",
    ];
    let rows: Vec<_> = models
        .iter()
        .map(|model| model_row(console, model, embedding_progress.as_ref()))
        .collect();
    table::print_table(console, &header, &rows)?;
    // The model in use cannot be used if it is damaged or unknown.
    a2a_registry_embed::find_current_model(&data_dir)?;
    Ok(outcome)
}

/// Progress of the encoders from the database; `None` if there is none yet, or it does not respond.
async fn load_embedding_progress(config: &Config) -> Option<EmbeddingProgress> {
    maintenance::embedding_progress(config).await.ok()
}

fn find_embedding_progress<'a>(
    embedding_progress: &'a EmbeddingProgress,
    model: &InstalledModel,
) -> Option<&'a ModelEmbeddingProgress> {
    let id = &model.description.as_ref()?.id;
    embedding_progress
        .models
        .iter()
        .find(|known| known.id == *id)
}

/// Number of agents that are done.
fn format_embedding_progress(
    embedding_progress: Option<&EmbeddingProgress>,
    model: &InstalledModel,
) -> String {
    match embedding_progress
        .and_then(|known| Some((known.agents, find_embedding_progress(known, model)?)))
    {
        None => "not begun".to_owned(),
        Some((
            _,
            ModelEmbeddingProgress {
                embedded,
                complete: true,
                ..
            },
        )) => format!("{embedded}, all"),
        Some((agents, ModelEmbeddingProgress { embedded, .. })) => {
            format!("{embedded} of {agents}")
        }
    }
}

fn model_row(
    console: &Console,
    model: &InstalledModel,
    embedding_progress: Option<&EmbeddingProgress>,
) -> Vec<String> {
    let in_use = if model.is_current { "yes" } else { "" }.to_owned();
    let Some(about) = &model.description else {
        let folder = model.folder.display().to_string();
        let damaged = format!("damaged: {folder}");
        return vec![in_use, damaged];
    };
    vec![
        in_use,
        about.name.clone(),
        match console.interactive {
            true => about.id.chars().take(ID_COLUMNS).collect(),
            false => about.id.clone(),
        },
        about.dimensions.to_string(),
        about.max_length.to_string(),
        about.pooling.as_str().to_owned(),
        format_megabytes(about.bytes),
        format_embedding_progress(embedding_progress, model),
    ]
}

fn print_model(
    console: &Console,
    about: &a2a_registry_embed::ModelDescription,
) -> Result<(), CommandError> {
    table::print_fields(
        console,
        &[
            ("id", about.id.clone()),
            ("numbers in a vector", about.dimensions.to_string()),
            ("longest text", format!("{} tokens", about.max_length)),
            ("pooling", about.pooling.as_str().to_owned()),
            ("size", format_megabytes(about.bytes)),
        ],
    )
}

fn format_megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up() {
        for (bytes, shown) in [
            (0, "0.0 MB"),
            (1, "0.1 MB"),
            (90_900_000, "90.9 MB"),
            (2_147_483_648, "2147.5 MB"),
        ] {
            assert_eq!(format_megabytes(bytes), shown);
        }
    }
}
