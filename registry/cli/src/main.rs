//! The program `a2a-registry`: a registry of A2A agent cards, its client and its tools.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(not(target_env = "msvc"))]
use tikv_jemallocator::Jemalloc;

/// Searching and rendering ask for much small memory for a short time, on several threads at once, and an idle registry
/// is to be as small after a load as before it.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    // Where the system hands out huge pages unasked, an idle registry would hold twice the memory.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    // First of all, so that nothing can have chosen another implementation of TLS. An error says only
    // that one was installed already, which cannot be at this point.
    let _ = rustls::crypto::ring::default_provider().install_default();
    a2a_registry::run(std::env::args_os())
}
