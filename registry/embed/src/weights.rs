//! Reads `model.safetensors`: weights by name, with the expected shapes and only finite numbers.

use half::{bf16, f16};
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};

use super::error::ModelError;
use super::folder::WEIGHTS;

/// Prefixes of a network's weights: by itself, or as a part of another model.
const PREFIXES: [&str; 3] = ["", "bert.", "roberta."];
/// A weight that every BERT has.
const ANY: &str = "embeddings.word_embeddings.weight";
/// Length of the number at the beginning of the file that gives the header's length.
const LENGTH_BYTES: usize = 8;

pub(super) struct Weights {
    bytes: Vec<u8>,
    /// Offset of the numbers.
    begin: usize,
    stored: Metadata,
    prefix: &'static str,
}

impl Weights {
    /// Holds the file's bytes until it is dropped. Weights are copied out of it.
    pub fn open(bytes: Vec<u8>) -> Result<Self, ModelError> {
        // This checks that every tensor lies within the file and has the length of its shape.
        let (header, stored) = SafeTensors::read_metadata(&bytes)
            .map_err(|error| ModelError::malformed(WEIGHTS, error))?;
        let prefix = PREFIXES
            .into_iter()
            .find(|prefix| stored.info(&format!("{prefix}{ANY}")).is_some())
            .ok_or_else(|| ModelError::mismatch(WEIGHTS, format!("it has no {ANY}")))?;
        Ok(Self {
            begin: LENGTH_BYTES + header,
            bytes,
            stored,
            prefix,
        })
    }

    /// A matrix with these numbers of rows and columns, row by row. Fails unless all numbers are finite.
    pub fn table(&self, name: &str, rows: usize, columns: usize) -> Result<Vec<f32>, ModelError> {
        self.numbers(name, &[rows, columns])
    }

    pub fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        self.numbers(name, &[length])
    }

    pub fn holds(&self, name: &str) -> bool {
        self.info(name).is_some()
    }

    fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.stored.info(&format!("{}{name}", self.prefix))
    }

    fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let wrong = |what: String| ModelError::mismatch(WEIGHTS, what);
        let info = self
            .info(name)
            .ok_or_else(|| wrong(format!("it has no {name}, which config.json requires")))?;
        if info.shape != shape {
            return Err(wrong(format!(
                "{name} should have the shape {shape:?} but has {:?}",
                info.shape
            )));
        }
        let (from, to) = info.data_offsets;
        let stored = self.bytes.get(self.begin + from..self.begin + to);
        let stored = stored.ok_or_else(|| wrong(format!("{name} is truncated")))?;
        let numbers = numbers(info.dtype, stored)
            .ok_or_else(|| wrong(format!("{name} has the unsupported type {:?}", info.dtype)))?;
        if numbers.iter().all(|number| number.is_finite()) {
            Ok(numbers)
        } else {
            Err(wrong(format!(
                "{name} contains numbers that are not finite"
            )))
        }
    }
}

/// Converts bytes to numbers; `None` for a type in which no encoder is published.
fn numbers(kind: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    Some(match kind {
        Dtype::F32 => each(bytes, f32::from_le_bytes),
        Dtype::F16 => each(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
        Dtype::BF16 => each(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        Dtype::F64 => each(bytes, |bytes| f64::from_le_bytes(bytes) as f32),
        _ => return None,
    })
}

fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<N>();
    numbers.iter().map(|bytes| read(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_kind_are_read() {
        let expected = [1.5, -0.25];
        let both = |bytes: [Vec<u8>; 2]| bytes.concat();
        for (kind, bytes) in [
            (
                Dtype::F32,
                both(expected.map(|x: f32| x.to_le_bytes().to_vec())),
            ),
            (
                Dtype::F64,
                both(expected.map(|x| f64::from(x).to_le_bytes().to_vec())),
            ),
            (Dtype::F16, vec![0x00, 0x3e, 0x00, 0xb4]),
            (Dtype::BF16, vec![0xc0, 0x3f, 0x80, 0xbe]),
        ] {
            assert_eq!(numbers(kind, &bytes).unwrap(), expected, "{kind:?}");
        }
        assert_eq!(numbers(Dtype::I64, &[0; 16]), None);
    }
}
