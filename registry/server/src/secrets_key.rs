//! The key of `[secrets] key_file`: read or made at start, and compared with what is sealed with it.

use a2a_registry_core::config::Config;
use a2a_registry_core::config::secret_file::{SECRETS_KEY_SETTING, resolve_credential_path};
use a2a_registry_core::error::StartError;
use a2a_registry_core::sealing::Sealer;
use a2a_registry_core::secrets::key_file::{create_key_file, read_key_file};
use a2a_registry_core::secrets::source_credentials::can_open_credential;
use a2a_registry_domain::identifiers::Entropy;
use a2a_registry_store::hooks::hook_count;
use a2a_registry_store::source_credentials::{source_credential_count, source_credentials_after};
use a2a_registry_store::{Store, StoreError};

/// Number of credentials that are read at once.
const PAGE: u64 = 200;

/// Loads the key. SQLite gets one at the first start, because only one process uses it; the processes on a PostgreSQL
/// must have been given the same one. While the database has secrets that a lost key has sealed, no other key is made:
/// the file may come back.
pub(crate) async fn load_secrets_key(
    config: &Config,
    store: &Store,
    entropy: &dyn Entropy,
) -> Result<Option<Sealer>, StartError> {
    let Some(path) = config.secrets_key_file() else {
        return Ok(None);
    };
    let path = resolve_credential_path(SECRETS_KEY_SETTING, &path).map_err(StartError)?;
    if store.is_postgres() || path.exists() {
        return read_key_file(&path).map(Some);
    }
    let (credentials, hooks) = (
        source_credential_count(store).await?,
        hook_count(store).await?,
    );
    if credentials + hooks > 0 {
        let file = path.display();
        tracing::warn!(
            "the key file {file} does not exist, so {credentials} credentials of sources and {hooks} hooks cannot be \
             used; put it back, or remove them and restart"
        );
        return Ok(None);
    }
    create_key_file(&path, entropy).map(Some)
}

/// What is sealed, and whether the key opens it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SecretsCheck {
    /// Whether there is a key.
    pub has_key: bool,
    /// Number of stored credentials.
    pub credentials: u64,
    /// Number of those that the key does not open.
    pub unopened: u64,
}

pub(crate) async fn compare_with_key(
    store: &Store,
    sealer: Option<&Sealer>,
) -> Result<SecretsCheck, StoreError> {
    let mut check = SecretsCheck {
        has_key: sealer.is_some(),
        ..SecretsCheck::default()
    };
    let mut after = 0;
    loop {
        let page = source_credentials_after(store, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(check);
        };
        after = last.id;
        for row in &page {
            let is_opened = sealer.is_some_and(|sealer| can_open_credential(sealer, row));
            check.credentials += 1;
            check.unopened += u64::from(!is_opened);
        }
    }
}
