//! The key of `[secrets] key_file`: read or made at start, and compared with what is sealed with it.

use std::path::Path;

use a2a_registry_core::config::Config;
use a2a_registry_core::config::secret_file::{SECRETS_KEY_SETTING, resolve_credential_path};
use a2a_registry_core::error::StartError;
use a2a_registry_core::hooks::target::HookTarget;
use a2a_registry_core::sealing::Sealer;
use a2a_registry_core::secrets::key_file::{create_key_file, read_key_file};
use a2a_registry_core::secrets::source_credentials::can_open_credential;
use a2a_registry_domain::identifiers::Entropy;
use a2a_registry_store::hooks::hook_page;
use a2a_registry_store::source_credentials::source_credentials_after;
use a2a_registry_store::{Store, StoreError};

/// Number of credentials, and of hooks, that are read at once.
const PAGE: u64 = 200;

/// Loads the key. SQLite gets one at the first start, because only one process uses it; the processes on a PostgreSQL
/// must have been given the same one. While the database has secrets that a lost key has sealed, no other key is made
/// or accepted: the file may come back.
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
        let sealer = read_key_file(&path)?;
        let check = compare_with_key(store, Some(&sealer)).await?;
        return match check.is_wrong_key() {
            true => Err(wrong_key_error(&path, check.sealed)),
            false => Ok(Some(sealer)),
        };
    }
    let sealed = compare_with_key(store, None).await?.sealed;
    if sealed > 0 {
        let file = path.display();
        tracing::warn!(
            "the key file {file} does not exist, so {sealed} credentials of sources and hooks cannot be used; put it \
             back, or remove them and restart"
        );
        return Ok(None);
    }
    create_key_file(&path, entropy).map(Some)
}

fn wrong_key_error(path: &Path, sealed: u64) -> StartError {
    StartError(format!(
        "{SECRETS_KEY_SETTING} {} is another key: it cannot decrypt any of the {sealed} credentials of sources and \
         hooks; put the earlier file back, or, if it is lost, start without a key file, remove the credentials and \
         hooks, and start with this one",
        path.display()
    ))
}

/// What is sealed, and whether the key opens it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SecretsCheck {
    /// Whether there is a key.
    pub has_key: bool,
    /// Number of credentials of sources and of hooks.
    pub sealed: u64,
    /// Number of those that the key does not open.
    pub unopened: u64,
}

impl SecretsCheck {
    /// Whether the key opens nothing of what is sealed. One row that it does not open may be damaged, or older.
    const fn is_wrong_key(&self) -> bool {
        self.sealed > 0 && self.unopened == self.sealed
    }

    fn count(&mut self, is_opened: bool) {
        self.sealed += 1;
        self.unopened += u64::from(!is_opened);
    }
}

pub(crate) async fn compare_with_key(
    store: &Store,
    sealer: Option<&Sealer>,
) -> Result<SecretsCheck, StoreError> {
    let mut check = SecretsCheck {
        has_key: sealer.is_some(),
        ..SecretsCheck::default()
    };
    let mut last_credential = 0;
    loop {
        let page = source_credentials_after(store, last_credential, PAGE).await?;
        let Some(last) = page.last() else { break };
        last_credential = last.id;
        for row in &page {
            check.count(sealer.is_some_and(|sealer| can_open_credential(sealer, row)));
        }
    }
    let mut last_hook = None;
    loop {
        let page = hook_page(store, None, last_hook, PAGE).await?;
        let Some(last) = page.last() else { break };
        last_hook = Some(last.id);
        for row in &page {
            check.count(sealer.is_some_and(|sealer| HookTarget::open_with(sealer, row).is_some()));
        }
    }
    Ok(check)
}
