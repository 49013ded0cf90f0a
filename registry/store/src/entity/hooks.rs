//! Rows: hooks, what their receivers know, their deliveries, and watched agents.

pub mod hook {
    use a2a_registry_domain::hook::{HookFormat, HookState};

    table_row! { "hooks":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub account_id: Uuid,
        /// Unique within the account.
        pub name: String,
        pub format: StoredEnum<HookFormat>,
        pub state: StoredEnum<HookState>,
        /// What it is told, as JSON.
        pub filter: String,
        /// Its URL, secrets and challenge, sealed for this hook.
        pub sealed: String,
        /// Since when all agents must be compared with what the receiver knows, because more may have changed than
        /// events say; null if nothing has.
        pub compare_requested_at: Option<i64>,
        pub created_at: i64,
        /// When the first of its deliveries is due; null if none waits.
        pub due_at: Option<i64>,
        /// The earliest time of the next delivery, after a failure.
        pub not_before: i64,
        /// Failures since the last success.
        pub failures: i32,
        pub failing_since: Option<i64>,
        pub last_error: Option<String>,
        pub last_success_at: Option<i64>,
        pub lease: Option<i64>,
        pub leased_until: Option<i64>,
    }
}

/// An agent of which the receiver of a hook knows, as it was told last.
pub mod hook_agent {
    table_row! { "hook_agents":
        #[sea_orm(primary_key, auto_increment = false)]
        pub hook_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: Uuid,
        pub card_digest: String,
        /// A hash of the facts by which searches filter.
        pub facts: String,
    }
}

pub mod hook_delivery {
    use a2a_registry_domain::hook::{DeliveryState, NoticeKind};

    table_row! { "hook_deliveries":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub hook_id: Uuid,
        /// Its identifier for the receiver. It is random, so that gaps reveal nothing.
        pub message_id: Uuid,
        pub kind: StoredEnum<NoticeKind>,
        /// The agent whose deliveries are sent in order.
        pub agent_id: Option<Uuid>,
        /// The agent or the review.
        pub subject: String,
        /// When it happened.
        pub at: i64,
        pub state: StoredEnum<DeliveryState>,
        /// The hook and the agent while a notice about sight waits, since one such notice says all; null otherwise.
        #[sea_orm(unique)]
        pub slot: Option<String>,
        /// The last event that it reports.
        pub seq: i64,
        pub attempts: i32,
        pub first_attempt_at: Option<i64>,
        /// Null when it no longer waits.
        pub due_at: Option<i64>,
        /// The status of the last answer, of HTTP or SMTP.
        pub status: Option<i32>,
        pub error: Option<String>,
        pub finished_at: Option<i64>,
    }
}

pub mod agent_watch {
    table_row! { "agent_watches":
        #[sea_orm(primary_key, auto_increment = false)]
        pub account_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: Uuid,
        pub created_at: i64,
    }
}
