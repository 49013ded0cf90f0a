//! Markdown tables, ready for the documentation.

use std::sync::LazyLock;
use std::time::Instant;

/// When the first step was told.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Tells a step of the bench on standard error, which the tables are not on, with the seconds since the first one.
pub fn tell(step: &str) {
    eprintln!("living, {:.0} s: {step}", BEGAN.elapsed().as_secs_f64());
}

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Anything.
    None,
}

impl Target {
    /// The target and whether the figure meets it, as two cells.
    pub fn cells(self, figure: f64) -> [String; 2] {
        let (bound, met) = match self {
            Self::AtMost(most) => (format!("≤ {}", format_number(most)), figure <= most),
            Self::AtLeast(least) => (format!("≥ {}", format_number(least)), figure >= least),
            Self::None => return [String::new(), String::new()],
        };
        let word = if met { "yes" } else { "**no**" };
        [bound, word.to_owned()]
    }
}

/// A row: what was measured, the figure and its target.
pub fn figure_row(what: &str, figure: f64, unit: &str, target: Target) -> Vec<String> {
    let [bound, met] = target.cells(figure);
    let figure = format!("{} {unit}", format_number(figure))
        .trim_end()
        .to_owned();
    vec![what.to_owned(), figure, bound, met]
}

/// Prints rows made by [`figure_row`].
pub fn print_rows(title: &str, rows: &[Vec<String>]) {
    print(title, &["what", "figure", "target", "met"], rows);
}

/// Prints a table under its title.
pub fn print(title: &str, columns: &[&str], rows: &[Vec<String>]) {
    println!("\n{title}\n\n| {} |", columns.join(" | "));
    println!("|{}", "---|".repeat(columns.len()));
    for cells in rows {
        println!("| {} |", cells.join(" | "));
    }
}

/// A number with two or three significant digits, and its digits in groups of three.
pub fn format_number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    match value.abs() {
        size if size < 1.0 && size > 0.0 => format!("{value:.2}"),
        size if size < 100.0 => {
            let text = format!("{value:.1}");
            text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
        }
        _ => grouped(value),
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..].chunks(3);
    let groups = groups.map(|group| String::from_utf8_lossy(group).into_owned());
    let head = Some(digits[..first].to_owned()).filter(|head| !head.is_empty());
    head.into_iter().chain(groups).collect::<Vec<_>>().join(" ")
}
