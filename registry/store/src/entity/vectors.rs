//! Rows: agent vectors, and the models that made them.

pub mod embedding_model {
    use crate::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
    #[sea_orm(table_name = "models")]
    pub struct Model {
        /// The model's SHA-256 in hexadecimal.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        pub name: String,
        pub dimensions: i32,
        pub created_at: i64,
        /// The last event whose agents have current vectors, apart from agents that the first walk has not reached.
        pub applied_seq: i64,
        /// The last agent that the first walk has reached.
        pub walked_to: Option<Uuid>,
        /// When that walk ended.
        pub completed_at: Option<i64>,
        /// The similarity cutoff; null until it is calibrated.
        pub cutoff: Option<f64>,
        /// When a process last recorded that it uses the model.
        pub used_at: i64,
    }
}

pub mod agent_vectors {
    table_row! { "agent_vectors":
        #[sea_orm(primary_key, auto_increment = false)]
        pub model_id: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: Uuid,
        /// The layout of the texts they were made from, and the hexadecimal SHA-256 of these.
        pub text_digest: String,
        /// Each vector's scale, a little-endian `f32`, and one byte per dimension; the whole card's vector first.
        pub vectors: Vec<u8>,
    }
}
