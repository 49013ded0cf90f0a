//! The models of a process: opens those that the configuration and the data folder name.

use std::path::PathBuf;
use std::sync::Arc;

use a2a_registry_embed::{
    Embedder, EncoderOptions, EndpointOpenError, InstalledModel, LocalEncoder, ModelError,
    RemoteEncoder, describe_built_in_model, find_current_model, list_installed_models,
};

use crate::config::Config;
use crate::context::AppContext;
use crate::embeddings::model_indexer::previous_model_ids;

#[derive(Debug, Clone)]
pub struct ConfiguredEmbedders {
    pub configured: Arc<dyn Embedder>,
    /// The previous model, which serves until every agent has vectors of the configured one.
    pub previous: Option<Arc<dyn Embedder>>,
}

#[derive(Debug, Clone, Default)]
pub enum ModelSource {
    /// No model: searches are full text only.
    #[default]
    None,
    /// The models that configuration and data folder select.
    Configured,
    Given(ConfiguredEmbedders),
}

/// The value of `search.model` that turns semantic search off.
pub const NO_MODEL: &str = "off";
/// The value of `search.model` that selects the model in the program, whatever is installed.
pub const BUILT_IN_MODEL: &str = "built-in";

/// The model that configuration and data folder select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectedModel {
    /// Semantic search is turned off.
    Off,
    /// The one at the endpoint of `[embedding]`.
    Endpoint,
    Installed(InstalledModel),
    BuiltIn,
}

/// Selects what `search.model` names. If it is empty, an endpoint takes precedence over the current installed model, and
/// this one over the built-in one.
pub fn select_model(config: &Config) -> Result<SelectedModel, String> {
    let data_dir = &config.store.data_dir;
    let text = |error: ModelError| error.to_string();
    match config.search.model.as_str() {
        NO_MODEL => Ok(SelectedModel::Off),
        BUILT_IN_MODEL => Ok(SelectedModel::BuiltIn),
        "" if !config.embedding.url.is_empty() => Ok(SelectedModel::Endpoint),
        "" => {
            let current = find_current_model(data_dir).map_err(text)?;
            Ok(current.map_or(SelectedModel::BuiltIn, SelectedModel::Installed))
        }
        name => {
            let all = list_installed_models(data_dir).map_err(text)?;
            let found = all.into_iter().find(|model| is_model_named(model, name));
            found.map(SelectedModel::Installed).ok_or_else(|| {
                format!("search.model: the model {name:?} is not installed; `a2a-registry model status` \
                     lists the installed ones")
            })
        }
    }
}

/// Opens the selected model, and the previous one if it is a different one that still exists; `None` if semantic
/// search is turned off.
pub async fn open_configured_models(
    context: &AppContext,
) -> Result<Option<ConfiguredEmbedders>, String> {
    let config = context.config();
    let selected = select_model(&config)?;
    let configured = match selected {
        SelectedModel::Off => return Ok(None),
        SelectedModel::Endpoint => open_endpoint(context, &config).await?,
        SelectedModel::Installed(model) => open_installed_model(model).await?,
        SelectedModel::BuiltIn => open_built_in_model().await?,
    };
    let configured_id = &configured.model_identity().id;
    let previous = match open_previous_model(context, configured_id).await {
        Ok(previous) => previous,
        Err(error) => {
            tracing::warn!(
                error,
                "cannot open the previous model; searches are full text only until the new one serves"
            );
            None
        }
    };
    Ok(Some(ConfiguredEmbedders {
        configured,
        previous,
    }))
}

async fn open_endpoint(context: &AppContext, config: &Config) -> Result<Arc<dyn Embedder>, String> {
    let options = config.embedding.read_endpoint_options()?;
    let opened = RemoteEncoder::open(
        &options,
        Arc::clone(&context.network.resolver),
        context.clock(),
    )
    .await;
    Ok(Arc::new(opened.map_err(|error| match error {
        EndpointOpenError::Configuration(text) => format!("embedding.{text}"),
        EndpointOpenError::Trial(_) => error.to_string(),
    })?))
}

/// The folder of the installed model that is selected because it is the current one; `None` if another model is
/// selected, or the folder cannot be read now.
pub fn installed_model_dir(context: &AppContext) -> Option<PathBuf> {
    let config = context.config();
    if !config.search.model.is_empty() {
        return None;
    }
    match select_model(&config).ok()? {
        SelectedModel::Installed(model) => Some(model.folder),
        _ => None,
    }
}

/// Whether a configured name is an installed model's folder or id.
fn is_model_named(model: &InstalledModel, name: &str) -> bool {
    let folder = model
        .folder
        .file_name()
        .is_some_and(|folder| folder == name);
    folder
        || model
            .description
            .as_ref()
            .is_some_and(|about| about.id == name)
}

/// Opens the most recently used of the other models that have served until now, of those that this process has.
async fn open_previous_model(
    context: &AppContext,
    configured_id: &str,
) -> Result<Option<Arc<dyn Embedder>>, String> {
    let ids = previous_model_ids(context, configured_id)
        .await
        .map_err(|error| error.public)?;
    if ids.is_empty() {
        return Ok(None);
    }
    let all = list_installed_models(&context.config().store.data_dir)
        .map_err(|error| error.to_string())?;
    let built_in = describe_built_in_model().map_err(|error| error.to_string())?;
    for id in ids {
        if let Some(model) = all.iter().find(|model| is_model_named(model, &id)) {
            return open_installed_model(model.clone()).await.map(Some);
        }
        if built_in.id == id {
            return open_built_in_model().await.map(Some);
        }
    }
    Ok(None)
}

async fn open_installed_model(model: InstalledModel) -> Result<Arc<dyn Embedder>, String> {
    open_encoder(move || model.open(EncoderOptions::default())).await
}

async fn open_built_in_model() -> Result<Arc<dyn Embedder>, String> {
    open_encoder(|| LocalEncoder::built_in(EncoderOptions::default())).await
}

/// Opens an encoder on a thread that may block.
async fn open_encoder(
    open: impl FnOnce() -> Result<LocalEncoder, ModelError> + Send + 'static,
) -> Result<Arc<dyn Embedder>, String> {
    let opened = tokio::task::spawn_blocking(open).await;
    let encoder = opened
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(encoder))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;

    #[test]
    fn what_is_named_counts_before_an_endpoint_and_an_installed_model() {
        let data = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = data.path().to_owned();
        assert_eq!(select_model(&config), Ok(SelectedModel::BuiltIn));
        let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models/tiny");
        let installed = a2a_registry_embed::install_model(data.path(), &tiny).unwrap();
        let installed = SelectedModel::Installed(installed.model);
        assert_eq!(select_model(&config).as_ref(), Ok(&installed));
        config.embedding.url = "https://api.example.com/v1/embeddings".into();
        assert_eq!(select_model(&config), Ok(SelectedModel::Endpoint));
        let SelectedModel::Installed(model) = &installed else {
            unreachable!("it was installed")
        };
        let folder = model.folder.file_name().unwrap().to_str().unwrap();
        let id = model.description.clone().unwrap().id;
        for (name, selected) in [
            (NO_MODEL, &SelectedModel::Off),
            (BUILT_IN_MODEL, &SelectedModel::BuiltIn),
            (folder, &installed),
            (id.as_str(), &installed),
        ] {
            config.search.model = name.into();
            assert_eq!(select_model(&config).as_ref(), Ok(selected), "{name}");
        }
        config.search.model = "another".into();
        assert!(select_model(&config).unwrap_err().contains("search.model"));
    }
}
