//! Renders hits as ARD results: the entry, a score of 0 to 100, and the source registry.

use a2a_registry_api::ard::{Referral, SearchResult};
use a2a_registry_search::HitRow;
use bytes::Bytes;
use serde::Serialize;

pub(crate) const MAX_SCORE: u8 = 100;
/// Score of a `/v1` hit that maps to half of the scale.
const HALF_SCALE_SCORE: f32 = 12.0;
/// Maximum score of a weak hit; all other hits have more.
const MAX_WEAK_SCORE: f32 = 19.0;
/// Minimum score of a hit that is not weak.
const MIN_STRONG_SCORE: f32 = 20.0;

/// Members of a result in addition to its entry.
#[derive(Serialize)]
struct SearchResultMembers<'a> {
    score: u8,
    source: &'a str,
}

/// Members of a [`SearchResponse`](a2a_registry_api::ard::SearchResponse) except the results.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchResponseMembers<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    referrals: Option<&'a [Referral]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_token: Option<&'a str>,
}

pub(crate) fn to_search_result(row: &HitRow, source: &str) -> Option<SearchResult> {
    Some(SearchResult {
        entry: serde_json::from_slice(&row.catalog_entry).ok()?,
        score: hit_score(row),
        source: source.to_owned(),
    })
}

/// A search result as a JSON text.
pub(crate) fn ard_result_json(row: &HitRow, source: &str) -> Option<String> {
    entry_with_score(&row.catalog_entry, hit_score(row), source)
}

/// An entry with its score and source as a JSON text; `None` without an entry.
pub(crate) fn entry_with_score(entry: &[u8], score: u8, source: &str) -> Option<String> {
    let mut text = entry.strip_suffix(b"}")?.to_vec();
    append_json_members(&mut text, &SearchResultMembers { score, source });
    String::from_utf8(text).ok()
}

/// Renders a page of hits. The index has the entries as text, so they are not parsed and serialized again. Scores are
/// capped at `max_score`.
pub(crate) fn search_response_bytes(
    rows: &[HitRow],
    source: &str,
    max_score: u8,
    referrals: Option<&[Referral]>,
    page_token: Option<&str>,
) -> Bytes {
    let entries: usize = rows.iter().map(|row| row.catalog_entry.len() + 128).sum();
    let mut text = Vec::with_capacity(256 + entries);
    text.extend_from_slice(b"{\"results\":[");
    let mut first = true;
    for row in rows {
        let Some(entry) = row.catalog_entry.strip_suffix(b"}") else {
            // Only entries are requested.
            continue;
        };
        if !first {
            text.push(b',');
        }
        first = false;
        text.extend_from_slice(entry);
        let score = hit_score(row).min(max_score);
        append_json_members(&mut text, &SearchResultMembers { score, source });
    }
    text.push(b']');
    let rest = SearchResponseMembers {
        referrals,
        page_token,
    };
    append_json_members(&mut text, &rest);
    text.into()
}

/// Appends the members of an object to an open, non-empty JSON object, and closes it.
fn append_json_members(text: &mut Vec<u8>, members: &impl Serialize) {
    let members = serde_json::to_vec(members).unwrap_or_default();
    match members.strip_prefix(b"{") {
        Some(b"}") | None => text.push(b'}'),
        Some(members) => {
            text.push(b',');
            text.extend_from_slice(members);
        }
    }
}

/// Converts a search score `s` to an integer: `s / (s + 12)` scaled to 20 to 100, or to 0 to 19 for a weak hit. Scores
/// never increase along the order of `/v1/agents` and are the same on every page; the order itself is finer.
fn hit_score(row: &HitRow) -> u8 {
    scale_score(row.score.unwrap_or(0.0), row.weak)
}

fn scale_score(score: f32, weak: bool) -> u8 {
    let fraction = match score.max(0.0) {
        score if score.is_finite() => score / (score + HALF_SCALE_SCORE),
        _ => 1.0,
    };
    let scaled = match weak {
        true => MAX_WEAK_SCORE * fraction,
        false => MIN_STRONG_SCORE + (100.0 - MIN_STRONG_SCORE) * fraction,
    };
    // The value is between 0 and 100, so the cast does not change it.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = scaled.floor() as u8;
    whole
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_api::ard::{Entry, SearchResponse};
    use a2a_registry_search::{SortPosition, SortValue};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn scores_fall_with_the_order() {
        let order = [
            (f32::INFINITY, false),
            (1e9, false),
            (24.0, false),
            (12.0, false),
            (0.1, false),
            (0.0, false),
            (f32::INFINITY, true),
            (12.0, true),
            (0.0, true),
        ];
        let scores: Vec<u8> = order
            .iter()
            .map(|(one, weak)| scale_score(*one, *weak))
            .collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        assert_eq!(scores.first(), Some(&100));
        assert_eq!(scale_score(12.0, false), 60);
        assert_eq!(scale_score(0.0, false), 20);
        assert_eq!(scale_score(f32::INFINITY, true), 19);
        assert_eq!(scores.last(), Some(&0));
    }

    #[test]
    fn a_page_is_rendered_as_its_parts_are_written() {
        let row = |entry: &str, score: f32| HitRow {
            catalog_entry: entry.as_bytes().to_vec(),
            id: Uuid::nil(),
            hit: Vec::new(),
            score: Some(score),
            weak: false,
            position: SortPosition {
                value: SortValue::Score(score),
                tie_rank: 0,
                id: Uuid::nil(),
                weak: false,
            },
            highlights: Vec::new(),
            matched_skills: Vec::new(),
            explain: None,
            duplicates: None,
        };
        let entry = |name: &str| Entry {
            identifier: format!("urn:air:a.agents-test.com:agents:{name}"),
            display_name: "}\",{\u{202e}".to_owned(),
            ..Entry::default()
        };
        let entries = [entry("x"), entry("y")].map(|one| serde_json::to_string(&one).unwrap());
        let rows = [
            row(&entries[0], 24.0),
            row("", 13.0),
            row(&entries[1], 12.0),
        ];
        let referrals = [Referral::default()];
        for (referrals, token) in [(None, None), (Some(&referrals[..]), Some("t"))] {
            let written = search_response_bytes(&rows, "https://r/ard", 70, referrals, token);
            let expected = SearchResponse {
                results: rows
                    .iter()
                    .filter_map(|row| to_search_result(row, "https://r/ard"))
                    .map(|result| SearchResult {
                        score: result.score.min(70),
                        ..result
                    })
                    .collect(),
                referrals: referrals.map(<[Referral]>::to_vec),
                page_token: token.map(str::to_owned),
            };
            let read: SearchResponse = serde_json::from_slice(&written).unwrap();
            assert_eq!(read, expected);
            assert_eq!(read.results.len(), 2);
            let result = ard_result_json(&rows[0], "https://r/ard").unwrap();
            let value: serde_json::Value = serde_json::from_str(&result).unwrap();
            assert_eq!(
                value,
                json!(to_search_result(&rows[0], "https://r/ard").unwrap())
            );
            let empty = search_response_bytes(&[], "https://r/ard", 70, referrals, token);
            assert!(serde_json::from_slice::<SearchResponse>(&empty).is_ok());
        }
    }
}
