//! The program `a2a-registry`: a registry of A2A agent cards, its client and its tools.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Searching and rendering ask for much small memory for a short time, on several threads at once.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // First of all, so that nothing can have chosen another implementation of TLS. An error says only
    // that one was installed already, which cannot be at this point.
    let _ = rustls::crypto::ring::default_provider().install_default();
    a2a_registry::cli::run(std::env::args_os())
}
