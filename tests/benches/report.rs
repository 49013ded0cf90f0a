//! Support for the benches: output, processor time, and sizes from the environment.

use std::io;
use std::time::Duration;

use tikv_jemallocator::Jemalloc;

/// The program's own allocator, because the benches measure the program.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// A size from the environment, such as `BENCH_AGENTS=1000`, or the default.
///
/// # Panics
///
/// When the variable is not a number.
pub fn size_from_env(variable: &str, default: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
        Err(_) => default,
    }
}

/// The median of these figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints the title and the column headers of a table.
pub fn print_header(title: &str, unit: &str) {
    println!("\n{title} ({unit})");
    println!(
        "{:<44} {:>11} {:>11} {:>7} {:>7}",
        "", "registry", "bare", "ratio", "target"
    );
}

/// Prints a row with both sides and their ratio. `ratio` is the median over the pairs and need not be the ratio of the
/// medians; a missed target is marked.
pub fn print_comparison(what: &str, ours: f64, bare: f64, ratio: f64, target: Option<f64>) {
    let wanted = target.map_or_else(String::new, |target| format!("{target:.2}"));
    let mark = match target {
        Some(target) if ratio < target => " missed",
        _ => "",
    };
    println!(
        "{what:<44} {:>11} {:>11} {ratio:>7.3} {wanted:>7}{mark}",
        shown(ours),
        shown(bare)
    );
}

/// Prints a figure without a comparison.
pub fn print_figure(what: &str, value: impl std::fmt::Display) {
    println!("{what:<44} {value:>11}");
}

/// A number rounded to its significant places.
fn shown(value: f64) -> String {
    match value {
        value if value >= 1_000.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

/// Processor time used by this process, summed over all threads.
pub fn cpu_of_process() -> io::Result<Duration> {
    cpu_of(std::process::id())
}

/// Processor time used by a process, summed over all threads.
pub fn cpu_of(process: u32) -> io::Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is the program's name in parentheses, which may contain any character.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    // Linux counts in hundredths of a second here, whatever the kernel's own clock is.
    Ok(Duration::from_millis(ticks * 10))
}

/// Processor time used by the calling thread.
pub fn cpu_of_thread() -> io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text
        .split_ascii_whitespace()
        .next()
        .and_then(|field| field.parse().ok());
    Ok(Duration::from_nanos(nanos.unwrap_or_default()))
}
