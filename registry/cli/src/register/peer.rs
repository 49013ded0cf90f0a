//! Agents of another registry, as names to register here. Each agent is fetched from its own origin, so only its
//! address is taken from the other registry.

use std::collections::BTreeSet;

use a2a_registry_api::ard::{AGENT_CARD_TYPE, REGISTRY_TYPE, registry_base_url};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::command_error::CommandError;
use crate::fetch::fetch_document;

/// Size limit of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;
/// Number of agents registered in one run.
const MAX_AGENTS: usize = 1_000;
/// Path of the catalog that names a registry's API.
const CATALOG_PATH: &str = "/.well-known/ard.json";

/// Entries of a catalog, of which only registries are used.
#[derive(Debug, Deserialize)]
struct PeerCatalog {
    entries: Vec<Value>,
}

/// Page of a list. Items are parsed one by one, so that an invalid one affects only itself.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PeerListPage {
    items: Vec<Value>,
    page_token: Option<String>,
}

/// Members used of an item. ARD requires only the identifier.
#[derive(Debug, Clone, Copy)]
struct PeerListItem<'a> {
    identifier: &'a str,
    url: &'a str,
}

impl<'a> PeerListItem<'a> {
    fn from_json(item: &'a Value) -> Self {
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        Self {
            identifier: text("identifier"),
            url: text("url"),
        }
    }
}

/// Names to register from a registry, and agents that are skipped, with reasons.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PeerAgents {
    /// Domains and card URLs, each once.
    pub(super) names: BTreeSet<String>,
    /// One line for each skipped agent.
    pub(super) skipped: Vec<String>,
}

/// Fetches the agents of a registry.
pub(super) async fn fetch_peer_agents(registry: &str) -> Result<PeerAgents, CommandError> {
    let base = find_api_base(registry).await?;
    let mut agents = PeerAgents::default();
    let mut token: Option<String> = None;
    let mut agent_count = 0;
    loop {
        let mut url =
            Url::parse(&format!("{base}/agents")).map_err(|_| registry_url_error(registry))?;
        url.query_pairs_mut()
            .append_pair("filter", &format!("type={AGENT_CARD_TYPE}"))
            .append_pair("pageSize", "100");
        if let Some(token) = &token {
            url.query_pairs_mut().append_pair("pageToken", token);
        }
        let list: PeerListPage = serde_json::from_slice(
            &fetch_document(&url, MAX_RESPONSE_BYTES).await?,
        )
        .map_err(|_| CommandError::new(format!("{base}/agents does not return a list of ARD")))?;
        let is_last = list.page_token.is_none() || list.items.is_empty();
        for item in list.items {
            let entry = PeerListItem::from_json(&item);
            agent_count += 1;
            if agent_count > MAX_AGENTS {
                let line =
                    format!("{registry} lists more than {MAX_AGENTS} agents; the rest is skipped");
                agents.skipped.push(line);
                return Ok(agents);
            }
            match name_to_register(entry) {
                Ok(name) => {
                    agents.names.insert(name);
                }
                Err(why) => agents.skipped.push(format!("{}: {why}", entry.identifier)),
            }
        }
        if is_last {
            return Ok(agents);
        }
        token = list.page_token;
    }
}

/// Base URL of a registry's API: from its catalog, or the URL itself if it has a path.
async fn find_api_base(registry: &str) -> Result<String, CommandError> {
    let url = Url::parse(registry).map_err(|_| registry_url_error(registry))?;
    if url.path() != "/" {
        return Ok(registry_base_url(registry).to_owned());
    }
    let catalog = url
        .join(CATALOG_PATH)
        .map_err(|_| registry_url_error(registry))?;
    let bytes = fetch_document(&catalog, MAX_RESPONSE_BYTES).await?;
    let read: PeerCatalog = serde_json::from_slice(&bytes)
        .map_err(|_| CommandError::new(format!("{catalog} is not a catalog of ARD")))?;
    let text = |entry: &Value, name: &str| Some(entry.get(name)?.as_str()?.to_owned());
    let registries = read.entries.iter();
    let base = registries
        .filter(|entry| text(entry, "type").is_some_and(|kind| is_registry_media_type(&kind)))
        .find_map(|entry| text(entry, "url"));
    base.map(|base| registry_base_url(&base).to_owned())
        .ok_or_else(|| {
            CommandError::new(format!(
                "{catalog} lists no registry; give the base URL of its API, such as {registry}/ard"
            ))
        })
}

/// Whether this is the type of a registry's entry, or its short form, which is valid too.
fn is_registry_media_type(media_type: &str) -> bool {
    let kind = media_type.trim();
    kind.eq_ignore_ascii_case(REGISTRY_TYPE)
        || kind.eq_ignore_ascii_case(REGISTRY_TYPE.trim_end_matches("+json"))
}

fn registry_url_error(registry: &str) -> CommandError {
    CommandError::new(format!("{registry} is not a URL of a registry"))
}

/// Name to register for an entry: its card if its publisher serves the card itself, otherwise the publisher's domain.
fn name_to_register(entry: PeerListItem<'_>) -> Result<String, &'static str> {
    let publisher = entry
        .identifier
        .strip_prefix("urn:air:")
        .and_then(|rest| rest.split(':').next())
        .filter(|publisher| publisher.contains('.'))
        .ok_or("its identifier has no domain")?;
    let url = Url::parse(entry.url).ok();
    let own = url.filter(|url| url.host_str() == Some(publisher));
    Ok(own.map_or_else(|| publisher.to_owned(), String::from))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_is_looked_for_at_its_publisher() {
        for (identifier, url, expected) in [
            (
                "urn:air:a.example:agents:x",
                "https://a.example/card.json",
                Ok("https://a.example/card.json"),
            ),
            (
                "urn:air:a.example:agents:x",
                "https://registry.example/v1/agents/1/card",
                Ok("a.example"),
            ),
            ("urn:air:a.example:agents:x", "", Ok("a.example")),
            (
                "urn:air:localhost:x",
                "",
                Err("its identifier has no domain"),
            ),
            ("something", "", Err("its identifier has no domain")),
            ("", "", Err("its identifier has no domain")),
        ] {
            let item = json!({"identifier": identifier, "url": url});
            let name = name_to_register(PeerListItem::from_json(&item));
            assert_eq!(name, expected.map(str::to_owned), "{identifier}");
        }
    }
}
