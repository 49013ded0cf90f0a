//! Rows: policy sets.

/// A policy set.
pub mod policy_set {
    use sea_orm::entity::prelude::*;

    /// A policy set. It never changes.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "policy_sets")]
    pub struct Model {
        /// Its number, from 1.
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i64,
        /// Its policies in their order, as JSON.
        pub policies: String,
        /// The account that made it.
        pub author: String,
        /// Why it was made.
        pub reason: String,
        /// Microseconds.
        pub created_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
