//! The schema of the registry, step by step, for SQLite and PostgreSQL.
//!
//! A step is history: it uses its own identifiers, never those of the current code, and is not changed once released.
//! A change of schema needs two releases: the first only adds (the previous version can run at the same time), the
//! second removes what no code reads any more. Times are signed 64-bit microseconds since 1970 UTC; derived JSON is
//! TEXT on both engines.

use sea_orm_migration::prelude::*;

mod keys;
mod m0001_accounts;
mod m0002_domains;
mod m0003_agents;
mod m0004_events;
mod m0005_checks;
mod m0006_vectors;
mod m0007_coverage;
mod m0008_verdicts;
mod m0009_deprecation;
mod m0010_plans;
mod m0011_people;
mod m0012_sessions;
mod m0013_reviews;
mod m0014_policies;
mod m0015_identity;
mod m0016_collections;
mod m0017_terms;
mod m0018_waivers;
mod m0019_policy_facts;
mod m0020_feed_scopes;
mod m0021_a2a_tasks;
mod m0022_catalogs;
mod m0023_a2a_senders;
mod m0026_access;
mod m0027_used_attempts;
mod m0028_owner_vouches;
mod m0030_derived_queries;
mod m0032_visit_turns;

/// Every step, oldest first.
#[derive(Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_accounts::Migration),
            Box::new(m0002_domains::Migration),
            Box::new(m0003_agents::Migration),
            Box::new(m0004_events::Migration),
            Box::new(m0005_checks::Migration),
            Box::new(m0006_vectors::Migration),
            Box::new(m0007_coverage::Migration),
            Box::new(m0008_verdicts::Migration),
            Box::new(m0009_deprecation::Migration),
            Box::new(m0010_plans::Migration),
            Box::new(m0011_people::Migration),
            Box::new(m0012_sessions::Migration),
            Box::new(m0013_reviews::Migration),
            Box::new(m0014_policies::Migration),
            Box::new(m0015_identity::Migration),
            Box::new(m0016_collections::Migration),
            Box::new(m0017_terms::Migration),
            Box::new(m0018_waivers::Migration),
            Box::new(m0019_policy_facts::Migration),
            Box::new(m0020_feed_scopes::Migration),
            Box::new(m0021_a2a_tasks::Migration),
            Box::new(m0022_catalogs::Migration),
            Box::new(m0023_a2a_senders::Migration),
            Box::new(m0026_access::Migration),
            Box::new(m0027_used_attempts::Migration),
            Box::new(m0028_owner_vouches::Migration),
            Box::new(m0030_derived_queries::Migration),
            Box::new(m0032_visit_turns::Migration),
        ]
    }
}
