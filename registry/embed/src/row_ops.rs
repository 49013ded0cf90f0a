//! In-place operations on rows of numbers, between two matrix products.
//!
//! Results are equal bit for bit on every processor: sums have one order, and nothing is taken from the system's
//! library of mathematics, whose functions differ.

use a2a_registry_simd::run_vectorized;

use super::bert_config::Activation;

/// Parallel sums, so that the compiler can use wide registers.
const SUM_LANES: usize = 16;

/// Added to a number between -2^22 and 2^22, this rounds it to an integer, which the lowest bits of the sum contain.
pub(super) const ROUNDING: f32 = 12_582_912.0;

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
    run_vectorized(
        #[inline(always)]
        || {
            for row in numbers.chunks_exact_mut(width.max(1)) {
                softmax_row(row, factor);
            }
        },
    );
}

#[inline(always)]
fn softmax_row(row: &mut [f32], factor: f32) {
    let highest = max_mapped(row, |x| x);
    for x in row.iter_mut() {
        *x = exp((*x - highest) * factor);
    }
    let total = sum_mapped(row, |x| x);
    row.iter_mut().for_each(|x| *x /= total);
}

/// The greatest mapped number of a row.
#[inline(always)]
pub(super) fn max_mapped(row: &[f32], map: impl Fn(f32) -> f32) -> f32 {
    let mut most = [f32::NEG_INFINITY; SUM_LANES];
    let (chunks, rest) = row.as_chunks::<SUM_LANES>();
    for numbers in chunks {
        for lane in 0..SUM_LANES {
            most[lane] = most[lane].max(map(numbers[lane]));
        }
    }
    let rest = rest.iter().map(|x| map(*x));
    most.into_iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, f32::max)
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

#[inline(always)]
fn gelu_by_tanh(x: f32) -> f32 {
    let inner = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    // The same as 0.5 * x * (1 + tanh(inner)).
    x - x / (exp(2.0 * inner) + 1.0)
}

/// The exponential function to 2e-7 of its value, for numbers between -87 and 88; the nearest of these for others.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // The logarithm of two in two parts, of which the first has few bits, so that its multiples are exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    const TERMS: [f32; 6] = [
        1.987_569_1e-4,
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        0.166_666_65,
        0.5,
    ];
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
    let power = shifted - ROUNDING;
    let rest = x - power * LN_2[0] - power * LN_2[1];
    let tail = TERMS.iter().fold(0.0, |sum, term| sum * rest + term);
    let fraction = tail * rest * rest + rest + 1.0;
    // The integer in the lowest bits becomes the exponent of a power of two.
    fraction * f32::from_bits((shifted.to_bits() << 23).wrapping_add(1_f32.to_bits()))
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
    fn the_exponential_function_is_near_the_true_one() {
        for step in -87_000..=88_000 {
            let x = step as f32 / 1000.0;
            let exact = libm::exp(f64::from(x));
            let off = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(off < 2e-7, "{x}: {off}");
        }
        assert_eq!(exp(f32::NEG_INFINITY), exp(-87.0));
        assert!(exp(f32::NAN).is_nan());
    }

    /// Operations compiled for wide registers and for the narrowest processor.
    #[test]
    fn results_are_the_same_bits_at_every_level() {
        let numbers: Vec<f32> = (0..384 * 5)
            .map(|place| ((place * 7919) % 2003) as f32 / 250.0 - 4.0)
            .collect();
        let bits = |numbers: &[f32]| -> Vec<u32> { numbers.iter().map(|x| x.to_bits()).collect() };
        let check = |wide: &dyn Fn(&mut [f32]), narrow: &dyn Fn(&mut [f32])| {
            let (mut one, mut other) = (numbers.clone(), numbers.clone());
            wide(&mut one);
            narrow(&mut other);
            assert_eq!(bits(&one), bits(&other));
        };
        let norm = LayerNorm {
            scale: (0..384).map(|column| column as f32 / 97.0).collect(),
            shift: (0..384).map(|column| 1.0 - column as f32 / 71.0).collect(),
            epsilon: 1e-12,
        };
        check(&|numbers| norm.apply(numbers), &|numbers| {
            norm.normalize_rows(numbers)
        });
        for width in [1, 5, 16, 384] {
            check(&|numbers| softmax(numbers, width, 0.3), &|numbers| {
                numbers
                    .chunks_exact_mut(width)
                    .for_each(|row| softmax_row(row, 0.3));
            });
        }
        for activation in [Activation::Gelu, Activation::GeluByTanh] {
            let bend = match activation {
                Activation::GeluByTanh => gelu_by_tanh,
                _ => gelu,
            };
            let layer = BiasActivation {
                numbers: vec![0.25; 384],
                activation: Some(activation),
            };
            check(&|numbers| layer.apply(numbers), &|numbers| {
                numbers.iter_mut().for_each(|x| *x = bend(*x + 0.25));
            });
        }
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
