//! Matrix products on the calling thread.
//!
//! A matrix is stored in the order in which the loop reads it, in panels of a few columns, so a product reads it once
//! from beginning to end. Each sum is computed in the order of the inputs regardless of other rows, so a row's result
//! does not depend on them.

use pulp::{Arch, Simd, WithSimd};

/// Adjacent SIMD registers that hold the sums of one row.
const REGISTERS_PER_ROW: usize = 3;

pub(super) struct Matrix {
    inputs: usize,
    outputs: usize,
    /// Columns of a panel; the last panel is padded with zeros.
    panel_width: usize,
    /// The numbers, panel by panel, and within a panel input by input.
    panels: Vec<f32>,
    arch: Arch,
    is_portable: bool,
}

/// Rows of a larger table: its numbers from the first row on, and the distance between rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct StridedRows<T> {
    pub numbers: T,
    pub stride: usize,
}

impl Matrix {
    pub fn new(inputs: usize, outputs: usize, number: impl Fn(usize, usize) -> f32) -> Self {
        Self::for_arch(Arch::new(), inputs, outputs, number)
    }

    /// Creates a matrix whose products are equal bit for bit on every processor: one that cannot add a product without
    /// rounding it first does so in software, which is slow.
    pub fn new_portable(
        inputs: usize,
        outputs: usize,
        number: impl Fn(usize, usize) -> f32,
    ) -> Self {
        Self {
            is_portable: true,
            ..Self::new(inputs, outputs, number)
        }
    }

    /// Creates a matrix for a SIMD level, which this processor must support.
    fn for_arch(
        arch: Arch,
        inputs: usize,
        outputs: usize,
        number: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let panel_width = REGISTERS_PER_ROW * arch.dispatch(RegisterWidth);
        let mut panels = Vec::with_capacity(outputs.div_ceil(panel_width) * inputs * panel_width);
        for first in (0..outputs).step_by(panel_width) {
            for input in 0..inputs {
                let columns = (first..first + panel_width).map(|output| match output < outputs {
                    true => number(input, output),
                    false => 0.0,
                });
                panels.extend(columns);
            }
        }
        Self {
            inputs,
            outputs,
            panel_width,
            panels,
            arch,
            is_portable: false,
        }
    }

    /// Writes the products of `count` rows with this matrix to `products`.
    pub fn multiply(
        &self,
        rows: StridedRows<&[f32]>,
        count: usize,
        products: StridedRows<&mut [f32]>,
    ) {
        self.arch.dispatch(MatrixMultiplication {
            matrix: self,
            rows,
            count,
            products,
        });
    }
}

/// Determines how many numbers a register holds.
struct RegisterWidth;

impl WithSimd for RegisterWidth {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}

struct MatrixMultiplication<'a> {
    matrix: &'a Matrix,
    rows: StridedRows<&'a [f32]>,
    count: usize,
    products: StridedRows<&'a mut [f32]>,
}

impl WithSimd for MatrixMultiplication<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            matrix,
            rows,
            count,
            products: StridedRows { numbers, stride },
        } = self;
        let size = (matrix.inputs * matrix.panel_width).max(1);
        let firsts = (0..matrix.outputs).step_by(matrix.panel_width);
        for (first, panel) in firsts.zip(matrix.panels.chunks_exact(size)) {
            let columns = matrix.panel_width.min(matrix.outputs - first);
            let mut row = 0;
            while row < count {
                let input = &rows.numbers[row * rows.stride..];
                let output = &mut numbers[row * stride + first..];
                let (input, output) = ((input, rows.stride), (output, stride));
                let portable = matrix.is_portable;
                // Multiply as many rows at once as there are registers for their sums.
                row += match count - row {
                    8.. if S::REGISTER_COUNT >= 32 => multiply_rows_with_panel::<S, 8>(
                        simd,
                        (panel, portable),
                        input,
                        output,
                        columns,
                    ),
                    4.. => multiply_rows_with_panel::<S, 4>(
                        simd,
                        (panel, portable),
                        input,
                        output,
                        columns,
                    ),
                    _ => multiply_rows_with_panel::<S, 1>(
                        simd,
                        (panel, portable),
                        input,
                        output,
                        columns,
                    ),
                };
            }
        }
    }
}

/// Multiplies `ROWS` rows with a panel, and returns their number. Where the processor has an instruction for it, both
/// ways to add a product are this one.
#[inline(always)]
fn multiply_rows_with_panel<S: Simd, const ROWS: usize>(
    simd: S,
    (panel, is_portable): (&[f32], bool),
    (rows, row_stride): (&[f32], usize),
    (products, product_stride): (&mut [f32], usize),
    columns: usize,
) -> usize {
    let (registers, _) = S::as_simd_f32s(panel);
    let (inputs, _) = registers.as_chunks::<REGISTERS_PER_ROW>();
    let rows: [&[f32]; ROWS] = std::array::from_fn(|row| &rows[row * row_stride..][..inputs.len()]);
    let mut sums = [[simd.splat_f32s(0.0); REGISTERS_PER_ROW]; ROWS];
    for (position, input) in inputs.iter().enumerate() {
        for row in 0..ROWS {
            let number = simd.splat_f32s(rows[row][position]);
            for register in 0..REGISTERS_PER_ROW {
                let sum = sums[row][register];
                sums[row][register] = match is_portable {
                    true => simd.mul_add_f32s(number, input[register], sum),
                    false => simd.mul_add_e_f32s(number, input[register], sum),
                };
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let products = &mut products[row * product_stride..][..columns];
        for (products, sums) in products.chunks_mut(S::F32_LANES).zip(sums) {
            simd.partial_store_f32s(products, *sums);
        }
    }
    ROWS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pseudo-random number between -1 and 1.
    fn number(row: usize, column: usize) -> f32 {
        ((row * 31 + column * 17 + row * column) % 97) as f32 / 48.0 - 1.0
    }

    /// The SIMD levels that this processor supports.
    fn levels() -> Vec<Arch> {
        let mut levels = vec![Arch::Scalar, Arch::new()];
        #[cfg(target_arch = "x86_64")]
        levels.extend(pulp::x86::V3::try_new().map(Arch::V3));
        levels
    }

    fn check(level: Arch, inputs: usize, outputs: usize) {
        let matrix = Matrix::for_arch(level, inputs, outputs, number);
        for count in [0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 21] {
            let (stride, wide) = (inputs + 3, outputs + 2);
            let rows: Vec<f32> = (0..(count + 1) * stride)
                .map(|place| number(place / stride, place % stride))
                .collect();
            let mut products = vec![7.0; (count + 1) * wide];
            let read = StridedRows {
                numbers: rows.as_slice(),
                stride,
            };
            let written = StridedRows {
                numbers: products.as_mut_slice(),
                stride: wide,
            };
            matrix.multiply(read, count, written);
            for (place, product) in products.iter().enumerate() {
                let (row, output) = (place / wide, place % wide);
                let sum = match row < count && output < outputs {
                    true => (0..inputs)
                        .map(|input| rows[row * stride + input] * number(input, output))
                        .sum(),
                    false => 7.0,
                };
                assert!((product - sum).abs() < 1e-4, "{inputs}x{outputs} {place}");
            }
        }
    }

    #[test]
    fn products_are_those_of_the_plain_sums_and_nothing_else_is_written() {
        for level in levels() {
            for (inputs, outputs) in [(1, 1), (5, 47), (32, 48), (33, 49), (64, 100), (7, 193)] {
                check(level, inputs, outputs);
            }
        }
    }

    #[test]
    fn portable_products_are_the_same_bits_at_every_level() {
        let (inputs, outputs, count) = (33, 49, 13);
        let rows: Vec<f32> = (0..count * inputs).map(|place| number(place, 5)).collect();
        let mut expected: Option<Vec<u32>> = None;
        for level in levels() {
            let matrix = Matrix {
                is_portable: true,
                ..Matrix::for_arch(level, inputs, outputs, |input, output| {
                    number(input, output) / 3.0
                })
            };
            let mut products = vec![0.0; count * outputs];
            let written = StridedRows {
                numbers: products.as_mut_slice(),
                stride: outputs,
            };
            let read = StridedRows {
                numbers: rows.as_slice(),
                stride: inputs,
            };
            matrix.multiply(read, count, written);
            let bits: Vec<u32> = products.iter().map(|product| product.to_bits()).collect();
            assert_eq!(*expected.get_or_insert_with(|| bits.clone()), bits);
        }
    }

    #[test]
    fn a_row_cannot_tell_which_others_are_multiplied() {
        let (inputs, outputs, count) = (77, 60, 23);
        let matrix = Matrix::new(inputs, outputs, number);
        let rows: Vec<f32> = (0..count * inputs).map(|place| number(place, 3)).collect();
        let products = |rows: &[f32]| {
            let count = rows.len() / inputs;
            let mut products = vec![0.0; count * outputs];
            let written = StridedRows {
                numbers: products.as_mut_slice(),
                stride: outputs,
            };
            let read = StridedRows {
                numbers: rows,
                stride: inputs,
            };
            matrix.multiply(read, count, written);
            products
        };
        let all = products(&rows);
        let alone: Vec<f32> = rows.chunks(inputs).flat_map(products).collect();
        assert_eq!(all, alone);
    }
}
