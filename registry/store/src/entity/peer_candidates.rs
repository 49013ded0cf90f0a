//! Rows: registries that catalogs name.

/// A registry that a catalog names: a candidate for a peer, which nobody asks before an operator has made it one.
pub mod peer_candidate {
    table_row! { "peer_candidates":
        /// The source of the catalog.
        #[sea_orm(primary_key, auto_increment = false)]
        pub catalog_id: i64,
        /// The publisher's identifier. The publisher is the domain of the catalog.
        #[sea_orm(primary_key, auto_increment = false)]
        pub identifier: String,
        pub display_name: String,
        /// The base URL of its API.
        pub url: String,
    }
}
