//! Rows: registries that catalogs list.

/// A registry that a catalog lists: a candidate for a peer, which is not contacted until an operator makes it one.
pub mod peer_candidate {
    table_row! { "peer_candidates":
        #[sea_orm(primary_key, auto_increment = false)]
        pub catalog_id: i64,
        /// The identifier given by its publisher, which is the domain of the catalog.
        #[sea_orm(primary_key, auto_increment = false)]
        pub identifier: String,
        pub display_name: String,
        /// The base URL of its API.
        pub url: String,
    }
}
