//! Rows: decisions, reviews and events.

/// A decision on one content.
pub mod decision {
    use a2a_registry_domain::admission_rules::Rule;
    use sea_orm::entity::prelude::*;

    use crate::Kept;

    /// A decision on one content.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "decisions")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// The agent.
        pub agent_id: Uuid,
        /// The version.
        pub version_id: Uuid,
        /// The content digest.
        pub content_digest: String,
        /// The signing summary.
        pub signing: String,
        /// Whether it was approved.
        pub approved: bool,
        /// The rule that decided.
        pub rule: Kept<Rule>,
        /// The account's name, or `policy`.
        pub actor: String,
        /// The reason.
        pub reason: Option<String>,
        /// Whether the approver was the submitter.
        pub self_approved: bool,
        /// When.
        pub at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A review of a version by curators.
pub mod review {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use crate::StoreError;
    use a2a_registry_domain::review::ChangeClass;
    use a2a_registry_domain::review::{ReviewKind, ReviewState};

    /// A review of a version by curators.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "reviews")]
    pub struct Model {
        /// Identifier; rises with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// The agent.
        pub agent_id: Uuid,
        /// The version.
        pub version_id: Uuid,
        /// What it was opened for.
        pub kind: Kept<ReviewKind>,
        /// The version approved before.
        pub previous_version: Option<Uuid>,
        /// The class of the change.
        pub change_class: Option<Kept<ChangeClass>>,
        /// Its state.
        pub state: Kept<ReviewState>,
        /// The account that registered the source.
        pub submitter: Option<String>,
        /// The account that is to decide it.
        pub assignee: Option<Uuid>,
        /// By when it is to be decided; microseconds.
        pub due_at: Option<i64>,
        /// The approver.
        pub decider: Option<String>,
        /// Why.
        pub reason: Option<String>,
        /// When it was opened.
        pub created_at: i64,
        /// When it was closed.
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

        /// What it was opened for.
        ///
        /// # Errors
        /// [`StoreErrorKind::CorruptRow`](crate::StoreErrorKind::CorruptRow) where this program does not know it.
        pub fn kind(&self) -> Result<ReviewKind, StoreError> {
            self.kind.of("reviews", "kind", self.id)
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

/// An event.
pub mod event {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use crate::StoreError;
    use a2a_registry_domain::event::EventKind;

    /// An event.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "events")]
    pub struct Model {
        /// Its number in the order of all events.
        #[sea_orm(primary_key)]
        pub seq: i64,
        /// When.
        pub at: i64,
        /// What happened.
        pub kind: Kept<EventKind>,
        /// The id or name of its subject.
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
