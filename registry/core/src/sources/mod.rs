//! Sources of a domain: their kinds, names and slots, and new rows of domains and sources.

pub mod domain_agent_quota;

use a2a_crawler::catalog::{AI_CATALOG_PATH, ARD_PATH};
use a2a_crawler::fetch::{AGENT_CARD_PATH, LEGACY_AGENT_CARD_PATH};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, domain, source};
use url::Url;

use crate::context::AppContext;

pub fn is_catalog_source(row: &source::Model) -> bool {
    row.kind.known_value().is_some_and(SourceKind::is_catalog)
}

/// Whether a source may list cards: a catalog, or a registered URL that is not known to be a card's.
pub fn may_list_cards(row: &source::Model) -> bool {
    is_catalog_source(row) || (row.kind == SourceKind::Url && row.agent_id.is_none())
}

/// Whether a source provides a card. A kind that only a later build knows is neither a card source nor a catalog.
pub fn is_card_source(row: &source::Model) -> bool {
    row.kind
        .known_value()
        .is_some_and(|kind| !kind.is_catalog())
}

pub fn well_known_catalogs(origin: &Url) -> [(SourceKind, String); 2] {
    SourceKind::CATALOGS.map(|kind| {
        let path = match kind {
            SourceKind::AiCatalog => AI_CATALOG_PATH,
            _ => ARD_PATH,
        };
        let mut url = origin.clone();
        url.set_path(path);
        (kind, url.into())
    })
}

/// The URL of a source's card: for a registered URL the one that returned the last card, which is below it if it is a
/// base URL; else the source's own URL.
pub fn source_card_url(row: &source::Model) -> &str {
    let brought = row.validator_url.as_deref();
    let brought = brought.filter(|_| row.kind == SourceKind::Url);
    brought.unwrap_or(&row.url)
}

pub fn has_well_known_path(url: &Url) -> bool {
    [AGENT_CARD_PATH, LEGACY_AGENT_CARD_PATH].contains(&url.path()) && url.query().is_none()
}

/// The kind that determines the location by which a source is covered. A well-known path that was registered by itself
/// is a location of the domain, like both together. `None` for a kind that only a later build knows.
pub fn source_kind_for_coverage(row: &source::Model) -> Option<SourceKind> {
    let kind = row.kind.known_value()?;
    let is_place = || Url::parse(source_card_url(row)).is_ok_and(|url| has_well_known_path(&url));
    Some(if kind == SourceKind::Url && is_place() {
        SourceKind::WellKnown
    } else {
        kind
    })
}

/// Whether a source fetches the card at that URL.
pub fn fetches_card_at(row: &source::Model, url: &Url) -> bool {
    match row.kind.known_value() {
        Some(SourceKind::Url | SourceKind::Entry) => {
            [row.url.as_str(), source_card_url(row)].contains(&url.as_str())
        }
        Some(SourceKind::WellKnown) => {
            has_well_known_path(url)
                && Url::parse(&row.url).is_ok_and(|own| own.origin() == url.origin())
        }
        Some(SourceKind::Ard | SourceKind::AiCatalog) | None => false,
    }
}

/// The id of a source for callers, which reveals neither the number nor the order of sources. For a registered source
/// it is derived from its location, so that a source registered again after a withdrawal has the same id, whether or
/// not others kept it.
pub fn public_source_id(context: &AppContext, source: &source::Model) -> String {
    let number = match source.kind.known_value() {
        Some(SourceKind::Entry) | None => {
            let id = source.id.to_string();
            context.page_token_signer.hash_texts(&["source", &id])
        }
        Some(kind) => {
            let domain = source.domain_id.to_string();
            let place = ["place", &domain, kind.as_str(), &source.url];
            context.page_token_signer.hash_texts(&place)
        }
    };
    format!("{number:016x}")
}

/// The target of a card source: a URL, or the well-known paths of an origin. Two sources with the same target have one
/// agent.
pub fn card_target(kind: SourceKind, url: &str) -> (bool, String) {
    let parsed = Url::parse(url).ok().filter(has_well_known_path);
    match (kind, parsed) {
        (SourceKind::WellKnown, _) => (true, url.to_owned()),
        (_, Some(well_known)) => (
            true,
            format!("{}/", well_known.origin().ascii_serialization()),
        ),
        _ => (false, url.to_owned()),
    }
}

/// The slot of a domain's well-known paths (docs/develop/model.md#slots).
const WELL_KNOWN_SLOT: &str = "well-known";

/// The slot of a source (docs/develop/model.md#slots), for an entry with its `identifier` in a catalog of the domain,
/// if it has one. A catalog's identifier is marked, so that it cannot be mistaken for another kind of slot; so are the
/// well-known paths of another scheme.
pub fn source_slot(
    domain: &domain::Model,
    row: &source::Model,
    identifier: Option<&str>,
) -> String {
    let own = || format!("{}://{}/", domain.scheme, domain.name) == row.url;
    match (row.kind.known_value(), identifier) {
        (Some(SourceKind::WellKnown), _) if own() || row.url.starts_with("https:") => {
            WELL_KNOWN_SLOT.to_owned()
        }
        (Some(SourceKind::Entry), Some(identifier)) => format!("entry {identifier}"),
        _ => row.url.clone(),
    }
}

/// The row of a new, unproved domain, whose visit is due. For a host name its check is due too, which at least looks
/// up the opt-out record.
pub fn new_domain_row(name: &str, scheme: &str, now: Timestamp) -> domain::Model {
    domain::Model {
        id: 0,
        name: name.into(),
        scheme: scheme.into(),
        state: DomainState::Unverified.into(),
        generation: 1,
        account_id: None,
        nominated_from: None,
        generation_since: now.0,
        owner_id: None,
        dns_proved: false,
        proof_methods: None,
        contact: None,
        opted_out_by: None,
        lapsed_at: None,
        check_due_at: domain_host(name).map(|_| now.0),
        created_at: now.0,
        deleted_at: None,
        visit_due_at: Some(now.0),
        visit_interval_us: None,
        visit_turn: 0,
        visit_requester: None,
        network: None,
        not_before: now.0,
        wanted_at: None,
        lease: None,
        leased_until: None,
        vouched_owner: None,
        vouched_since: None,
        vouched_until: None,
        vouched_by: None,
        vouched_reason: None,
    }
}

/// The host of a domain's name, without its port; `None` for an address and for this machine's own names, which are not
/// looked up.
pub fn domain_host(name: &str) -> Option<&str> {
    let host = match name.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => name,
    };
    let own = host == "localhost" || host.ends_with(".localhost");
    let literal = host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok();
    (!own && !literal).then_some(host)
}

/// The HTTPS origin of a name; `None` if the name cannot form a URL.
pub fn https_origin(name: &str) -> Option<Url> {
    Url::parse(&format!("https://{name}/")).ok()
}

/// The base URL for relative addresses in an agent's card: that of its slot, or else of the well-known path of its
/// domain. Redirects are not considered, because they may change while the approved card stays the same.
pub fn agent_card_base_url(agent: &agent::Model, domain: Option<&domain::Model>) -> Option<Url> {
    let slot = Url::parse(&agent.slot).ok().filter(Url::has_host);
    match slot {
        Some(url) if url.path() != "/" => Some(url),
        Some(origin) => origin.join(AGENT_CARD_PATH).ok(),
        None => {
            let scheme = domain.map_or("https", |domain| domain.scheme.as_str());
            Url::parse(&format!("{scheme}://{}{AGENT_CARD_PATH}", agent.domain)).ok()
        }
    }
}

/// The row of a new source, which is due for a fetch.
pub fn new_source_row(
    domain_id: i64,
    kind: SourceKind,
    url: String,
    now: Timestamp,
) -> source::Model {
    source::Model {
        id: 0,
        domain_id,
        kind: kind.into(),
        url,
        identifier: None,
        catalog_id: None,
        unlisted_since: None,
        unlisted_looks: 0,
        agent_id: None,
        approve_as: None,
        validator_url: None,
        etag: None,
        last_modified: None,
        vary: None,
        max_age: None,
        next_due_at: now.0,
        planned_at: None,
        interval_us: 0,
        full_wanted: false,
        attempts: 0,
        last_success_at: None,
        last_full_at: None,
        answered_from: None,
        failing_as: None,
        failing_since: None,
        failures: 0,
        cause_since: None,
        cause_latest: None,
        cause_looks: 0,
        liveness: SourceState::New.into(),
        liveness_reason: None,
        created_at: now.0,
        ended_at: None,
        answered_by: None,
        limit_met: None,
        entry_digest: None,
    }
}
