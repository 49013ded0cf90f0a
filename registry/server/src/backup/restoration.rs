//! Restoration of a backup into an empty database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use a2a_crawler::Clock;
use a2a_registry_core::commit::decision_maker::SYSTEM_ACTOR;
use a2a_registry_core::config::Config;
use a2a_registry_core::config::validate::sqlite_url;
use a2a_registry_core::data_dir::DataDir;
use a2a_registry_core::error::StartError;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::backup::{DatabaseReservation, RestoredRows};
use a2a_registry_store::{SchemaState, Store, StoreOptions, judge_schema};

use super::ProgressCallback;
use super::backup_folder::{copy_private_file, file_error, hash_file, sync_file};
use super::creation::{MODELS_FOLDER, POSTGRES_DUMP, SETTINGS_FILE, SQLITE_COPY};
use super::manifest::{BackupManifest, DatabaseEngine};
use super::postgres_tools::PostgresTools;
use crate::maintenance::database_unusable_error;
use crate::startup::{remove_index, store_options};

/// Maximum size of the file with the settings.
const MAX_SETTINGS_BYTES: u64 = 4 * 1024 * 1024;
/// Files that SQLite keeps beside a database.
const SQLITE_SUFFIXES: [&str; 2] = ["-wal", "-shm"];
/// Suffix of a copy that is not complete yet.
const RESTORING_SUFFIX: &str = ".restoring";

/// A backup that was checked, and the empty database for it, which is reserved until this is dropped.
#[derive(Debug)]
pub struct PreparedRestore {
    config: Config,
    folder: PathBuf,
    manifest: BackupManifest,
    settings: BTreeMap<String, String>,
    target: RestoreTarget,
    _data_dir: DataDir,
}

#[derive(Debug)]
enum RestoreTarget {
    Sqlite(PathBuf),
    Postgres {
        store: Store,
        reservation: DatabaseReservation,
        tools: PostgresTools,
    },
}

#[derive(Debug, Clone, Copy)]
pub struct RestoreResult {
    /// Number of the event that records the restore.
    pub restore_event: i64,
}

impl PreparedRestore {
    /// Checks a backup and reserves the configured database for it. Nothing is changed, but a missing data folder is
    /// created.
    pub async fn new(
        config: Config,
        folder: &Path,
        progress: ProgressCallback<'_>,
    ) -> Result<Self, StartError> {
        let manifest = BackupManifest::read(folder)?;
        let engine = match store_options(&config).url.starts_with("sqlite:") {
            true => DatabaseEngine::Sqlite,
            false => DatabaseEngine::Postgres,
        };
        if engine != manifest.engine {
            return Err(StartError(format!(
                "the backup {} is of {}, and the configured database is {}; give a database of the same kind",
                folder.display(),
                manifest.engine.name(),
                engine.name()
            )));
        }
        reject_incompatible_schema(&manifest)?;
        verify_files(folder, &manifest, progress)?;
        let settings = read_settings(folder, &manifest)?;
        let file = store_options(&config).sqlite_file();
        let data_dir = DataDir::open(&config.store.data_dir, file.as_deref())
            .map_err(|error| StartError(error.to_string()))?;
        let target = reserve_target(&config, file).await?;
        Ok(Self {
            config,
            folder: folder.to_owned(),
            manifest,
            settings,
            target,
            _data_dir: data_dir,
        })
    }

    pub const fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// Restores the backup. If this fails or is killed, the database is empty, or one on which no registry starts.
    pub async fn run(
        self,
        clock: &dyn Clock,
        progress: ProgressCallback<'_>,
    ) -> Result<RestoreResult, StartError> {
        self.restore_models(progress)?;
        // It is derived from the lost database.
        remove_index(&self.config)?;
        let mut rows = RestoredRows {
            migrations: &[],
            settings: &self.settings,
            last_event: self.manifest.last_event,
            backup_at: self.manifest.created_at,
            restored_at: Timestamp::from(clock.now()),
            actor: SYSTEM_ACTOR,
        };
        let restore_event = match self.target {
            RestoreTarget::Sqlite(file) => {
                restore_sqlite(&self.config, &self.folder, &file, &rows, progress).await?
            }
            RestoreTarget::Postgres {
                store,
                reservation,
                tools,
            } => {
                progress("restoring the database", 0);
                tools.restore(&self.folder.join(POSTGRES_DUMP)).await?;
                rows.migrations = &self.manifest.schema;
                let completed = store.complete_restore(&rows).await;
                let restore_event = completed.map_err(|error| {
                    StartError(format!(
                        "the restore is incomplete: {error}; create an empty database again and restore into that"
                    ))
                })?;
                reservation.release().await?;
                store.close().await?;
                restore_event
            }
        };
        Ok(RestoreResult { restore_event })
    }

    /// Copies the models that the data folder lacks.
    fn restore_models(&self, progress: ProgressCallback<'_>) -> Result<(), StartError> {
        let prefix = format!("{MODELS_FOLDER}/");
        let files = self.manifest.files.keys();
        for name in files.filter(|name| name.starts_with(&prefix)) {
            let to = self.config.store.data_dir.join(name);
            if to.exists() {
                continue;
            }
            let from = self.folder.join(name);
            copy_private_file(&from, &to, &|bytes| progress("copying the models", bytes))
                .map_err(|error| file_error(&to, &error))?;
        }
        Ok(())
    }
}

/// Rejects a backup of a schema on which this version cannot run, as a start does.
fn reject_incompatible_schema(manifest: &BackupManifest) -> Result<(), StartError> {
    match judge_schema(manifest.schema.clone(), &manifest.min_versions)? {
        SchemaState::Known { .. } | SchemaState::Newer { .. } => Ok(()),
        SchemaState::Incompatible { reason } => Err(StartError(format!(
            "this version cannot restore the backup, which version {} made: {reason}",
            manifest.version
        ))),
    }
}

/// Compares every file with the manifest.
fn verify_files(
    folder: &Path,
    manifest: &BackupManifest,
    progress: ProgressCallback<'_>,
) -> Result<(), StartError> {
    let database = match manifest.engine {
        DatabaseEngine::Sqlite => SQLITE_COPY,
        DatabaseEngine::Postgres => POSTGRES_DUMP,
    };
    let required = [database, SETTINGS_FILE];
    if let Some(missing) = required
        .into_iter()
        .find(|name| !manifest.files.contains_key(*name))
    {
        return Err(StartError(format!(
            "the manifest of {} does not name {missing}, so it is no complete backup; use another one",
            folder.display()
        )));
    }
    for (name, expected) in &manifest.files {
        let path = folder.join(name);
        let found = hash_file(&path, &|bytes| progress("checking the backup", bytes))
            .map_err(|error| file_error(&path, &error))?;
        if found != *expected {
            return Err(StartError(format!(
                "{} does not match the manifest: it was changed or damaged; use another backup",
                path.display()
            )));
        }
    }
    Ok(())
}

fn read_settings(
    folder: &Path,
    manifest: &BackupManifest,
) -> Result<BTreeMap<String, String>, StartError> {
    let path = folder.join(SETTINGS_FILE);
    let size = manifest.files.get(SETTINGS_FILE).map(|file| file.bytes);
    if size.is_some_and(|size| size > MAX_SETTINGS_BYTES) {
        return Err(StartError(format!(
            "{} is larger than {MAX_SETTINGS_BYTES} bytes, so these are no settings of a registry",
            path.display()
        )));
    }
    let text = std::fs::read(&path).map_err(|error| file_error(&path, &error))?;
    serde_json::from_slice(&text)
        .map_err(|error| StartError(format!("{} is not valid: {error}", path.display())))
}

/// Reserves the configured database, which is the SQLite file or on PostgreSQL.
async fn reserve_target(
    config: &Config,
    file: Option<PathBuf>,
) -> Result<RestoreTarget, StartError> {
    let Some(file) = file else {
        return match store_options(config).url.starts_with("sqlite:") {
            true => Err(StartError(
                "a database in memory cannot be restored; set --database to a file".to_owned(),
            )),
            false => reserve_postgres(config).await,
        };
    };
    require_missing_database(&file)?;
    Ok(RestoreTarget::Sqlite(file))
}

async fn reserve_postgres(config: &Config) -> Result<RestoreTarget, StartError> {
    let to_start_error = |error| database_unusable_error(config, &error);
    let store = Store::connect(&store_options(config))
        .await
        .map_err(to_start_error)?;
    let version = store.postgres_major_version().await;
    let tools = PostgresTools::new(config, version.map_err(to_start_error)?)?;
    tools.require_version("pg_restore").await?;
    let reservation = store.reserve_empty_database().await;
    Ok(RestoreTarget::Postgres {
        reservation: reservation.map_err(to_start_error)?,
        store,
        tools,
    })
}

/// Rejects an SQLite database that has content, even if its file is missing and only its log is left.
fn require_missing_database(file: &Path) -> Result<(), StartError> {
    for path in [file.to_owned(), path_with_suffix(file, "-wal")] {
        match std::fs::metadata(&path) {
            Ok(found) if found.len() > 0 => {
                return Err(StartError(format!(
                    "the database is not empty: {} exists; move it away, with its log, and restore again",
                    path.display()
                )));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(file_error(&path, &error)),
        }
    }
    Ok(())
}

/// Completes a copy of the SQLite file beside its place, and moves it there. Returns the number of the restore's
/// event.
async fn restore_sqlite(
    config: &Config,
    folder: &Path,
    file: &Path,
    rows: &RestoredRows<'_>,
    progress: ProgressCallback<'_>,
) -> Result<i64, StartError> {
    let unfinished = path_with_suffix(file, RESTORING_SUFFIX);
    // A restore that was killed may have left files, and an empty database may have left a log.
    for base in [&unfinished, &file.to_owned()] {
        for suffix in SQLITE_SUFFIXES {
            remove_file(&path_with_suffix(base, suffix))?;
        }
    }
    let from = folder.join(SQLITE_COPY);
    copy_private_file(&from, &unfinished, &|bytes| {
        progress("restoring the database", bytes);
    })
    .map_err(|error| file_error(&unfinished, &error))?;
    let options = StoreOptions {
        url: sqlite_url(&unfinished),
        ..store_options(config)
    };
    let store = Store::connect(&options).await?;
    let completed = store.complete_restore(rows).await;
    store.close().await?;
    let restore_event = completed?;
    // A registry with another data folder may have created it meanwhile.
    require_missing_database(file)?;
    sync_file(&unfinished)
        .and_then(|()| std::fs::rename(&unfinished, file))
        .and_then(|()| sync_file(file))
        .map_err(|error| file_error(file, &error))?;
    Ok(restore_event)
}

fn remove_file(path: &Path) -> Result<(), StartError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(file_error(path, &error)),
        _ => Ok(()),
    }
}

fn path_with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
