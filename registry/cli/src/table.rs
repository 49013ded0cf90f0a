//! Tables: with lines and fitted to the window on a terminal, plain columns elsewhere.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use unicode_width::UnicodeWidthStr;

use super::command_error::CommandError;
use super::console::Console;
use super::terminal;

/// Maximum columns of a cell on a terminal, where it wraps. Elsewhere nothing is cut.
const MAX_CELL_COLUMNS: usize = 120;
/// Columns that are never wrapped: names, and texts that are copied into other commands.
const UNWRAPPED_COLUMNS: [&str; 9] = [
    "ID", "REVIEW", "NAME", "AGENT", "DOMAIN", "ACCOUNT", "STATE", "RULE", "DIGEST",
];
/// Minimum width of a column that wraps; below it, rows are printed as fields.
const MIN_WRAPPED_WIDTH: usize = 12;
/// Space between two columns on a terminal.
const COLUMN_GAP: usize = 2;

/// Prints a table. Cells may contain foreign text: they are escaped and shortened here.
pub fn print_table(
    console: &Console,
    header: &[&str],
    rows: &[Vec<String>],
) -> Result<(), CommandError> {
    let columns = console.terminal_width();
    if console.interactive
        && columns.is_some_and(|columns| !table_fits_window(columns, header, rows))
    {
        return print_rows_as_fields(console, header, rows);
    }
    let table = render_table(console.interactive, columns, header, rows);
    console.write_bytes(format!("{table}\n").as_bytes())
}

/// Whether these rows fit as a table into a window of that width.
fn table_fits_window(columns: usize, header: &[&str], rows: &[Vec<String>]) -> bool {
    let column_widths = header.iter().enumerate().map(|(index, name)| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        let widest =
            cells.map(|cell| terminal::escape_and_truncate(cell, MAX_CELL_COLUMNS).width());
        let widest = widest.chain([name.width()]).max().unwrap_or(0);
        let least_width = if UNWRAPPED_COLUMNS.contains(name) {
            widest
        } else {
            widest.min(MIN_WRAPPED_WIDTH)
        };
        least_width + COLUMN_GAP
    });
    column_widths.sum::<usize>() <= columns
}

/// Prints each row as fields, with a line between two rows.
fn print_rows_as_fields(
    console: &Console,
    header: &[&str],
    rows: &[Vec<String>],
) -> Result<(), CommandError> {
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            console.print_line("")?;
        }
        let named = header.iter().zip(row);
        let fields: Vec<(&str, String)> = named
            .map(|(name, cell)| (*name, terminal::escape_and_truncate(cell, MAX_CELL_COLUMNS)))
            .collect();
        print_fields(console, &fields)?;
    }
    Ok(())
}

/// Prints `name: value` lines with aligned values; rows without a value are omitted.
pub fn print_fields(console: &Console, rows: &[(&str, String)]) -> Result<(), CommandError> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let label = format!("{name}:");
        console.print_line(&format!("{label:<space$} {value}", space = width + 1))?;
    }
    Ok(())
}

fn render_table(
    interactive: bool,
    columns: Option<usize>,
    header: &[&str],
    rows: &[Vec<String>],
) -> String {
    let mut table = Table::new();
    if interactive {
        table
            .load_style(presets::UTF8_HORIZONTAL_ONLY)
            .set_content_arrangement(ContentArrangement::Dynamic);
        let columns = columns.and_then(|columns| u16::try_from(columns).ok());
        columns.iter().for_each(|columns| {
            table.set_width(*columns);
        });
    } else {
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
    }
    table.set_header(header.to_vec());
    for (index, name) in header.iter().enumerate() {
        let Some(column) = table.column_mut(index) else {
            continue;
        };
        if UNWRAPPED_COLUMNS.contains(name) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        if !interactive {
            column.set_padding((0, 2));
        }
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| match interactive {
            true => terminal::escape_and_truncate(cell, MAX_CELL_COLUMNS),
            false => terminal::escape_line(cell),
        }));
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
        let text = render_table(false, None, &["NAME", "ID"], &rows);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'));
        assert!(
            text.lines()
                .nth(1)
                .is_some_and(|row| row.starts_with("a\\nb\\u{1b}[0m  xxx")),
            "{text}"
        );
        assert!(text.contains(&"x".repeat(500)), "nothing is cut: {text}");
    }

    #[test]
    fn a_name_is_never_broken_however_narrow_the_window_is() {
        let name = "agents.of.a.house.with.a.long.name.example";
        let rows = vec![vec![
            name.to_owned(),
            "verified".to_owned(),
            "what is said of it, ".repeat(5),
        ]];
        let header = ["DOMAIN", "STATE", "SAID"];
        let mut as_table = 0;
        for columns in 20..120 {
            if !table_fits_window(columns, &header, &rows) {
                continue;
            }
            as_table += 1;
            let text = render_table(true, Some(columns), &header, &rows);
            assert!(text.contains(name), "{columns}: {text}");
            let widest = text.lines().map(UnicodeWidthStr::width).max();
            assert!(widest <= Some(columns), "{columns}: {text}");
        }
        assert!(
            !table_fits_window(60, &header, &rows) && as_table > 40,
            "{as_table}"
        );
    }
}
