//! One-bit codes: the sign of each number, kept in memory and compared by Hamming distance.

use super::quantized::AgentVectors;

/// Maximum number of codes of an agent: the whole card's, and those of the most different parts.
pub const MAX_CODES: usize = 4;

/// Number of `u64` words of a code.
pub(super) fn u64s_per_code(dimensions: usize) -> usize {
    dimensions.div_ceil(u64::BITS as usize)
}

pub(super) fn query_vector_code(query: &[f32]) -> Vec<u64> {
    pack_sign_bits(query.iter().map(|value| *value < 0.0))
}

/// The codes of an agent, one after another: the whole card's first, then repeatedly that of the part furthest from
/// all chosen ones, up to [`MAX_CODES`].
pub(super) fn agent_vector_codes(vectors: &AgentVectors) -> Vec<u64> {
    let negative = |number: &u8| number.cast_signed() < 0;
    let mut remaining: Vec<Vec<u64>> = vectors
        .quantized_numbers()
        .map(|numbers| pack_sign_bits(numbers.iter().map(negative)))
        .collect();
    let mut chosen: Vec<Vec<u64>> = vec![remaining.remove(0)];
    while chosen.len() < MAX_CODES {
        let nearest = |code: &Vec<u64>| {
            chosen
                .iter()
                .map(|taken| hamming_distance(code, taken))
                .min()
        };
        let furthest = (0..remaining.len())
            .max_by_key(|place| (nearest(&remaining[*place]), std::cmp::Reverse(*place)));
        let Some(furthest) = furthest else { break };
        chosen.push(remaining.remove(furthest));
    }
    chosen.concat()
}

#[inline(always)]
pub(super) fn hamming_distance(left: &[u64], right: &[u64]) -> u32 {
    left.iter()
        .zip(right)
        .map(|(left, right)| (left ^ right).count_ones())
        .sum()
}

fn pack_sign_bits(negative: impl Iterator<Item = bool>) -> Vec<u64> {
    let mut words = Vec::new();
    for (index, negative) in negative.enumerate() {
        if index % u64::BITS as usize == 0 {
            words.push(0);
        }
        if let Some(word) = words.last_mut() {
            *word |= u64::from(negative) << (index % u64::BITS as usize);
        }
    }
    words
}
