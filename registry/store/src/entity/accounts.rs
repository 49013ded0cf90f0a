//! Rows: accounts and their identities, tokens, sessions and groups; settings.

pub mod account {
    use a2a_registry_domain::role::{Role, Roles};

    use crate::error::CorruptRow;

    table_row! { "accounts":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub name: String,
        /// The main role, which stands for all its roles.
        pub role: StoredEnum<Role>,
        /// The roles, joined by commas; if null, those that `role` stands for.
        pub roles: Option<String>,
        /// Null while the account is not disabled.
        pub disabled_at: Option<i64>,
        /// When its identity provider issued the last claims that gave it access. Null without a provider.
        pub claims_valid_at: Option<i64>,
        /// The time since which its identity provider's claims deny access. Null while they do not, and without a
        /// provider.
        pub access_ended_at: Option<i64>,
        /// The time up to which it has read the news of its agents.
        pub news_seen_at: Option<i64>,
        pub created_at: i64,
    }

    impl Model {
        /// Whether no admin has disabled it, and its identity provider has not ended its access.
        pub const fn is_account_active(&self) -> bool {
            self.disabled_at.is_none() && self.access_ended_at.is_none()
        }

        pub fn account_roles(&self) -> Result<Roles, StoreError> {
            let Some(roles) = &self.roles else {
                return Ok(Roles::from_legacy_role(
                    self.role.require_known("accounts", "role", self.id)?,
                ));
            };
            roles.parse().map_err(|_| {
                StoreError::corrupt_row(CorruptRow {
                    table: "accounts",
                    column: "roles",
                    id: self.id.to_string(),
                    value: roles.clone(),
                })
            })
        }
    }
}

pub mod token {
    use a2a_registry_domain::role::Scopes;

    table_row! { "tokens":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub account_id: Uuid,
        pub name: String,
        /// First characters of the secret.
        pub prefix: String,
        /// SHA-256 of the secret, lower-case hex. The secret is not stored.
        pub hash: String,
        /// Whether it came from the environment or from the first start.
        pub bootstrap: bool,
        pub created_at: i64,
        /// Null if the token does not expire.
        pub expires_at: Option<i64>,
        /// The scopes, joined by commas; null for all that its account's roles allow.
        pub scopes: Option<String>,
        pub last_used_at: Option<i64>,
    }

    impl Model {
        /// The scopes; `None` for all that its account's roles allow. A scope that this program does not know is
        /// ignored, so such a token may do less here and never more.
        pub fn token_scopes(&self) -> Option<Scopes> {
            self.scopes.as_deref().map(super::parse_known_scopes)
        }
    }
}

/// The scopes in a column that this program knows.
pub(super) fn parse_known_scopes(scopes: &str) -> a2a_registry_domain::role::Scopes {
    let words = scopes.split(',');
    words.filter_map(|scope| scope.parse().ok()).collect()
}

pub mod session {
    use a2a_registry_domain::role::Scopes;

    table_row! { "sessions":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub account_id: Uuid,
        pub hash: String,
        /// The token that started the session; the session ends with it.
        pub token_id: Option<Uuid>,
        pub issuer: Option<String>,
        /// The scopes, joined by commas; null for all that its account's roles allow.
        pub scopes: Option<String>,
        /// The roles of its account when its secret was made.
        pub roles: String,
        pub browser: String,
        pub created_at: i64,
        /// Up to some minutes late.
        pub last_seen_at: i64,
        pub expires_at: i64,
    }

    impl Model {
        pub fn stored_session_scopes(&self) -> Option<Scopes> {
            self.scopes.as_deref().map(super::parse_known_scopes)
        }
    }
}

/// A person at an identity provider, and the person's account here.
pub mod identity {
    table_row! { "identities":
        #[sea_orm(primary_key, auto_increment = false)]
        pub issuer: String,
        /// The issuer's permanent identifier of the person.
        #[sea_orm(primary_key, auto_increment = false)]
        pub subject: String,
        pub account_id: Uuid,
        /// The last mapped roles, joined by commas.
        pub roles: String,
        /// When the newest accepted claims were issued; seconds since 1970.
        pub claims_at: i64,
        pub created_at: i64,
    }
}

/// A sign-in attempt at an identity provider that has started a session; stored until it expires.
pub mod used_sign_in_attempt {
    table_row! { "used_sign_in_attempts":
        /// SHA-256 of the state that the provider returns, lower-case hex.
        #[sea_orm(primary_key, auto_increment = false)]
        pub state: String,
        pub expires_at: i64,
    }
}

/// A group of accounts. Groups of two origins are different groups, even under the same name.
pub mod account_group {
    table_row! { "account_groups":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Who decides its members: `admin`, or an issuer.
        pub origin: String,
        /// Unique for its origin.
        pub name: String,
        pub created_at: i64,
    }
}

pub mod group_member {
    table_row! { "group_members":
        #[sea_orm(primary_key, auto_increment = false)]
        pub group_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account_id: Uuid,
    }
}

pub mod setting {
    table_row! { "settings":
        #[sea_orm(primary_key, auto_increment = false)]
        pub key: String,
        pub value: String,
    }
}
