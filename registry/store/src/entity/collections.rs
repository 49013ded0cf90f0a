//! Rows: collections of agents, saved searches, and feeds.

/// A collection: the agents that fit a filter.
pub mod collection {
    use sea_orm::entity::prelude::*;

    /// A collection: the agents that fit a filter.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "collections")]
    pub struct Model {
        /// Identifier.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Its name.
        #[sea_orm(unique)]
        pub name: String,
        /// What it is for.
        pub description: String,
        /// The filter that its agents fit, as it is written.
        pub filter: String,
        /// The groups that see it: a JSON array of their ids. Without one, everybody.
        pub audience: Option<String>,
        /// The accounts that answer for it: a JSON array of their ids.
        pub owners: String,
        /// Microseconds.
        pub created_at: i64,
        /// Microseconds.
        pub updated_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A search that an account has saved.
pub mod saved_search {
    use sea_orm::entity::prelude::*;

    /// A search that an account has saved.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "saved_searches")]
    pub struct Model {
        /// Identifier.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// The account.
        pub account_id: Uuid,
        /// Its name, unique for the account.
        pub name: String,
        /// The parameters of the search, as in an address.
        pub query: String,
        /// Microseconds.
        pub created_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The feed of an account.
pub mod feed {
    use a2a_registry_domain::role::Scopes;
    use sea_orm::entity::prelude::*;

    use super::super::accounts::known_scopes;

    /// The feed of an account.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "feeds")]
    pub struct Model {
        /// The account.
        #[sea_orm(primary_key, auto_increment = false)]
        pub account_id: Uuid,
        /// The hash of its secret.
        #[sea_orm(unique)]
        pub hash: String,
        /// Microseconds.
        pub created_at: i64,
        /// The scopes of what it was made with; null for one of before there were any here, which may tell nothing.
        pub scopes: Option<String>,
    }

    impl Model {
        /// What it was made with; `None` for one that may tell nothing.
        pub fn scopes(&self) -> Option<Scopes> {
            self.scopes.as_deref().map(known_scopes)
        }
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
