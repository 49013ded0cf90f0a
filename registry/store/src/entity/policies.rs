//! Rows: policy sets, waivers, and what policies on a dry run would have changed.

/// A policy set. It never changes.
pub mod policy_set {
    table_row! { "policy_sets":
        /// Its number, from 1.
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i64,
        /// Its policies in their order, as JSON.
        pub policies: String,
        /// The collections that its policies ask about, as JSON; null where they ask about none.
        pub collections: Option<String>,
        /// The account that made it.
        pub author: String,
        pub reason: String,
        pub created_at: i64,
    }
}

/// A waiver: a policy that does not count for the content of an agent.
pub mod waiver {
    table_row! { "waivers":
        /// Identifier; rises with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub agent_id: Uuid,
        /// The identifier of the policy, in whatever set is in force.
        pub policy: String,
        /// The content that it holds for.
        pub content_digest: String,
        pub reason: String,
        /// The account that granted it.
        pub approver_id: Uuid,
        pub created_at: i64,
        /// When it ends by itself.
        pub expires_at: i64,
        /// When it ended; null while it is in force.
        pub ended_at: Option<i64>,
        pub ended_by: Option<String>,
        pub ended_reason: Option<String>,
    }

    impl Model {
        /// Whether it counts for this content at this time, if it was not ended.
        pub fn counts_for(&self, content_digest: &str, now: i64) -> bool {
            self.content_digest == content_digest && self.expires_at > now
        }
    }
}

/// How often a policy on a dry run would have changed what a caller was answered about a resource, by day.
pub mod dry_run_change {
    table_row! { "dry_run_changes":
        /// The identifier of the policy.
        #[sea_orm(primary_key, auto_increment = false)]
        pub policy: String,
        /// The policy's text, hashed, so that another text counts anew.
        #[sea_orm(primary_key, auto_increment = false)]
        pub fingerprint: String,
        /// Days since 1970.
        #[sea_orm(primary_key, auto_increment = false)]
        pub day: i32,
        #[sea_orm(primary_key, auto_increment = false)]
        pub action: String,
        /// The agent's identifier, or the name of the domain.
        #[sea_orm(primary_key, auto_increment = false)]
        pub resource: String,
        /// The account's name; empty for callers without one.
        #[sea_orm(primary_key, auto_increment = false)]
        pub caller: String,
        /// Whether it would have allowed what was denied; else denied what was allowed.
        pub allows: bool,
        /// Answers.
        pub count: i64,
    }
}
