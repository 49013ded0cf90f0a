//! The target of a registration: a domain, and the URLs to fetch.

use a2a_crawler::fetch::LEGACY_AGENT_CARD_PATH;
use a2a_crawler::guard::{Domain, GuardError, normalize_url};
use a2a_registry_api::Registration;
use a2a_registry_domain::source::SourceKind;

use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::sources::{has_well_known_path, well_known_catalogs};

/// The sources to add to a domain: their kinds, and their URLs as the database stores them. The first is the one that
/// the request names.
pub struct RegistrationTarget {
    pub domain: Domain,
    pub sources: Vec<(SourceKind, String)>,
    /// The member of the request that named it.
    pub pointer: &'static str,
}

/// Resolves the target of a registration; the guard checks it before anything is stored.
pub fn resolve_registration_target(
    context: &AppContext,
    registration: &Registration,
) -> Result<RegistrationTarget> {
    let guard = context.network.fetcher.guard();
    match (&registration.domain, &registration.card_url) {
        (Some(domain), None) => {
            let to_error = |refusal| refused_target_error("/domain", &refusal);
            let domain = guard.check_domain(domain.trim()).map_err(to_error)?;
            let mut sources = vec![(SourceKind::WellKnown, domain.origin.to_string())];
            sources.extend(well_known_catalogs(&domain.origin));
            Ok(RegistrationTarget {
                domain,
                sources,
                pointer: "/domain",
            })
        }
        (None, Some(url)) => {
            let to_error = |refusal| refused_target_error("/card_url", &refusal);
            let url = guard.check_url(url.trim()).map_err(to_error)?;
            let url = normalize_url(url);
            let domain = Domain::from_url(&url);
            // The legacy path alone counts as a card URL: it is fetched regardless of the response at the newer path.
            let source = if has_well_known_path(&url) && url.path() != LEGACY_AGENT_CARD_PATH {
                (SourceKind::WellKnown, domain.origin.to_string())
            } else {
                let mut catalogs = well_known_catalogs(&domain.origin).into_iter();
                let catalog = catalogs.find(|(_, own)| own == url.as_str());
                catalog.unwrap_or_else(|| (SourceKind::Url, url.into()))
            };
            Ok(RegistrationTarget {
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

fn refused_target_error(pointer: &str, refusal: &GuardError) -> AppError {
    let reasons = refusal.reasons().iter();
    AppError {
        members: reasons
            .map(|reason| (pointer.into(), reason.to_string()))
            .collect(),
        ..AppError::new(ErrorKind::TargetRefused, refusal.to_string())
    }
}
