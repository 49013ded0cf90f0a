//! Checks the file of an SQLite database, which is rejected if it exists but holds no registry.
//!
//! SQLite treats an empty file as an empty database. A file that was truncated, or copied without its log, would
//! therefore start a new registry in place of the old one.

use std::fs::{metadata, remove_file, write};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sea_orm::sqlx::{self, Connection as _};

use super::{StoreError, StoreOptions};

const WAL_SUFFIX: &str = "-wal";

/// Suffix of the file that exists beside a database until its first start is complete, so that an interrupted start
/// can be repeated.
const UNFINISHED_SUFFIX: &str = ".unfinished";

/// Rejects a file that exists but holds no registry. Neither the file nor its log is changed.
pub(super) async fn reject_foreign_file(options: &StoreOptions) -> Result<(), StoreError> {
    let Some(file) = options.sqlite_file() else {
        return Ok(());
    };
    let log = path_with_suffix(&file, WAL_SUFFIX);
    let (shown, shown_log) = (file.display(), log.display());
    let Some(size) = file_size(&file)? else {
        // SQLite would apply the log to the new database.
        return match file_size(&log)? {
            None | Some(0) => Ok(()),
            Some(_) => Err(StoreError::other(format!(
                "the file {shown} is missing, but its log {shown_log} exists; restore the file, or remove the log to start a new registry"
            ))),
        };
    };
    if path_with_suffix(&file, UNFINISHED_SUFFIX).exists() {
        return Ok(());
    }
    if size == 0 {
        return Err(StoreError::other(format!(
            "the file {shown} is empty, so its content is lost; restore the database from a backup, or remove the file to start a new registry"
        )));
    }
    if !contains_registry(options).await? {
        return Err(StoreError::other(format!(
            "the file {shown} ({size} bytes) holds no registry: it belongs to another program, or was copied without {shown_log}; copy both files while the registry is stopped, or remove the file to start a new registry"
        )));
    }
    Ok(())
}

/// Whether the database has accounts, as every registry has after its first start.
async fn contains_registry(options: &StoreOptions) -> Result<bool, StoreError> {
    let connect = SqliteConnectOptions::from_str(&options.url)?
        .create_if_missing(false)
        .read_only(true);
    let mut connection = SqliteConnection::connect_with(&connect).await?;
    let mut result: Result<i64, sqlx::Error> = sqlx::query_scalar(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('seaql_migrations', 'accounts')",
    )
    .fetch_one(&mut connection)
    .await;
    if matches!(result, Ok(2)) {
        result = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM accounts)")
            .fetch_one(&mut connection)
            .await;
    } else {
        result = result.map(|_| 0);
    }
    connection.close().await?;
    Ok(result? > 0)
}

pub(super) fn mark_start_unfinished(options: &StoreOptions) -> Result<(), StoreError> {
    let Some(file) = options.sqlite_file() else {
        return Ok(());
    };
    if file_size(&file)?.is_some() || !options.url.contains("mode=rwc") {
        return Ok(());
    }
    let mark = path_with_suffix(&file, UNFINISHED_SUFFIX);
    write(&mark, "").map_err(|error| file_error(&mark, &error))
}

pub(super) fn mark_start_finished(options: &StoreOptions) -> Result<(), StoreError> {
    let Some(file) = options.sqlite_file() else {
        return Ok(());
    };
    let mark = path_with_suffix(&file, UNFINISHED_SUFFIX);
    match remove_file(&mark) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(file_error(&mark, &error)),
        _ => Ok(()),
    }
}

fn file_size(file: &Path) -> Result<Option<u64>, StoreError> {
    match metadata(file) {
        Ok(found) => Ok(Some(found.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(file, &error)),
    }
}

fn path_with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn file_error(file: &Path, error: &Error) -> StoreError {
    StoreError::other(format!("the file {}: {error}", file.display()))
}
