//! All tables, without any logic. Times are microseconds since 1970 UTC unless stated otherwise. A table is described
//! at its module, and a column only if its name does not describe it.

/// Defines the row of a table by its columns.
macro_rules! table_row {
    ($table:tt: $($columns:tt)*) => {
        use crate::entity::prelude::*;

        #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, DeriveActiveModelBehavior)]
        #[sea_orm(table_name = $table)]
        pub struct Model {
            $($columns)*
        }
    };
}

/// Adds a method for each enum column, which fails for a value that this program does not know.
macro_rules! enum_columns {
    ($table:literal, $key:ident:) => {};
    ($table:literal, $key:ident: $column:ident -> Option<$value:ident>, $($rest:tt)*) => {
        impl Model {
            pub fn $column(&self) -> Result<Option<$value>, StoreError> {
                let kept = self.$column.as_ref();
                kept.map(|kept| kept.require_known($table, stringify!($column), self.$key))
                    .transpose()
            }
        }
        enum_columns! { $table, $key: $($rest)* }
    };
    ($table:literal, $key:ident: $column:ident -> $value:ident, $($rest:tt)*) => {
        impl Model {
            pub fn $column(&self) -> Result<$value, StoreError> {
                self.$column.require_known($table, stringify!($column), self.$key)
            }
        }
        enum_columns! { $table, $key: $($rest)* }
    };
}

mod a2a;
mod accounts;
mod agents;
mod collections;
mod domains;
mod endpoints;
mod governance;
mod hooks;
mod ownership;
mod peer_candidates;
mod policies;
pub(crate) mod queries;
mod reviews;
mod schema;
mod source_credentials;
mod vectors;

pub use a2a::a2a_task;
pub use accounts::{
    account, account_group, group_member, identity, session, setting, token, used_sign_in_attempt,
};
pub use agents::{agent, card_body, hold, version, version_source};
pub use collections::{collection, feed, saved_search};
pub use domains::{domain, fetch_attempt, pace, proof, source, source_day, source_registrant};
pub use endpoints::{endpoint_check, endpoint_day, endpoint_host, endpoint_permission};
pub use governance::{decision, event, review};
pub use hooks::{agent_watch, hook, hook_agent, hook_delivery};
pub use ownership::{challenge, enrolled_key, owner_fingerprint, proof_check};
pub use peer_candidates::peer_candidate;
pub use policies::{
    access_decision, dry_run_change, hidden_agent, policy_preview, policy_replica, policy_set,
    waiver,
};
pub use reviews::{agent_report, break_glass, review_approval, review_comment};
pub use schema::schema_compatibility;
pub use source_credentials::source_credential;
pub use vectors::{agent_vectors, embedding_model};

use sea_orm::{DeriveRelation, EnumIter};

/// Relations of all tables: empty, because joins are written where they are needed.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

mod prelude {
    pub(super) use sea_orm::entity::prelude::*;

    pub(super) use super::Relation;
    pub(super) use crate::{StoreError, StoredEnum};
}
