//! Tables with a row of numbers for each token, position or token type.

use super::error::ModelError;
use super::weights::{Int8Tensor, Weights};

pub(super) enum TokenTable {
    Floats(Vec<f32>),
    /// Integers with a scale for each row.
    Int8(Int8Tensor),
}

impl TokenTable {
    pub fn load(
        weights: &Weights,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Self, ModelError> {
        if weights.is_int8(name) {
            let tensor = weights.int8_tensor(name, &[rows, columns], rows)?;
            return Ok(Self::Int8(tensor));
        }
        Ok(Self::Floats(weights.matrix(name, rows, columns)?))
    }

    /// Adds a row to these sums, which are as many as the table has columns; `None` if the table has no such row.
    pub fn add_row(&self, index: usize, sums: &mut [f32]) -> Option<()> {
        let begin = index.checked_mul(sums.len())?;
        let range = begin..begin.checked_add(sums.len())?;
        match self {
            Self::Floats(numbers) => {
                let row = numbers.get(range)?;
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            Self::Int8(tensor) => {
                let (row, scale) = (tensor.numbers.get(range)?, tensor.scales.get(index)?);
                sums.iter_mut()
                    .zip(row)
                    .for_each(|(sum, byte)| *sum += f32::from(byte.cast_signed()) * scale);
            }
        }
        Some(())
    }
}
