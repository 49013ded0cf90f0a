//! `model install|status`: sentence encoders in the data folder.

use std::path::PathBuf;

use a2a_registry_core::config::Config;
use a2a_registry_embed::InstalledModel;
use a2a_registry_server::offline::{self, EmbeddedModel, EmbeddingProgress};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::local::{self, LocalArgs};
use super::table;

/// Shown of an id in a table on a terminal; elsewhere all of it is.
const SHOWN_ID: usize = 16;

/// What `model` can do.
#[derive(Subcommand, Debug, Clone)]
pub enum ModelCommand {
    /// Check a sentence encoder, copy it into the data folder and make it the one in use
    Install(InstallArgs),
    /// Show which sentence encoders are installed, and which one is in use
    Status(LocalArgs),
}

/// What `model install` takes.
#[derive(Args, Debug, Clone)]
pub struct InstallArgs {
    /// The folder of a BERT as sentence-transformers lays it out
    #[arg(value_name = "FOLDER")]
    source: PathBuf,
    #[command(flatten)]
    local: LocalArgs,
}

/// A model as `--json` shows it.
#[derive(Debug, Serialize)]
struct ModelView {
    /// Whether it is the one in use.
    current: bool,
    folder: PathBuf,
    /// Whether its folder is not what was installed; then nothing more is known.
    damaged: bool,
    #[serde(flatten)]
    about: Option<a2a_registry_embed::About>,
    /// How far it has come with the agents; nothing before a server has begun.
    agents: Option<EmbeddedModel>,
}

impl From<InstalledModel> for ModelView {
    fn from(model: InstalledModel) -> Self {
        Self {
            current: model.current,
            damaged: model.about.is_none(),
            folder: model.folder,
            about: model.about,
            agents: None,
        }
    }
}

/// Installs a model, or shows which there are.
pub async fn run(command: &ModelCommand, console: &Console) -> CommandResult {
    match command {
        ModelCommand::Install(arguments) => install(arguments, console).await,
        ModelCommand::Status(local) => status(local, console).await,
    }
}

async fn install(arguments: &InstallArgs, console: &Console) -> CommandResult {
    let config = arguments.local.load()?;
    local::demand_data_dir(&config)?;
    let takes_effect = takes_effect(&config);
    let data_dir = config.store.data_dir;
    let source = arguments.source.clone();
    let named = source.display().to_string();
    let installing =
        tokio::task::spawn_blocking(move || a2a_registry_embed::install(&data_dir, &source));
    let done = installing
        .await
        .map_err(|error| Failure::new(format!("{named}: the check broke off: {error}")))?
        .map_err(|error| Failure::new(format!("{named}: {error}")))?;
    let about = done.model.about.clone();
    let document = json!({
        "model": ModelView::from(done.model),
        "was_there": done.was_there,
        "was_current": done.was_current,
        "takes_effect": takes_effect,
    });
    let line = match (done.was_there, done.was_current) {
        (true, true) => "was installed and in use already; nothing was changed",
        (true, false) => "was installed already, and is the model in use from now on",
        (false, _) => "was installed, and is the model in use from now on",
    };
    console.show(&document, || {
        let name = about.as_ref().map_or("the model", |about| &about.name);
        console.line(&format!("{name} {line}"))?;
        console.line(takes_effect)?;
        about.iter().try_for_each(|about| facts(console, about))
    })
}

/// What becomes of an installed model in a server that runs on this data folder.
fn takes_effect(config: &Config) -> &'static str {
    if !config.embedding.url.is_empty() {
        "searches go by the encoder at embedding.url all the same; remove that key and restart the server to use this model"
    } else if !config.search.model.is_empty() {
        "searches go by what search.model says all the same; remove that key and restart the server to use this model"
    } else {
        "a server that runs on this data folder takes it up within seconds, without a restart"
    }
}

async fn status(local: &LocalArgs, console: &Console) -> CommandResult {
    let config = local.load()?;
    let data_dir = config.store.data_dir.clone();
    let models = a2a_registry_embed::installed(&data_dir)?;
    let outcome = CommandOutcome::of_list(&models);
    if console.json {
        let known = known(&config).await;
        let models = models.into_iter().map(|model| {
            let agents = known.as_ref().and_then(|known| of(known, &model)).cloned();
            ModelView {
                agents,
                ..ModelView::from(model)
            }
        });
        let models: Vec<_> = models.collect();
        let agents = known.map(|known| known.agents);
        console.json(&json!({ "models": models, "agents": agents }))?;
        return Ok(outcome);
    }
    if models.is_empty() {
        console.line(
            "no sentence encoder is installed; a2a-registry model install FOLDER installs one",
        )?;
        return Ok(outcome);
    }
    let known = known(&config).await;
    let header = [
        "IN USE", "NAME", "ID", "NUMBERS", "TOKENS", "POOLING", "SIZE", "AGENTS",
    ];
    let rows: Vec<_> = models
        .iter()
        .map(|model| row(console, model, known.as_ref()))
        .collect();
    table::print(console, &header, &rows)?;
    // What is in use cannot be used where it is damaged or not known.
    a2a_registry_embed::current(&data_dir)?;
    Ok(outcome)
}

/// What the database knows; nothing where there is none yet, or it does not answer.
async fn known(config: &Config) -> Option<EmbeddingProgress> {
    offline::embedded(config).await.ok()
}

fn of<'a>(known: &'a EmbeddingProgress, model: &InstalledModel) -> Option<&'a EmbeddedModel> {
    let id = &model.about.as_ref()?.id;
    known.models.iter().find(|known| known.id == *id)
}

/// With how many of the agents it is done.
fn progress(known: Option<&EmbeddingProgress>, model: &InstalledModel) -> String {
    match known.and_then(|known| Some((known.agents, of(known, model)?))) {
        None => "not begun".to_owned(),
        Some((
            _,
            EmbeddedModel {
                embedded,
                complete: true,
                ..
            },
        )) => format!("{embedded}, all"),
        Some((agents, EmbeddedModel { embedded, .. })) => format!("{embedded} of {agents}"),
    }
}

fn row(
    console: &Console,
    model: &InstalledModel,
    known: Option<&EmbeddingProgress>,
) -> Vec<String> {
    let in_use = if model.current { "yes" } else { "" }.to_owned();
    let Some(about) = &model.about else {
        let folder = model.folder.display().to_string();
        let damaged = format!("damaged: {folder}");
        return vec![in_use, damaged];
    };
    vec![
        in_use,
        about.name.clone(),
        match console.interactive {
            true => about.id.chars().take(SHOWN_ID).collect(),
            false => about.id.clone(),
        },
        about.dimensions.to_string(),
        about.max_length.to_string(),
        about.pooling.as_str().to_owned(),
        megabytes(about.bytes),
        progress(known, model),
    ]
}

fn facts(console: &Console, about: &a2a_registry_embed::About) -> Result<(), Failure> {
    table::facts(
        console,
        &[
            ("id", about.id.clone()),
            ("numbers in a vector", about.dimensions.to_string()),
            ("longest text", format!("{} tokens", about.max_length)),
            ("pooling", about.pooling.as_str().to_owned()),
            ("size", megabytes(about.bytes)),
        ],
    )
}

fn megabytes(bytes: u64) -> String {
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
            assert_eq!(megabytes(bytes), shown);
        }
    }
}
