//! A page of a list: as the registry sent it, or as a table with the command for the next page.

use clap::Args;

use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::{invocation, table, terminal};

/// Which page of a list.
#[derive(Args, Debug, Clone, Default)]
pub struct PageArgs {
    /// Entries on the page, at most 100 [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: Option<u32>,
    /// Token of the next page, as the previous page printed it
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
}

/// How a list is shown.
pub struct Listing<'a> {
    /// The command that lists, without the program.
    pub command: &'a str,
    /// Names of the columns.
    pub header: &'a [&'a str],
    /// What is said where there is nothing.
    pub empty: &'a str,
}

/// A page as it was received.
pub struct ReceivedPage<'a, T> {
    /// The response.
    pub raw: &'a [u8],
    /// Its entries.
    pub entries: &'a [T],
    /// The token of the next page.
    pub next: Option<&'a str>,
}

impl Listing<'_> {
    /// Shows a page, each entry as a row; the outcome is "no" where it is empty.
    ///
    /// # Errors
    /// Where standard output takes no more.
    pub fn show<T>(
        &self,
        console: &Console,
        asked: &PageArgs,
        page: &ReceivedPage<'_, T>,
        row: impl Fn(&T) -> Vec<String>,
    ) -> Result<CommandOutcome, Failure> {
        let outcome = CommandOutcome::of_list(page.entries);
        if console.json {
            console.raw_json(page.raw)?;
            return Ok(outcome);
        }
        let rows: Vec<_> = page.entries.iter().map(row).collect();
        if rows.is_empty() {
            terminal::note(self.empty);
            return Ok(outcome);
        }
        table::print(console, self.header, &rows)?;
        next_page(self.command, asked.limit, page.next);
        Ok(outcome)
    }
}

/// Says how to get at the next page of a list, where there is one.
pub fn next_page(command: &str, limit: Option<u32>, token: Option<&str>) {
    if let Some(token) = token {
        let limit = limit
            .map(|limit| format!(" --limit {limit}"))
            .unwrap_or_default();
        terminal::note(&format!(
            "more with: {} {command}{limit} --page-token {}",
            invocation::program(),
            invocation::quote(token)
        ));
    }
}
