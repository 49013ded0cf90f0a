//! State of the schema: which migrations have run, and whether this version can run on the schema.

use std::collections::BTreeMap;

use a2a_migrations::Migrator;
use sea_orm::{ConnectionTrait, DatabaseConnection, EntityTrait as _};
use sea_orm_migration::{MigratorTrait as _, SchemaManager, seaql_migrations};
use semver::Version;

use super::StoreError;
use super::entity::schema_compatibility;

/// The version of this program.
const THIS_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The table of the migrations that have run.
const MIGRATIONS_TABLE: &str = "seaql_migrations";

/// The migration that made the table of the records.
const RECORDS_MIGRATION: &str = "m0011_schema_compatibility";

/// A table of the first migration.
const FIRST_TABLE: &str = "accounts";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaState {
    /// Every migration that has run is one of this version.
    Known {
        /// The migrations that have not run yet, oldest first.
        pending: Vec<String>,
    },
    /// Newer versions have migrated the database, and this version can run beside them.
    Newer {
        /// The migrations that this version does not know, oldest first.
        migrations: Vec<String>,
    },
    /// This version cannot run on the schema.
    Incompatible {
        /// Why, and what to do: a sentence about the database.
        reason: String,
    },
}

/// Whether migrations have run, as in every registry.
pub(super) async fn has_migrations_table(
    connection: &DatabaseConnection,
) -> Result<bool, StoreError> {
    let manager = SchemaManager::new(connection);
    Ok(manager.has_table(MIGRATIONS_TABLE).await?)
}

/// Reads the state of the schema without changing anything.
pub(super) async fn read_schema_state(
    connection: &DatabaseConnection,
) -> Result<SchemaState, StoreError> {
    let mut applied = Vec::new();
    if has_migrations_table(connection).await? {
        let rows = seaql_migrations::Entity::find().all(connection).await?;
        applied.extend(rows.into_iter().map(|row| row.version));
    }
    let known = known_migrations();
    let min_versions = match applied.iter().all(|name| known.contains(name)) {
        true => BTreeMap::new(),
        false => recorded_min_versions(connection, &applied).await?,
    };
    judge_schema(applied, &min_versions)
}

/// The names of the migrations that this version knows, oldest first.
fn known_migrations() -> Vec<String> {
    let steps = Migrator::migrations();
    steps.iter().map(|step| step.name().to_owned()).collect()
}

/// The oldest version that can run after each of these migrations, as far as it is recorded.
pub(super) async fn recorded_min_versions(
    connection: &impl ConnectionTrait,
    applied: &[String],
) -> Result<BTreeMap<String, String>, StoreError> {
    if !applied.iter().any(|name| name == RECORDS_MIGRATION) {
        return Ok(BTreeMap::new());
    }
    let records = schema_compatibility::Entity::find().all(connection).await?;
    let records = records.into_iter();
    Ok(records
        .map(|row| (row.migration, row.min_version))
        .collect())
}

/// Judges a schema by the migrations that have run, and the oldest version that can run after each.
///
/// # Errors
/// If the version of this program cannot be read.
pub fn judge_schema(
    mut applied: Vec<String>,
    min_versions: &BTreeMap<String, String>,
) -> Result<SchemaState, StoreError> {
    applied.sort_unstable();
    let known = known_migrations();
    // Other migrations made the schema of a database from before the first release, and nothing here completes the
    // work that those left to later starts.
    if !applied.is_empty() && known.first().is_some_and(|first| !applied.contains(first)) {
        return Ok(incompatible_state(
            "it was created by a version before the first release and cannot be upgraded; start with an empty data \
             folder and database, or use the version that created it",
        ));
    }
    let mut pending = known.clone();
    pending.retain(|name| !applied.contains(name));
    applied.retain(|name| !known.contains(name));
    let newer = applied;
    if newer.is_empty() {
        return Ok(SchemaState::Known { pending });
    }
    // A newer version has all migrations of this one, and runs them first.
    if let (Some(missing), Some(other)) = (pending.first(), newer.first()) {
        return Ok(incompatible_state(format!(
            "its migration {other} is not of this version, and {missing} of this version has not run; start the \
             version that migrated the database"
        )));
    }
    let this_version = Version::parse(THIS_VERSION);
    let this_version = this_version.map_err(|error| StoreError::other(error.to_string()))?;
    Ok(judge_newer_migrations(newer, min_versions, &this_version))
}

/// Runs the migrations that have not run yet; none if a newer version has migrated the database and this one can run
/// beside it.
pub(super) async fn run_pending_migrations(
    connection: &DatabaseConnection,
) -> Result<(), StoreError> {
    match read_schema_state(connection).await? {
        SchemaState::Known { pending } => {
            let has_run_none = pending == known_migrations();
            if has_run_none
                && SchemaManager::new(connection)
                    .has_table(FIRST_TABLE)
                    .await?
            {
                return Err(StoreError::other(
                    "it has tables, and no record of the migrations that made them: a restore into it was \
                     interrupted, or the tables are of another program; create an empty database, and restore or \
                     start with that",
                ));
            }
            Ok(Migrator::up(connection, None).await?)
        }
        SchemaState::Newer { .. } => Ok(()),
        SchemaState::Incompatible { reason } => Err(StoreError::other(reason)),
    }
}

/// Judges migrations that this version does not know by the oldest version that can run after each. Without a record
/// nothing can run: it is no migration of a released version.
fn judge_newer_migrations(
    migrations: Vec<String>,
    min_versions: &BTreeMap<String, String>,
    this_version: &Version,
) -> SchemaState {
    let mut required: Option<(Version, &String)> = None;
    for migration in &migrations {
        let recorded = min_versions.get(migration);
        let Some(min_version) = recorded.and_then(|text| Version::parse(text).ok()) else {
            return incompatible_state(format!(
                "its migration {migration} is of a newer version and does not say which older versions can run after \
                 it; start the version that migrated the database, or restore a backup from before the upgrade"
            ));
        };
        let is_higher = required
            .as_ref()
            .is_none_or(|(highest, _)| min_version > *highest);
        if min_version > *this_version && is_higher {
            required = Some((min_version, migration));
        }
    }
    if let Some((version, migration)) = required {
        return incompatible_state(format!(
            "its migration {migration} is of a newer version and requires version {version} or newer, and this is \
             {this_version}; start version {version} or newer, or restore a backup from before the upgrade"
        ));
    }
    SchemaState::Newer { migrations }
}

fn incompatible_state(reason: impl Into<String>) -> SchemaState {
    SchemaState::Incompatible {
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    fn judge(records: &[(&str, &str)], this_version: &str) -> SchemaState {
        let names = ["m0012_a", "m0013_b"].map(str::to_owned).to_vec();
        let records = records
            .iter()
            .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()));
        let this_version = Version::parse(this_version).unwrap();
        judge_newer_migrations(names, &records.collect(), &this_version)
    }

    #[test]
    fn the_newest_requirement_decides() {
        let records = [("m0012_a", "0.3.0"), ("m0013_b", "0.2.0")];
        for able in ["0.3.0", "0.3.1", "0.10.0", "1.0.0", "0.4.0-rc.1"] {
            let state = judge(&records, able);
            assert!(
                matches!(state, SchemaState::Newer { .. }),
                "{able}: {state:?}"
            );
        }
        for unable in ["0.1.0", "0.2.9", "0.3.0-rc.1"] {
            let SchemaState::Incompatible { reason } = judge(&records, unable) else {
                panic!("{unable} can run");
            };
            assert!(reason.contains("m0012_a"), "{reason}");
            assert!(reason.contains("version 0.3.0 or newer"), "{reason}");
            assert!(reason.contains(&format!("this is {unable};")), "{reason}");
        }
    }

    #[test]
    fn nothing_runs_after_a_migration_without_a_readable_record() {
        let records: [&[(&str, &str)]; 3] = [
            &[],
            &[("m0012_a", "0.1.0")],
            &[("m0012_a", "0.1.0"), ("m0013_b", "soon")],
        ];
        for records in records {
            let SchemaState::Incompatible { reason } = judge(records, "9.0.0") else {
                panic!("{records:?} permit a version");
            };
            assert!(
                reason.contains("does not say which older versions"),
                "{reason}"
            );
        }
    }
}
