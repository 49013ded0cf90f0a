//! Rows: credentials of sources.

pub mod source_credential {
    use a2a_registry_domain::source::CredentialKind;

    table_row! { "source_credentials":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub source_id: i64,
        pub domain_id: i64,
        pub kind: StoredEnum<CredentialKind>,
        /// The origin that it is sent to.
        pub origin: String,
        /// The credential, sealed for this source and origin.
        pub sealed: String,
        /// The owner of the domain when it was set.
        pub owner_id: Option<Uuid>,
        /// The generation of the domain when it was set.
        pub generation: i64,
        pub set_by: String,
        pub set_at: i64,
    }
}
