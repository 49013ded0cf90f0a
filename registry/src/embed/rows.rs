//! Arithmetic on rows of numbers in place: what lies between two products of matrices.
//!
//! candle has all of it ready made, and gives whatever is longer than 65,536 numbers to threads of its own, one for each
//! core but one, that wait in a busy loop, serve one caller at a time and never end. Here it stays on the thread that
//! asked for it.

use candle_core::{CpuStorage, Error, InplaceOp1, InplaceOp2, Layout, Result};

use super::config::Activation;

/// Adds one number to each column, and bends the sums.
pub(super) struct Bias {
    /// A number for each column.
    pub numbers: Vec<f32>,
    /// What bends the sums, if anything.
    pub activation: Option<Activation>,
}

impl InplaceOp1 for Bias {
    fn name(&self) -> &'static str {
        "bias"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let numbers = numbers_mut(storage, layout)?;
        for row in numbers.chunks_exact_mut(self.numbers.len()) {
            row.iter_mut().zip(&self.numbers).for_each(|(x, b)| *x += b);
        }
        match self.activation {
            None => {}
            Some(Activation::Gelu) => numbers.iter_mut().for_each(|x| *x = gelu(*x)),
            Some(Activation::GeluByTanh) => numbers.iter_mut().for_each(|x| *x = gelu_by_tanh(*x)),
            Some(Activation::Relu) => numbers.iter_mut().for_each(|x| *x = x.max(0.0)),
        }
        Ok(())
    }
}

/// Moves each row to a mean of 0 and a variance of 1, and then stretches and shifts its columns.
pub(super) struct Norm {
    /// By how much each column is stretched.
    pub scale: Vec<f32>,
    /// By how much each column is shifted.
    pub shift: Vec<f32>,
    /// Added to the variance.
    pub epsilon: f32,
}

impl Norm {
    /// Norms rows.
    pub fn apply(&self, numbers: &mut [f32]) {
        let width = self.scale.len();
        for row in numbers.chunks_exact_mut(width) {
            let mean = row.iter().sum::<f32>() / width as f32;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / width as f32;
            let factor = (variance + self.epsilon).sqrt().recip();
            let columns = self.scale.iter().zip(&self.shift);
            for (x, (scale, shift)) in row.iter_mut().zip(columns) {
                *x = (*x - mean) * factor * scale + shift;
            }
        }
    }
}

/// Adds what went into a layer to what came out of it, and norms the sum.
impl InplaceOp2 for Norm {
    fn name(&self) -> &'static str {
        "add-and-norm"
    }

    fn cpu_fwd(
        &self,
        storage: &mut CpuStorage,
        layout: &Layout,
        added: &CpuStorage,
        added_layout: &Layout,
    ) -> Result<()> {
        let added = match (added, added_layout.contiguous_offsets()) {
            (CpuStorage::F32(all), Some((begin, end))) => &all[begin..end],
            _ => return Err(unexpected()),
        };
        let numbers = numbers_mut(storage, layout)?;
        numbers.iter_mut().zip(added).for_each(|(x, y)| *x += y);
        self.apply(numbers);
        Ok(())
    }
}

/// Turns each row of scores into shares of one.
pub(super) struct Shares {
    /// What the scores are multiplied with before.
    pub factor: f32,
}

impl InplaceOp1 for Shares {
    fn name(&self) -> &'static str {
        "shares"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let width = layout.dims().last().copied().unwrap_or_default();
        for row in numbers_mut(storage, layout)?.chunks_exact_mut(width.max(1)) {
            let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut total = 0.0;
            for x in row.iter_mut() {
                *x = ((*x - highest) * self.factor).exp();
                total += *x;
            }
            row.iter_mut().for_each(|x| *x /= total);
        }
        Ok(())
    }
}

fn numbers_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(all), Some((begin, end))) => Ok(&mut all[begin..end]),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> Error {
    Error::Msg("numbers of 32 bits in one piece were expected".to_owned())
}

fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

fn gelu_by_tanh(x: f32) -> f32 {
    let inner = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    0.5 * x * (1.0 + inner.tanh())
}

/// The error function, at most 1e-6 off: a quotient of polynomials in the place of branches, so that the compiler turns
/// the loop around it into vector instructions.
fn erf(x: f32) -> f32 {
    const ABOVE: [f32; 7] = [
        -2.726_142_3e-10,
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ];
    const BELOW: [f32; 5] = [
        -1.456_607_2e-5,
        -2.133_740_6e-4,
        -1.682_827e-3,
        -7.373_329e-3,
        -1.426_474e-2,
    ];
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let above = ABOVE.iter().fold(0.0, |sum, term| sum * square + term);
    let below = BELOW.iter().fold(0.0, |sum, term| sum * square + term);
    x * above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_near_the_true_one() {
        for step in -8000_i16..=8000 {
            let x = f32::from(step) / 1000.0;
            let off = (erf(x) - candle_core::cpu::erf::erf_f32(x)).abs();
            assert!(off < 1e-6, "{x}: {off}");
        }
        assert!(erf(f32::NAN).is_nan());
    }

    #[test]
    fn the_bends_have_their_known_values() {
        for (x, exact, by_tanh) in [
            (-1.0, -0.158_655, -0.158_808),
            (0.0, 0.0, 0.0),
            (0.5, 0.345_731, 0.345_714),
            (2.0, 1.954_5, 1.954_598),
        ] {
            assert!((gelu(x) - exact).abs() < 1e-5, "{x}");
            assert!((gelu_by_tanh(x) - by_tanh).abs() < 1e-5, "{x}");
        }
    }
}
