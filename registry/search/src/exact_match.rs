//! Exact matches: agents that have the whole query as their name, a tag, the name or id of a skill, or their
//! identifier. However near others are in meaning, whoever writes a name means the agent that has it.

use a2a_registry_domain::facet::Facet;
use tantivy::postings::SegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader};

use super::keys::{KeyField, KeyKind, visit_prefixed_terms};
use super::schema::SUGGESTION_MARK;
use super::suggestion_kind::SuggestionKind;
use super::text_folding::fold_text;

/// Maximum number of spellings of a name that are compared in a segment: in capitals, with accents and so on.
const MAX_SPELLINGS: usize = 16;

/// Finds exact matches of a query.
#[derive(Debug, Clone)]
pub(super) struct ExactMatcher {
    keys: KeyField,
    text: String,
}

impl ExactMatcher {
    pub fn new(keys: KeyField, text: &str) -> Self {
        Self {
            keys,
            text: text.trim().to_owned(),
        }
    }

    pub fn open_segment(&self, reader: &SegmentReader) -> tantivy::Result<ExactMatchSegment> {
        let index = self.keys.inverted_index(reader)?;
        let mut postings = Vec::new();
        for (kind, value) in [
            (KeyKind::Facet(Facet::Tag), self.text.to_lowercase()),
            (KeyKind::Facet(Facet::Skill), self.text.clone()),
            (KeyKind::Identifier, self.text.clone()),
        ] {
            let term = self.keys.term(kind, &value);
            postings.extend(index.read_postings(&term, IndexRecordOption::Basic)?);
        }
        let folded = fold_text(&self.text);
        for kind in [SuggestionKind::Name, SuggestionKind::Skill] {
            let first = KeyKind::Suggestion(kind).encode(&format!("{folded}{SUGGESTION_MARK}"));
            let mut compared = 0;
            visit_prefixed_terms(index.terms(), &first, |_, spelling| {
                compared += 1;
                postings
                    .push(index.read_postings_from_terminfo(spelling, IndexRecordOption::Basic)?);
                tantivy::Result::Ok(compared < MAX_SPELLINGS)
            })?;
        }
        Ok(ExactMatchSegment { postings })
    }
}

/// The exact matches in one segment.
pub(super) struct ExactMatchSegment {
    postings: Vec<SegmentPostings>,
}

impl ExactMatchSegment {
    /// Whether this document is an exact match. Documents must ascend between calls.
    pub fn advance_and_check(&mut self, document: DocId) -> bool {
        let mut is_exact = false;
        for postings in &mut self.postings {
            if postings.doc() < document {
                postings.seek(document);
            }
            is_exact |= postings.doc() == document;
        }
        is_exact
    }
}
