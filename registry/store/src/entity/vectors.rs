//! Rows: vectors of agents, and the models that made them.

/// A model, and the progress of its vectors.
pub mod model {
    use crate::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
    #[sea_orm(table_name = "models")]
    pub struct Model {
        /// Its id: hexadecimal SHA-256.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
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
}

/// The vectors of one agent by one model.
pub mod agent_vectors {
    table_row! { "agent_vectors":
        #[sea_orm(primary_key, auto_increment = false)]
        pub model_id: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: Uuid,
        /// Digest of the texts they were made of: the layout of these, and their hexadecimal SHA-256.
        pub text_digest: String,
        /// For each vector its scale, a little-endian `f32`, and one byte per number; the whole card's vector first.
        pub vectors: Vec<u8>,
    }
}
