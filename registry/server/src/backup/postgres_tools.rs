//! PostgreSQL's own programs, `pg_dump` and `pg_restore`. Neither gets a password as an argument, which every user of
//! the machine could read.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use a2a_registry_core::config::{Config, DatabaseUrl};
use a2a_registry_core::error::StartError;
use a2a_registry_store::backup::{ExportedSnapshot, tables_without_dumped_rows};
use tokio::process::Command;

/// Maximum number of characters of a program's message that an error repeats.
const MAX_MESSAGE_CHARS: usize = 500;

/// How PostgreSQL's programs reach the configured database.
#[derive(Debug)]
pub(super) struct PostgresTools {
    /// Shown without its password.
    url: DatabaseUrl,
    server_version: u32,
}

impl PostgresTools {
    pub(super) fn new(config: &Config, server_version: u32) -> Result<Self, StartError> {
        let url = DatabaseUrl::from(config.database_url());
        if url.postgres_environment().is_none() {
            return Err(StartError(
                "the URL of the database is not valid; give it as postgres://…".to_owned(),
            ));
        }
        Ok(Self {
            url,
            server_version,
        })
    }

    /// Dumps the tables in this snapshot to a file.
    pub(super) async fn dump(
        &self,
        snapshot: &ExportedSnapshot,
        file: &Path,
    ) -> Result<(), StartError> {
        self.require_version("pg_dump").await?;
        let schema = &snapshot.schema;
        let tables = format!("--table={schema}.*");
        let snapshot = format!("--snapshot={}", snapshot.id);
        let omitted: Vec<String> = tables_without_dumped_rows()
            .map(|table| format!("--exclude-table-data={schema}.{table}"))
            .collect();
        // With a selection of tables, the schema itself and extensions, which belong to the server's administrator,
        // are left out.
        let mut arguments: Vec<&OsStr> = [
            "--format=custom",
            "--no-owner",
            "--no-privileges",
            "--no-password",
            tables.as_str(),
            snapshot.as_str(),
        ]
        .map(OsStr::new)
        .to_vec();
        arguments.extend(omitted.iter().map(OsStr::new));
        arguments.extend([OsStr::new("--file"), file.as_os_str()]);
        self.run("pg_dump", &arguments).await.map(drop)
    }

    /// Restores a dump into the database, completely or not at all.
    pub(super) async fn restore(&self, file: &Path) -> Result<(), StartError> {
        let mut arguments: Vec<&OsStr> = [
            "--no-owner",
            "--no-privileges",
            "--no-password",
            "--exit-on-error",
            "--single-transaction",
            // Empty: the database of the environment. A name could be parsed as a connection string.
            "--dbname=",
        ]
        .map(OsStr::new)
        .to_vec();
        arguments.push(file.as_os_str());
        self.run("pg_restore", &arguments).await.map(drop)
    }

    /// Checks that a program exists and is not older than the server.
    pub(super) async fn require_version(&self, program: &str) -> Result<(), StartError> {
        let text = self.run(program, &[OsStr::new("--version")]).await?;
        let text = text.trim();
        let server = self.server_version;
        match parse_major_version(text) {
            Some(version) if version >= server => Ok(()),
            _ => Err(StartError(format!(
                "{program} is {text:?}, and the server is PostgreSQL {server}; install the client programs of version \
                 {server} or newer and put them first in PATH"
            ))),
        }
    }

    /// Runs a program to its end and returns its output.
    async fn run(&self, program: &str, arguments: &[&OsStr]) -> Result<String, StartError> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(self.url.postgres_environment().unwrap_or_default())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command.output().await.map_err(|error| {
            let advice = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "; install the client programs of PostgreSQL and put them in PATH"
                }
                _ => "",
            };
            StartError(format!("{program} cannot be started: {error}{advice}"))
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = main_line(&String::from_utf8_lossy(&output.stderr));
        Err(StartError(format!(
            "{program} failed ({}): {message}",
            output.status
        )))
    }
}

/// The line of a program's message that names the error: warnings may precede it, and the statement may follow it.
fn main_line(message: &str) -> String {
    let mut lines = message.lines().map(str::trim);
    let error = lines.clone().find(|line| line.contains("error: "));
    let line = error.or_else(|| lines.rfind(|line| !line.is_empty()));
    let line = line.unwrap_or("it gave no reason");
    line.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// 15 from `pg_dump (PostgreSQL) 15.18 (Debian 15.18-0)`.
fn parse_major_version(text: &str) -> Option<u32> {
    let (_, version) = text.split_once("(PostgreSQL) ")?;
    let digits = version
        .split(|character: char| !character.is_ascii_digit())
        .next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_program_is_read() {
        for (text, version) in [
            (
                "pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
                Some(15),
            ),
            ("pg_restore (PostgreSQL) 17beta1", Some(17)),
            ("pg_dump (PostgreSQL) ", None),
            ("", None),
        ] {
            assert_eq!(parse_major_version(text), version, "{text}");
        }
    }

    #[test]
    fn the_line_with_the_error_is_repeated_in_part() {
        assert_eq!(main_line("a\nx: error: b\nCommand was: c\n"), "x: error: b");
        assert_eq!(main_line("a\nb\n\n"), "b");
        assert_eq!(main_line(""), "it gave no reason");
        let long = "é".repeat(MAX_MESSAGE_CHARS + 1);
        assert_eq!(main_line(&long).chars().count(), MAX_MESSAGE_CHARS);
    }
}
