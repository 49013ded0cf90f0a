//! A sentence encoder of MiniLM-L6's shape with random weights, to measure the speed of encoding where no real model
//! is available.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

const HIDDEN: usize = 384;
const LAYERS: usize = 6;
const HEADS: usize = 12;
const WIDE: usize = 1536;
const VOCABULARY: usize = 30_522;
const POSITIONS: usize = 512;

/// The tokenizer of the tests' own encoder; its token numbers are within the vocabulary.
const TOKENIZER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny/tokenizer.json");

/// Writes the encoder into a folder.
pub fn write(folder: &Path) {
    std::fs::copy(TOKENIZER, folder.join("tokenizer.json")).unwrap();
    let config = json!({
        "model_type": "bert",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": WIDE,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
    });
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    write_weights(&folder.join("model.safetensors"));
}

/// The name and shape of every weight.
fn weights() -> Vec<(String, Vec<usize>)> {
    let mut all = vec![
        (
            "embeddings.word_embeddings.weight".to_owned(),
            vec![VOCABULARY, HIDDEN],
        ),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![POSITIONS, HIDDEN],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![2, HIDDEN],
        ),
    ];
    let mut pair = |name: &str, shape: &[usize]| {
        all.push((format!("{name}.weight"), shape.to_vec()));
        all.push((format!("{name}.bias"), vec![shape[0]]));
    };
    pair("embeddings.LayerNorm", &[HIDDEN]);
    for layer in 0..LAYERS {
        let layer = format!("encoder.layer.{layer}");
        for part in ["query", "key", "value"] {
            pair(&format!("{layer}.attention.self.{part}"), &[HIDDEN, HIDDEN]);
        }
        pair(
            &format!("{layer}.attention.output.dense"),
            &[HIDDEN, HIDDEN],
        );
        pair(&format!("{layer}.attention.output.LayerNorm"), &[HIDDEN]);
        pair(&format!("{layer}.intermediate.dense"), &[WIDE, HIDDEN]);
        pair(&format!("{layer}.output.dense"), &[HIDDEN, WIDE]);
        pair(&format!("{layer}.output.LayerNorm"), &[HIDDEN]);
    }
    all
}

fn write_weights(file: &Path) {
    let all = weights();
    let mut end = 0;
    let header: BTreeMap<&str, Value> = all
        .iter()
        .map(|(name, shape)| {
            let begin = end;
            end += shape.iter().product::<usize>() * size_of::<f32>();
            (
                name.as_str(),
                json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}),
            )
        })
        .collect();
    let header = serde_json::to_vec(&header).unwrap();
    let mut file = BufWriter::new(std::fs::File::create(file).unwrap());
    file.write_all(&(header.len() as u64).to_le_bytes())
        .unwrap();
    file.write_all(&header).unwrap();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for (name, shape) in &all {
        let norm = name.ends_with("LayerNorm.weight");
        for _ in 0..shape.iter().product::<usize>() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let random = ((state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0) * 0.04;
            file.write_all(&(random + f32::from(norm)).to_le_bytes())
                .unwrap();
        }
    }
    file.flush().unwrap();
}
