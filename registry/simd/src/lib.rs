//! Loops compiled for the SIMD level of this processor, without `unsafe` code in this workspace.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// Runs a loop vectorized for 256-bit registers if the processor has them, otherwise for any processor.
///
/// This function chooses the level instead of `pulp`: at the widest level the loop would call code compiled for the
/// baseline processor, which the compiler does not inline.
#[inline(always)]
pub fn run_vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = pulp::x86::V3::try_new() {
        return wide.vectorize(work);
    }
    work()
}
