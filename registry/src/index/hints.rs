//! Hints for an answer without hits: which filter hides what, and which words nobody uses.

use tantivy::collector::Count;

use super::Inner;
use super::answer::{Hint, HintKind};
use super::error::IndexError;
use super::expansion::near;
use super::filter::clauses;
use super::query::{FilteredQuery, word_query};
use super::request::{FacetName, Filters, SearchRequest};
use super::search::Prepared;

/// The most words an unsuccessful search looks up one by one.
const MAX_WORDS: usize = 8;

impl Inner {
    /// The hints of a search with this many matches. All counts keep to what the caller may see.
    pub(super) fn hints(
        &self,
        request: &SearchRequest,
        prepared: &Prepared,
        total: u64,
    ) -> Result<Vec<Hint>, IndexError> {
        let mut hints = Vec::new();
        if prepared.query.cut {
            hints.push(Hint {
                kind: HintKind::TooManyWords,
                text: super::MAX_QUERY_WORDS.to_string(),
                hidden: None,
                near: Vec::new(),
            });
        }
        if prepared.misread {
            hints.push(Hint {
                kind: HintKind::Syntax,
                text: String::new(),
                hidden: None,
                near: Vec::new(),
            });
        }
        if total > 0 {
            return Ok(hints);
        }
        let count = |query: FilteredQuery| -> Result<u64, IndexError> {
            Ok(prepared.view.searcher.search(&query, &Count)? as u64)
        };

        let everyone = clauses(&self.fields, &Filters::default(), &request.visible_to)?;
        let everyone = self.filter(&prepared.view, everyone);
        for word in prepared.query.words.iter().take(MAX_WORDS) {
            let word_alone =
                FilteredQuery::new(Some(word_query(&self.fields, word)), everyone.clone());
            if count(word_alone)? == 0 {
                hints.push(Hint {
                    kind: HintKind::UnknownWord,
                    text: word.exact.clone(),
                    hidden: None,
                    near: near(&prepared.view.searcher, &self.fields, word, &everyone)?,
                });
            }
        }
        let lists = request.filters.lists();
        let mut used: Vec<FacetName> = lists
            .iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(facet, _)| *facet)
            .collect();
        used.extend(request.filters.trust_at_least.map(|_| FacetName::Trust));
        for facet in used {
            let clauses = clauses(
                &self.fields,
                &request.filters.without(facet),
                &request.visible_to,
            )?;
            let text = prepared.text.as_ref().map(|text| text.box_clone());
            let hidden = count(FilteredQuery::new(
                text,
                self.filter(&prepared.view, clauses),
            ))?;
            if hidden > 0 {
                hints.push(Hint {
                    kind: HintKind::Filter,
                    text: facet.as_str().to_owned(),
                    hidden: Some(hidden),
                    near: Vec::new(),
                });
            }
        }
        Ok(hints)
    }
}
