//! Rows: what people write about a review, and what one of them has decided alone.

/// One approval of a review by an account.
pub mod review_approval {
    table_row! { "review_approvals":
        #[sea_orm(primary_key, auto_increment = false)]
        pub review_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account_id: Uuid,
        pub reason: String,
        pub at: i64,
        /// Whether it counted when the review was decided; null until then.
        pub counted: Option<bool>,
    }
}

/// A comment on a review.
pub mod review_comment {
    table_row! { "review_comments":
        /// Identifier; rises with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub review_id: Uuid,
        /// The account that wrote it.
        pub author_id: Uuid,
        pub text: String,
        pub at: i64,
    }
}

/// A report of an agent, which a review of the kind `report` collects.
pub mod agent_report {
    table_row! { "agent_reports":
        /// Identifier; rises with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub review_id: Uuid,
        /// The account that reported; null for an anonymous client.
        pub account_id: Option<Uuid>,
        /// The network of an anonymous client.
        pub network: Option<String>,
        /// What is wrong.
        pub reason: String,
        /// How to reach who reported.
        pub contact: Option<String>,
        pub at: i64,
    }
}

/// An approval that one account has given alone, until others confirm it.
pub mod break_glass {
    use a2a_registry_domain::review::ReviewKind;

    table_row! { "break_glasses":
        /// The review by which it is confirmed. It is in force while that is open.
        #[sea_orm(primary_key, auto_increment = false)]
        pub review_id: Uuid,
        pub agent_id: Uuid,
        /// Who broke the glass.
        pub account_id: Uuid,
        /// The kind of the review that was decided so.
        pub asked: Kept<ReviewKind>,
        /// The version that was approved.
        pub version_id: Uuid,
        pub content_digest: String,
        pub signing: String,
        pub reason: String,
        /// The version that was served before.
        pub before_version: Option<Uuid>,
        /// The holds that were lifted, with spaces between.
        pub before_holds: String,
        /// The pinned keys of before.
        pub before_pins: String,
        pub at: i64,
        /// When it ends unless it is confirmed.
        pub ends_at: i64,
    }
}
