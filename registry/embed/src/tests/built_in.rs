//! The built-in model, and models in a folder with weights of 8 bits as it has.

use a2a_registry_builtin_model as builtin_model;
use ring::digest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// The SHA-256 of the bits of all reference texts' vectors. Every processor gives the same.
const VECTORS_SHA256: &str = "2e27a1d2e70e57eabecf9b03d08c2db2b9b675a50b989d5e01395c085787bf92";

/// A text, with its expected vector from `registry/builtin_model/reference.py`.
#[derive(Deserialize)]
struct Reference {
    text: String,
    vector: Vec<f32>,
}

fn references() -> Vec<Reference> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../builtin_model/reference.json");
    let all: Vec<Reference> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(all.len() >= 8);
    all
}

fn built_in() -> LocalEncoder {
    LocalEncoder::built_in(EncoderOptions::default()).unwrap()
}

/// The built-in model's files in a folder.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in builtin_model::FILES {
        std::fs::write(folder.path().join(file.path), file.bytes).unwrap();
    }
    folder
}

/// The built-in model with another header of its weights: names, types and shapes.
fn with_header(change: impl FnOnce(&mut Value)) -> TempDir {
    let folder = folder();
    let (length, rest) = builtin_model::WEIGHTS
        .bytes
        .split_first_chunk::<8>()
        .unwrap();
    let (header, numbers) = rest.split_at(usize::try_from(u64::from_le_bytes(*length)).unwrap());
    let mut header: Value = serde_json::from_slice(header).unwrap();
    change(&mut header);
    let header = serde_json::to_vec(&header).unwrap();
    let length = (header.len() as u64).to_le_bytes();
    let bytes = [length.as_slice(), header.as_slice(), numbers].concat();
    std::fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
    folder
}

#[test]
fn it_has_a_name_and_an_id_as_if_it_were_installed() {
    let encoder = built_in();
    let identity = encoder.model_identity();
    assert_eq!(
        (identity.name.as_str(), identity.dimensions),
        ("all-MiniLM-L6-v2", 384)
    );
    assert_eq!(
        (encoder.max_card_tokens(), encoder.pooling()),
        (256, Pooling::Mean)
    );
    let described = ModelDescription {
        id: identity.id.clone(),
        name: identity.name.clone(),
        dimensions: identity.dimensions,
        max_length: encoder.max_card_tokens(),
        pooling: encoder.pooling(),
        bytes: 0,
    };
    assert_eq!(describe_built_in_model().unwrap(), described);
    // The id of a folder is computed from its bytes.
    assert_eq!(open(folder().path()).model_identity().id, identity.id);
}

#[tokio::test]
async fn its_vectors_are_near_those_of_the_original() {
    let encoder = built_in();
    for reference in references() {
        let found = vector(&encoder, &reference.text, TextKind::Card).await;
        let near = cosine(&found, &reference.vector);
        assert!(near > 0.993, "{:?}: {near}", reference.text);
    }
}

#[tokio::test]
async fn its_vectors_are_the_same_bits_everywhere() {
    let texts: Vec<String> = references().into_iter().map(|one| one.text).collect();
    let encoder = built_in();
    let vectors = encoder.embed(texts.clone(), TextKind::Card).await.unwrap();
    let installed = open(folder().path());
    for (text, together) in texts.iter().zip(&vectors) {
        // One by one, and with weights from a file.
        assert_eq!(vector(&encoder, text, TextKind::Card).await, *together);
        assert_eq!(vector(&installed, text, TextKind::Card).await, *together);
    }
    let bits = vectors
        .iter()
        .flatten()
        .flat_map(|number| number.to_le_bytes());
    let digest = digest::digest(&digest::SHA256, &bits.collect::<Vec<u8>>());
    let digest: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(digest, VECTORS_SHA256);
}

#[test]
fn weights_of_8_bits_are_installed_like_others() {
    let data = tempfile::tempdir().unwrap();
    let model = install_model(data.path(), folder().path()).unwrap().model;
    let encoder = model.open(EncoderOptions::default()).unwrap();
    assert_eq!(encoder.model_identity().id, built_in().model_identity().id);
}

#[test]
fn weights_of_other_types_are_refused_by_name() {
    let rename = |header: &mut Value, from: &str, to: &str| {
        let members = header.as_object_mut().unwrap();
        let tensor = members.remove(from).unwrap();
        members.insert(to.to_owned(), tensor);
    };
    let refuse = |change: &dyn Fn(&mut Value), words: &[&str]| {
        let folder = with_header(change);
        let error = LocalEncoder::open(folder.path(), EncoderOptions::default()).unwrap_err();
        let line = error.to_string();
        assert_eq!(line.lines().count(), 1, "{line}");
        for word in words {
            assert!(line.contains(word), "{word:?} is not in {line:?}");
        }
    };
    let output = "encoder.layer.5.output.dense.weight";
    refuse(
        &|header| header[output]["dtype"] = json!("U8"),
        &[output, "U8", "F32"],
    );
    // One of the three that lie side by side.
    let key = "encoder.layer.0.attention.self.key.weight";
    refuse(
        &|header| header[key]["dtype"] = json!("U8"),
        &[key, "U8", "I8"],
    );
    let scale = "encoder.layer.3.intermediate.dense.weight_scale";
    refuse(&|header| rename(header, scale, "lost"), &[scale]);
    refuse(
        &|header| header[output]["shape"] = json!([384, 1536]),
        &[output, "[384, 1536]"],
    );
    let bias = "encoder.layer.2.output.dense.bias";
    refuse(
        &|header| {
            header[bias]["dtype"] = json!("I8");
            header[bias]["shape"] = json!([1536]);
        },
        &[bias, "I8", "F32"],
    );
}
