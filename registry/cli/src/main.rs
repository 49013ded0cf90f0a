//! The program `a2a-registry`: a registry of A2A agent cards, its client and its tools.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(not(target_env = "msvc"))]
use tikv_jemallocator::Jemalloc;

/// Allocator for searching and rendering, which make many small, short-lived allocations on several threads at once.
/// It also returns memory, so that an idle registry is as small after a load as before it.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    // With transparent huge pages, an idle registry would use twice the memory.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    // Runs first, so that no other TLS implementation can have been chosen. An error only means that one was installed
    // already, which is impossible here.
    let _ = rustls::crypto::ring::default_provider().install_default();
    a2a_registry::run_command_line(std::env::args_os())
}
