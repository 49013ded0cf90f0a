//! Rows: collections of agents, saved searches, and feeds.

/// A collection: the agents that fit a filter.
pub mod collection {
    table_row! { "collections":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
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
        pub created_at: i64,
        pub updated_at: i64,
    }
}

/// A search that an account has saved.
pub mod saved_search {
    table_row! { "saved_searches":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub account_id: Uuid,
        /// Its name, unique for the account.
        pub name: String,
        /// The parameters of the search, as in an address.
        pub query: String,
        pub created_at: i64,
    }
}

/// The feed of an account.
pub mod feed {
    use a2a_registry_domain::role::Scopes;

    use super::super::accounts::known_scopes;

    table_row! { "feeds":
        #[sea_orm(primary_key, auto_increment = false)]
        pub account_id: Uuid,
        /// The hash of its secret.
        #[sea_orm(unique)]
        pub hash: String,
        pub created_at: i64,
        /// The scopes of what it was made with; without any it may tell nothing.
        pub scopes: Option<String>,
    }

    impl Model {
        /// What it was made with; `None` for one that may tell nothing.
        pub fn scopes(&self) -> Option<Scopes> {
            self.scopes.as_deref().map(known_scopes)
        }
    }
}
