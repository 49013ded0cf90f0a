//! `search`: finds agents by words and filters.

mod all_pages;
mod hits;

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{
    AgentList, HitFields, NewSavedSearch, SavedSearch, Summary, Understood, understood_line,
};
use clap::Args;
use serde::Deserialize;
use serde::de::IgnoredAny;
use url::form_urlencoded::parse;

use super::client::{Client, encode_query};
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::{program_name, terminal};

/// Arguments of `search`. Repeated values of one filter are OR, different filters AND.
#[derive(Args, Debug, Clone, Default)]
pub struct SearchArgs {
    /// Words to search for; without any, all agents are listed
    #[arg(value_name = "QUERY")]
    words: Vec<String>,
    /// A tag of a skill
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Id of a skill, or words of its name
    #[arg(long, value_name = "SKILL")]
    skill: Vec<String>,
    /// `streaming`, `push_notifications`, `extended_agent_card`, or an extension's URI
    #[arg(long, value_name = "CAPABILITY")]
    capability: Vec<String>,
    /// JSONRPC, GRPC, HTTP+JSON, or the card's own text
    #[arg(long, value_name = "BINDING")]
    binding: Vec<String>,
    /// The protocol version, such as 1.0
    #[arg(long, value_name = "VERSION")]
    protocol_version: Vec<String>,
    /// The organisation that runs the agent
    #[arg(long, value_name = "NAME")]
    provider: Vec<String>,
    /// The domain that publishes the card
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,
    /// `none`, `apiKey`, `http:<scheme>`, `oauth2`, `openIdConnect`, `mutualTLS`, `unknown`
    #[arg(long, value_name = "AUTH")]
    auth: Vec<String>,
    /// A media type that the agent accepts
    #[arg(long, value_name = "TYPE")]
    input_mode: Vec<String>,
    /// A media type that the agent returns
    #[arg(long, value_name = "TYPE")]
    output_mode: Vec<String>,
    /// Minimum level of trust: L0 to L4
    #[arg(long, value_name = "LEVEL")]
    trust: Option<String>,
    /// Lifecycle state; approved and deprecated by default
    #[arg(long, value_name = "STATE")]
    lifecycle: Vec<String>,
    /// fresh, stale or gone; fresh and stale by default
    #[arg(long, value_name = "STATE")]
    liveness: Vec<String>,
    #[arg(
        help = "Whether the agent answers: answers, needs_credentials, not_a2a, unclear, does_not_answer or not_checked",
        long,
        value_name = "STATE"
    )]
    endpoint: Vec<String>,
    /// Result of the signature check: unsigned, valid, untrusted, invalid or unknown
    #[arg(long, value_name = "STATE")]
    signature: Vec<String>,
    /// Only agents without an owner or a sponsor
    #[arg(long)]
    unmanaged: bool,
    /// Only agents of this collection
    #[arg(long, value_name = "NAME")]
    collection: Vec<String>,
    /// A label that curators set, as key=value
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
    /// relevance, name, updated or newest
    #[arg(long, value_name = "ORDER")]
    sort: Option<String>,
    /// lexical (full text), semantic (nearest neighbors) or hybrid (both); hybrid if the registry has a model
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// content: one hit for all agents with the same name at the same endpoint, or with the same content
    #[arg(long, value_name = "BY")]
    group: Option<String>,
    /// Leave out matches that do not fit the words well, also from the counts of --facets
    #[arg(long)]
    fitting: bool,
    /// Search for all words as text, instead of using phrases such as "without login" or "but not acme" as filters
    #[arg(long)]
    no_understand: bool,
    /// Count values of these members over all matches, such as tag,provider
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    facets: Vec<String>,
    /// Members of each hit with --json, such as name,links; the API documentation lists them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    fields: Vec<String>,
    /// Entries on the page, at most 100 [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// Token of the next page, as the previous page printed it
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
    /// Print every page; with --json each hit is a line
    #[arg(long, conflicts_with_all = ["limit", "page_token", "facets"])]
    all: bool,
    /// Save this search under a name, and run it
    #[arg(long, value_name = "NAME", conflicts_with = "saved")]
    save: Option<String>,
    /// Run the search that you saved under this name; only --limit, --page-token, --all, --fields, --explain and
    /// --no-understand can be added
    #[arg(long, value_name = "NAME")]
    saved: Option<String>,
    /// Explain the scores of the first ten hits
    #[arg(long)]
    explain: bool,
}

impl SearchArgs {
    fn to_query(&self) -> SearchQuery {
        let words = self.words.join(" ");
        SearchQuery {
            q: (!words.trim().is_empty()).then_some(words),
            skill: self.skill.clone(),
            tag: self.tag.clone(),
            capability: self.capability.clone(),
            binding: self.binding.clone(),
            protocol_version: self.protocol_version.clone(),
            provider: self.provider.clone(),
            domain: self.domain.clone(),
            auth: self.auth.clone(),
            input_mode: self.input_mode.clone(),
            output_mode: self.output_mode.clone(),
            trust: self.trust.clone(),
            label: self.label.clone(),
            lifecycle: self.lifecycle.clone(),
            liveness: self.liveness.clone(),
            endpoint: self.endpoint.clone(),
            signature: self.signature.clone(),
            collection: self.collection.clone(),
            unmanaged: self
                .unmanaged
                .then(|| "true".to_owned())
                .into_iter()
                .collect(),
            sort: self.sort.clone(),
            facets: self.facets.clone(),
            fields: self.fields.clone(),
            mode: self.mode.clone(),
            group: self.group.clone(),
            fitting: self.fitting.then_some(true),
            understand: self.no_understand.then_some(false),
            explain: self.explain.then_some(true),
            page_size: self.limit,
            page_token: self.page_token.clone(),
        }
    }

    /// Loads a saved search by its name.
    async fn load_saved_query(
        &self,
        client: &Client,
        name: &str,
    ) -> Result<SearchQuery, CommandError> {
        let page_query = SearchQuery {
            fields: self.fields.clone(),
            page_size: self.limit,
            page_token: self.page_token.clone(),
            explain: self.explain.then_some(true),
            understand: self.no_understand.then_some(false),
            ..SearchQuery::default()
        };
        if self.to_query() != page_query {
            return Err(CommandError::Failed(
                "--saved NAME is a complete search; omit words and filters".to_owned(),
            ));
        }
        let saved_search = find_saved_search(name, client).await?;
        let query: SearchQuery =
            serde_html_form::from_str(&saved_search.query).map_err(|error| {
                CommandError::Failed(format!("the saved search {name} cannot be read: {error}"))
            })?;
        Ok(SearchQuery {
            fields: page_query.fields,
            page_size: page_query.page_size,
            page_token: page_query.page_token,
            explain: page_query.explain.or(query.explain),
            understand: page_query.understand.or(query.understand),
            ..query
        })
    }

    /// Command that continues the same search at a token.
    fn next_page_command(&self, token: &str) -> String {
        let query = SearchQuery {
            page_token: Some(token.to_owned()),
            ..self.to_query()
        };
        let mut words = vec![program_name::program_name(), "search".to_owned()];
        let parameters = serde_html_form::to_string(&query).unwrap_or_default();
        for (name, value) in parse(parameters.as_bytes()) {
            let flag = match &*name {
                // The words are at the end.
                "q" => continue,
                "page_size" => "limit",
                "understand" => "no-understand",
                name => name,
            };
            words.push(format!("--{}", flag.replace('_', "-")));
            // These flags take no value.
            if !["unmanaged", "explain", "fitting", "no-understand"].contains(&flag) {
                words.push(program_name::shell_quote(&value));
            }
        }
        if let Some(name) = &self.saved {
            words.extend(["--saved".to_owned(), program_name::shell_quote(name)]);
        }
        if !self.words.is_empty() {
            words.push("--".to_owned());
            words.extend(
                self.words
                    .iter()
                    .map(|word| program_name::shell_quote(word)),
            );
        }
        words.join(" ")
    }
}

/// Finds a saved search of the account by its name or id.
pub(super) async fn find_saved_search(
    name: &str,
    client: &Client,
) -> Result<SavedSearch, CommandError> {
    let saved = client.saved_searches().await?.value.searches;
    let is_it = |search: &SavedSearch| search.name == name || search.id.to_string() == name;
    saved.into_iter().find(is_it).ok_or_else(|| {
        CommandError::Negative(format!("you have no saved search with the name {name}"))
    })
}

pub async fn run_search(
    arguments: &SearchArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    if !arguments.fields.is_empty() && !console.json {
        return Err(CommandError::Failed(
            "--fields selects members of the JSON output; add --json".to_owned(),
        ));
    }
    let mut query = match &arguments.saved {
        Some(name) => arguments.load_saved_query(client, name).await?,
        None => arguments.to_query(),
    };
    if let Some(name) = &arguments.save {
        let new = NewSavedSearch {
            name: name.clone(),
            query: encode_query(&query)?,
        };
        client.save_search(&new).await?;
    }
    if console.json && !arguments.all {
        let reply = client.search::<HitCountPage>(&query).await?;
        console.print_raw_json(&reply.raw)?;
        return Ok(CommandOutcome::done_unless_empty(&reply.value.agents));
    }
    if console.interactive && !console.json {
        let fields = HitFields::default_names().chain([HitFields::HIGHLIGHTS]);
        query.fields = fields.map(str::to_owned).collect();
    }
    if arguments.all {
        return all_pages::print_all_pages(query, client, console).await;
    }
    let reply = client.search::<AgentList>(&query).await?;
    let list = &reply.value;
    if list.agents.is_empty() {
        terminal::eprint_note(if list.total == 0 {
            "no agent matches"
        } else if list.has_only_fitting() && list.total_fitting == 0 {
            "no agent fits well"
        } else {
            "no agent on this page"
        });
    } else {
        hits::print_hits(console, &list.agents)?;
    }
    print_facets(console, list)?;
    print_search_notes(arguments, list);
    Ok(CommandOutcome::done_unless_empty(&list.agents))
}

/// Prints what a reader of the hits should know: hints, the mode that was used, the total, and how to get the next page.
fn print_search_notes(arguments: &SearchArgs, list: &AgentList) {
    print_understood(list.understood.as_ref());
    for hint in &list.hints {
        terminal::eprint_note(&hint.text);
    }
    let requested_mode = arguments.mode.as_deref();
    if requested_mode.is_some_and(|mode| mode != list.mode)
        && !arguments.words.is_empty()
        && !is_mode_explained(list)
    {
        terminal::eprint_note(&format!(
            "mode {} was used: the registry has no model with vectors for every agent yet, or its encoder was busy",
            list.mode
        ));
    }
    if list.total > 0 {
        terminal::eprint_note(&count_note(list));
    } else if list.hints.is_empty() {
        terminal::eprint_note(
            "try fewer words or filters; `a2a-registry search` alone lists everything",
        );
    }
    if let Some(token) = &list.next_page_token {
        terminal::eprint_note(&format!(
            "more with: {}",
            arguments.next_page_command(token)
        ));
    }
}

/// Whether a hint or the understood phrases say why no model was used.
fn is_mode_explained(list: &AgentList) -> bool {
    let mut hints = list.hints.iter();
    let is_reason = hints.any(|hint| matches!(&*hint.kind, "unknown_language" | "no_words"));
    let understood = list.understood.as_ref();
    is_reason || understood.is_some_and(|understood| understood.q.is_empty())
}

/// The number of hits on the page and of all, and of those that fit if others match too.
fn count_note(list: &AgentList) -> String {
    let (shown, total, fitting) = (list.agents.len(), list.total, list.total_fitting);
    // A registry of before does not say how many fit.
    let is_known = !list.facets_count.is_empty();
    match (is_known && fitting < total, list.has_only_fitting()) {
        (false, _) => format!("{shown} of {total}"),
        (true, false) => format!("{shown} of {total}; fitting well: {fitting}"),
        (true, true) => format!(
            "{shown} of {fitting} that fit well; weaker matches, not listed: {}",
            total - fitting
        ),
    }
}

/// Prints which phrases of the words were applied as filters, and how to search for them as text.
fn print_understood(understood: Option<&Understood>) {
    let line = understood.and_then(|understood| understood_line(&understood.parts));
    if let Some(line) = line {
        terminal::eprint_note(&format!(
            "{line}; search for these words with --no-understand"
        ));
    }
}

/// Page of which only the number of hits is parsed.
#[derive(Deserialize)]
struct HitCountPage {
    agents: Vec<IgnoredAny>,
}

/// Interfaces of an agent: `JSONRPC 1.0, HTTP+JSON 1.0`.
pub fn format_interfaces(summary: &Summary) -> String {
    let mut formatted: Vec<String> = Vec::new();
    for interface in &summary.interfaces {
        let version = interface
            .protocol_version
            .as_ref()
            .map(|version| format!(" {version}"));
        let text = format!("{}{}", interface.binding, version.unwrap_or_default());
        if !formatted.contains(&text) {
            formatted.push(text);
        }
    }
    formatted.join(", ")
}

/// Level of trust, `-` if the card was not fetched over valid TLS.
pub fn trust_level_text(summary: &Summary) -> String {
    let level = summary.trust.level.as_ref();
    level.map_or_else(|| "-".to_owned(), ToString::to_string)
}

fn print_facets(console: &Console, list: &AgentList) -> Result<(), CommandError> {
    for (name, facet) in &list.facets {
        let mut values: Vec<_> = facet
            .values
            .iter()
            .map(|value| format!("{} {}", value.value, value.count))
            .collect();
        if facet.other_count > 0 {
            values.push(format!("others {}", facet.other_count));
        }
        console.print_line(&format!("{name}: {}", values.join(", ")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_domain::facet::Facet;

    use super::*;

    #[test]
    fn the_next_page_is_the_same_search() {
        let arguments = SearchArgs {
            words: vec!["book flights".into(), "--cheap".into()],
            tag: vec!["travel".into(), "a b".into()],
            trust: Some("L1".into()),
            fitting: true,
            limit: Some(5),
            no_understand: true,
            ..SearchArgs::default()
        };
        let command = arguments.next_page_command("t.k");
        let rest = command.split_once(" search ").map(|(_, rest)| rest);
        assert_eq!(
            rest,
            Some(
                "--tag travel --tag 'a b' --trust L1 --fitting --no-understand --limit 5 --page-token t.k \
                 -- 'book flights' --cheap"
            )
        );
    }

    #[test]
    fn every_flag_reaches_the_query_under_its_own_name() {
        #[derive(clap::Parser)]
        struct Typed {
            #[command(flatten)]
            search: SearchArgs,
        }
        let facets = Facet::ALL
            .iter()
            .filter(|facet| **facet != Facet::Unmanaged);
        let facets = facets.map(|facet| facet.as_str().replace('_', "-"));
        let others = [
            "collection",
            "sort",
            "facets",
            "fields",
            "group",
            "page-token",
        ];
        let names: Vec<String> = facets.chain(others.map(str::to_owned)).collect();
        let mut words = vec![
            "search".to_owned(),
            "book".into(),
            "flights".into(),
            "--explain".into(),
            "--unmanaged".into(),
            "--fitting".into(),
            "--no-understand".into(),
        ];
        words.extend(names.iter().map(|name| format!("--{name}=value of {name}")));
        words.push("--limit=7".into());
        let typed = <Typed as clap::Parser>::try_parse_from(words).unwrap();
        let query = serde_json::to_value(typed.search.to_query()).unwrap();
        for name in names {
            let sent = &query[name.replace('-', "_")];
            let text = if sent.is_array() { &sent[0] } else { sent };
            assert_eq!(text, &format!("value of {name}"));
        }
        assert_eq!(query["q"], "book flights");
        assert_eq!(query["page_size"], 7);
        assert_eq!(query["explain"], true);
        assert_eq!(query["fitting"], true);
        assert_eq!(query["understand"], false);
        assert_eq!(query["unmanaged"], serde_json::json!(["true"]));
        assert_eq!(
            SearchArgs {
                words: vec![" ".into()],
                ..SearchArgs::default()
            }
            .to_query(),
            SearchQuery::default()
        );
    }
}
