//! Hits for a page of a frozen order, in their current state.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use tantivy::query::Weight;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Score};
use uuid::Uuid;

use super::answer::{BoundedHits, HitRow};
use super::collect::PageEntry;
use super::error::IndexError;
use super::explained::Explainer;
use super::frozen::FrozenPlace;
use super::highlight::Highlighter;
use super::request::{MAX_EXPLAINED, SearchRequest, SortPosition, SortValue};
use super::rescore::{RESCORED, RescoreGain};
use super::search::PreparedQuery;
use super::{Index, Inner};

/// The most ids of one [`Index::fetch`].
const MAX_FETCH: usize = 1_000;

/// The hits of a page of a frozen order.
#[derive(Debug, Clone, Default)]
pub struct FetchedHits {
    /// The hits.
    pub hits: Vec<HitRow>,
    /// How many of the places they are of, visible or not: the next page begins behind them.
    pub places: usize,
}

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
            let terms = self.fields.keys.index(reader)?;
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

    /// The agents among these that pass the filter.
    fn passing(
        &self,
        ids: &HashSet<Uuid>,
        prepared: &PreparedQuery,
    ) -> Result<HashSet<Uuid>, IndexError> {
        let mut passing = HashSet::with_capacity(ids.len());
        for reader in prepared.view.searcher.segment_readers() {
            let bits = prepared.filter.bits(reader)?;
            let terms = self.fields.keys.index(reader)?;
            for id in ids {
                let term = self.fields.id_term(*id);
                if let Some(postings) = terms.read_postings(&term, IndexRecordOption::Basic)?
                    && bits.among(postings).next().is_some()
                {
                    passing.insert(*id);
                }
            }
        }
        Ok(passing)
    }

    /// The same places without duplicates that no longer pass the filter. Where the first of a group does not, the next
    /// one that does takes its place.
    fn still_allowed<'a>(
        &self,
        places: &'a [FrozenPlace],
        prepared: &PreparedQuery,
    ) -> Result<Cow<'a, [FrozenPlace]>, IndexError> {
        let groups = places.iter().filter_map(|place| {
            let duplicates = place.duplicates.as_ref()?;
            Some(duplicates.agents.iter().chain([&place.id]))
        });
        let ids: HashSet<Uuid> = groups.flatten().copied().collect();
        if ids.is_empty() {
            return Ok(Cow::Borrowed(places));
        }
        let passing = self.passing(&ids, prepared)?;
        let mut allowed = places.to_vec();
        for place in &mut allowed {
            let Some(duplicates) = &mut place.duplicates else {
                continue;
            };
            let known = duplicates.agents.len();
            duplicates.agents.retain(|id| passing.contains(id));
            if !passing.contains(&place.id) && !duplicates.agents.is_empty() {
                place.id = duplicates.agents.remove(0);
            }
            let gone = known - duplicates.agents.len();
            duplicates.count = duplicates.count.saturating_sub(gone as u64);
            if duplicates.count == 0 {
                place.duplicates = None;
            }
        }
        Ok(Cow::Owned(allowed))
    }
}

impl Index {
    /// Current hits of these places of a frozen order, for a page that begins at `place`, counted from 0. Agents that
    /// the request's filters and labels do not (or no longer) allow, that changed since the last commit, or that were
    /// removed are left out. Scores, highlights and matched skills are those of the request's text; an agent that no
    /// longer matches it has no score. Semantic scores are those of the frozen order: the request's own vector is
    /// ignored. The hits end where they would exceed the request's bytes.
    ///
    /// # Errors
    /// The errors of [`search`](Self::search); [`IndexError::TooMany`] beyond 1 000 ids.
    pub fn fetch(
        &self,
        places: &[FrozenPlace],
        place: usize,
        request: &SearchRequest,
    ) -> Result<FetchedHits, IndexError> {
        check_count(places)?;
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
        let places = inner.still_allowed(places, &prepared)?;
        let mut found = inner.scored(&places, &prepared, weight.as_deref())?;
        let words = Highlighter::new(&prepared.query.words);
        let mut entries = Vec::with_capacity(found.len());
        let mut scored = Vec::with_capacity(found.len());
        for (frozen, place) in places.iter().zip(place..) {
            let Some((address, score)) = found.remove(&frozen.id) else {
                continue;
            };
            let matches_words = score.is_some();
            let has_score = matches_words || frozen.blended.is_some();
            scored.push((has_score, matches_words, frozen.weak, place));
            entries.push(entry(frozen, address, score));
        }
        if let Some(rescorer) = &prepared.rescorer {
            let again = scored.partition_point(|(.., place)| *place < RESCORED);
            rescorer.rescore(searcher, &mut entries[..again])?;
        }
        let computes = request.parts.computation;
        let explainer = || Explainer::new(&prepared, &inner.fields, None, &words, computes);
        let explainer = (request.explain && weight.is_some()).then(explainer);
        let mut page = BoundedHits::new(request.max_bytes);
        let mut read = places.len();
        for (mut entry, (scored, matches_words, weak, at)) in entries.into_iter().zip(scored) {
            // The order stays that of the first page, and with it what was weak.
            entry.position.weak = weak;
            if let Some(blended) = entry.blended {
                entry.position.value = SortValue::Score(blended.score());
            }
            // The agent's words may have changed since the order was frozen.
            let words_asked = weight.as_deref().filter(|_| matches_words);
            let explain = explainer.filter(|_| scored && page.hits.len() < MAX_EXPLAINED);
            let explain = explain.map(|explainer| explainer.with_words(words_asked));
            let mut hit = inner.hit(searcher, entry, &words, explain, request.parts)?;
            hit.score = hit.score.filter(|_| scored);
            if !page.push(hit) {
                read = at - place;
                break;
            }
        }
        let (hits, places) = (page.hits, read);
        Ok(FetchedHits { hits, places })
    }
}

/// Refuses more places than one call may read.
const fn check_count(places: &[FrozenPlace]) -> Result<(), IndexError> {
    let (what, limit) = ("ids", MAX_FETCH);
    match places.len() > MAX_FETCH {
        true => Err(IndexError::TooMany { what, limit }),
        false => Ok(()),
    }
}

/// The entry of a place of a frozen order, with its present full-text score.
fn entry(frozen: &FrozenPlace, address: DocAddress, score: Option<Score>) -> PageEntry {
    PageEntry {
        position: SortPosition {
            weak: frozen.weak,
            value: SortValue::Score(score.unwrap_or(0.0)),
            id: frozen.id,
        },
        added: RescoreGain::default(),
        blended: frozen.blended.as_deref().copied(),
        duplicates: frozen.duplicates.as_deref().cloned(),
        address,
    }
}
