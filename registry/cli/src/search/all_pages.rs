//! `search --all`: every page of a search, printed as it arrives, so that memory does not grow with the number of hits.

use a2a_registry_api::limits::MAX_PAGE_SIZE;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{AgentList, Understood};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::client::Client;
use super::super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::super::console::Console;
use super::super::terminal;
use super::hits;

/// Order of a list that began again, as the registry reports it.
const RESUMED_ORDER: &str = "resumed";

/// Page of which each hit stays as the registry wrote it.
#[derive(Deserialize)]
struct RawHitPage {
    agents: Vec<Box<RawValue>>,
    order: String,
    #[serde(default)]
    understood: Option<Understood>,
    next_page_token: Option<String>,
}

/// A page that was printed.
struct PrintedPage {
    hit_count: usize,
    order: String,
    understood: Option<Understood>,
    next_page_token: Option<String>,
}

/// Prints the hits of every page, with `--json` each as a line; the outcome is negative if there are none.
pub async fn print_all_pages(
    mut query: SearchQuery,
    client: &Client,
    console: &Console,
) -> CommandResult {
    query.page_size = Some(MAX_PAGE_SIZE);
    // A saved search may have facets, which would be counted again for each page.
    query.facets.clear();
    let mut hit_count = 0;
    loop {
        let page = print_page(&query, client, console).await?;
        if query.page_token.is_none() {
            super::print_understood(page.understood.as_ref());
        }
        hit_count += page.hit_count;
        if page.order == RESUMED_ORDER {
            terminal::eprint_note(
                "the list began again as full text, because no encoder answered; hits may repeat",
            );
        }
        query.page_token = page.next_page_token;
        if query.page_token.is_none() {
            break;
        }
    }
    terminal::eprint_note(&match hit_count {
        0 => "no agent matches".to_owned(),
        count => format!("{count} hits"),
    });
    Ok(CommandOutcome::done_if(hit_count > 0))
}

async fn print_page(
    query: &SearchQuery,
    client: &Client,
    console: &Console,
) -> Result<PrintedPage, CommandError> {
    if console.json {
        let page = client.search::<RawHitPage>(query).await?.value;
        for hit in &page.agents {
            console.print_raw_json(hit.get().as_bytes())?;
        }
        return Ok(PrintedPage {
            hit_count: page.agents.len(),
            order: page.order,
            understood: page.understood,
            next_page_token: page.next_page_token,
        });
    }
    let page = client.search::<AgentList>(query).await?.value;
    hits::print_hits(console, &page.agents)?;
    Ok(PrintedPage {
        hit_count: page.agents.len(),
        order: page.order,
        understood: page.understood,
        next_page_token: page.next_page_token,
    })
}
