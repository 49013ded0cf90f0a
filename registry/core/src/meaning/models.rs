//! The models of a process, and how those that the configuration and the data folder name are opened.

use std::path::PathBuf;
use std::sync::Arc;

use a2a_registry_embed::{
    Embedder, EncoderOptions, Endpoint, InstalledModel, OpenError, current, installed,
};

use crate::context::Context;
use crate::meaning::embedding::model_before;

#[derive(Debug, Clone)]
pub struct Embedders {
    pub wanted: Arc<dyn Embedder>,
    /// The previous one, which serves until every agent has vectors of the configured one.
    pub former: Option<Arc<dyn Embedder>>,
}

#[derive(Debug, Clone, Default)]
pub enum Models {
    /// None: searches are full text only.
    #[default]
    None,
    /// The models of configuration and data folder, if there are any.
    Configured,
    Given(Embedders),
}

/// The configuration value for no model.
const OFF: &str = "off";

/// Opens the configured model, and the previous one if it is another one that still exists; `None` if no model is
/// configured. An endpoint takes precedence over an installed model.
pub async fn configured(context: &Context) -> Result<Option<Embedders>, String> {
    let config = context.config();
    let wanted: Arc<dyn Embedder> = if config.embedding.url.is_empty() {
        match wanted_model(context)? {
            Some(model) => open(model).await?,
            None => return Ok(None),
        }
    } else {
        let options = config.embedding.endpoint()?;
        let opened = Endpoint::open(
            &options,
            Arc::clone(&context.network.resolver),
            context.clock(),
        )
        .await;
        Arc::new(opened.map_err(|error| match error {
            OpenError::Configuration(text) => format!("embedding.{text}"),
            OpenError::Trial(_) => error.to_string(),
        })?)
    };
    let former = match former(context, &wanted.model().id).await {
        Ok(former) => former,
        Err(error) => {
            tracing::warn!(
                error,
                "the previous model cannot be opened; searches are full text only until the new one serves"
            );
            None
        }
    };
    Ok(Some(Embedders { wanted, former }))
}

/// The folder of the installed model that is in use; `None` if an endpoint or no model is configured, or it cannot be
/// read now.
pub fn in_use(context: &Context) -> Option<PathBuf> {
    let config = context.config();
    if !config.embedding.url.is_empty() || !config.search.model.is_empty() {
        return None;
    }
    let model = current(&config.store.data_dir).ok()??;
    Some(model.folder)
}

/// The installed model that is configured, or the current one.
fn wanted_model(context: &Context) -> Result<Option<InstalledModel>, String> {
    let data_dir = &context.config().store.data_dir;
    let text = |error: a2a_registry_embed::ModelError| error.to_string();
    match context.config().search.model.as_str() {
        OFF => Ok(None),
        "" => current(data_dir).map_err(text),
        name => {
            let all = installed(data_dir).map_err(text)?;
            let found = all.into_iter().find(|model| is_called(model, name));
            found.map(Some).ok_or_else(|| {
                format!("search.model: no model {name:?} is installed; `a2a-registry model status` lists what is")
            })
        }
    }
}

/// Whether a configured name is an installed model's folder or id.
fn is_called(model: &InstalledModel, name: &str) -> bool {
    let folder = model
        .folder
        .file_name()
        .is_some_and(|folder| folder == name);
    folder || model.about.as_ref().is_some_and(|about| about.id == name)
}

/// The model that has served until now, if it is another one whose files still exist.
async fn former(context: &Context, wanted: &str) -> Result<Option<Arc<dyn Embedder>>, String> {
    let Some(id) = model_before(context, wanted)
        .await
        .map_err(|error| error.public)?
    else {
        return Ok(None);
    };
    let all = installed(&context.config().store.data_dir).map_err(|error| error.to_string())?;
    match all.into_iter().find(|model| is_called(model, &id)) {
        Some(model) => open(model).await.map(Some),
        None => Ok(None),
    }
}

async fn open(model: InstalledModel) -> Result<Arc<dyn Embedder>, String> {
    let opened = tokio::task::spawn_blocking(move || model.open(EncoderOptions::default())).await;
    let encoder = opened
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(encoder))
}
