//! Rows: accounts, whom of an identity provider they are, tokens, sessions and settings.

/// An account.
pub mod account {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use crate::StoreError;
    use crate::error::CorruptRow;
    use a2a_registry_domain::role::{Role, Roles};

    /// An account.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "accounts")]
    pub struct Model {
        /// Identifier.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Unique name.
        pub name: String,
        /// The role that stands for all of its roles.
        pub role: Kept<Role>,
        /// Its roles, joined by commas; null where a program that knew only one role wrote the row.
        pub roles: Option<String>,
        /// Microseconds; null while it may be used.
        pub disabled_at: Option<i64>,
        /// When its identity provider issued the last claims that let it in; microseconds. Null for an account of no provider.
        pub claims_valid_at: Option<i64>,
        /// Since when the claims of its identity provider do not let it in; microseconds. Null while they do, and for an
        /// account of no provider.
        pub access_ended_at: Option<i64>,
        /// Up to when it has seen the news of its agents; microseconds.
        pub news_seen_at: Option<i64>,
        /// Microseconds.
        pub created_at: i64,
    }

    impl Model {
        /// Whether it may be used: no admin has disabled it, and its identity provider has not ended its access.
        pub const fn may_be_used(&self) -> bool {
            self.disabled_at.is_none() && self.access_ended_at.is_none()
        }

        /// What it may do.
        ///
        /// # Errors
        /// [`StoreErrorKind::CorruptRow`](crate::StoreErrorKind::CorruptRow) where this program does not know a role.
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

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// An API token; its secret is kept as a hash only.
pub mod token {
    use a2a_registry_domain::role::Scopes;
    use sea_orm::entity::prelude::*;

    /// An API token; its secret is kept as a hash only.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "tokens")]
    pub struct Model {
        /// Identifier.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Whose it is.
        pub account_id: Uuid,
        /// What it is for.
        pub name: String,
        /// First characters of the secret.
        pub prefix: String,
        /// SHA-256 of the secret, lower hex.
        pub hash: String,
        /// Whether it came from the environment or the first start.
        pub bootstrap: bool,
        /// Microseconds.
        pub created_at: i64,
        /// Microseconds; never, where null.
        pub expires_at: Option<i64>,
        /// What it may be used for, joined by commas; null for all that its account's roles allow.
        pub scopes: Option<String>,
        /// The hour of its last use, in microseconds.
        pub last_used_at: Option<i64>,
    }

    impl Model {
        /// What it may be used for; `None` for all that its account's roles allow. A scope that only a later program
        /// knows is left out, so that such a token may do less here and never more.
        pub fn scopes(&self) -> Option<Scopes> {
            self.scopes.as_deref().map(super::known_scopes)
        }
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The scopes in a column that this program knows.
pub(super) fn known_scopes(scopes: &str) -> a2a_registry_domain::role::Scopes {
    let words = scopes.split(',');
    words.filter_map(|scope| scope.parse().ok()).collect()
}

/// A session of somebody who has signed in to the pages; its secret is kept as a hash only.
pub mod session {
    use a2a_registry_domain::role::Scopes;
    use sea_orm::entity::prelude::*;

    /// A session of somebody who has signed in to the pages.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "sessions")]
    pub struct Model {
        /// Identifier.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Whose it is.
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
        /// Microseconds.
        pub created_at: i64,
        /// Microseconds; some minutes behind.
        pub last_seen_at: i64,
        /// Microseconds.
        pub expires_at: i64,
    }

    impl Model {
        /// What it may be used for, as of a token.
        pub fn scopes(&self) -> Option<Scopes> {
            self.scopes.as_deref().map(super::known_scopes)
        }
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Whom of an issuer an account is.
pub mod identity {
    use sea_orm::entity::prelude::*;

    /// Whom of an issuer an account is.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "identities")]
    pub struct Model {
        /// The URL of the issuer.
        #[sea_orm(primary_key, auto_increment = false)]
        pub issuer: String,
        /// What the issuer calls somebody for good.
        #[sea_orm(primary_key, auto_increment = false)]
        pub subject: String,
        /// The account.
        pub account_id: Uuid,
        /// The roles that the map gave last, joined by commas.
        pub roles: String,
        /// When the newest of the claims that were taken over were issued; seconds since 1970.
        pub claims_at: i64,
        /// Microseconds.
        pub created_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// An attempt to sign in with an identity provider that has begun a session, until it expires.
pub mod used_attempt {
    use sea_orm::entity::prelude::*;

    /// An attempt to sign in that was used.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "used_sign_in_attempts")]
    pub struct Model {
        /// SHA-256 of what the provider hands back, lower hex.
        #[sea_orm(primary_key, auto_increment = false)]
        pub state: String,
        /// Microseconds.
        pub expires_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// An attempt to sign in as the version before keeps it, which may run beside this one. Nothing here reads it.
pub mod sign_in_attempt {
    use sea_orm::entity::prelude::*;

    /// An attempt to sign in.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "sign_in_attempts")]
    pub struct Model {
        /// SHA-256 of what the provider hands back, lower hex.
        #[sea_orm(primary_key, auto_increment = false)]
        pub state: String,
        /// SHA-256 of the secret of the browser's cookie, lower hex.
        pub browser: String,
        /// The URL of the issuer.
        pub issuer: String,
        /// The path to go to afterwards.
        pub next: String,
        /// Microseconds.
        pub expires_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A group of accounts. Groups of two origins are two groups, whatever their names.
pub mod account_group {
    use sea_orm::entity::prelude::*;

    /// A group of accounts.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "account_groups")]
    pub struct Model {
        /// Identifier.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Who says who is in it: `admin`, or an issuer.
        pub origin: String,
        /// Its name, unique for its origin.
        pub name: String,
        /// Microseconds.
        pub created_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// An account in a group.
pub mod group_member {
    use sea_orm::entity::prelude::*;

    /// An account in a group.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "group_members")]
    pub struct Model {
        /// The group.
        #[sea_orm(primary_key, auto_increment = false)]
        pub group_id: Uuid,
        /// The account.
        #[sea_orm(primary_key, auto_increment = false)]
        pub account_id: Uuid,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A value that must survive a restart.
pub mod setting {
    use sea_orm::entity::prelude::*;

    /// A value that must survive a restart.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "settings")]
    pub struct Model {
        /// Name.
        #[sea_orm(primary_key, auto_increment = false)]
        pub key: String,
        /// Value.
        pub value: String,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
