//! Products with matrices of 8-bit integers, on the calling thread.
//!
//! A weight is an integer with the scale of its output, and each row that is multiplied is rounded to integers, with a
//! scale for every few inputs. Sums of products of integers are exact, and floating-point numbers are combined in one
//! order, so results are equal bit for bit on every processor, whichever instructions it has.
//!
//! The weights are read where they lie in the file, whose order is the one of the loops: blocks of a few outputs, in
//! these groups of inputs, and in a group output by output. Bytes are two's complement.

use a2a_registry_simd::run_vectorized;
use multiversion::multiversion;
use multiversion::target::match_target;

use super::row_ops::{ROUNDING, max_mapped};
use super::weights::Int8Tensor;

/// Outputs of a block; the outputs and inputs of a matrix are multiples of this.
pub(super) const BLOCK_OUTPUTS: usize = 32;
/// Inputs of a group: an instruction adds this many products.
pub(super) const GROUP_INPUTS: usize = 4;
const GROUP_BYTES: usize = BLOCK_OUTPUTS * GROUP_INPUTS;
/// Inputs of a row that share a scale. A sentence vector of all-MiniLM-L6-v2 has a cosine of 0.9988 to the one of
/// 32-bit weights and rows; with one scale for a whole row it is 0.9974, and with one for 64 inputs it is 0.9990 and
/// takes longer.
const SPAN_INPUTS: usize = 128;
/// The greatest integer of a row.
const GREATEST: f32 = 127.0;

// A sum over a span is exact as a 32-bit floating-point number, too.
const _: () = assert!(SPAN_INPUTS * 128 * 127 < 1 << f32::MANTISSA_DIGITS);

type BlockSums = [i32; BLOCK_OUTPUTS];

/// Matrices with the same inputs, side by side.
pub(super) struct Int8Matrix {
    inputs: usize,
    outputs: usize,
    parts: Vec<Int8Tensor>,
}

impl Int8Matrix {
    pub fn new(inputs: usize, parts: Vec<Int8Tensor>) -> Self {
        Self {
            inputs,
            outputs: parts.iter().map(|part| part.scales.len()).sum(),
            parts,
        }
    }

    /// The weights of the matrices, from left to right.
    #[cfg(test)]
    pub fn parts(&self) -> &[Int8Tensor] {
        &self.parts
    }

    /// The products of these rows with the matrix.
    pub fn multiply(&self, rows: &[f32]) -> Vec<f32> {
        self.multiply_with(rows, sum_products)
    }

    fn multiply_with(
        &self,
        rows: &[f32],
        sum_products: impl Fn(&[[u8; GROUP_BYTES]], &QuantizedRows, usize, &mut [BlockSums]),
    ) -> Vec<f32> {
        let rows = QuantizedRows::new(rows, self.inputs);
        let mut products = vec![0.0; rows.count * self.outputs];
        let mut sums = vec![[0; BLOCK_OUTPUTS]; rows.count];
        let mut first_output = 0;
        for part in &self.parts {
            let (scales, _) = part.scales.as_chunks::<BLOCK_OUTPUTS>();
            let blocks = part.numbers.chunks_exact(self.inputs * BLOCK_OUTPUTS);
            for (block, scales) in blocks.zip(scales) {
                let (groups, _) = block.as_chunks::<GROUP_BYTES>();
                let spans = groups.chunks(SPAN_INPUTS / GROUP_INPUTS);
                for (span, weights) in spans.enumerate() {
                    sum_products(weights, &rows, span, &mut sums);
                    let products = products.get_mut(first_output..).unwrap_or_default();
                    rows.add_scaled_sums(span, &sums, scales, (products, self.outputs));
                }
                first_output += BLOCK_OUTPUTS;
            }
        }
        products
    }
}

/// Rows of numbers, rounded to integers between -127 and 127.
struct QuantizedRows {
    inputs: usize,
    count: usize,
    spans: usize,
    /// The integers as bytes, row by row.
    numbers: Vec<u8>,
    /// The scale of each span, row by row.
    scales: Vec<f32>,
    /// The sum of each span's integers, row by row.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    totals: Vec<i32>,
}

impl QuantizedRows {
    fn new(rows: &[f32], inputs: usize) -> Self {
        let count = rows.len() / inputs;
        let spans = inputs.div_ceil(SPAN_INPUTS);
        let mut numbers = vec![0; count * inputs];
        let mut scales = Vec::with_capacity(count * spans);
        let mut totals = Vec::with_capacity(count * spans);
        let chunks = rows
            .chunks_exact(inputs)
            .flat_map(|row| row.chunks(SPAN_INPUTS));
        let targets = numbers
            .chunks_exact_mut(inputs)
            .flat_map(|row| row.chunks_mut(SPAN_INPUTS));
        for (chunk, target) in chunks.zip(targets) {
            let (scale, total) = run_vectorized(
                #[inline(always)]
                || quantize(chunk, target),
            );
            scales.push(scale);
            totals.push(total);
        }
        Self {
            inputs,
            count,
            spans,
            numbers,
            scales,
            totals,
        }
    }

    /// The groups of inputs of a span, for `ROWS` rows from the one called `first`.
    #[inline(always)]
    fn groups<const ROWS: usize>(
        &self,
        first: usize,
        span: usize,
        count: usize,
    ) -> [&[[u8; GROUP_INPUTS]]; ROWS] {
        std::array::from_fn(|row| {
            let begin = (first + row) * self.inputs + span * SPAN_INPUTS;
            let (groups, _) = self.numbers[begin..].as_chunks();
            &groups[..count]
        })
    }

    /// Multiplies the sums of a span with the scales of rows and outputs, and adds them to `products`.
    fn add_scaled_sums(
        &self,
        span: usize,
        sums: &[BlockSums],
        scales: &[f32; BLOCK_OUTPUTS],
        (products, stride): (&mut [f32], usize),
    ) {
        let row_scales = self.scales.iter().skip(span).step_by(self.spans);
        run_vectorized(
            #[inline(always)]
            || {
                let rows = products.chunks_mut(stride).zip(sums).zip(row_scales);
                for ((products, sums), row_scale) in rows {
                    let Some(products) = products.first_chunk_mut::<BLOCK_OUTPUTS>() else {
                        continue;
                    };
                    let columns = products.iter_mut().zip(sums).zip(scales);
                    for ((product, sum), scale) in columns {
                        *product += *sum as f32 * (row_scale * scale);
                    }
                }
            },
        );
    }
}

/// Rounds numbers to integers, and returns their scale and their sum.
#[inline(always)]
fn quantize(numbers: &[f32], integers: &mut [u8]) -> (f32, i32) {
    let greatest = max_mapped(numbers, f32::abs);
    let factor = GREATEST / greatest;
    // Numbers too small to be divided by are zeros.
    let factor = if factor.is_finite() { factor } else { 0.0 };
    let mut total = 0;
    for (integer, number) in integers.iter_mut().zip(numbers) {
        // The lowest byte of the bits is the integer.
        *integer = (number * factor + ROUNDING).to_bits() as u8;
        total += i32::from(integer.cast_signed());
    }
    (greatest / GREATEST, total)
}

/// Writes the sums of products of one span: for each row, those of the outputs of a block. `weights` are the groups of
/// this span.
#[multiversion(targets("x86_64+avx512vnni", "x86_64+avx2"), dispatcher = "direct")]
fn sum_products(
    weights: &[[u8; GROUP_BYTES]],
    rows: &QuantizedRows,
    span: usize,
    sums: &mut [BlockSums],
) {
    match_target! {
        "x86_64+avx512vnni" => x86::sum_by_vnni(weights, rows, span, sums),
        "x86_64+avx2" => x86::sum_by_avx2(weights, rows, span, sums),
        _ => sum_portably(weights, rows, span, sums),
    }
}

/// The same in plain Rust, from which the compiler makes vector instructions where it can.
fn sum_portably(
    weights: &[[u8; GROUP_BYTES]],
    rows: &QuantizedRows,
    span: usize,
    sums: &mut [BlockSums],
) {
    for (row, sums) in sums.iter_mut().enumerate() {
        let [inputs] = rows.groups(row, span, weights.len());
        *sums = [0; BLOCK_OUTPUTS];
        for (group, input) in weights.iter().zip(inputs) {
            let input = input.map(|byte| i16::from(byte.cast_signed()));
            let (group, _) = group.as_chunks::<GROUP_INPUTS>();
            for (sum, weights) in sums.iter_mut().zip(group) {
                let weights = weights.map(|byte| i16::from(byte.cast_signed()));
                // Two products fit into 16 bits.
                let low = weights[0] * input[0] + weights[1] * input[1];
                let high = weights[2] * input[2] + weights[3] * input[3];
                *sum += i32::from(low) + i32::from(high);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_set1_epi32, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_madd_epi16,
        _mm256_setzero_si256, _mm512_dpbusd_epi32, _mm512_set1_epi8, _mm512_set1_epi32,
        _mm512_setzero_si512, _mm512_sub_epi32, _mm512_xor_si512,
    };

    use pulp::cast;

    use super::{BlockSums, GROUP_BYTES, QuantizedRows};

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub fn sum_by_vnni(
        weights: &[[u8; GROUP_BYTES]],
        rows: &QuantizedRows,
        span: usize,
        sums: &mut [BlockSums],
    ) {
        let mut row = 0;
        while row < sums.len() {
            let (rest, place) = (&mut sums[row..], (row, span));
            row += match rest.len() {
                8.. => sum_rows_by_vnni::<8>(weights, rows, place, rest),
                4.. => sum_rows_by_vnni::<4>(weights, rows, place, rest),
                _ => sum_rows_by_vnni::<1>(weights, rows, place, rest),
            };
        }
    }

    /// Writes the sums of `ROWS` rows from `first` on, and returns their number.
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn sum_rows_by_vnni<const ROWS: usize>(
        weights: &[[u8; GROUP_BYTES]],
        rows: &QuantizedRows,
        (first, span): (usize, usize),
        sums: &mut [BlockSums],
    ) -> usize {
        // The instruction takes one factor without a sign: weights plus 128, which adds 128 times the row's total.
        let sign = _mm512_set1_epi8(i8::MIN);
        let inputs = rows.groups::<ROWS>(first, span, weights.len());
        let mut totals = [[_mm512_setzero_si512(); 2]; ROWS];
        for (position, group) in weights.iter().enumerate() {
            let (halves, _) = group.as_chunks::<64>();
            let low = _mm512_xor_si512(cast(halves[0]), sign);
            let high = _mm512_xor_si512(cast(halves[1]), sign);
            for (total, inputs) in totals.iter_mut().zip(&inputs) {
                let input = _mm512_set1_epi32(i32::from_le_bytes(inputs[position]));
                total[0] = _mm512_dpbusd_epi32(total[0], low, input);
                total[1] = _mm512_dpbusd_epi32(total[1], high, input);
            }
        }
        for (index, (total, sums)) in totals.iter().zip(sums).enumerate() {
            let added = rows.totals[(first + index) * rows.spans + span] * 128;
            let added = _mm512_set1_epi32(added);
            *sums = cast(total.map(|half| _mm512_sub_epi32(half, added)));
        }
        ROWS
    }

    #[target_feature(enable = "avx2")]
    pub fn sum_by_avx2(
        weights: &[[u8; GROUP_BYTES]],
        rows: &QuantizedRows,
        span: usize,
        sums: &mut [BlockSums],
    ) {
        let mut row = 0;
        while row < sums.len() {
            let (rest, place) = (&mut sums[row..], (row, span));
            row += match rest.len() {
                2.. => sum_rows_by_avx2::<2>(weights, rows, place, rest),
                _ => sum_rows_by_avx2::<1>(weights, rows, place, rest),
            };
        }
    }

    /// Writes the sums of `ROWS` rows from `first` on, and returns their number. There are registers for half of the
    /// outputs at a time.
    #[target_feature(enable = "avx2")]
    fn sum_rows_by_avx2<const ROWS: usize>(
        weights: &[[u8; GROUP_BYTES]],
        rows: &QuantizedRows,
        (first, span): (usize, usize),
        sums: &mut [BlockSums],
    ) -> usize {
        let inputs = rows.groups::<ROWS>(first, span, weights.len());
        for half in 0..2 {
            let mut totals = [[_mm256_setzero_si256(); 4]; ROWS];
            for (position, group) in weights.iter().enumerate() {
                let (quarters, _) = group.as_chunks::<64>();
                let (quarters, _) = quarters[half].as_chunks::<16>();
                let columns = [
                    _mm256_cvtepi8_epi16(cast(quarters[0])),
                    _mm256_cvtepi8_epi16(cast(quarters[1])),
                    _mm256_cvtepi8_epi16(cast(quarters[2])),
                    _mm256_cvtepi8_epi16(cast(quarters[3])),
                ];
                for (totals, inputs) in totals.iter_mut().zip(&inputs) {
                    let input = _mm_set1_epi32(i32::from_le_bytes(inputs[position]));
                    let input = _mm256_cvtepi8_epi16(input);
                    for (total, column) in totals.iter_mut().zip(columns) {
                        *total = _mm256_add_epi32(*total, _mm256_madd_epi16(column, input));
                    }
                }
            }
            for (totals, sums) in totals.iter().zip(sums.iter_mut()) {
                // Each sum is in two parts, side by side.
                let parts: [i32; 32] = cast(*totals);
                let (parts, _) = parts.as_chunks::<2>();
                for (sum, [low, high]) in sums[half * 16..].iter_mut().zip(parts) {
                    *sum = low + high;
                }
            }
        }
        ROWS
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    /// The widest instructions below those of 512 bits.
    #[multiversion(targets("x86_64+avx2"), dispatcher = "direct")]
    fn sum_without_vnni(
        weights: &[[u8; GROUP_BYTES]],
        rows: &QuantizedRows,
        span: usize,
        sums: &mut [BlockSums],
    ) {
        match_target! {
            "x86_64+avx2" => x86::sum_by_avx2(weights, rows, span, sums),
            _ => sum_portably(weights, rows, span, sums),
        }
    }

    /// A weight between -128 and 127 that looks random.
    fn weight(output: usize, input: usize) -> i8 {
        ((output * 131 + input * 71 + output * input * 13) % 256) as u8 as i8
    }

    fn scale(output: usize) -> f32 {
        0.001 + (output % 7) as f32 * 0.003
    }

    fn number(row: usize, input: usize) -> f32 {
        let number = ((row * 37 + input * 101 + row * input * 7) % 1009) as f32 / 504.5 - 1.0;
        // A few large numbers, as in real rows.
        if input % 97 == 5 {
            number * 20.0
        } else {
            number
        }
    }

    /// Outputs from `first` on, in the order of the file.
    fn tensor(inputs: usize, first: usize, outputs: usize) -> Int8Tensor {
        let mut numbers = Vec::new();
        for block in (first..first + outputs).step_by(BLOCK_OUTPUTS) {
            for group in (0..inputs).step_by(GROUP_INPUTS) {
                for output in block..block + BLOCK_OUTPUTS {
                    let inputs = group..group + GROUP_INPUTS;
                    numbers.extend(inputs.map(|input| weight(output, input) as u8));
                }
            }
        }
        Int8Tensor {
            numbers: Cow::Owned(numbers),
            scales: (first..first + outputs).map(scale).collect(),
        }
    }

    fn rows(inputs: usize, count: usize) -> Vec<f32> {
        (0..inputs * count)
            .map(|place| number(place / inputs, place % inputs))
            .collect()
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        for inputs in [32, 64, 128, 160, 384] {
            let matrix = Int8Matrix::new(inputs, vec![tensor(inputs, 0, 96)]);
            for count in [0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 21] {
                let rows = rows(inputs, count);
                let plain = matrix.multiply_with(&rows, sum_portably);
                assert_eq!(plain.len(), count * 96);
                let same = |products: Vec<f32>| {
                    let pairs = plain.iter().zip(&products);
                    products.len() == plain.len()
                        && pairs.into_iter().all(|(a, b)| a.to_bits() == b.to_bits())
                };
                assert!(same(matrix.multiply(&rows)), "{inputs} {count}");
                let narrow = matrix.multiply_with(&rows, sum_without_vnni);
                assert!(same(narrow), "{inputs} {count}");
            }
        }
    }

    #[test]
    fn products_are_near_those_of_the_numbers_before_rounding() {
        let (inputs, count) = (384, 9);
        let parts = vec![tensor(inputs, 0, 64), tensor(inputs, 64, 32)];
        let matrix = Int8Matrix::new(inputs, parts);
        let rows = rows(inputs, count);
        let products = matrix.multiply(&rows);
        for (place, product) in products.iter().enumerate() {
            let (row, output) = (place / 96, place % 96);
            let exact: f64 = (0..inputs)
                .map(|input| {
                    let number = f64::from(rows[row * inputs + input]);
                    number * f64::from(weight(output, input)) * f64::from(scale(output))
                })
                .sum();
            // Rounding is off by half an integer at most, usually in both directions.
            let bound = f64::from(scale(output)) * 20.0 / 127.0 * 148.0 * 384_f64.sqrt();
            assert!((f64::from(*product) - exact).abs() < bound, "{place}");
        }
    }

    #[test]
    fn the_extremes_neither_saturate_nor_overflow() {
        let inputs = 128;
        for weight in [i8::MIN, i8::MAX] {
            let matrix = Int8Matrix::new(
                inputs,
                vec![Int8Tensor {
                    numbers: Cow::Owned(vec![weight as u8; inputs * BLOCK_OUTPUTS]),
                    scales: vec![1.0; BLOCK_OUTPUTS],
                }],
            );
            for number in [127.0, -127.0] {
                let expected = f32::from(weight) * number * inputs as f32;
                for sum in [sum_products, sum_without_vnni, sum_portably] {
                    let products = matrix.multiply_with(&vec![number; inputs], sum);
                    assert_eq!(products, vec![expected; BLOCK_OUTPUTS]);
                }
            }
        }
    }

    #[test]
    fn rows_of_zeros_and_of_tiny_numbers_give_zeros() {
        let matrix = Int8Matrix::new(32, vec![tensor(32, 0, 32)]);
        for number in [0.0, f32::MIN_POSITIVE / 4.0] {
            let products = matrix.multiply(&[number; 32]);
            assert_eq!(products, [0.0; 32]);
        }
        let infinite = matrix.multiply(&[f32::INFINITY; 32]);
        assert!(infinite.iter().any(|product| !product.is_finite()));
    }

    #[test]
    fn a_row_cannot_tell_which_others_are_multiplied() {
        let inputs = 160;
        let matrix = Int8Matrix::new(inputs, vec![tensor(inputs, 0, 64)]);
        let rows = rows(inputs, 23);
        let alone: Vec<f32> = rows
            .chunks(inputs)
            .flat_map(|row| matrix.multiply(row))
            .collect();
        assert_eq!(matrix.multiply(&rows), alone);
    }
}
