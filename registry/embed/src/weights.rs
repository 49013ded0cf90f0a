//! Weights from `model.safetensors`, by name, with the expected shapes and finite numbers only.
//!
//! Numbers of 16 to 64 bits are read as 32 bits. Integers of 8 bits stay what they are; a second tensor, `NAME_scale`,
//! has the number to multiply each of their rows with.

use std::borrow::Cow;
use std::ops::Range;

use half::{bf16, f16};
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};

use super::error::ModelError;
use super::model_folder::WEIGHTS_FILE;

/// Name prefixes of a network's weights: alone, or as a part of another model.
const NAME_PREFIXES: [&str; 3] = ["", "bert.", "roberta."];
/// A weight that every BERT has.
const REQUIRED_WEIGHT: &str = "embeddings.word_embeddings.weight";
/// Types that are read as numbers of 32 bits.
const FLOATS: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::F64];
/// Length of the number at the start of the file that gives the header's length.
const HEADER_LENGTH_BYTES: usize = 8;

pub(super) struct Weights {
    bytes: Cow<'static, [u8]>,
    /// Offset of the first tensor's bytes.
    data_offset: usize,
    metadata: Metadata,
    prefix: &'static str,
}

/// Integers of 8 bits in rows, and the scale of each row.
pub(super) struct Int8Tensor {
    /// Each integer as a byte in two's complement.
    pub numbers: Cow<'static, [u8]>,
    pub scales: Vec<f32>,
}

impl Weights {
    /// Opens the bytes of a weights file and keeps them until dropped. Weights are copied out of them, except for
    /// integers in a file that is a part of the program.
    pub fn open(bytes: Cow<'static, [u8]>) -> Result<Self, ModelError> {
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

    /// Whether a tensor holds integers of 8 bits, to be read by [`Self::int8_tensor`].
    pub fn is_int8(&self, name: &str) -> bool {
        self.tensor_info(name)
            .is_some_and(|info| info.dtype == Dtype::I8)
    }

    /// Integers of this shape with the scales of their `rows` rows.
    pub fn int8_tensor(
        &self,
        name: &str,
        shape: &[usize],
        rows: usize,
    ) -> Result<Int8Tensor, ModelError> {
        let (_, range) = self.find_tensor(name, &[Dtype::I8], shape)?;
        let scales = self.vector(&format!("{name}_scale"), rows)?;
        let numbers = match &self.bytes {
            Cow::Borrowed(bytes) => bytes.get(range).map(Cow::Borrowed),
            Cow::Owned(bytes) => bytes.get(range).map(|bytes| Cow::Owned(bytes.to_vec())),
        };
        let numbers = numbers.ok_or_else(|| truncated(name))?;
        Ok(Int8Tensor { numbers, scales })
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensor_info(name).is_some()
    }

    fn tensor_info(&self, name: &str) -> Option<&TensorInfo> {
        self.metadata.info(&format!("{}{name}", self.prefix))
    }

    /// The type of a tensor of one of these types and this shape, and the place of its bytes in the file.
    fn find_tensor(
        &self,
        name: &str,
        types: &[Dtype],
        shape: &[usize],
    ) -> Result<(Dtype, Range<usize>), ModelError> {
        let mismatch = |what: String| ModelError::mismatch(WEIGHTS_FILE, what);
        let info = self
            .tensor_info(name)
            .ok_or_else(|| mismatch(format!("it has no {name}, which config.json requires")))?;
        if !types.contains(&info.dtype) {
            return Err(mismatch(format!(
                "{name} has the unsupported type {:?}, which should be one of {types:?}",
                info.dtype
            )));
        }
        if info.shape != shape {
            return Err(mismatch(format!(
                "{name} should have the shape {shape:?} but has {:?}",
                info.shape
            )));
        }
        let (from, to) = info.data_offsets;
        Ok((info.dtype, self.data_offset + from..self.data_offset + to))
    }

    fn read_tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let (dtype, range) = self.find_tensor(name, &FLOATS, shape)?;
        let tensor_bytes = self.bytes.get(range).ok_or_else(|| truncated(name))?;
        let numbers = decode_numbers(dtype, tensor_bytes);
        if numbers.iter().all(|number| number.is_finite()) {
            Ok(numbers)
        } else {
            Err(ModelError::mismatch(
                WEIGHTS_FILE,
                format!("{name} contains numbers that are not finite"),
            ))
        }
    }
}

fn truncated(name: &str) -> ModelError {
    ModelError::mismatch(WEIGHTS_FILE, format!("{name} is truncated"))
}

/// Converts bytes to numbers of one of the types [`FLOATS`].
fn decode_numbers(dtype: Dtype, bytes: &[u8]) -> Vec<f32> {
    match dtype {
        Dtype::F16 => decode_each_number(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
        Dtype::BF16 => decode_each_number(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        Dtype::F64 => decode_each_number(bytes, |bytes| f64::from_le_bytes(bytes) as f32),
        _ => decode_each_number(bytes, f32::from_le_bytes),
    }
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
            assert!(FLOATS.contains(&kind));
            assert_eq!(decode_numbers(kind, &bytes), expected, "{kind:?}");
        }
    }
}
