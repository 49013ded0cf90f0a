//! Rows: challenges, checks of proofs, owner fingerprints and enrolled keys.

pub mod challenge {
    table_row! { "challenges":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub domain_id: i64,
        pub account_id: Uuid,
        pub nonce: String,
        pub expires_at: i64,
    }
}

/// A signing key that the owner of a domain, or the operator, has enrolled.
pub mod enrolled_key {
    table_row! { "enrolled_keys":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub domain_id: i64,
        pub kid: String,
        /// Its RFC 7638 thumbprint.
        pub thumbprint: String,
        pub jwk: String,
        pub actor: String,
        pub created_at: i64,
    }
}

pub mod proof_check {
    use a2a_registry_domain::ownership::{Method, ProofOutcome};

    table_row! { "proof_checks":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub domain_id: i64,
        pub account_id: Option<Uuid>,
        /// Who requested it, or `system`.
        pub actor: String,
        pub at: i64,
        pub method: StoredEnum<Method>,
        /// The name or URL that was checked.
        pub place: String,
        pub outcome: StoredEnum<ProofOutcome>,
        pub detail: String,
        /// The expected value.
        pub wanted: Option<String>,
        /// The values found instead: a JSON array of strings.
        pub found: Option<String>,
        /// Whether the name is a CNAME.
        pub aliased: bool,
    }
}

/// The owner fingerprint of a domain, from the last check that found a proof.
pub mod owner_fingerprint {
    table_row! { "owner_marks":
        #[sea_orm(primary_key, auto_increment = false)]
        pub domain_id: i64,
        /// The domain's name servers, separated by spaces.
        pub name_servers: String,
        /// The digest of its certificate's key.
        pub tls_key: Option<String>,
        /// The thumbprints of the keys that signed its cards, separated by spaces.
        pub card_keys: String,
        pub seen_at: i64,
    }
}
