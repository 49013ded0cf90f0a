//! Rows: accounts, tokens and settings.

/// An account.
pub mod account {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use crate::StoreError;
    use a2a_registry_domain::role::Role;

    /// An account.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "accounts")]
    pub struct Model {
        /// Identifier.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Unique name.
        pub name: String,
        /// What it may do.
        pub role: Kept<Role>,
        /// Microseconds.
        pub created_at: i64,
    }

    impl Model {
        /// What it may do.
        ///
        /// # Errors
        /// [`StoreErrorKind::CorruptRow`](crate::StoreErrorKind::CorruptRow) where this program does not know it.
        pub fn role(&self) -> Result<Role, StoreError> {
            self.role.of("accounts", "role", self.id)
        }
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// An API token; its secret is kept as a hash only.
pub mod token {
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
