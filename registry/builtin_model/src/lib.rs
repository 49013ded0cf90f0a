//! The files of the built-in sentence encoder: all-MiniLM-L6-v2 with weights of 8 bits.
//!
//! This package has nothing but the files, so that they are compiled once. `quantize.py` beside `src` writes them from
//! the original, and says where that is from; LICENSE and NOTICE beside it apply to them.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// The model's own name.
pub const NAME: &str = "all-MiniLM-L6-v2";
/// Repository of the original on the Hugging Face hub.
pub const SOURCE: &str = "sentence-transformers/all-MiniLM-L6-v2";
/// The model's license, as an SPDX expression.
pub const LICENSE: &str = "Apache-2.0";

/// A file of the model.
#[derive(Debug, Clone, Copy)]
pub struct ModelFile {
    /// Path in a model's folder.
    pub path: &'static str,
    /// Lower-case hexadecimal SHA-256 of the bytes.
    pub sha256: &'static str,
    pub bytes: &'static [u8],
}

pub static CONFIG: ModelFile = ModelFile {
    path: "config.json",
    sha256: "6aab6123f884e0a2af8e89578c8d41aca95a535da67853e8ba85f85aa2c72f72",
    bytes: include_bytes!("../model/config.json"),
};

pub static LENGTHS: ModelFile = ModelFile {
    path: "sentence_bert_config.json",
    sha256: "a61260d31e0672e2ce371544ca846d5852b8517f52883e65a7f9987626dffa3c",
    bytes: include_bytes!("../model/sentence_bert_config.json"),
};

/// The tokenizer, as the original has it.
pub static TOKENIZER: ModelFile = ModelFile {
    path: "tokenizer.json",
    sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    bytes: include_bytes!("../model/tokenizer.json"),
};

pub static WEIGHTS: ModelFile = ModelFile {
    path: "model.safetensors",
    sha256: "687b0a35adca43ed607d45a72906e05a106cf83aa0294a405e6b115bbe106a46",
    bytes: include_bytes!("../model/model.safetensors"),
};

pub static FILES: [&ModelFile; 4] = [&CONFIG, &LENGTHS, &TOKENIZER, &WEIGHTS];

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of all files together: every clone and every binary has them.
    const MAX_BYTES: usize = 25_000_000;

    #[test]
    fn the_files_are_those_that_the_script_wrote() {
        for file in FILES {
            let digest = ring::digest::digest(&ring::digest::SHA256, file.bytes);
            let digest: String = digest
                .as_ref()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(digest, file.sha256, "{}", file.path);
        }
    }

    #[test]
    fn the_files_are_small() {
        let size: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(size <= MAX_BYTES, "{size}");
    }
}
