//! Rows: challenges, checks of proofs, owner marks and enrolled keys.

/// A challenge of an account for a domain.
pub mod challenge {
    use sea_orm::entity::prelude::*;

    /// A challenge of an account for a domain.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "challenges")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// Of which domain.
        pub domain_id: i64,
        /// By whom.
        pub account_id: Uuid,
        /// The nonce.
        pub nonce: String,
        /// When it expires.
        pub expires_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// An enrolled key: a signing key named by the owner of a domain, or the operator.
pub mod enrolled_key {
    use sea_orm::entity::prelude::*;

    /// An enrolled key: a signing key named by the owner of a domain, or the operator.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "enrolled_keys")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// Of which domain.
        pub domain_id: i64,
        /// Its name in signatures.
        pub kid: String,
        /// Its RFC 7638 thumbprint.
        pub thumbprint: String,
        /// The public key as JWK.
        pub jwk: String,
        /// Who named it.
        pub actor: String,
        /// Microseconds.
        pub created_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One check of a proof.
pub mod proof_check {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use a2a_registry_domain::ownership::Method;
    use a2a_registry_domain::ownership::ProofOutcome;

    /// One check of a proof.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "proof_checks")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// Of which domain.
        pub domain_id: i64,
        /// The account whose proof was checked.
        pub account_id: Option<Uuid>,
        /// Who asked for it, or `system`.
        pub actor: String,
        /// When.
        pub at: i64,
        /// The method.
        pub method: Kept<Method>,
        /// The name or URL.
        pub place: String,
        /// The result.
        pub outcome: Kept<ProofOutcome>,
        /// One sentence.
        pub detail: String,
        /// The value that is missing.
        pub wanted: Option<String>,
        /// The values found instead, a JSON array of strings.
        pub found: Option<String>,
        /// Whether the name is a CNAME.
        pub aliased: bool,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The owner marks of a domain, as of the last check that found a proof.
pub mod owner_marks {
    use sea_orm::entity::prelude::*;

    /// The owner marks of a domain, as of the last check that found a proof.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "owner_marks")]
    pub struct Model {
        /// Which domain.
        #[sea_orm(primary_key, auto_increment = false)]
        pub domain_id: i64,
        /// Its name servers, with a space between.
        pub name_servers: String,
        /// The digest of its certificate's key.
        pub tls_key: Option<String>,
        /// The thumbprints of the keys its cards were signed with, with a space between.
        pub card_keys: String,
        /// Microseconds.
        pub seen_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
