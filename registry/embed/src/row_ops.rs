//! In-place operations on rows of numbers, between two matrix products.

use a2a_registry_simd::run_vectorized;

use super::bert_config::Activation;

/// Parallel sums, so that the compiler can use wide registers.
const SUM_LANES: usize = 16;

/// Adds a bias to each column, and applies the activation function.
pub(super) struct BiasActivation {
    pub numbers: Vec<f32>,
    pub activation: Option<Activation>,
}

impl BiasActivation {
    pub fn apply(&self, numbers: &mut [f32]) {
        run_vectorized(
            #[inline(always)]
            || {
                for row in numbers.chunks_exact_mut(self.numbers.len()) {
                    row.iter_mut().zip(&self.numbers).for_each(|(x, b)| *x += b);
                }
                match self.activation {
                    None => {}
                    Some(Activation::Gelu) => numbers.iter_mut().for_each(|x| *x = gelu(*x)),
                    Some(Activation::GeluByTanh) => {
                        numbers.iter_mut().for_each(|x| *x = gelu_by_tanh(*x));
                    }
                    Some(Activation::Relu) => numbers.iter_mut().for_each(|x| *x = x.max(0.0)),
                }
            },
        );
    }
}

/// Layer norm: normalizes each row to mean 0 and variance 1, then scales and shifts its columns.
pub(super) struct LayerNorm {
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
    pub epsilon: f32,
}

impl LayerNorm {
    pub fn apply(&self, numbers: &mut [f32]) {
        run_vectorized(
            #[inline(always)]
            || self.normalize_rows(numbers),
        );
    }

    /// Adds the input of a layer to its output, and normalizes the sums.
    pub fn add_and_apply(&self, numbers: &mut [f32], added: &[f32]) {
        numbers.iter_mut().zip(added).for_each(|(x, y)| *x += y);
        self.apply(numbers);
    }

    #[inline(always)]
    fn normalize_rows(&self, numbers: &mut [f32]) {
        let width = self.scale.len();
        for row in numbers.chunks_exact_mut(width) {
            let mean = sum_mapped(row, |x| x) / width as f32;
            let variance = sum_mapped(row, |x| (x - mean) * (x - mean)) / width as f32;
            let factor = (variance + self.epsilon).sqrt().recip();
            let columns = self.scale.iter().zip(&self.shift);
            for (x, (scale, shift)) in row.iter_mut().zip(columns) {
                *x = (*x - mean) * factor * scale + shift;
            }
        }
    }
}

/// Softmax of each row of `width` scores, which are multiplied by `factor` first.
pub(super) fn softmax(numbers: &mut [f32], width: usize, factor: f32) {
    for row in numbers.chunks_exact_mut(width.max(1)) {
        let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut total = 0.0;
        for x in row.iter_mut() {
            *x = ((*x - highest) * factor).exp();
            total += *x;
        }
        row.iter_mut().for_each(|x| *x /= total);
    }
}

#[inline(always)]
fn sum_mapped(row: &[f32], map: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; SUM_LANES];
    let (chunks, rest) = row.as_chunks::<SUM_LANES>();
    for numbers in chunks {
        for lane in 0..SUM_LANES {
            sums[lane] += map(numbers[lane]);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|x| map(*x)).sum::<f32>()
}

#[inline(always)]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

fn gelu_by_tanh(x: f32) -> f32 {
    let inner = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    0.5 * x * (1.0 + inner.tanh())
}

/// The error function to 1e-6: a rational approximation without branches, so the loop around it can be vectorized.
#[inline(always)]
fn erf(x: f32) -> f32 {
    const NUMERATOR: [f32; 7] = [
        -2.726_142_3e-10,
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ];
    const DENOMINATOR: [f32; 5] = [
        -1.456_607_2e-5,
        -2.133_740_6e-4,
        -1.682_827e-3,
        -7.373_329e-3,
        -1.426_474e-2,
    ];
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let above = NUMERATOR.iter().fold(0.0, |sum, term| sum * square + term);
    let below = DENOMINATOR
        .iter()
        .fold(0.0, |sum, term| sum * square + term);
    x * above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_near_the_true_one() {
        for step in -8000_i16..=8000 {
            let x = f32::from(step) / 1000.0;
            let off = (erf(x) - libm::erff(x)).abs();
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
