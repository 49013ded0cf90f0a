//! `config.json`: what kind of network the weights are of, and its sizes.

use serde::Deserialize;

use super::error::ModelError;

/// The file.
pub(super) const CONFIG: &str = "config.json";

/// The most numbers in a vector.
pub const MAX_DIMENSIONS: usize = 4096;
/// The most layers.
const MAX_LAYERS: usize = 64;
/// The most attention heads.
const MAX_HEADS: usize = 128;
/// The widest inner layer, in numbers.
const MAX_INTERMEDIATE: usize = 16_384;
/// The most tokens a vocabulary may have; the largest in use have half a million.
const MAX_VOCABULARY: usize = 1_000_000;
/// The most tokens in a text: what attention keeps grows with their square.
const MAX_POSITIONS: usize = 8192;
/// The fewest tokens in a text that are worth anything, the two special ones included.
pub(super) const MIN_POSITIONS: usize = 8;
/// The most kinds of token.
const MAX_TYPES: usize = 16;

/// What bends the numbers between two layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    /// By the error function.
    Gelu,
    /// By the hyperbolic tangent, which is near it.
    GeluByTanh,
    /// Nothing below zero.
    Relu,
}

/// A network of type BERT.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BertConfig {
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// Numbers for each token between the layers, and in a vector.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Attention heads; they share `hidden` evenly.
    pub heads: usize,
    /// Numbers for each token inside a layer.
    pub intermediate: usize,
    /// Tokens in the longest text.
    pub positions: usize,
    /// Kinds of token.
    pub types: usize,
    /// What keeps a norm from dividing by nothing.
    pub epsilon: f32,
    /// What bends the numbers inside a layer.
    pub activation: Activation,
    /// What the model calls itself.
    pub name: Option<String>,
}

/// The file as it is written.
#[derive(Deserialize)]
struct Written {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    #[serde(default = "gelu")]
    hidden_act: String,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    #[serde(default = "tiny")]
    layer_norm_eps: f64,
    position_embedding_type: Option<String>,
    is_decoder: Option<bool>,
    #[serde(rename = "_name_or_path")]
    name: Option<String>,
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn two() -> usize {
    2
}

fn tiny() -> f64 {
    1e-12
}

/// What of the file says whose members are needed at all.
#[derive(Deserialize)]
struct Kind {
    model_type: Option<String>,
}

impl BertConfig {
    /// Reads the file.
    ///
    /// # Errors
    /// Where it is of another type, lacks a size, or has one out of bounds.
    pub fn read(bytes: &[u8]) -> Result<Self, ModelError> {
        let malformed = |error: serde_json::Error| ModelError::malformed(CONFIG, error);
        // A network of another type has other members, so its type is asked for first.
        let kind: Kind = serde_json::from_slice(bytes).map_err(malformed)?;
        match kind.model_type.as_deref() {
            None | Some("bert") => {}
            // RoBERTa and its kin count positions from another number, others have other layers.
            Some(other) => {
                let other: String = other
                    .chars()
                    .take(40)
                    .flat_map(char::escape_debug)
                    .collect();
                return Err(unsupported(format!(
                    "model_type is \"{other}\", and only \"bert\" is understood"
                )));
            }
        }
        let written: Written = serde_json::from_slice(bytes).map_err(malformed)?;
        written.check()?;
        let activation = match written.hidden_act.as_str() {
            "gelu" | "gelu_python" => Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluByTanh,
            "relu" => Activation::Relu,
            _ => return Err(unsupported("hidden_act is none of gelu, gelu_new and relu")),
        };
        Ok(Self {
            vocabulary: written.vocab_size,
            hidden: written.hidden_size,
            layers: written.num_hidden_layers,
            heads: written.num_attention_heads,
            intermediate: written.intermediate_size,
            positions: written.max_position_embeddings,
            types: written.type_vocab_size,
            epsilon: written.layer_norm_eps as f32,
            activation,
            name: written.name,
        })
    }
}

impl Written {
    fn check(&self) -> Result<(), ModelError> {
        for (name, value, least, most) in [
            ("hidden_size", self.hidden_size, 1, MAX_DIMENSIONS),
            ("num_hidden_layers", self.num_hidden_layers, 1, MAX_LAYERS),
            (
                "num_attention_heads",
                self.num_attention_heads,
                1,
                MAX_HEADS,
            ),
            (
                "intermediate_size",
                self.intermediate_size,
                1,
                MAX_INTERMEDIATE,
            ),
            ("vocab_size", self.vocab_size, 1, MAX_VOCABULARY),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                MIN_POSITIONS,
                MAX_POSITIONS,
            ),
            ("type_vocab_size", self.type_vocab_size, 1, MAX_TYPES),
        ] {
            if !(least..=most).contains(&value) {
                return Err(unsupported(format!(
                    "{name} is {value}, and {least} to {most} are allowed"
                )));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return Err(unsupported(format!(
                "hidden_size {} cannot be shared among {} attention heads",
                self.hidden_size, self.num_attention_heads
            )));
        }
        if !(self.layer_norm_eps >= 0.0 && self.layer_norm_eps < 1.0) {
            return Err(unsupported("layer_norm_eps is not between 0 and 1"));
        }
        let positions = self.position_embedding_type.as_deref();
        if positions.is_some_and(|kind| kind != "absolute") {
            return Err(unsupported("position_embedding_type is not \"absolute\""));
        }
        if self.is_decoder == Some(true) {
            return Err(unsupported(
                "is_decoder is true, and a decoder reads only what comes before a word",
            ));
        }
        Ok(())
    }
}

fn unsupported(what: impl Into<String>) -> ModelError {
    ModelError::unsupported(CONFIG, what)
}
