//! The models of a process: opens those that the configuration and the data folder name.

use std::path::PathBuf;
use std::sync::Arc;

use a2a_registry_embed::{
    Embedder, EncoderOptions, EndpointOpenError, InstalledModel, RemoteEncoder, find_current_model,
    list_installed_models,
};

use crate::context::AppContext;
use crate::embeddings::model_indexer::previous_model_id;

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
    /// The models of configuration and data folder, if there are any.
    Configured,
    Given(ConfiguredEmbedders),
}

/// The configuration value that disables models.
const NO_MODEL: &str = "off";

/// Opens the configured model, and the previous one if it is a different one that still exists; `None` if no model is
/// configured. An endpoint takes precedence over an installed model.
pub async fn open_configured_models(
    context: &AppContext,
) -> Result<Option<ConfiguredEmbedders>, String> {
    let config = context.config();
    let configured_embedder: Arc<dyn Embedder> = if config.embedding.url.is_empty() {
        match configured_model(context)? {
            Some(model) => open_installed_model(model).await?,
            None => return Ok(None),
        }
    } else {
        let options = config.embedding.read_endpoint_options()?;
        let opened = RemoteEncoder::open(
            &options,
            Arc::clone(&context.network.resolver),
            context.clock(),
        )
        .await;
        Arc::new(opened.map_err(|error| match error {
            EndpointOpenError::Configuration(text) => format!("embedding.{text}"),
            EndpointOpenError::Trial(_) => error.to_string(),
        })?)
    };
    let previous_embedder = match open_previous_model(
        context,
        &configured_embedder.model_identity().id,
    )
    .await
    {
        Ok(former) => former,
        Err(error) => {
            tracing::warn!(
                error,
                "cannot open the previous model; searches are full text only until the new one serves"
            );
            None
        }
    };
    Ok(Some(ConfiguredEmbedders {
        configured: configured_embedder,
        previous: previous_embedder,
    }))
}

/// The folder of the installed model in use; `None` if an endpoint or no model is configured, or the folder cannot be
/// read now.
pub fn installed_model_dir(context: &AppContext) -> Option<PathBuf> {
    let config = context.config();
    if !config.embedding.url.is_empty() || !config.search.model.is_empty() {
        return None;
    }
    let model = find_current_model(&config.store.data_dir).ok()??;
    Some(model.folder)
}

/// The installed model that is configured, or the current one.
fn configured_model(context: &AppContext) -> Result<Option<InstalledModel>, String> {
    let data_dir = &context.config().store.data_dir;
    let text = |error: a2a_registry_embed::ModelError| error.to_string();
    match context.config().search.model.as_str() {
        NO_MODEL => Ok(None),
        "" => find_current_model(data_dir).map_err(text),
        name => {
            let all = list_installed_models(data_dir).map_err(text)?;
            let found = all.into_iter().find(|model| is_model_named(model, name));
            found.map(Some).ok_or_else(|| {
                format!("search.model: the model {name:?} is not installed; `a2a-registry model status` \
                     lists the installed ones")
            })
        }
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

/// Opens the model that has served until now, if it is a different one whose files still exist.
async fn open_previous_model(
    context: &AppContext,
    configured_id: &str,
) -> Result<Option<Arc<dyn Embedder>>, String> {
    let Some(id) = previous_model_id(context, configured_id)
        .await
        .map_err(|error| error.public)?
    else {
        return Ok(None);
    };
    let all = list_installed_models(&context.config().store.data_dir)
        .map_err(|error| error.to_string())?;
    match all.into_iter().find(|model| is_model_named(model, &id)) {
        Some(model) => open_installed_model(model).await.map(Some),
        None => Ok(None),
    }
}

async fn open_installed_model(model: InstalledModel) -> Result<Arc<dyn Embedder>, String> {
    let opened = tokio::task::spawn_blocking(move || model.open(EncoderOptions::default())).await;
    let encoder = opened
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(encoder))
}
