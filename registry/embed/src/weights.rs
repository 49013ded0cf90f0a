//! `model.safetensors`: the weights by name, each of the shape the sizes ask for and all of them numbers.

use half::{bf16, f16};
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};

use super::error::ModelError;
use super::folder::WEIGHTS;

/// The prefixes under which the weights of a BERT are stored: by itself, and as a part of something else.
const PREFIXES: [&str; 2] = ["", "bert."];
/// A weight that every BERT has.
const ANY: &str = "embeddings.word_embeddings.weight";
/// The length of the header, which a file begins with.
const LENGTH_BYTES: usize = 8;

/// A file of weights.
pub(super) struct Weights {
    bytes: Vec<u8>,
    /// Where the numbers begin.
    begin: usize,
    stored: Metadata,
    prefix: &'static str,
}

impl Weights {
    /// Takes the file's bytes, which it holds until it is dropped. What is taken out of it is a copy.
    ///
    /// # Errors
    /// Where it is no such file or holds no BERT.
    pub fn open(bytes: Vec<u8>) -> Result<Self, ModelError> {
        // It checks that every part lies within the file and is as long as its shape says.
        let (header, stored) = SafeTensors::read_metadata(&bytes)
            .map_err(|error| ModelError::malformed(WEIGHTS, error))?;
        let prefix = PREFIXES
            .into_iter()
            .find(|prefix| stored.info(&format!("{prefix}{ANY}")).is_some())
            .ok_or_else(|| ModelError::mismatch(WEIGHTS, format!("it holds no {ANY}")))?;
        Ok(Self {
            begin: LENGTH_BYTES + header,
            bytes,
            stored,
            prefix,
        })
    }

    /// The numbers of a matrix of so many rows and columns, row after row.
    ///
    /// # Errors
    /// Where it is missing, of another shape or kind, or holds what is no number.
    pub fn table(&self, name: &str, rows: usize, columns: usize) -> Result<Vec<f32>, ModelError> {
        self.numbers(name, &[rows, columns])
    }

    /// So many numbers.
    pub fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        self.numbers(name, &[length])
    }

    /// Whether it holds something of this name.
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
            .ok_or_else(|| wrong(format!("it holds no {name}, which config.json asks for")))?;
        if info.shape != shape {
            return Err(wrong(format!(
                "{name} is not of the shape {shape:?} but {:?}",
                info.shape
            )));
        }
        let (from, to) = info.data_offsets;
        let stored = self.bytes.get(self.begin + from..self.begin + to);
        let stored = stored.ok_or_else(|| wrong(format!("{name} is cut short")))?;
        let numbers = numbers(info.dtype, stored)
            .ok_or_else(|| wrong(format!("{name} is of the kind {:?}", info.dtype)))?;
        if numbers.iter().all(|number| number.is_finite()) {
            Ok(numbers)
        } else {
            Err(wrong(format!("{name} holds what is no number")))
        }
    }
}

/// These bytes as numbers; nothing where they are of a kind that no encoder is published with.
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
