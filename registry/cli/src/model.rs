//! `model install|status`: sentence encoders in the data folder, from a folder or a hub.

mod download;
mod hub;
mod hub_install;
mod pins;

use std::path::{Path, PathBuf};

use a2a_crawler::SystemClock;
use a2a_registry_core::config::Config;
use a2a_registry_core::embeddings::models::{SelectedModel, select_model};
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
    /// Show the installed sentence encoders, the one in use, and how many agents it has encoded
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
    /// Whether it comes with the program.
    built_in: bool,
    /// Its folder, if it is installed.
    folder: Option<PathBuf>,
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
            built_in: false,
            damaged: model.description.is_none(),
            folder: Some(model.folder),
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
    let data_dir = config.store.data_dir.clone();
    let (installed, pins) = match arguments.hub.hub_name(&arguments.source) {
        Some(name) => {
            let (installed, pins) = install_from_hub(name, &arguments.hub, &data_dir).await?;
            (installed, Some(pins))
        }
        None => (install_folder(&arguments.source, data_dir).await?, None),
    };
    let about = installed.model.description.clone();
    let (is_selected, takes_effect) = model_activation(&config, &installed.model);
    let document = json!({
        "model": ModelView {
            current: is_selected,
            ..ModelView::from(installed.model)
        },
        "was_there": installed.was_installed,
        "was_current": installed.was_current,
        "takes_effect": takes_effect,
        "pins": pins,
    });
    let message = match (is_selected, installed.was_installed, installed.was_current) {
        (true, true, true) => "is already installed and in use",
        (true, true, false) => "was already installed, and is now in use",
        (true, false, _) => "was installed, and is now in use",
        (false, true, _) => "is already installed, but not in use",
        (false, false, _) => "was installed, but is not in use",
    };
    console.print_result(&document, || {
        let name = about.as_ref().map_or("the model", |about| &about.name);
        console.print_line(&format!("{name} {message}"))?;
        console.print_line(&takes_effect)?;
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

/// Whether searches use an installed model, and from when; or what they use, and what to set for this model.
fn model_activation(config: &Config, model: &InstalledModel) -> (bool, String) {
    let used_instead = match select_model(config) {
        Ok(SelectedModel::Installed(selected)) if selected.folder == model.folder => {
            let from_when = if config.search.model.is_empty() {
                "a server that runs on this data folder uses it once it has encoded every agent, without a restart"
            } else {
                "search.model names it: a server uses it from its next start on, once it has encoded every agent"
            };
            return (true, from_when.to_owned());
        }
        Ok(SelectedModel::Off) => "searches are full text only, because search.model is \"off\"",
        Ok(SelectedModel::Endpoint) => "searches use the encoder at embedding.url",
        Ok(SelectedModel::BuiltIn) => {
            "searches use the built-in model, because search.model is \"built-in\""
        }
        Ok(SelectedModel::Installed(_)) => {
            "searches use another installed model, which search.model names"
        }
        Err(_) => "search.model names a model that is not installed",
    };
    let folder = model.folder.file_name().unwrap_or_default();
    let note = format!(
        "{used_instead}; set search.model = {:?} and restart the server to use this model",
        folder.to_string_lossy()
    );
    (false, note)
}

async fn print_model_status(arguments: &OfflineArgs, console: &Console) -> CommandResult {
    let config = arguments.load_config()?;
    let selected = select_model(&config);
    // There is none before the first start, and none while the database does not respond.
    let progress = maintenance::embedding_progress(&config, &SystemClock).await;
    let progress = progress.ok();
    let models = list_models(&config, selected.as_ref().ok(), progress.as_ref()).await?;
    let agents = progress.map(|known| known.agents);
    let document = json!({ "models": models, "agents": agents });
    console.print_result(&document, || {
        let header = [
            "IN USE", "NAME", "ID", "NUMBERS", "TOKENS", "POOLING", "SIZE", "AGENTS",
        ];
        let rows: Vec<_> = models
            .iter()
            .map(|model| model_row(console, model, agents))
            .collect();
        table::print_table(console, &header, &rows)?;
        selected_model_note(&selected, &models)
            .into_iter()
            .try_for_each(|line| console.print_line(line))
    })?;
    match selected {
        // What searches are to use is damaged or unknown. A program reads that from the document.
        Err(error) if !console.json => Err(CommandError::new(error)),
        _ => Ok(CommandOutcome::Done),
    }
}

/// The installed models, and then the built-in one.
async fn list_models(
    config: &Config,
    selected: Option<&SelectedModel>,
    progress: Option<&EmbeddingProgress>,
) -> Result<Vec<ModelView>, CommandError> {
    let installed = a2a_registry_embed::list_installed_models(&config.store.data_dir)?;
    let mut models: Vec<ModelView> = installed
        .into_iter()
        .map(|model| {
            let is_selected = |other: &InstalledModel| other.folder == model.folder;
            let current =
                matches!(selected, Some(SelectedModel::Installed(other)) if is_selected(other));
            ModelView {
                current,
                ..ModelView::from(model)
            }
        })
        .collect();
    models.push(ModelView {
        current: selected == Some(&SelectedModel::BuiltIn),
        built_in: true,
        folder: None,
        damaged: false,
        about: Some(a2a_registry_embed::describe_built_in_model()?),
        agents: None,
    });
    for model in &mut models {
        model.agents = find_embedding_progress(progress, model).cloned();
    }
    Ok(models)
}

fn find_embedding_progress<'a>(
    progress: Option<&'a EmbeddingProgress>,
    model: &ModelView,
) -> Option<&'a ModelEmbeddingProgress> {
    let id = &model.about.as_ref()?.id;
    progress?.models.iter().find(|known| known.id == *id)
}

/// A line below the table where it does not say what searches use, or that another model can be installed.
fn selected_model_note(
    selected: &Result<SelectedModel, String>,
    models: &[ModelView],
) -> Option<&'static str> {
    match selected {
        Ok(SelectedModel::Off) => {
            Some("searches are full text only, because search.model is \"off\"")
        }
        Ok(SelectedModel::Endpoint) => Some("searches use the encoder at embedding.url"),
        Ok(SelectedModel::BuiltIn) if models.len() == 1 => {
            Some("a2a-registry model install FOLDER or NAME installs another one")
        }
        _ => None,
    }
}

/// Number of agents that are done, of `agents` in all; `None` if the database could not be read.
fn format_embedding_progress(
    progress: Option<&ModelEmbeddingProgress>,
    agents: Option<u64>,
) -> String {
    let Some(progress) = progress else {
        return match agents {
            Some(_) => "not begun".to_owned(),
            // There is no database yet, or it does not respond, which `doctor` tells.
            None => "not known".to_owned(),
        };
    };
    let embedded = progress.embedded;
    if progress.complete {
        return format!("{embedded}, all");
    }
    let counts = format!("{embedded} of {}", agents.unwrap_or(embedded));
    match &progress.pace {
        None => counts,
        Some(pace) => format!("{counts}, {}", pace.text()),
    }
}

fn model_row(console: &Console, model: &ModelView, agents: Option<u64>) -> Vec<String> {
    let in_use = if model.current { "yes" } else { "" }.to_owned();
    let Some(about) = &model.about else {
        let folder = model.folder.as_deref().unwrap_or(Path::new(""));
        return vec![in_use, format!("damaged: {}", folder.display())];
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
        match model.built_in {
            true => "built in".to_owned(),
            false => format_megabytes(about.bytes),
        },
        format_embedding_progress(model.agents.as_ref(), agents),
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
