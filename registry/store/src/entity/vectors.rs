//! Rows: vectors of agents, and the models that made them.

/// A model, and how far it has come.
pub mod model {
    use sea_orm::entity::prelude::*;

    /// A model, and how far it has come.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "models")]
    pub struct Model {
        /// What tells it from every other: hexadecimal SHA-256.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        /// What people call it.
        pub name: String,
        /// Numbers in a vector.
        pub dimensions: i32,
        /// First used.
        pub created_at: i64,
        /// The event up to which every agent's vectors are of its texts, but for those that the first walk has not
        /// come to.
        pub applied_seq: i64,
        /// The agent that the first walk over all has come to.
        pub walked_to: Option<Uuid>,
        /// When that walk ended.
        pub completed_at: Option<i64>,
        /// How near an agent has to be to match, once that is worked out.
        pub cutoff: Option<f64>,
        /// When a process last said that it uses it.
        pub used_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The vectors that one model made of one agent.
pub mod agent_vectors {
    use sea_orm::entity::prelude::*;

    /// The vectors that one model made of one agent.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "agent_vectors")]
    pub struct Model {
        /// The model.
        #[sea_orm(primary_key, auto_increment = false)]
        pub model_id: String,
        /// The agent.
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: Uuid,
        /// Hexadecimal SHA-256 of the texts they were made of.
        pub text_digest: String,
        /// For each its scale, a little-endian `f32`, and a byte a number; the card's first.
        pub vectors: Vec<u8>,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
