//! Tables: with lines and fitted to the window on a terminal, plain columns elsewhere.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

use super::console::Console;
use super::failure::Failure;
use super::terminal;

/// The longest cell outside a terminal, in columns. Whoever needs more asks for `--json`.
const LONGEST_PLAIN_CELL: usize = 160;
/// The longest cell on a terminal, where it wraps.
const LONGEST_CELL: usize = 120;
/// Columns that are never wrapped.
const WHOLE: [&str; 2] = ["ID", "REVIEW"];

/// Writes a table. Cells may hold foreign text: they are made safe and shortened here.
///
/// # Errors
/// Where standard output takes no more.
pub fn print(console: &Console, header: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    let table = render(console.interactive, header, rows);
    console.write(format!("{table}\n").as_bytes())
}

/// Writes `name: value` lines, values aligned; rows without a value are left out.
///
/// # Errors
/// Where standard output takes no more.
pub fn facts(console: &Console, rows: &[(&str, String)]) -> Result<(), Failure> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let label = format!("{name}:");
        console.line(&format!("{label:<space$} {value}", space = width + 1))?;
    }
    Ok(())
}

fn render(interactive: bool, header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    let longest = if interactive {
        table
            .load_style(presets::UTF8_HORIZONTAL_ONLY)
            .set_content_arrangement(ContentArrangement::Dynamic);
        LONGEST_CELL
    } else {
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
        LONGEST_PLAIN_CELL
    };
    table.set_header(header.to_vec());
    for (index, name) in header.iter().enumerate() {
        // What is copied into another command must not be broken into two lines.
        let Some(column) = table.column_mut(index) else {
            continue;
        };
        if WHOLE.contains(name) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        if !interactive {
            column.set_padding((0, 2));
        }
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| terminal::short(cell, longest)));
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_tables_have_one_line_a_row_whatever_cells_hold() {
        let rows = vec![vec!["a\nb\u{1b}[0m".to_owned(), "x".repeat(500)]];
        let text = render(false, &["NAME", "ID"], &rows);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'));
        assert!(
            text.lines()
                .nth(1)
                .is_some_and(|row| row.starts_with("a\\nb\\u{1b}[0m  xxx")),
            "{text}"
        );
    }
}
