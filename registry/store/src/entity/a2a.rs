//! Rows: the tasks that the registry does for clients of A2A.

/// A task.
pub mod a2a_task {
    use a2a_registry_domain::task_state::TaskState;

    table_row! { "a2a_tasks":
        /// Identifier, random: whoever knows that of a task without an account may read it.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Whose it is; null for a client without an account.
        pub account_id: Option<Uuid>,
        /// Whom a task without an account is counted for: a keyed hash of the network that its first message came from.
        pub sender: Option<i64>,
        /// The conversation that it is a part of.
        pub context_id: String,
        pub state: Kept<TaskState>,
        /// The messages of its client: a JSON array in the form of 1.0.
        pub history: String,
        /// What came of it, as JSON; null while it is worked on.
        pub outcome: Option<String>,
        /// The request for the next page of its search, as JSON; empty if there is none, null if it is no search.
        pub more: Option<String>,
        pub created_at: i64,
        /// When it came into its state.
        pub updated_at: i64,
        /// When it is deleted.
        pub expires_at: i64,
    }
}
