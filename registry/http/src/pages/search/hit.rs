//! Search hits on pages.

use a2a_registry_api::search_query::{GROUP_NONE, SearchQuery};
use a2a_registry_api::{Fragment, HighlightView, Hit, Interface, Summary};
use a2a_registry_core::text::{self, LINE, TEASER};
use a2a_registry_domain::timestamp::Timestamp;

use crate::pages::search::links::{FilterLinks, search_link};
use crate::pages::search::score_parts::ScoreView;
use crate::pages::single_filter_link;
use crate::pages::trust::{self, Badge};

const MAX_SHOWN_SKILLS: usize = 5;
pub(super) const TAGS: usize = 8;
const MAX_INTERFACES: usize = 20;
const MAX_BINDINGS: usize = 4;

/// A hit with values that depend on the query and the time.
pub(crate) struct HitView {
    pub hit: Hit,
    pub name: Vec<HighlightPart>,
    pub description: Vec<HighlightPart>,
    pub skills: Vec<SkillView>,
    pub tags: Vec<TagView>,
    /// Time of the last fetch of the card, if it succeeded.
    pub fetched: Option<String>,
    pub badges: Vec<Badge>,
    pub score: Option<ScoreView>,
    /// Link to the same search with all duplicates; empty without duplicates.
    pub unfolded: String,
}

/// Part of a highlighted text, matched or not.
pub(crate) struct HighlightPart {
    pub text: String,
    pub matched: bool,
}

pub(crate) struct SkillView {
    pub name: Vec<HighlightPart>,
    pub matched: bool,
    /// Highlighted excerpt of the description, otherwise of an example; empty without a match.
    pub excerpt: Vec<HighlightPart>,
}

pub(crate) struct TagView {
    pub label: String,
    pub link: String,
    pub chosen: bool,
}

impl HitView {
    /// View of a hit; its tags link to the search with one more tag.
    pub fn new(hit: Hit, query: &SearchQuery, tag_links: &FilterLinks, now: Timestamp) -> Self {
        let summary = &hit.summary;
        let highlights = &hit.matched.highlights;
        let description = summary.description.as_deref().unwrap_or_default();
        Self {
            name: highlight_parts(
                find_highlight_fragments(highlights, "name", None),
                &summary.name,
                LINE,
            ),
            description: highlight_parts(
                find_highlight_fragments(highlights, "description", None),
                description,
                TEASER,
            ),
            skills: skill_views(&hit),
            tags: summary
                .tags
                .iter()
                .take(TAGS)
                .map(|tag| TagView::new(tag, tag_links))
                .collect(),
            fetched: Some(trust::liveness_badge(&summary.liveness, now))
                .filter(|badge| badge.tone == "good")
                .map(|badge| badge.label),
            badges: trust::agent_badges(summary, now),
            score: ScoreView::new(&hit, query.explain == Some(true)),
            unfolded: match hit.matched.duplicates {
                Some(_) => search_link(query, |query| query.group = Some(GROUP_NONE.to_owned())),
                None => String::new(),
            },
            hit,
        }
    }
}

impl TagView {
    /// Tag view. A tag selected in the query links to the search for that tag alone; other tags narrow this search.
    fn new(tag: &str, tag_links: &FilterLinks) -> Self {
        let chosen = tag_links.selected.iter().any(|one| one == tag);
        Self {
            label: text::single_line(tag, 40),
            link: if chosen {
                single_filter_link("tag", tag)
            } else {
                tag_links.link_with_value(tag)
            },
            chosen,
        }
    }
}

/// Distinct bindings of these interfaces with their protocol versions.
pub(super) fn interface_binding_labels(interfaces: &[Interface]) -> Vec<String> {
    let mut bindings: Vec<String> = Vec::new();
    for interface in interfaces.iter().take(MAX_INTERFACES) {
        let version = interface
            .protocol_version
            .as_deref()
            .unwrap_or("(no version)");
        let label = format!(
            "{} {}",
            text::single_line(&interface.binding, 40),
            text::single_line(version, 12)
        );
        if !bindings.contains(&label) && bindings.len() < MAX_BINDINGS {
            bindings.push(label);
        }
    }
    bindings
}

/// Number of skills that are not shown.
pub(super) fn omitted_skill_count(summary: &Summary) -> usize {
    let all = usize::try_from(summary.skills_total).unwrap_or(usize::MAX);
    all.saturating_sub(MAX_SHOWN_SKILLS)
}

/// Skills to show, matching ones first.
fn skill_views(hit: &Hit) -> Vec<SkillView> {
    let matched = |id: &str| hit.matched.matched_skills.iter().any(|other| other == id);
    let mut skills: Vec<_> = hit.summary.skills.iter().collect();
    skills.sort_by_key(|skill| !matched(&skill.id));
    skills
        .into_iter()
        .take(MAX_SHOWN_SKILLS)
        .map(|skill| {
            let highlights = &hit.matched.highlights;
            let excerpt =
                find_highlight_fragments(highlights, "skill.description", Some(&skill.id)).or_else(
                    || find_highlight_fragments(highlights, "skill.example", Some(&skill.id)),
                );
            SkillView {
                name: highlight_parts(
                    find_highlight_fragments(highlights, "skill.name", Some(&skill.id)),
                    &skill.name,
                    80,
                ),
                matched: matched(&skill.id),
                excerpt: excerpt
                    .map(|_| highlight_parts(excerpt, "", 200))
                    .unwrap_or_default(),
            }
        })
        .collect()
}

fn find_highlight_fragments<'a>(
    highlights: &'a [HighlightView],
    field: &str,
    skill: Option<&str>,
) -> Option<&'a [Fragment]> {
    highlights
        .iter()
        .find(|highlight| highlight.field == field && highlight.skill.as_deref() == skill)
        .map(|highlight| highlight.fragments.as_slice())
}

/// Splits a highlighted text into parts, or returns the plain text without a match. The limit applies to all parts
/// together.
fn highlight_parts(
    fragments: Option<&[Fragment]>,
    plain: &str,
    limit: usize,
) -> Vec<HighlightPart> {
    let Some(fragments) = fragments else {
        return vec![HighlightPart {
            text: text::single_line(plain, limit),
            matched: false,
        }];
    };
    let mut chars_left = limit;
    let mut parts = Vec::new();
    for fragment in fragments {
        if chars_left == 0 {
            break;
        }
        let text = text::single_line(&fragment.text, chars_left);
        chars_left = chars_left.saturating_sub(text.chars().count());
        parts.push(HighlightPart {
            text,
            matched: fragment.matched,
        });
    }
    parts
}
