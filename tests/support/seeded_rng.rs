//! Random numbers that are the same in every run.

/// The generator `SplitMix64`, which gives the same sequence for the same seed on every machine.
pub struct SeededRng(pub u64);

impl SeededRng {
    /// A number below `sides`, which is at least 1.
    pub fn next_below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % sides as u64).unwrap()
    }
}
