//! Rows: entries of catalogs that are no cards.

/// An entry of a catalog that is neither a card nor a catalog.
pub mod entry {
    use sea_orm::entity::prelude::*;

    /// An entry of a catalog that is neither a card nor a catalog. One row for each identifier; a row that ends is deleted.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "entries")]
    pub struct Model {
        /// Identifier of the row.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// The domain whose catalog lists it.
        pub domain_id: i64,
        /// The source of that catalog.
        pub catalog_id: i64,
        /// The publisher's identifier.
        #[sea_orm(unique)]
        pub identifier: String,
        /// The identifier as listed, where it has the retired prefix.
        pub listed_as: Option<String>,
        /// The media type.
        pub media_type: String,
        /// Whether it is a registry: a candidate for federation, and no content.
        pub registry: bool,
        /// Its name.
        pub display_name: String,
        /// Its description.
        pub description: Option<String>,
        /// Its version.
        pub version: Option<String>,
        /// When its publisher says that it last changed. Microseconds.
        pub updated_at: Option<i64>,
        /// Its URL; `None` for one with its content inside.
        pub url: Option<String>,
        /// The entry as it stands in the catalog.
        pub raw: String,
        /// Identifier, name and description in lower case, to look for words in.
        pub words: String,
        /// How far its publisher stands behind it.
        pub authority: String,
        /// The result of verifying its manifest, as JSON.
        pub verification: Option<String>,
        /// Until when that result counts, where the authority comes from it. Microseconds.
        pub verified_until: Option<i64>,
        /// Whether the domain is on `deny_domains`.
        pub denied: bool,
        /// When the catalog stopped listing it.
        pub unlisted_since: Option<i64>,
        /// Consecutive fetches of the catalog that did not list it.
        pub unlisted_looks: i32,
        /// Microseconds.
        pub created_at: i64,
        /// When anything of it last changed. Microseconds.
        pub changed_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
