//! `model.safetensors`: the weights by name, each of the shape the sizes ask for and all of them numbers.

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;

use super::error::{ModelError, first_line};
use super::folder::WEIGHTS;

/// The prefixes under which the weights of a BERT are stored: by itself, and as a part of something else.
const PREFIXES: [&str; 2] = ["", "bert."];
/// A weight that every BERT has.
const ANY: &str = "embeddings.word_embeddings.weight";

/// A file of weights.
pub(super) struct Weights {
    stored: VarBuilder<'static>,
    prefix: &'static str,
}

impl Weights {
    /// Takes the file's bytes, which it holds until it is dropped. What is taken out of it is a copy.
    ///
    /// # Errors
    /// Where it is no such file or holds no BERT.
    pub fn open(bytes: Vec<u8>) -> Result<Self, ModelError> {
        let stored = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu)
            .map_err(|error| ModelError::malformed(WEIGHTS, error))?;
        let prefix = PREFIXES
            .into_iter()
            .find(|prefix| stored.contains_tensor(&format!("{prefix}{ANY}")))
            .ok_or_else(|| ModelError::mismatch(WEIGHTS, format!("it holds no {ANY}")))?;
        Ok(Self { stored, prefix })
    }

    /// The numbers of a matrix of so many rows and columns, row after row.
    ///
    /// # Errors
    /// Where it is missing, of another shape, or holds what is no number.
    pub fn table(&self, name: &str, rows: usize, columns: usize) -> Result<Vec<f32>, ModelError> {
        numbers(name, &self.get(name, &[rows, columns])?)
    }

    /// So many numbers.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        numbers(name, &self.get(name, &[length])?)
    }

    /// Whether it holds something of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.stored
            .contains_tensor(&format!("{}{name}", self.prefix))
    }

    fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, ModelError> {
        if !self.holds(name) {
            return Err(ModelError::mismatch(
                WEIGHTS,
                format!("it holds no {name}, which config.json asks for"),
            ));
        }
        let stored = format!("{}{name}", self.prefix);
        self.stored.get(shape, &stored).map_err(|error| {
            ModelError::mismatch(
                WEIGHTS,
                format!(
                    "{name} is not of the shape {shape:?} ({})",
                    first_line(&error.to_string())
                ),
            )
        })
    }
}

fn numbers(name: &str, tensor: &Tensor) -> Result<Vec<f32>, ModelError> {
    let numbers = tensor
        .flatten_all()
        .and_then(|flat| flat.to_vec1::<f32>())
        .map_err(|error| ModelError::malformed(WEIGHTS, error))?;
    if numbers.iter().all(|number| number.is_finite()) {
        Ok(numbers)
    } else {
        Err(ModelError::mismatch(
            WEIGHTS,
            format!("{name} holds what is no number"),
        ))
    }
}
