//! Rows: policy sets, waivers, what policies on a dry run would have changed, decisions that askers can look up, and
//! agents that policies hide.

/// A policy set, which never changes once it is stored.
pub mod policy_set {
    table_row! { "policy_sets":
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i64,
        /// The policies in their order, as JSON.
        pub policies: String,
        /// The collections that its policies refer to, as JSON; null for none.
        pub collections: Option<String>,
        pub author: String,
        pub reason: String,
        pub created_at: i64,
    }
}

/// A process that evaluates policies, with the set that it has in force.
pub mod policy_replica {
    table_row! { "policy_replicas":
        /// A new one at each start.
        #[sea_orm(primary_key, auto_increment = false)]
        pub process: Uuid,
        pub number: i64,
        /// Of the agents to evaluate under the next set, those that are evaluated.
        pub evaluated: i64,
        /// Number of agents to evaluate under the next set.
        pub agents: i64,
        /// The time of its last report.
        pub seen_at: i64,
    }
}

/// A preview of a policy set.
pub mod policy_preview {
    use a2a_registry_domain::preview_state::PreviewState;

    table_row! { "policy_previews":
        /// Identifiers increase with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// A digest of everything that the result depends on.
        pub subject: String,
        /// The digest of the policies.
        pub digest: String,
        pub state: StoredEnum<PreviewState>,
        pub evaluated: i64,
        /// Number of agents to evaluate.
        pub agents: i64,
        /// The result, as JSON; null until it is done.
        pub result: Option<String>,
        /// The reason of a failure.
        pub problem: Option<String>,
        pub made_at: i64,
        /// The last time that the process that makes it has recorded its progress.
        pub seen_at: i64,
    }
}

/// A waiver: a policy that is ignored for one content of an agent.
pub mod waiver {
    table_row! { "waivers":
        /// Identifiers increase with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub agent_id: Uuid,
        /// The identifier of the policy, whatever set is in force.
        pub policy: String,
        pub content_digest: String,
        pub reason: String,
        pub approver_id: Uuid,
        pub created_at: i64,
        pub expires_at: i64,
        /// Null until it is ended.
        pub ended_at: Option<i64>,
        pub ended_by: Option<String>,
        pub ended_reason: Option<String>,
    }

    impl Model {
        /// Whether it covers this content at this time, unless it was ended.
        pub fn waiver_covers_content(&self, content_digest: &str, now: i64) -> bool {
            self.content_digest == content_digest && self.expires_at > now
        }
    }
}

/// The daily count of decisions about a resource for a caller that a policy on a dry run would have changed.
pub mod dry_run_change {
    table_row! { "dry_run_changes":
        #[sea_orm(primary_key, auto_increment = false)]
        pub policy: String,
        /// A hash of the policy's text, so that an edited policy is counted separately.
        #[sea_orm(primary_key, auto_increment = false)]
        pub fingerprint: String,
        /// Whole days since 1970.
        #[sea_orm(primary_key, auto_increment = false)]
        pub day: i32,
        #[sea_orm(primary_key, auto_increment = false)]
        pub action: String,
        /// The agent's identifier, or the domain's name.
        #[sea_orm(primary_key, auto_increment = false)]
        pub resource: String,
        /// The account's name; empty for a caller without an account.
        #[sea_orm(primary_key, auto_increment = false)]
        pub caller: String,
        /// Whether it would have allowed what was denied; otherwise it would have denied what was allowed.
        pub allows: bool,
        pub count: i64,
    }
}

/// A decision by policies that its asker can look up for a few days.
pub mod access_decision {
    table_row! { "access_decisions":
        /// Identifiers increase with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// The account, or the network of a client without one.
        pub asker: String,
        pub at: i64,
        /// The decision as its asker sees it, as JSON.
        pub record: String,
    }
}

/// An agent that policies hide from some callers.
pub mod hidden_agent {
    table_row! { "hidden_agents":
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: Uuid,
        pub since: i64,
    }
}
