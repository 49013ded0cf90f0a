//! Search responses as JSON. The index stores rendered hits; match details are added as text, so that hits are not
//! parsed and serialized again.

use a2a_registry_api::{
    Duplicates, FACETS_COUNT_FITTING, FACETS_COUNT_TOTAL, Facet, FacetValue, Fragment,
    HighlightView, Hint, HitFields, Match, Understood,
};
use a2a_registry_search::{Highlight, HintKind, HitRow, IndexSearchResponse};
use bytes::Bytes;
use serde::Serialize;

use crate::agents::hit_members::select_hit_members;
use crate::search::engine::SearchResults;

/// The fields of [`RequestedMatch`], in its order.
const MATCH_FIELDS: [&str; 6] = [
    "score",
    "weak",
    HitFields::HIGHLIGHTS,
    "matched_skills",
    HitFields::EXPLAIN,
    "duplicates",
];

/// The match details of an agent: the requested members of [`Match`].
#[derive(Serialize)]
struct MatchDetails<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<Option<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weak: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    highlights: Option<Vec<HighlightView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_skills: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates: Option<Duplicates>,
}

impl<'a> MatchDetails<'a> {
    /// The requested members of [`MATCH_FIELDS`].
    fn new(row: &'a HitRow, requested: [bool; MATCH_FIELDS.len()]) -> Self {
        let [score, weak, highlighted, skills, explained, folded] = requested;
        Self {
            score: score.then_some(row.score),
            weak: weak.then_some(row.weak),
            highlights: highlighted.then(|| highlight_views(row)),
            matched_skills: skills.then_some(row.matched_skills.as_slice()),
            explain: row.explain.as_ref().filter(|_| explained),
            duplicates: duplicates_view(row).filter(|_| folded),
        }
    }
}

/// Renders a whole hit: the stored summary of the agent, and its match details.
pub fn render_hit(row: &HitRow) -> Vec<u8> {
    let mut text = row.hit.clone();
    append_json_members(
        &mut text,
        &Match {
            score: row.score,
            weak: row.weak,
            highlights: highlight_views(row),
            matched_skills: row.matched_skills.clone(),
            explain: row.explain.clone(),
            duplicates: duplicates_view(row),
        },
    );
    text
}

/// Appends the members of an object to a complete, non-empty object.
fn append_json_members(text: &mut Vec<u8>, members: &impl Serialize) {
    let members = to_json(members);
    let members = members.strip_prefix(b"{").unwrap_or(b"}");
    if members != b"}" && text.pop().is_some() {
        text.push(b',');
        text.extend_from_slice(members);
    }
}

fn highlight_views(row: &HitRow) -> Vec<HighlightView> {
    row.highlights.iter().map(highlight_view).collect()
}

fn duplicates_view(row: &HitRow) -> Option<Duplicates> {
    let duplicates = row.duplicates.as_ref()?;
    Some(Duplicates {
        count: duplicates.count,
        agents: duplicates.agents.clone(),
    })
}

/// Renders a whole response, whose hits have the requested members.
pub fn render_search_response(results: &SearchResults, fields: HitFields) -> Bytes {
    let response = &results.response;
    let hits = response.hits.iter();
    let bytes: usize = hits.map(|row| row.hit.len() + 128).sum();
    let mut text = Vec::with_capacity(256 + bytes);
    let match_fields = MATCH_FIELDS.map(|name| fields.includes(name));
    text.extend_from_slice(b"{\"agents\":[");
    for (index, row) in response.hits.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        let mut hit = select_hit_members(&row.hit, fields);
        append_json_members(&mut hit, &MatchDetails::new(row, match_fields));
        text.extend_from_slice(&hit);
    }
    let rest = AgentListEnvelope {
        total: response.total,
        total_fitting: response.total_fitting,
        groups: response.groups,
        facets: response
            .facets
            .iter()
            .map(|(name, counts)| {
                let facet = Facet {
                    values: counts
                        .values
                        .iter()
                        .map(|(value, count)| FacetValue {
                            value: value.clone(),
                            count: *count,
                        })
                        .collect(),
                    other_count: counts.other_count,
                };
                (name.as_str(), facet)
            })
            .collect(),
        facets_count: match results.only_fitting {
            true => FACETS_COUNT_FITTING,
            false => FACETS_COUNT_TOTAL,
        },
        order: results.order,
        mode: results.mode.as_str(),
        understood: results.understood.as_ref(),
        hints: hint_views(response),
        next_page_token: results.next_page_token.as_deref(),
    };
    text.extend_from_slice(b"],");
    text.extend_from_slice(to_json(&rest).strip_prefix(b"{").unwrap_or(b"}"));
    // The cache counts a response by its length, but would keep the spare capacity of a growing buffer, up to the same
    // size again; shrinking in place frees nothing.
    Bytes::copy_from_slice(&text)
}

/// All members of [`AgentList`](a2a_registry_api::AgentList) except the agents.
#[derive(Serialize)]
struct AgentListEnvelope<'a> {
    total: u64,
    total_fitting: u64,
    groups: Option<u64>,
    facets: std::collections::BTreeMap<&'static str, Facet>,
    facets_count: &'static str,
    order: &'a str,
    mode: &'static str,
    understood: Option<&'a Understood>,
    hints: Vec<Hint>,
    next_page_token: Option<&'a str>,
}

/// The hints of a response, as sentences.
pub fn hint_views(response: &IndexSearchResponse) -> Vec<Hint> {
    response
        .hints
        .iter()
        .map(|hint| Hint {
            kind: hint.kind.as_str().into(),
            text: hint_sentence(hint),
            hidden: hint.matches_without,
        })
        .collect()
}

fn hint_sentence(hint: &a2a_registry_search::Hint) -> String {
    let text = &hint.text;
    match hint.kind {
        HintKind::OnlyWeak => {
            "No agent fits well: those that match only share some words with the query, or are only \
             loosely related to it in meaning."
                .into()
        }
        HintKind::UnknownLanguage => {
            "The model does not know the language of the query, so this is a full-text search. A multilingual model \
             would also find agents by meaning."
                .into()
        }
        HintKind::Empty => {
            "You cannot find any agents yet. Register a domain, or sign in if others have registered some.".into()
        },
        HintKind::UnknownWord if text.ends_with('*') => format!(
            "No agent has a word that begins with \"{}\".",
            text.trim_end_matches('*')
        ),
        HintKind::UnknownWord if hint.similar_words.is_empty() => {
            format!("No agent has the word \"{text}\".")
        }
        HintKind::UnknownWord => format!(
            "No agent has the word \"{text}\". Similar words: {}.",
            hint.similar_words.join(", ")
        ),
        HintKind::TooManyWords if text.ends_with('*') => format!(
            "Too many words begin with {text}; only the most frequent ones are searched. Add more letters."
        ),
        HintKind::TooManyWords => format!("Only the first {text} words are searched."),
        HintKind::Syntax if text.is_empty() => {
            "Part of the query has invalid syntax; that part was searched as words.".into()
        }
        HintKind::Syntax => format!(
            "In a sentence \"{text}\" is optional. To require it, leave out the small words or join it with AND."
        ),
        HintKind::Corrected => format!(
            "\"{text}\" may be misspelled: \"{}\" was searched too.",
            hint.similar_words.join("\", \"")
        ),
        HintKind::Quotation => {
            "No agent contains the quoted text word for word; the words were searched without the quotes.".into()
        }
        HintKind::NoWords => {
            "The query has no letters or digits to search for, so it was ignored.".into()
        }
        HintKind::Filter => {
            let (filter, hide) = match text.as_str() {
                "" => ("All filters together".to_owned(), "hide"),
                name => (format!("The filter {name}"), "hides"),
            };
            match hint.matches_without {
                Some(1) => format!("{filter} {hide} one agent."),
                hidden => format!("{filter} {hide} {} agents.", hidden.unwrap_or(0)),
            }
        }
    }
}

fn highlight_view(highlight: &Highlight) -> HighlightView {
    let mut fragments = Vec::new();
    let mut end = 0;
    let mut push = |text: Option<&str>, matched| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            fragments.push(Fragment {
                text: text.to_owned(),
                matched,
            });
        }
    };
    push(highlight.cut_before.then_some("… "), false);
    for range in &highlight.ranges {
        push(highlight.text.get(end..range.start), false);
        push(highlight.text.get(range.clone()), true);
        end = range.end;
    }
    push(highlight.text.get(end..), false);
    push(highlight.cut_after.then_some(" …"), false);
    HighlightView {
        field: highlight.field.into(),
        skill: highlight.skill.clone(),
        fragments,
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|_| b"{}".to_vec())
}
