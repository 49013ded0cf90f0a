//! Creation of a backup, also while registries use the database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_registry_core::config::Config;
use a2a_registry_core::config::secret_file::resolve_credential_path;
use a2a_registry_core::config::validate::sqlite_url;
use a2a_registry_core::error::StartError;
use a2a_registry_core::health::received_request::DATABASE_ID_SETTING;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_http::a2a_agent::card_signing::KEY_SETTING;
use a2a_registry_store::backup::{BackupFacts, read_backup_facts};
use a2a_registry_store::{Store, StoreOptions};

use super::ProgressCallback;
use super::backup_folder::{
    copy_private_file, create_backup_folder, create_private_file, file_error, hash_file,
    list_files, sync_file, write_private_file,
};
use super::manifest::{BackupFile, BackupManifest, DatabaseEngine, FORMAT, MANIFEST_FILE};
use super::postgres_tools::PostgresTools;
use crate::maintenance::{database_unusable_error, read_only_options};
use crate::startup::{ATTEMPT_KEY_SETTING, PAGE_TOKEN_KEY_SETTING, store_options};

pub(super) const SQLITE_COPY: &str = "registry.sqlite";
pub(super) const POSTGRES_DUMP: &str = "registry.pgdump";
pub(super) const SETTINGS_FILE: &str = "settings.json";
/// Folder of the models, in a backup as in a data folder.
pub(super) const MODELS_FOLDER: &str = "models";
const SECRETS_FOLDER: &str = "secrets";

/// How often the size of the growing copy is reported.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub struct BackupRequest<'a> {
    pub config: &'a Config,
    /// The folder of the backup, which is created.
    pub folder: &'a Path,
    /// Whether private keys and secrets are copied: those in files, those in the configuration file, and the key of
    /// the registry's own card.
    pub with_secrets: bool,
    pub config_file: Option<&'a Path>,
}

/// Writes a backup, and returns its manifest.
pub async fn create_backup(
    request: BackupRequest<'_>,
    clock: &dyn Clock,
    progress: ProgressCallback<'_>,
) -> Result<BackupManifest, StartError> {
    let BackupRequest { config, folder, .. } = request;
    let to_start_error = |error| database_unusable_error(config, &error);
    let store = Store::connect(&read_only_options(config))
        .await
        .map_err(to_start_error)?;
    create_backup_folder(folder)?;
    let created_at = Timestamp::from(clock.now());
    let copied = match store.is_postgres() {
        true => dump_postgres(config, &store, folder, created_at, progress).await,
        false => copy_sqlite(config, &store, folder, created_at, progress).await,
    };
    let engine = match store.is_postgres() {
        true => DatabaseEngine::Postgres,
        false => DatabaseEngine::Sqlite,
    };
    store.close().await.map_err(to_start_error)?;
    let mut facts = copied?;
    write_settings(&mut facts.settings, request)?;
    copy_models(config, folder, progress)?;
    let secret_files = copy_secret_files(request, progress)?;
    let manifest = BackupManifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at,
        engine,
        schema: facts.migrations,
        min_versions: facts.min_versions,
        last_event: facts.last_event,
        with_secrets: request.with_secrets,
        rights: facts.rights,
        secret_files,
        files: hash_files(folder, progress)?,
    };
    write_json(&folder.join(MANIFEST_FILE), &manifest)?;
    Ok(manifest)
}

/// Hashes all files of a backup and makes them survive a power failure.
fn hash_files(
    folder: &Path,
    progress: ProgressCallback<'_>,
) -> Result<BTreeMap<String, BackupFile>, StartError> {
    let mut files = BTreeMap::new();
    for name in list_files(folder)? {
        let path = folder.join(&name);
        let hashed = hash_file(&path, &|bytes| progress("hashing the copy", bytes));
        let hashed = hashed.and_then(|hashed| sync_file(&path).map(|()| hashed));
        files.insert(name, hashed.map_err(|error| file_error(&path, &error))?);
    }
    Ok(files)
}

/// Copies an SQLite database and removes from the copy what no copy has.
async fn copy_sqlite(
    config: &Config,
    store: &Store,
    folder: &Path,
    now: Timestamp,
    progress: ProgressCallback<'_>,
) -> Result<BackupFacts, StartError> {
    let to_start_error = |error| database_unusable_error(config, &error);
    let file = folder.join(SQLITE_COPY);
    let text = file.to_str().ok_or_else(|| {
        StartError(format!(
            "{} is not Unicode, which SQLite needs; give another folder",
            folder.display()
        ))
    })?;
    // SQLite fills an empty file and keeps its mode.
    create_private_file(&file).map_err(|error| file_error(&file, &error))?;
    let copying = store.copy_sqlite_database(text);
    report_growth(&file, copying, progress)
        .await
        .map_err(to_start_error)?;
    let options = StoreOptions {
        url: sqlite_url(&file),
        ..store_options(config)
    };
    let copy = Store::connect(&options).await?;
    let facts = read_backup_facts(&copy, now).await;
    let removed = copy.remove_omitted_rows().await;
    copy.close().await?;
    removed?;
    Ok(facts?)
}

/// Dumps a PostgreSQL database, and reads what the backup records in the same snapshot.
async fn dump_postgres(
    config: &Config,
    store: &Store,
    folder: &Path,
    now: Timestamp,
    progress: ProgressCallback<'_>,
) -> Result<BackupFacts, StartError> {
    let tools = PostgresTools::new(config, store.postgres_major_version().await?)?;
    let snapshot = store.export_postgres_snapshot().await?;
    let facts = read_backup_facts(&snapshot.read, now).await?;
    let file = folder.join(POSTGRES_DUMP);
    create_private_file(&file).map_err(|error| file_error(&file, &error))?;
    report_growth(&file, tools.dump(&snapshot, &file), progress).await?;
    Ok(facts)
}

/// Reports the size of a file until the work that writes it is done.
async fn report_growth<T>(
    file: &Path,
    work: impl Future<Output = T>,
    progress: ProgressCallback<'_>,
) -> T {
    let mut work = std::pin::pin!(work);
    let mut ticks = tokio::time::interval(REPORT_INTERVAL);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => {
                let size = std::fs::metadata(file).map_or(0, |found| found.len());
                progress("copying the database", size);
            }
        }
    }
}

/// Writes the settings that stay valid after a restore. The keys of page tokens and sign-ins and the identity of the
/// database do not, so that what belongs to the lost database is recognized.
fn write_settings(
    settings: &mut BTreeMap<String, String>,
    request: BackupRequest<'_>,
) -> Result<(), StartError> {
    for key in [
        PAGE_TOKEN_KEY_SETTING,
        ATTEMPT_KEY_SETTING,
        DATABASE_ID_SETTING,
    ] {
        settings.remove(key);
    }
    if !request.with_secrets {
        settings.remove(KEY_SETTING);
    }
    write_json(&request.folder.join(SETTINGS_FILE), settings)
}

fn copy_models(
    config: &Config,
    folder: &Path,
    progress: ProgressCallback<'_>,
) -> Result<(), StartError> {
    let models = config.store.data_dir.join(MODELS_FOLDER);
    for name in list_files(&models)? {
        let from = models.join(&name);
        let to = folder.join(MODELS_FOLDER).join(&name);
        copy_private_file(&from, &to, &|bytes| progress("copying the models", bytes))
            .map_err(|error| file_error(&from, &error))?;
    }
    Ok(())
}

/// Copies the files with secrets, if requested, and returns the original path of each.
fn copy_secret_files(
    request: BackupRequest<'_>,
    progress: ProgressCallback<'_>,
) -> Result<BTreeMap<String, PathBuf>, StartError> {
    let mut copied = BTreeMap::new();
    if !request.with_secrets {
        return Ok(copied);
    }
    let mut files: Vec<PathBuf> = request
        .config_file
        .into_iter()
        .map(Path::to_owned)
        .collect();
    for (setting, path) in request.config.secret_files() {
        files.push(resolve_credential_path(&setting, &path).map_err(StartError)?);
    }
    for (number, from) in files.iter().enumerate() {
        let file_name = from.file_name().unwrap_or_default().to_string_lossy();
        // The number tells files of the same name apart, and no name begins with a dot.
        let name = format!("{SECRETS_FOLDER}/{:02}-{file_name}", number + 1);
        let to = request.folder.join(&name);
        copy_private_file(from, &to, &|bytes| progress("copying the secrets", bytes))
            .map_err(|error| file_error(from, &error))?;
        let original = std::path::absolute(from).unwrap_or_else(|_| from.clone());
        copied.insert(name, original);
    }
    Ok(copied)
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), StartError> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|error| StartError(format!("{}: {error}", path.display())))?;
    write_private_file(path, &text).map_err(|error| file_error(path, &error))
}
