//! The database: SQLite or PostgreSQL behind one set of methods.
//!
//! A single read takes a connection from the read pool, and several reads can share one ([`Store::begin_read`]). Every
//! write runs in a transaction ([`Store::begin_write`]), which on SQLite begins IMMEDIATE on the one write connection,
//! so that writers queue instead of failing.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod a2a_tasks;
pub mod access_decisions;
pub mod accounts;
pub mod agent_moments;
pub mod agents;
pub mod approval_terms;
pub mod backup;
mod bulk_rows;
pub mod check_leases;
mod clock_repair;
pub mod collections;
mod connection;
pub mod current_cards;
mod damaged_bodies;
pub mod decisions;
pub mod domains;
pub mod dry_runs;
pub mod endpoint_checks;
pub mod endpoint_leases;
pub mod endpoint_scans;
pub mod entity;
pub mod erasure;
mod error;
pub mod event_conditions;
pub mod events;
pub mod feeds;
pub mod groups;
pub mod hidden_agents;
pub mod hook_deliveries;
pub mod hooks;
pub mod identities;
mod notifications;
pub mod operating_counts;
pub mod owner_vouches;
pub mod ownership;
pub mod peer_candidates;
pub mod policies;
pub mod policy_inputs;
pub mod policy_previews;
pub mod registrants;
pub mod review_notes;
pub mod reviews;
mod row_changes;
pub mod rule_changes;
pub mod saved_searches;
mod schema_state;
pub mod sessions;
pub mod settings;
pub mod source_credentials;
mod sqlite_file;
pub mod statements;
mod stored_enum;
pub mod urn_authorities;
pub mod vectors;
pub mod versions;
pub mod visit_leases;
mod visit_networks;
pub mod visit_queue;
pub mod visit_results;
pub mod visit_schedule;
pub mod waivers;
mod write_check;

pub use connection::{
    Executor, ReadTransaction, SqliteSynchronous, Store, StoreOptions, WriteTransaction,
};
pub use damaged_bodies::{DamagedBodies, MAX_DAMAGED_BODIES};
pub use error::{CorruptRow, StoreError, StoreErrorKind};
pub use notifications::NotificationListener;
pub use row_changes::RowChangeCounters;
pub use schema_state::{SchemaState, judge_schema};
pub use stored_enum::StoredEnum;
