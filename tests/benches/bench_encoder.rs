//! The sentence encoder of the benches that search by meaning.

use std::path::Path;
use std::sync::Arc;

use a2a_registry_embed::{Embedder as _, EncoderOptions, LocalEncoder};

/// Opens the model in the folder `A2A_REGISTRY_TEST_MODEL`, else the built-in one, and prints which it is.
pub fn open_encoder() -> Arc<LocalEncoder> {
    let options = EncoderOptions::default();
    let encoder = match std::env::var_os("A2A_REGISTRY_TEST_MODEL") {
        Some(folder) => LocalEncoder::open(Path::new(&folder), options),
        None => LocalEncoder::built_in(options),
    };
    let encoder = encoder.unwrap();
    println!(
        "model {}, SHA-256 {}",
        encoder.model_identity().name,
        encoder.model_identity().id
    );
    Arc::new(encoder)
}
