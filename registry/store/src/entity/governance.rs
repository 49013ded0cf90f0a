//! Rows: decisions, reviews and events.

/// A decision on one content.
pub mod decision {
    use a2a_registry_domain::admission::Rule;
    use sea_orm::entity::prelude::*;

    use crate::Kept;

    /// A decision on one content.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "decisions")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// On whom.
        pub agent_id: Uuid,
        /// On which version.
        pub version_id: Uuid,
        /// On which content.
        pub content_digest: String,
        /// Signed how.
        pub signing: String,
        /// Which way.
        pub approved: bool,
        /// By which rule.
        pub rule: Kept<Rule>,
        /// By whom, or `policy`.
        pub actor: String,
        /// In whose words.
        pub reason: Option<String>,
        /// The decider was the submitter.
        pub self_approved: bool,
        /// When.
        pub at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A question put to the curators.
pub mod review {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use crate::StoreError;
    use a2a_registry_domain::review::ChangeClass;
    use a2a_registry_domain::review::ReviewState;

    /// A question put to the curators.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "reviews")]
    pub struct Model {
        /// Identifier; rises with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// About whom.
        pub agent_id: Uuid,
        /// About which version.
        pub version_id: Uuid,
        /// Approved before.
        pub previous_version: Option<Uuid>,
        /// How much changed.
        pub change_class: Option<Kept<ChangeClass>>,
        /// What became of it.
        pub state: Kept<ReviewState>,
        /// Who registered the source.
        pub submitter: Option<String>,
        /// Who decided.
        pub decider: Option<String>,
        /// Why.
        pub reason: Option<String>,
        /// Opened.
        pub created_at: i64,
        /// Closed.
        pub decided_at: Option<i64>,
    }

    impl Model {
        /// How the version differs from the one approved before.
        ///
        /// # Errors
        /// [`StoreErrorKind::CorruptRow`](crate::StoreErrorKind::CorruptRow) where this program does not know it.
        pub fn change_class(&self) -> Result<Option<ChangeClass>, StoreError> {
            let kept = self.change_class.as_ref();
            kept.map(|kept| kept.of("reviews", "change_class", self.id))
                .transpose()
        }

        /// Whether it is decided, and how.
        ///
        /// # Errors
        /// [`StoreErrorKind::CorruptRow`](crate::StoreErrorKind::CorruptRow) where this program does not know it.
        pub fn state(&self) -> Result<ReviewState, StoreError> {
            self.state.of("reviews", "state", self.id)
        }
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Something that happened.
pub mod event {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use crate::StoreError;
    use a2a_registry_domain::event::EventKind;

    /// Something that happened.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "events")]
    pub struct Model {
        /// Place in the order of everything.
        #[sea_orm(primary_key)]
        pub seq: i64,
        /// When.
        pub at: i64,
        /// What happened.
        pub kind: Kept<EventKind>,
        /// To whom or what.
        pub subject: String,
        /// The agent whose index entry follows from it.
        pub agent_id: Option<Uuid>,
        /// Who caused it.
        pub actor: String,
        /// JSON details.
        pub data: String,
    }

    impl Model {
        /// What happened.
        ///
        /// # Errors
        /// [`StoreErrorKind::CorruptRow`](crate::StoreErrorKind::CorruptRow) where this program does not know it.
        pub fn kind(&self) -> Result<EventKind, StoreError> {
            self.kind.of("events", "kind", self.seq)
        }
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
