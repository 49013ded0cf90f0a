//! Rows: vectors of agents, and the models that made them.

/// A model, and the progress of its vectors.
pub mod model {
    use sea_orm::entity::prelude::*;

    /// A model, and the progress of its vectors.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "models")]
    pub struct Model {
        /// Its id: hexadecimal SHA-256.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        /// Its display name.
        pub name: String,
        /// Numbers in a vector.
        pub dimensions: i32,
        /// When it was first used.
        pub created_at: i64,
        /// The last event whose agents have current vectors, except those that the first walk has not reached.
        pub applied_seq: i64,
        /// The last agent that the first walk has reached.
        pub walked_to: Option<Uuid>,
        /// When that walk ended.
        pub completed_at: Option<i64>,
        /// The similarity cutoff, once it is calibrated.
        pub cutoff: Option<f64>,
        /// When a process last stored that it uses it.
        pub used_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The vectors of one agent by one model.
pub mod agent_vectors {
    use sea_orm::entity::prelude::*;

    /// The vectors of one agent by one model.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "agent_vectors")]
    pub struct Model {
        /// The model.
        #[sea_orm(primary_key, auto_increment = false)]
        pub model_id: String,
        /// The agent.
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: Uuid,
        /// Digest of the texts they were made of: the layout of these, and their hexadecimal SHA-256.
        pub text_digest: String,
        /// For each vector its scale, a little-endian `f32`, and one byte per number; the whole card's vector first.
        pub vectors: Vec<u8>,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
