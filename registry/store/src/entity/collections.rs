//! Rows: collections of agents, saved searches, and feeds.

pub mod collection {
    table_row! { "collections":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        #[sea_orm(unique)]
        pub name: String,
        pub description: String,
        /// The filter as the curator wrote it.
        pub filter: String,
        /// A JSON array of the ids of the groups that see it; null for everyone.
        pub audience: Option<String>,
        /// A JSON array of the ids of the accounts that are responsible for it.
        pub owners: String,
        pub created_at: i64,
        pub updated_at: i64,
    }
}

pub mod saved_search {
    table_row! { "saved_searches":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub account_id: Uuid,
        /// Unique within the account.
        pub name: String,
        /// The parameters of the search, as in a URL.
        pub query: String,
        pub created_at: i64,
    }
}

pub mod feed {
    use a2a_registry_domain::role::Scopes;

    use crate::entity::accounts::parse_known_scopes;

    table_row! { "feeds":
        #[sea_orm(primary_key, auto_increment = false)]
        pub account_id: Uuid,
        #[sea_orm(unique)]
        pub hash: String,
        pub created_at: i64,
        /// The scopes of the token or session that it was created with; null for none.
        pub scopes: Option<String>,
    }

    impl Model {
        /// The scopes; `None` for a feed that may show nothing.
        pub fn feed_scopes(&self) -> Option<Scopes> {
            self.scopes.as_deref().map(parse_known_scopes)
        }
    }
}
