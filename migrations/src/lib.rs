//! The schema of the registry, step by step, for SQLite and PostgreSQL.
//!
//! A step is not changed once it is released, so it uses its own identifiers and never those of the current code. A
//! change of the schema needs two releases: the first only adds, because the previous version may run at the same
//! time; the second removes what no code reads any more. Since the first release each step is a
//! [`CompatibleMigration`], which records the versions that can run on the schema after it. Times are signed 64-bit
//! microseconds since 1970 UTC; derived JSON is TEXT on both engines.

use sea_orm_migration::prelude::*;

mod compatible_migration;
mod m0001_people;
mod m0002_domains;
mod m0003_ownership;
mod m0004_agents;
mod m0005_reviews;
mod m0006_policies;
mod m0007_events;
mod m0008_vectors;
mod m0009_a2a_tasks;
mod m0010_peer_candidates;
mod m0011_schema_compatibility;
mod m0012_authority_urns;
mod m0013_source_credentials;
mod m0014_endpoint_checks;
mod m0015_policy_work;
mod m0016_access_decisions;
mod m0017_hooks;
mod m0018_agent_moments;
mod m0019_endpoint_limits;
mod new_table;

pub use compatible_migration::CompatibleMigration;
use new_table::{CreateTablesMigration, NewTable};

#[derive(Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            create_tables_migration("m0001_people", m0001_people::people_migration_tables),
            create_tables_migration("m0002_domains", m0002_domains::domain_migration_tables),
            create_tables_migration(
                "m0003_ownership",
                m0003_ownership::ownership_migration_tables,
            ),
            create_tables_migration("m0004_agents", m0004_agents::agent_migration_tables),
            create_tables_migration("m0005_reviews", m0005_reviews::review_migration_tables),
            create_tables_migration("m0006_policies", m0006_policies::policy_migration_tables),
            create_tables_migration("m0007_events", m0007_events::event_migration_tables),
            create_tables_migration("m0008_vectors", m0008_vectors::vector_migration_tables),
            create_tables_migration(
                "m0009_a2a_tasks",
                m0009_a2a_tasks::a2a_task_migration_tables,
            ),
            create_tables_migration(
                "m0010_peer_candidates",
                m0010_peer_candidates::peer_migration_tables,
            ),
            Box::new(CompatibleMigration {
                migration: create_tables_migration(
                    "m0011_schema_compatibility",
                    m0011_schema_compatibility::compatibility_migration_tables,
                ),
                min_version: "0.1.0",
            }),
            Box::new(CompatibleMigration {
                migration: Box::new(m0012_authority_urns::AuthorityUrnsMigration),
                min_version: "0.1.0",
            }),
            Box::new(CompatibleMigration {
                migration: create_tables_migration(
                    "m0013_source_credentials",
                    m0013_source_credentials::source_credential_migration_tables,
                ),
                min_version: "0.1.0",
            }),
            Box::new(CompatibleMigration {
                migration: Box::new(m0014_endpoint_checks::EndpointChecksMigration),
                min_version: "0.1.0",
            }),
            Box::new(CompatibleMigration {
                migration: create_tables_migration(
                    "m0015_policy_work",
                    m0015_policy_work::policy_work_migration_tables,
                ),
                min_version: "0.1.0",
            }),
            Box::new(CompatibleMigration {
                migration: create_tables_migration(
                    "m0016_access_decisions",
                    m0016_access_decisions::access_decision_migration_tables,
                ),
                min_version: "0.1.0",
            }),
            Box::new(CompatibleMigration {
                migration: create_tables_migration(
                    "m0017_hooks",
                    m0017_hooks::hook_migration_tables,
                ),
                min_version: "0.1.0",
            }),
            Box::new(CompatibleMigration {
                migration: Box::new(m0018_agent_moments::AgentMomentsMigration),
                min_version: "0.1.0",
            }),
            Box::new(CompatibleMigration {
                migration: Box::new(m0019_endpoint_limits::EndpointLimitsMigration),
                min_version: "0.1.0",
            }),
        ]
    }
}

fn create_tables_migration(
    name: &'static str,
    tables: fn() -> Vec<NewTable>,
) -> Box<dyn MigrationTrait> {
    Box::new(CreateTablesMigration { name, tables })
}
