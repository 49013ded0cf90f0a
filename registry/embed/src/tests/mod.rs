//! Tests of the sentence encoder with the tiny models of `tests/models`, including damaged copies of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod built_in;
mod checks;
mod download;
mod encoder;
mod identity;
mod install;
mod languages;
mod multilingual;
mod pool;
mod threads;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::*;

/// The tiny model's folder.
fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models/tiny")
}

/// The folder of the tiny multilingual model.
fn tiny_xlmr() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models/tiny_xlmr")
}

/// The files a model consists of.
const FILES: [&str; 6] = [
    "1_Pooling/config.json",
    "config.json",
    "model.safetensors",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
];

/// A changeable copy of the tiny model, in `model` within a temporary folder.
struct Altered(TempDir);

impl Altered {
    fn new() -> Self {
        Self::of(&tiny())
    }

    /// A copy of this model.
    fn of(model: &Path) -> Self {
        let copy = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(copy.path().join("1_Pooling")).unwrap();
        for file in FILES {
            std::fs::copy(model.join(file), copy.path().join(file)).unwrap();
        }
        copy
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("model")
    }

    fn remove(&self, file: &str) {
        std::fs::remove_file(self.path().join(file)).unwrap();
    }

    fn write(&self, file: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(file), bytes).unwrap();
    }

    /// Changes a JSON file.
    fn change(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let bytes = std::fs::read(self.path().join(file)).unwrap();
        let mut value = serde_json::from_slice(&bytes).unwrap();
        change(&mut value);
        self.write(file, serde_json::to_vec(&value).unwrap());
    }

    /// Sets a member of a JSON file.
    fn set(&self, file: &str, member: &str, value: Value) {
        self.change(file, |whole| whole[member] = value);
    }

    /// Renames the weights, and changes the bytes of all of them.
    fn change_weights(&self, rename: impl Fn(&str) -> String, change: impl FnOnce(&mut Vec<u8>)) {
        let bytes = std::fs::read(self.path().join("model.safetensors")).unwrap();
        let (length, rest) = bytes.split_at(8);
        let length = u64::from_le_bytes(length.try_into().unwrap());
        let (header, numbers) = rest.split_at(usize::try_from(length).unwrap());
        let header: serde_json::Map<String, Value> = serde_json::from_slice(header).unwrap();
        let renamed = header.into_iter().map(|(name, value)| {
            let special = name.starts_with("__");
            (if special { name } else { rename(&name) }, value)
        });
        let header = serde_json::to_vec(&Value::Object(renamed.collect())).unwrap();
        let mut numbers = numbers.to_vec();
        change(&mut numbers);
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        bytes.extend(numbers);
        self.write("model.safetensors", bytes);
    }

    fn open(&self) -> LocalEncoder {
        open(&self.path())
    }
}

fn open(folder: &Path) -> LocalEncoder {
    LocalEncoder::open(folder, EncoderOptions::default()).unwrap()
}

/// The vector of one text.
async fn vector(encoder: &LocalEncoder, text: &str, kind: TextKind) -> Vec<f32> {
    let vectors = encoder.embed(vec![text.to_owned()], kind).await.unwrap();
    assert_eq!(vectors.len(), 1);
    vectors.into_iter().next().unwrap()
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    assert_eq!(one.len(), other.len());
    let product = |one: &[f32], other: &[f32]| -> f64 {
        let pairs = one.iter().zip(other);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    product(one, other) / (product(one, one) * product(other, other)).sqrt()
}

#[track_caller]
fn assert_same(one: &[f32], other: &[f32]) {
    let cosine = cosine(one, other);
    assert!(cosine > 0.999_999, "{cosine}");
}

#[track_caller]
fn assert_other(one: &[f32], other: &[f32]) {
    let cosine = cosine(one, other);
    assert!(cosine < 0.9999, "{cosine}");
}
