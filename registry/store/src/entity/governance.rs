//! Rows: decisions, reviews and events.

pub mod decision {
    use a2a_registry_domain::admission_rules::Rule;

    table_row! { "decisions":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub agent_id: Uuid,
        pub version_id: Uuid,
        pub content_digest: String,
        pub signing: String,
        pub approved: bool,
        pub rule: StoredEnum<Rule>,
        /// The account's name, or `policy`.
        pub actor: String,
        pub reason: Option<String>,
        pub self_approved: bool,
        pub at: i64,
    }
}

pub mod review {
    use a2a_registry_domain::review::{ChangeClass, ReviewKind, ReviewState};

    table_row! { "reviews":
        /// Identifiers increase with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub agent_id: Uuid,
        pub version_id: Uuid,
        pub kind: StoredEnum<ReviewKind>,
        pub previous_version: Option<Uuid>,
        pub change_class: Option<StoredEnum<ChangeClass>>,
        pub state: StoredEnum<ReviewState>,
        /// The account that registered the source.
        pub submitter: Option<String>,
        pub assignee: Option<Uuid>,
        pub due_at: Option<i64>,
        pub decider: Option<String>,
        pub reason: Option<String>,
        pub created_at: i64,
        pub decided_at: Option<i64>,
    }

    enum_columns! { "reviews", id:
        change_class -> Option<ChangeClass>,
        kind -> ReviewKind,
        state -> ReviewState,
    }
}

pub mod event {
    use a2a_registry_domain::event::EventKind;

    table_row! { "events":
        /// Its position among all events.
        #[sea_orm(primary_key)]
        pub seq: i64,
        pub at: i64,
        pub kind: StoredEnum<EventKind>,
        /// The id or name of the event's subject.
        pub subject: String,
        /// The agent whose index entry it changes.
        pub agent_id: Option<Uuid>,
        pub actor: String,
        /// The details of the event as JSON.
        pub data: String,
    }

    enum_columns! { "events", seq:
        kind -> EventKind,
    }
}
