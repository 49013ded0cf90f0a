//! Rows: tasks of A2A clients.

pub mod a2a_task {
    use a2a_registry_domain::task_state::TaskState;

    table_row! { "a2a_tasks":
        /// Random, because anyone who knows the identifier of a task without an account can read it.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        /// Null for a client without an account.
        pub account_id: Option<Uuid>,
        /// A keyed hash of the network that sent the first message; a task without an account counts toward its limit.
        pub sender: Option<i64>,
        pub context_id: String,
        pub state: StoredEnum<TaskState>,
        /// The client's messages: a JSON array in the form of A2A 1.0.
        pub history: String,
        /// JSON; null while the task is in progress.
        pub outcome: Option<String>,
        /// The request for the search's next page, as JSON; empty if there is none, null if the task is not a search.
        pub more: Option<String>,
        pub created_at: i64,
        /// When its state changed last.
        pub updated_at: i64,
        pub expires_at: i64,
    }
}
