//! `model install NAME`: downloads a model from a hub and installs it.

use std::path::Path;

use a2a_registry_embed::{ModelDownload, ModelError, ModelInstallation};
use clap::Args;

use super::download::download_model;
use super::hub::Hub;
use super::pins::{FilePin, HubRequest, ModelPins, is_hub_name, parse_file_pin, parse_revision};
use crate::agent_credentials::secret::SecretSources;
use crate::command_error::CommandError;

pub const DEFAULT_HUB: &str = "https://huggingface.co";

/// Options of an installation from a hub.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Options for a hub")]
pub struct HubArgs {
    /// Hub in the layout of Hugging Face, such as a mirror
    #[arg(long, value_name = "URL", env = "A2A_REGISTRY_HUB", default_value = DEFAULT_HUB)]
    pub hub: String,
    /// File with a token for the hub, or `@-` for standard input [default: `A2A_REGISTRY_HUB_TOKEN`]
    #[arg(long, value_name = "@FILE")]
    hub_token: Option<String>,
    /// Commit of the model's repository, of 40 hexadecimal digits
    #[arg(long, value_name = "COMMIT", value_parser = parse_revision)]
    revision: Option<String>,
    /// SHA-256 of one of the files, such as config.json=9f86d0…; repeat it for each file
    #[arg(
        long = "sha256",
        value_name = "FILE=HASH",
        value_parser = parse_file_pin,
        requires = "revision",
        conflicts_with = "trust_on_first_use"
    )]
    pins: Vec<FilePin>,
    /// Take the files as the hub has them now, and print the command that installs the same files elsewhere
    #[arg(long)]
    pub trust_on_first_use: bool,
}

impl HubArgs {
    /// The name of a model on a hub, if the argument is one and not the path of a folder.
    pub fn hub_name<'a>(&self, source: &'a Path) -> Option<&'a str> {
        let name = source.to_str()?;
        // The other options require one of these.
        let asks_hub = self.revision.is_some() || self.trust_on_first_use;
        (asks_hub || (is_hub_name(name) && !source.exists())).then_some(name)
    }

    /// The hub, if it is not the default one.
    pub fn other_hub(&self) -> Option<&str> {
        (self.hub != DEFAULT_HUB).then_some(&self.hub)
    }

    fn read_token(&self) -> Result<Option<String>, CommandError> {
        let sources = SecretSources {
            flag: "--hub-token",
            flag_value: self.hub_token.as_deref(),
            variable: "A2A_REGISTRY_HUB_TOKEN",
        };
        if sources.is_exposed() {
            return Err(CommandError::new(
                "--hub-token takes @FILE or @-, because other users can see arguments; A2A_REGISTRY_HUB_TOKEN takes \
                 the token itself",
            ));
        }
        Ok(sources.read()?.map(|secret| secret.0))
    }
}

/// Downloads a model to the data folder and installs it, unless it is installed with the files that are asked for;
/// returns what its files are.
pub async fn install_from_hub(
    name: &str,
    arguments: &HubArgs,
    data_dir: &Path,
) -> Result<(ModelInstallation, ModelPins), CommandError> {
    let revision = arguments.revision.as_deref();
    let trusts_first_use = arguments.trust_on_first_use;
    let request = HubRequest::new(name, revision, &arguments.pins, trusts_first_use)?;
    let hub = Hub::new(&arguments.hub, arguments.read_token()?.as_deref())
        .map_err(|error| CommandError::new(error.to_string()))?;
    let source = format!(
        "{} {name} {}",
        arguments.hub,
        request.revision.as_deref().unwrap_or_default()
    );
    // Bytes of an earlier process are used only where a digest shows that they are right.
    let mut download = ModelDownload::open(data_dir, &source, request.pins.is_some())?;
    if let (Some(revision), Some(sha256)) = (request.revision.clone(), request.pins.clone()) {
        let (model_name, digests) = (name.to_owned(), sha256.clone());
        let present;
        (download, present) = run_check(name, move || {
            let present = download.select_installed(&model_name, &digests)?;
            Ok((download, present))
        })
        .await?;
        if let Some(installed) = present {
            download.remove();
            let pins = ModelPins {
                name: request.name,
                revision,
                sha256,
            };
            return Ok((installed, pins));
        }
    }
    let downloaded = download_model(&hub, &request, download.folder()).await;
    let pins = match downloaded {
        Ok(pins) => pins,
        Err(error) => {
            if request.pins.is_none() {
                download.remove();
            }
            return Err(CommandError::from(error).with_context(name));
        }
    };
    let model_name = name.to_owned();
    let installed = run_check(name, move || download.install(&model_name)).await?;
    Ok((installed, pins))
}

/// Runs work on the files of a model on a thread that may block.
async fn run_check<T: Send + 'static>(
    name: &str,
    check: impl FnOnce() -> Result<T, ModelError> + Send + 'static,
) -> Result<T, CommandError> {
    tokio::task::spawn_blocking(check)
        .await
        .map_err(|error| CommandError::new(format!("{name}: the check was aborted: {error}")))?
        .map_err(|error| CommandError::from(error).with_context(name))
}
