//! The priority of the threads that encode cards.

/// The lowest priority of a thread.
#[cfg(target_os = "linux")]
const LOWEST_PRIORITY: i32 = 19;

/// Gives the calling thread the lowest priority, so that searches and requests get the processor first.
///
/// Linux has a priority for each thread. Elsewhere the call would slow the whole process down, so nothing is changed
/// there.
#[cfg(target_os = "linux")]
pub(super) fn lower_thread_priority() {
    // A sandbox may forbid the call; then cards are encoded with the priority of everything else.
    let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn lower_thread_priority() {}
