//! The agents of another registry, as names to register here: each is then fetched from its own origin, so that nothing is
//! taken over from the other registry but where to look.

use std::collections::BTreeSet;

use a2a_registry_api::ard::{AGENT_CARD_TYPE, REGISTRY_TYPE, base_url};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::command_error::CommandError;
use crate::fetch::fetch_document;

/// The longest answer that is read, in bytes.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;
/// The most agents that are registered at once.
const MAX_AGENTS: usize = 1_000;
/// Where a registry says where its API is.
const CATALOG_PATH: &str = "/.well-known/ard.json";

/// The entries of a catalog, of which only those of registries are looked at.
#[derive(Debug, Deserialize)]
struct PeerCatalog {
    entries: Vec<Value>,
}

/// A page of a list, of which every item is read for itself: an odd one costs itself only.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PeerListPage {
    items: Vec<Value>,
    page_token: Option<String>,
}

/// What is read of an item. ARD demands the identifier alone.
#[derive(Debug, Clone, Copy)]
struct PeerItem<'a> {
    identifier: &'a str,
    url: &'a str,
}

impl<'a> PeerItem<'a> {
    fn from_json(item: &'a Value) -> Self {
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        Self {
            identifier: text("identifier"),
            url: text("url"),
        }
    }
}

/// What to register of a registry, and what is left out and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PeerAgents {
    /// Domains and URLs of cards, each once.
    pub(super) names: BTreeSet<String>,
    /// One line for each agent that is left out.
    pub(super) skipped: Vec<String>,
}

/// Asks a registry for its agents.
pub(super) async fn fetch_peer_agents(registry: &str) -> Result<PeerAgents, CommandError> {
    let base = find_api_base(registry).await?;
    let mut agents = PeerAgents::default();
    let mut token: Option<String> = None;
    let mut agent_count = 0;
    loop {
        let mut url =
            Url::parse(&format!("{base}/agents")).map_err(|_| not_a_registry_url(registry))?;
        url.query_pairs_mut()
            .append_pair("filter", &format!("type={AGENT_CARD_TYPE}"))
            .append_pair("pageSize", "100");
        if let Some(token) = &token {
            url.query_pairs_mut().append_pair("pageToken", token);
        }
        let list: PeerListPage = serde_json::from_slice(
            &fetch_document(&url, MAX_RESPONSE_BYTES).await?,
        )
        .map_err(|_| {
            CommandError::new(format!(
                "{base}/agents answers with something that is no list of ARD"
            ))
        })?;
        let is_last = list.page_token.is_none() || list.items.is_empty();
        for item in list.items {
            let entry = PeerItem::from_json(&item);
            agent_count += 1;
            if agent_count > MAX_AGENTS {
                let line =
                    format!("{registry} lists more than {MAX_AGENTS} agents; the rest is left out");
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

/// The base URL of a registry's API: what its catalog says, or the URL itself where that has a path.
async fn find_api_base(registry: &str) -> Result<String, CommandError> {
    let url = Url::parse(registry).map_err(|_| not_a_registry_url(registry))?;
    if url.path() != "/" {
        return Ok(base_url(registry).to_owned());
    }
    let catalog = url
        .join(CATALOG_PATH)
        .map_err(|_| not_a_registry_url(registry))?;
    let bytes = fetch_document(&catalog, MAX_RESPONSE_BYTES).await?;
    let read: PeerCatalog = serde_json::from_slice(&bytes)
        .map_err(|_| CommandError::new(format!("{catalog} is no catalog of ARD")))?;
    let text = |entry: &Value, name: &str| Some(entry.get(name)?.as_str()?.to_owned());
    let registries = read.entries.iter();
    let base = registries
        .filter(|entry| text(entry, "type").is_some_and(|kind| is_registry_type(&kind)))
        .find_map(|entry| text(entry, "url"));
    base.map(|base| base_url(&base).to_owned()).ok_or_else(|| {
        CommandError::new(format!(
            "{catalog} names no registry; give the base URL of its API, such as {registry}/ard"
        ))
    })
}

/// The type of a registry's entry, or the short form of it, which is legal too.
fn is_registry_type(media_type: &str) -> bool {
    let kind = media_type.trim();
    kind.eq_ignore_ascii_case(REGISTRY_TYPE)
        || kind.eq_ignore_ascii_case(REGISTRY_TYPE.trim_end_matches("+json"))
}

fn not_a_registry_url(registry: &str) -> CommandError {
    CommandError::new(format!("{registry} is no URL of a registry"))
}

/// What to register for an entry: the card where its publisher serves it itself, else the publisher's domain.
fn name_to_register(entry: PeerItem<'_>) -> Result<String, &'static str> {
    let publisher = entry
        .identifier
        .strip_prefix("urn:air:")
        .and_then(|rest| rest.split(':').next())
        .filter(|publisher| publisher.contains('.'))
        .ok_or("its identifier names no domain")?;
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
                Err("its identifier names no domain"),
            ),
            ("something", "", Err("its identifier names no domain")),
            ("", "", Err("its identifier names no domain")),
        ] {
            let item = json!({"identifier": identifier, "url": url});
            let name = name_to_register(PeerItem::from_json(&item));
            assert_eq!(name, expected.map(str::to_owned), "{identifier}");
        }
    }
}
