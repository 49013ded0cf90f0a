//! Rows: accounts, whom of an identity provider they are, tokens, sessions and settings.

/// An account.
pub mod account {
    use a2a_registry_domain::role::{Role, Roles};

    use crate::error::CorruptRow;

    table_row! { "accounts":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub name: String,
        /// The role that stands for all of its roles.
        pub role: Kept<Role>,
        /// Its roles, joined by commas; where null, those that `role` stands for.
        pub roles: Option<String>,
        /// Null while it may be used.
        pub disabled_at: Option<i64>,
        /// When its identity provider issued the last claims that let it in. Null for an account of no provider.
        pub claims_valid_at: Option<i64>,
        /// Since when the claims of its identity provider do not let it in. Null while they do, and for an
        /// account of no provider.
        pub access_ended_at: Option<i64>,
        /// Up to when it has seen the news of its agents.
        pub news_seen_at: Option<i64>,
        pub created_at: i64,
    }

    impl Model {
        /// Whether it may be used: no admin has disabled it, and its identity provider has not ended its access.
        pub const fn may_be_used(&self) -> bool {
            self.disabled_at.is_none() && self.access_ended_at.is_none()
        }

        /// What it may do.
        pub fn roles(&self) -> Result<Roles, StoreError> {
            let Some(roles) = &self.roles else {
                return Ok(Roles::of_one(self.role.of("accounts", "role", self.id)?));
            };
            roles.parse().map_err(|_| {
                StoreError::corrupt(CorruptRow {
                    table: "accounts",
                    column: "roles",
                    id: self.id.to_string(),
                    value: roles.clone(),
                })
            })
        }
    }
}

/// An API token; its secret is kept as a hash only.
pub mod token {
    use a2a_registry_domain::role::Scopes;

    table_row! { "tokens":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub account_id: Uuid,
        /// What it is for.
        pub name: String,
        /// First characters of the secret.
        pub prefix: String,
        /// SHA-256 of the secret, lower hex.
        pub hash: String,
        /// Whether it came from the environment or the first start.
        pub bootstrap: bool,
        pub created_at: i64,
        /// Null for one that does not end.
        pub expires_at: Option<i64>,
        /// What it may be used for, joined by commas; null for all that its account's roles allow.
        pub scopes: Option<String>,
        /// The hour of its last use.
        pub last_used_at: Option<i64>,
    }

    impl Model {
        /// What it may be used for; `None` for all that its account's roles allow. A scope that only a later program
        /// knows is left out, so that such a token may do less here and never more.
        pub fn scopes(&self) -> Option<Scopes> {
            self.scopes.as_deref().map(super::known_scopes)
        }
    }
}

/// The scopes in a column that this program knows.
pub(super) fn known_scopes(scopes: &str) -> a2a_registry_domain::role::Scopes {
    let words = scopes.split(',');
    words.filter_map(|scope| scope.parse().ok()).collect()
}

/// A session of somebody who has signed in to the pages; its secret is kept as a hash only.
pub mod session {
    use a2a_registry_domain::role::Scopes;

    table_row! { "sessions":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub account_id: Uuid,
        /// SHA-256 of the secret, lower hex.
        pub hash: String,
        /// The token that it was made with, and without which it ends.
        pub token_id: Option<Uuid>,
        /// The identity provider that it was made with.
        pub issuer: Option<String>,
        /// What it may be used for, joined by commas; null for all that its account's roles allow.
        pub scopes: Option<String>,
        /// The roles of its account when its secret was made.
        pub roles: String,
        /// A few words about the browser.
        pub browser: String,
        pub created_at: i64,
        /// Some minutes behind.
        pub last_seen_at: i64,
        pub expires_at: i64,
    }

    impl Model {
        /// What it may be used for, as of a token.
        pub fn scopes(&self) -> Option<Scopes> {
            self.scopes.as_deref().map(super::known_scopes)
        }
    }
}

/// Whom of an issuer an account is.
pub mod identity {
    table_row! { "identities":
        /// The URL of the issuer.
        #[sea_orm(primary_key, auto_increment = false)]
        pub issuer: String,
        /// What the issuer calls somebody for good.
        #[sea_orm(primary_key, auto_increment = false)]
        pub subject: String,
        pub account_id: Uuid,
        /// The roles that the map gave last, joined by commas.
        pub roles: String,
        /// When the newest of the claims that were taken over were issued; seconds since 1970.
        pub claims_at: i64,
        pub created_at: i64,
    }
}

/// An attempt to sign in with an identity provider that has begun a session, until it expires.
pub mod used_attempt {
    table_row! { "used_sign_in_attempts":
        /// SHA-256 of what the provider hands back, lower hex.
        #[sea_orm(primary_key, auto_increment = false)]
        pub state: String,
        pub expires_at: i64,
    }
}

/// A group of accounts. Groups of two origins are two groups, whatever their names.
pub mod account_group {
    table_row! { "account_groups":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Who says who is in it: `admin`, or an issuer.
        pub origin: String,
        /// Its name, unique for its origin.
        pub name: String,
        pub created_at: i64,
    }
}

/// An account in a group.
pub mod group_member {
    table_row! { "group_members":
        #[sea_orm(primary_key, auto_increment = false)]
        pub group_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account_id: Uuid,
    }
}

/// A value that must survive a restart.
pub mod setting {
    table_row! { "settings":
        #[sea_orm(primary_key, auto_increment = false)]
        pub key: String,
        pub value: String,
    }
}
