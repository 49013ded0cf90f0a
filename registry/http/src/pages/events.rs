//! Events page: who did what, when, and with which content; filtered, and as a file to keep.

use a2a_registry_api::limits::MAX_PAGE_SIZE;
use a2a_registry_api::{Event, EventList, SavedSearch};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::{EventListQuery, event_list};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use serde::Deserialize;
use uuid::Uuid;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::requests::auth::ReadEvents;
use crate::requests::query;
use crate::requests::visitor::PermittedVisitor;
use crate::saved_searches::saved_search_list;

const PAGE_SIZE: u32 = 50;
/// Maximum number of parts of the log that a page looks through for its first event.
const MAX_PARTS: usize = 20;
/// Maximum number of events in a file; the command line exports any number.
const MAX_EXPORTED: usize = 10_000;
/// Bytes after which a file ends.
const MAX_EXPORTED_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of reads for a file, each of a part of the log.
const MAX_READS: usize = 300;

/// Filters in the page's query. Empty ones, which forms send, count as absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EventListParams {
    kind: String,
    agent: String,
    domain: String,
    collection: String,
    /// Id of a saved search of the visitor.
    search: String,
    account: String,
    /// First and last day, in UTC.
    since: String,
    until: String,
    page_token: String,
}

#[derive(Template)]
#[template(path = "events.html")]
struct EventsPage {
    frame: Frame,
    now: Timestamp,
    filters: EventListParams,
    searches: Vec<SavedSearch>,
    events: Vec<Event>,
    next: Option<String>,
    export: String,
}

pub(crate) async fn show_events(
    visitor: PermittedVisitor<ReadEvents>,
    request: HttpRequest,
) -> HandlerResult {
    let filters: EventListParams = query::parse_query(request.query_string())?;
    let (context, caller) = (&visitor.context, &visitor.caller);
    let wanted = filters.to_query(true)?;
    let list = load_page(context, caller, &wanted, &filters.page_token).await?;
    let next = list.next_page_token.as_deref();
    let page = EventsPage {
        frame: Frame::for_visitor(&context.config(), "events", &visitor),
        now: context.now(),
        next: next.map(|token| filters.url("/events", token)),
        export: filters.url("/events/export", ""),
        filters,
        searches: saved_search_list(context, caller).await?.searches,
        events: list.events,
    };
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Sends the matching events as a file with a line of JSON for each, oldest first.
pub(crate) async fn export_events(
    visitor: PermittedVisitor<ReadEvents>,
    request: HttpRequest,
) -> HandlerResult {
    let filters: EventListParams = query::parse_query(request.query_string())?;
    let wanted = filters.to_query(false)?;
    let mut page = PageRequest {
        page_size: Some(MAX_PAGE_SIZE),
        page_token: None,
    };
    let (mut lines, mut count) = (String::new(), 0);
    for _ in 0..MAX_READS {
        let list = event_list(&visitor.context, &visitor.caller, &wanted, &page).await?;
        for event in &list.events {
            let line = serde_json::to_string(event).map_err(|error| {
                AppError::internal(format!("event {} is no JSON: {error}", event.seq))
            })?;
            lines.push_str(&line);
            lines.push('\n');
        }
        count += list.events.len();
        page.page_token = list.next_page_token;
        if page.page_token.is_none() || count >= MAX_EXPORTED || lines.len() >= MAX_EXPORTED_BYTES {
            break;
        }
    }
    // The name of the file says whether it holds every event that matches.
    let disposition = match page.page_token {
        None => "attachment; filename=\"events.jsonl\"",
        Some(_) => "attachment; filename=\"events-incomplete.jsonl\"",
    };
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/jsonl; charset=utf-8"))
        .insert_header((CONTENT_DISPOSITION, disposition))
        .insert_header((CACHE_CONTROL, "private, no-cache"))
        .body(lines))
}

/// Loads a page, and goes on through the log while nothing of it matches.
async fn load_page(
    context: &AppContext,
    caller: &Caller,
    wanted: &EventListQuery,
    page_token: &str,
) -> Result<EventList> {
    let mut page = PageRequest {
        page_size: Some(PAGE_SIZE),
        page_token: Some(page_token.to_owned()).filter(|token| !token.is_empty()),
    };
    let mut list = event_list(context, caller, wanted, &page).await?;
    for _ in 1..MAX_PARTS {
        if !list.events.is_empty() || list.next_page_token.is_none() {
            break;
        }
        page.page_token = list.next_page_token;
        list = event_list(context, caller, wanted, &page).await?;
    }
    Ok(list)
}

impl EventListParams {
    fn to_query(&self, newest_first: bool) -> Result<EventListQuery> {
        let nonempty = |text: &String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let day = |pointer: &str, text: &String| match nonempty(text) {
            None => Ok(None),
            Some(day) => {
                let time: Result<Timestamp, String> = format!("{day}T00:00:00Z").parse();
                time.map(Some)
                    .map_err(|error| AppError::invalid(pointer, error))
            }
        };
        let kind = nonempty(&self.kind).map(|kind| kind.parse::<EventKind>());
        let kind = kind.transpose();
        let kind = kind.map_err(|error| AppError::invalid("/kind", error))?;
        let until = day("/until", &self.until)?;
        let search = nonempty(&self.search).map(|search| search.parse::<Uuid>());
        let search = search.transpose();
        let search = search.map_err(|error| AppError::invalid("/search", error.to_string()))?;
        let filter = EventFilter {
            kinds: kind.into_iter().collect(),
            agents: nonempty(&self.agent).into_iter().collect(),
            domains: nonempty(&self.domain).into_iter().collect(),
            collections: nonempty(&self.collection).into_iter().collect(),
            search,
            account: nonempty(&self.account),
            since: day("/since", &self.since)?,
            // The last day counts as a whole.
            until: until.map(|day| day.plus_micros(DAY)),
        };
        Ok(EventListQuery {
            after: None,
            filter,
            newest_first,
        })
    }

    fn url(&self, path: &str, page_token: &str) -> String {
        let pairs = [
            ("kind", self.kind.as_str()),
            ("agent", &self.agent),
            ("domain", &self.domain),
            ("collection", &self.collection),
            ("search", &self.search),
            ("account", &self.account),
            ("since", &self.since),
            ("until", &self.until),
            ("page_token", page_token),
        ];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        let given: Vec<(&str, &str)> = given.collect();
        match serde_html_form::to_string(given) {
            Ok(pairs) if !pairs.is_empty() => format!("{path}?{pairs}"),
            _ => path.to_owned(),
        }
    }
}

impl EventsPage {
    /// Page of what the event is about; `None` if it has none.
    fn subject_link(event: &Event) -> Option<String> {
        let id = Uuid::try_parse(&event.subject).ok();
        let kind = event.kind.as_str();
        match (kind.split_once('.').map_or("", |(subject, _)| subject), id) {
            ("agent", Some(id)) => Some(format!("/agents/{id}/")),
            ("review", Some(id)) => Some(format!("/reviews/{id}")),
            ("domain", None) => Some(format!("/domains/{}", text::path_segment(&event.subject))),
            _ => None,
        }
    }

    fn details(event: &Event) -> String {
        text::single_line(&event.detail_line(), BLOCK)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::pages::tests::api_samples::{AT, ID, admin_frame, read};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    fn event(kind: &str, text: &str) -> Event {
        read(json!({
            "seq": 7, "at": AT, "kind": kind, "subject": text, "actor": text,
            "data": {"reason": text, text: [text]},
        }))
    }

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| EventsPage {
            frame: admin_frame("events"),
            now: NOW,
            filters: EventListParams {
                account: text.to_owned(),
                collection: text.to_owned(),
                ..EventListParams::default()
            },
            searches: vec![read(
                json!({"id": ID, "name": text, "query": "q=a", "created_at": AT}),
            )],
            events: vec![event(text, text), event("domain.proved", text)],
            next: None,
            export: "/events/export".to_owned(),
        });
    }

    #[test]
    fn a_subject_leads_to_its_page() {
        let link = |kind: &str, subject: &str| EventsPage::subject_link(&event(kind, subject));
        assert_eq!(
            link("agent.approved", ID).unwrap(),
            format!("/agents/{ID}/")
        );
        assert_eq!(link("review.closed", ID).unwrap(), format!("/reviews/{ID}"));
        assert_eq!(
            link("domain.proved", "a.example").unwrap(),
            "/domains/a.example"
        );
        assert_eq!(link("token.created", ID), None);
    }

    #[test]
    fn the_last_day_counts_as_a_whole() {
        let params = EventListParams {
            since: "2026-01-31".to_owned(),
            until: "2026-01-31".to_owned(),
            ..EventListParams::default()
        };
        let filter = params.to_query(true).unwrap().filter;
        let day = filter.until.unwrap().0 - filter.since.unwrap().0;
        assert_eq!(day, DAY);
        let params = EventListParams {
            since: "yesterday".to_owned(),
            ..EventListParams::default()
        };
        assert!(params.to_query(true).is_err());
    }
}
