//! Pages of lists: as the registry sent them, or as a table with the command for the next page.

use a2a_registry_api::limits::MAX_PAGE_SIZE;
use clap::Args;
use serde::Serialize;

use super::command_error::{CommandOutcome, CommandResult};
use super::console::{Console, JsonOutput};
use super::{program_name, table, terminal};

/// Page of a list, also as query parameters of a call.
#[derive(Args, Debug, Clone, Default, Serialize)]
pub struct PageArgs {
    /// Entries on the page, at most 100 [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    #[serde(rename = "page_size")]
    pub limit: Option<u32>,
    /// Token of the next page, as the previous page printed it
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
}

impl PageArgs {
    /// Page of maximum size at this token.
    pub fn with_max_limit(page_token: Option<String>) -> Self {
        Self {
            limit: Some(MAX_PAGE_SIZE),
            page_token,
        }
    }
}

/// Format of a list.
pub struct ListFormat<'a, const COLUMNS: usize> {
    /// Command of the list, without the program name.
    pub command: &'a str,
    /// Page size, if the user has set one.
    pub limit: Option<u32>,
    /// Column names.
    pub header: [&'a str; COLUMNS],
    /// Message for an empty list.
    pub empty_message: &'a str,
}

impl<const COLUMNS: usize> ListFormat<'_, COLUMNS> {
    /// Prints a page with each entry as a row, and the command for the next page; the outcome is negative if it is
    /// empty.
    pub fn print_page<T>(
        &self,
        console: &Console,
        document: &impl JsonOutput,
        entries: &[T],
        next_page_token: Option<&str>,
        to_row: impl Fn(&T) -> [String; COLUMNS],
    ) -> CommandResult {
        console.print_result(document, || {
            if entries.is_empty() {
                terminal::eprint_note(self.empty_message);
                return Ok(());
            }
            let rows: Vec<_> = entries
                .iter()
                .map(|entry| Vec::from(to_row(entry)))
                .collect();
            table::print_table(console, &self.header, &rows)?;
            print_next_page_hint(self.command, self.limit, next_page_token);
            Ok(())
        })?;
        Ok(CommandOutcome::done_unless_empty(entries))
    }
}

/// Prints the command for the next page of a list, if there is one.
fn print_next_page_hint(command: &str, limit: Option<u32>, token: Option<&str>) {
    if let Some(token) = token {
        let limit = limit
            .map(|limit| format!(" --limit {limit}"))
            .unwrap_or_default();
        terminal::eprint_note(&format!(
            "more with: {} {command}{limit} --page-token {}",
            program_name::program_name(),
            program_name::shell_quote(token)
        ));
    }
}
