//! A page of a list: as the registry sent it, or as a table with the command for the next page.

use a2a_registry_api::limits::MAX_PAGE;
use clap::Args;
use serde::Serialize;

use super::console::{Console, Document};
use super::failure::{CommandOutcome, CommandResult};
use super::{invocation, table, terminal};

/// Which page of a list, also as the parameters of a call.
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
    /// The longest page that begins at this token.
    pub fn longest(page_token: Option<String>) -> Self {
        Self {
            limit: Some(MAX_PAGE),
            page_token,
        }
    }
}

/// How a list is shown.
pub struct Listing<'a, const COLUMNS: usize> {
    /// The command that lists, without the program.
    pub command: &'a str,
    /// The length of the page, where the user has set one.
    pub limit: Option<u32>,
    /// Names of the columns.
    pub header: [&'a str; COLUMNS],
    /// What is said where there is nothing.
    pub empty: &'a str,
}

impl<const COLUMNS: usize> Listing<'_, COLUMNS> {
    /// Shows a page, each entry as a row, and how to get at the next one; the outcome is "no" where it is empty.
    pub fn show<T>(
        &self,
        console: &Console,
        page: &impl Document,
        entries: &[T],
        next_page_token: Option<&str>,
        row: impl Fn(&T) -> [String; COLUMNS],
    ) -> CommandResult {
        console.show(page, || {
            if entries.is_empty() {
                terminal::note(self.empty);
                return Ok(());
            }
            let rows: Vec<_> = entries.iter().map(|entry| Vec::from(row(entry))).collect();
            table::print(console, &self.header, &rows)?;
            next_page(self.command, self.limit, next_page_token);
            Ok(())
        })?;
        Ok(CommandOutcome::of_list(entries))
    }
}

/// Says how to get at the next page of a list, where there is one.
fn next_page(command: &str, limit: Option<u32>, token: Option<&str>) {
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
