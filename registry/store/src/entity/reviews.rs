//! Rows: approvals, comments and reports of reviews, and break-glass approvals.

pub mod review_approval {
    table_row! { "review_approvals":
        #[sea_orm(primary_key, auto_increment = false)]
        pub review_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account_id: Uuid,
        pub reason: String,
        pub at: i64,
        /// Null until the review is decided.
        pub counted: Option<bool>,
    }
}

pub mod review_comment {
    table_row! { "review_comments":
        /// Identifiers increase with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub review_id: Uuid,
        pub author_id: Uuid,
        pub text: String,
        pub at: i64,
    }
}

/// A report about an agent; a review of kind `report` collects such reports.
pub mod agent_report {
    table_row! { "agent_reports":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub review_id: Uuid,
        /// Null for an anonymous client.
        pub account_id: Option<Uuid>,
        pub network: Option<String>,
        pub reason: String,
        pub contact: Option<String>,
        pub at: i64,
    }
}

/// A break-glass approval: given by one account alone, until others confirm it.
pub mod break_glass {
    use a2a_registry_domain::review::ReviewKind;

    table_row! { "break_glasses":
        /// The review that confirms it. It is in force while that review is open.
        #[sea_orm(primary_key, auto_increment = false)]
        pub review_id: Uuid,
        pub agent_id: Uuid,
        pub account_id: Uuid,
        /// The kind of the review that was decided this way.
        pub asked: StoredEnum<ReviewKind>,
        pub version_id: Uuid,
        pub content_digest: String,
        pub signing: String,
        pub reason: String,
        pub before_version: Option<Uuid>,
        /// The holds that were lifted, separated by spaces.
        pub before_holds: String,
        pub before_pins: String,
        pub at: i64,
        /// When it ends unless confirmed.
        pub ends_at: i64,
    }
}
