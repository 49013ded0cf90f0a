//! Loops compiled for the processor at hand, without unsafe code of ours.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// Runs a loop vectorised for 256-bit registers if the processor has them, else for any processor.
///
/// The level is chosen here and not by `pulp`: for the widest level the loop would call code that was compiled for
/// any processor, which the compiler does not inline.
#[inline(always)]
pub fn run_vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = pulp::x86::V3::try_new() {
        return wide.vectorize(work);
    }
    work()
}
