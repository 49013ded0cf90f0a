//! Weights from `model.safetensors`, by name, with the expected shapes and finite numbers only.

use half::{bf16, f16};
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};

use super::error::ModelError;
use super::model_folder::WEIGHTS_FILE;

/// Name prefixes of a network's weights: alone, or as a part of another model.
const NAME_PREFIXES: [&str; 3] = ["", "bert.", "roberta."];
/// A weight that every BERT has.
const REQUIRED_WEIGHT: &str = "embeddings.word_embeddings.weight";
/// Length of the number at the start of the file that gives the header's length.
const HEADER_LENGTH_BYTES: usize = 8;

pub(super) struct Weights {
    bytes: Vec<u8>,
    /// Offset of the first tensor's bytes.
    data_offset: usize,
    metadata: Metadata,
    prefix: &'static str,
}

impl Weights {
    /// Opens the bytes of a weights file and keeps them until dropped. Weights are copied out of them.
    pub fn open(bytes: Vec<u8>) -> Result<Self, ModelError> {
        // This also checks that every tensor lies within the file and has the length of its shape.
        let (header_length, metadata) = SafeTensors::read_metadata(&bytes)
            .map_err(|error| ModelError::malformed(WEIGHTS_FILE, error))?;
        let prefix = NAME_PREFIXES
            .into_iter()
            .find(|prefix| {
                metadata
                    .info(&format!("{prefix}{REQUIRED_WEIGHT}"))
                    .is_some()
            })
            .ok_or_else(|| {
                ModelError::mismatch(WEIGHTS_FILE, format!("it has no {REQUIRED_WEIGHT}"))
            })?;
        Ok(Self {
            data_offset: HEADER_LENGTH_BYTES + header_length,
            bytes,
            metadata,
            prefix,
        })
    }

    /// A matrix of this size, row by row. Fails unless all numbers are finite.
    pub fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Vec<f32>, ModelError> {
        self.read_tensor(name, &[rows, columns])
    }

    pub fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        self.read_tensor(name, &[length])
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensor_info(name).is_some()
    }

    fn tensor_info(&self, name: &str) -> Option<&TensorInfo> {
        self.metadata.info(&format!("{}{name}", self.prefix))
    }

    fn read_tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let mismatch = |what: String| ModelError::mismatch(WEIGHTS_FILE, what);
        let info = self
            .tensor_info(name)
            .ok_or_else(|| mismatch(format!("it has no {name}, which config.json requires")))?;
        if info.shape != shape {
            return Err(mismatch(format!(
                "{name} should have the shape {shape:?} but has {:?}",
                info.shape
            )));
        }
        let (from, to) = info.data_offsets;
        let tensor_bytes = self
            .bytes
            .get(self.data_offset + from..self.data_offset + to);
        let tensor_bytes = tensor_bytes.ok_or_else(|| mismatch(format!("{name} is truncated")))?;
        let numbers = decode_numbers(info.dtype, tensor_bytes)
            .ok_or_else(|| mismatch(format!("{name} has the unsupported type {:?}", info.dtype)))?;
        if numbers.iter().all(|number| number.is_finite()) {
            Ok(numbers)
        } else {
            Err(mismatch(format!(
                "{name} contains numbers that are not finite"
            )))
        }
    }
}

/// Converts bytes to numbers; `None` for an unsupported type.
fn decode_numbers(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    Some(match dtype {
        Dtype::F32 => decode_each_number(bytes, f32::from_le_bytes),
        Dtype::F16 => decode_each_number(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
        Dtype::BF16 => decode_each_number(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        Dtype::F64 => decode_each_number(bytes, |bytes| f64::from_le_bytes(bytes) as f32),
        _ => return None,
    })
}

fn decode_each_number<const N: usize>(
    bytes: &[u8],
    decode_number: impl Fn([u8; N]) -> f32,
) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<N>();
    numbers.iter().map(|bytes| decode_number(*bytes)).collect()
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
            assert_eq!(decode_numbers(kind, &bytes).unwrap(), expected, "{kind:?}");
        }
        assert_eq!(decode_numbers(Dtype::I64, &[0; 16]), None);
    }
}
