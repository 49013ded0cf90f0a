//! Rows: what is to be placed to prove a domain, what was found, what its owner is known by, and the keys its owner
//! has named.

/// What an account is to place to prove a domain.
pub mod challenge {
    use sea_orm::entity::prelude::*;

    /// What an account is to place to prove a domain.
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
        /// The random part.
        pub nonce: String,
        /// Until when it can be proved with.
        pub expires_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A signing key that the owner of a domain, or the operator, has named.
pub mod enrolled_key {
    use sea_orm::entity::prelude::*;

    /// A signing key that the owner of a domain, or the operator, has named.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "enrolled_keys")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// Of which domain.
        pub domain_id: i64,
        /// What signatures call it.
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

/// One look for a proof.
pub mod proof_check {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use a2a_registry_domain::ownership::Method;
    use a2a_registry_domain::ownership::ProofOutcome;

    /// One look for a proof.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "proof_checks")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// Of which domain.
        pub domain_id: i64,
        /// Whose proof was looked for.
        pub account_id: Option<Uuid>,
        /// Who asked for it, or `system`.
        pub actor: String,
        /// When.
        pub at: i64,
        /// How it would be given.
        pub method: Kept<Method>,
        /// The name or URL.
        pub place: String,
        /// What was found.
        pub outcome: Kept<ProofOutcome>,
        /// One sentence.
        pub detail: String,
        /// What was looked for, where it is missing.
        pub wanted: Option<String>,
        /// What was found instead, a JSON array of strings.
        pub found: Option<String>,
        /// Whether a CNAME led there.
        pub aliased: bool,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// What a domain was like when a proof of it was last found.
pub mod owner_marks {
    use sea_orm::entity::prelude::*;

    /// What a domain was like when a proof of it was last found.
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
