//! Hits for a page of a frozen order, in their current state.

use std::collections::HashMap;

use tantivy::query::Weight;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Score};
use uuid::Uuid;

use super::answer::HitRow;
use super::collect::PageEntry;
use super::error::IndexError;
use super::frozen::FrozenPlace;
use super::highlight::Highlighter;
use super::request::{SearchRequest, SortPosition, SortValue};
use super::rescore::{RESCORED, RescoreGain};
use super::search::PreparedQuery;
use super::{Index, Inner};

/// The most ids of one [`Index::fetch`].
const MAX_FETCH: usize = 1_000;

impl Inner {
    /// Addresses of the agents at these places that pass the filter, each with its full-text score, or `None` if the
    /// text does not match it.
    fn scored(
        &self,
        places: &[FrozenPlace],
        prepared: &PreparedQuery,
        weight: Option<&dyn Weight>,
    ) -> Result<HashMap<Uuid, (DocAddress, Option<Score>)>, IndexError> {
        let mut found = HashMap::new();
        for (ordinal, reader) in (0..).zip(prepared.view.searcher.segment_readers()) {
            let bits = prepared.filter.bits(reader)?;
            let terms = reader.inverted_index(self.fields.id)?;
            let mut documents = Vec::new();
            for FrozenPlace { id, .. } in places {
                let term = self.fields.id_term(*id);
                if let Some(postings) = terms.read_postings(&term, IndexRecordOption::Basic)? {
                    let living = bits.among(postings);
                    documents.extend(living.map(|document| (document, *id)));
                }
            }
            if documents.is_empty() {
                continue;
            }
            documents.sort_unstable();
            let mut scorer = weight
                .map(|weight| weight.scorer(reader, 1.0))
                .transpose()?;
            for (document, id) in documents {
                let mut score = None;
                if let Some(scorer) = &mut scorer {
                    if scorer.doc() < document {
                        scorer.seek(document);
                    }
                    score = (scorer.doc() == document).then(|| scorer.score());
                }
                found.insert(id, (DocAddress::new(ordinal, document), score));
            }
        }
        Ok(found)
    }
}

impl Index {
    /// Current hits of these places of a frozen order, for a page that begins at `place`, counted from 0. Agents that
    /// the request's filters and labels do not (or no longer) allow, that changed since the last commit, or that were
    /// removed are left out. Scores, highlights and matched skills are those of the request's text; an agent that no
    /// longer matches it has no score. Semantic scores are those of the frozen order: the request's own vector is
    /// ignored.
    ///
    /// # Errors
    /// The errors of [`search`](Self::search); [`IndexError::TooMany`] beyond 1 000 ids.
    pub fn fetch(
        &self,
        places: &[FrozenPlace],
        place: usize,
        request: &SearchRequest,
    ) -> Result<Vec<HitRow>, IndexError> {
        if places.len() > MAX_FETCH {
            let (what, limit) = ("ids", MAX_FETCH);
            return Err(IndexError::TooMany { what, limit });
        }
        let inner = &*self.0;
        let prepared = inner.prepare(&SearchRequest {
            meaning: None,
            ..request.clone()
        })?;
        let searcher = &prepared.view.searcher;
        let weight = match &prepared.text {
            Some(text) => Some(prepared.statistics.weight(text.as_ref(), searcher)?),
            None => None,
        };
        let mut found = inner.scored(places, &prepared, weight.as_deref())?;
        let words = Highlighter::new(&prepared.query.words);
        let explaining = request.explain && weight.is_some();
        let mut entries = Vec::with_capacity(found.len());
        let mut scored = Vec::with_capacity(found.len());
        for (FrozenPlace { id, weak, blended }, place) in places.iter().zip(place..) {
            let Some((address, score)) = found.remove(id) else {
                continue;
            };
            let matches_words = score.is_some();
            scored.push((
                matches_words || blended.is_some(),
                matches_words,
                *weak,
                place,
            ));
            let position = SortPosition {
                weak: *weak,
                value: SortValue::Score(score.unwrap_or(0.0)),
                id: *id,
            };
            entries.push(PageEntry {
                position,
                added: RescoreGain::default(),
                blended: blended.as_deref().copied(),
                address,
            });
        }
        if let Some(rescorer) = &prepared.rescorer {
            let again = scored.partition_point(|(.., place)| *place < RESCORED);
            rescorer.rescore(searcher, &mut entries[..again])?;
        }
        let mut hits = Vec::with_capacity(entries.len());
        for (mut entry, (scored, matches_words, weak, _)) in entries.into_iter().zip(scored) {
            // The order stays that of the first page, and with it what was weak.
            entry.position.weak = weak;
            if let Some(blended) = entry.blended {
                entry.position.value = SortValue::Score(blended.score());
            }
            // The agent's words may have changed since the order was frozen.
            let words_asked = weight.as_deref().filter(|_| matches_words);
            let explain = (explaining && scored).then_some(words_asked);
            let mut hit = inner.hit(searcher, entry, &words, explain)?;
            hit.score = hit.score.filter(|_| scored);
            hits.push(hit);
        }
        Ok(hits)
    }
}
