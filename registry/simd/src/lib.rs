//! Loops compiled for the processor at hand, without unsafe code of ours.

/// Runs a loop as the compiler makes it for 256-bit registers where the processor has them, else as for all.
///
/// The level is named and not left to `pulp`'s own choice: of the widest the loop would be a call to code that was
/// compiled for all processors, where the compiler declines to inline across the difference.
#[inline(always)]
pub fn widened<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = pulp::x86::V3::try_new() {
        return wide.vectorize(work);
    }
    work()
}
