//! The target of a registration: a domain, and the URLs to fetch.

use a2a_crawler::fetch::AGENT_PATH;
use a2a_crawler::guard::{Domain, GuardRefusal, normalised};
use a2a_registry_api::Registration;
use a2a_registry_domain::source::SourceKind;

use crate::context::Context;
use crate::error::{AppError, ErrorKind, Result};
use crate::sources::{catalogs_of, is_well_known};

/// The sources to add to a domain: kinds, and their URLs as the database stores them. The first one is the named one.
pub struct Target {
    pub domain: Domain,
    pub sources: Vec<(SourceKind, String)>,
    /// The member of the request that named it.
    pub pointer: &'static str,
}

/// The target of a registration, checked by the guard before anything is stored.
pub fn target(context: &Context, what: &Registration) -> Result<Target> {
    let guard = context.network.fetcher.guard();
    match (&what.domain, &what.card_url) {
        (Some(domain), None) => {
            let refused = |refusal| refused("/domain", &refusal);
            let domain = guard.check_domain(domain.trim()).map_err(refused)?;
            let mut sources = vec![(SourceKind::WellKnown, domain.origin.to_string())];
            sources.extend(catalogs_of(&domain.origin));
            Ok(Target {
                domain,
                sources,
                pointer: "/domain",
            })
        }
        (None, Some(url)) => {
            let refused = |refusal| refused("/card_url", &refusal);
            let url = guard.check_url(url.trim()).map_err(refused)?;
            let url = normalised(url);
            let domain = Domain::of(&url);
            // The older path alone is a card URL: it is fetched itself, whatever the newer one responds.
            let source = if is_well_known(&url) && url.path() != AGENT_PATH {
                (SourceKind::WellKnown, domain.origin.to_string())
            } else {
                let mut catalogs = catalogs_of(&domain.origin).into_iter();
                let catalog = catalogs.find(|(_, own)| own == url.as_str());
                catalog.unwrap_or_else(|| (SourceKind::Url, url.into()))
            };
            Ok(Target {
                domain,
                sources: vec![source],
                pointer: "/card_url",
            })
        }
        _ => Err(AppError::invalid(
            "",
            "Give exactly one of `domain` and `card_url`.",
        )),
    }
}

fn refused(pointer: &str, refusal: &GuardRefusal) -> AppError {
    AppError {
        members: vec![(pointer.into(), refusal.to_string())],
        ..AppError::new(ErrorKind::TargetRefused, refusal.to_string())
    }
}
