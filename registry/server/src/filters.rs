//! Filters of agents, checked and in the form that the index compares: those of a search and those of a collection.

use a2a_registry_domain::lifecycle::{LivenessState, ShownLifecycle};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::trust::TrustLevel;
use a2a_registry_search::Filters;

use crate::error::AppError;

/// Filters whose values exist, in the form that the index compares; `trust` is the least level by its name.
///
/// # Errors
/// `Invalid`, naming the filter.
pub(crate) fn checked(raw: Filters, trust: Option<&str>) -> Result<Filters, AppError> {
    for value in &raw.lifecycle {
        let known = value.parse::<ShownLifecycle>();
        known.map_err(|text| AppError::invalid("/lifecycle", text))?;
    }
    for value in &raw.liveness {
        let known = value.parse::<LivenessState>();
        known.map_err(|text| AppError::invalid("/liveness", text))?;
    }
    for value in &raw.signature {
        let known = value.parse::<SignatureState>();
        known.map_err(|text| AppError::invalid("/signature", text))?;
    }
    let mut truths = raw.unmanaged.iter();
    if !truths.all(|one| matches!(one.as_str(), "true" | "false")) {
        let detail = "unmanaged is true or false";
        return Err(AppError::invalid("/unmanaged", detail));
    }
    let trust_at_least =
        match trust {
            None => None,
            Some(text) => Some(text.parse().ok().and_then(trust_rank).ok_or_else(|| {
                AppError::invalid("/trust", "trust is one of L0, L1, L2, L3, L4")
            })?),
        };
    Ok(Filters {
        provider: lower(&raw.provider),
        domain: lower(&raw.domain),
        input_mode: lower(&raw.input_mode),
        output_mode: lower(&raw.output_mode),
        trust_at_least,
        ..raw
    })
}

/// A level of trust as a number.
pub(crate) fn trust_rank(level: TrustLevel) -> Option<u8> {
    let level = TrustLevel::ALL.iter().position(|one| *one == level)?;
    u8::try_from(level).ok()
}

fn lower(values: &[String]) -> Vec<String> {
    values.iter().map(|value| value.to_lowercase()).collect()
}
