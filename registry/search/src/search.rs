//! Search execution: filter, text, page, hits.

use std::sync::Arc;

use a2a_registry_domain::trust::TrustLevel;
use tantivy::collector::Count;
use tantivy::query::{EnableScoring, Query};
use tantivy::schema::Value;
use tantivy::{Searcher, TantivyDocument};

use super::error::IndexError;
use super::facets::RequestedFacets;
use super::filter::{failed_clause, listed_clause, lookup_clause, trust_clause, unlisted_clause};
use super::filtered_query::FilteredQuery;
use super::highlight::Highlighter;
use super::label_matching::MAX_LABELS;
use super::page_collector::{
    CollectedPage, PageCollector, SortKey, position_matches_sort_key, sort_key,
};
use super::page_entry::PageEntry;
use super::prepared_query::PreparedQuery;
use super::ranking::rank_matches;
use super::rendered_hits::{insert_rendered_skills, rendered_catalog_entry, rendered_hit};
use super::request::{
    Filters, LeftOutAgents, MAX_EXPLAINED_HITS, MAX_HITS, RequestedHitParts, SearchRequest,
    SortValue,
};
use super::response::{BoundedHits, HitRow, IndexSearchResponse};
use super::score_explainer::ScoreExplainer;
use super::{Index, IndexInner};

const MAX_LOOKUP_HITS: usize = 100;

impl IndexInner {
    /// Loads the hits of a page that fit into the request's bytes. `explained` is set if explanations are requested;
    /// it contains the text query, if full text counts.
    fn load_hits(
        &self,
        entries: Vec<PageEntry>,
        prepared: &PreparedQuery,
        explained_query: Option<Option<FilteredQuery>>,
        request: &SearchRequest,
    ) -> Result<Vec<HitRow>, IndexError> {
        let searcher = &prepared.view.searcher;
        let highlighter = Highlighter::new(&prepared.query.words);
        let is_explained = explained_query.is_some();
        let scoring = EnableScoring::enabled_from_searcher(searcher);
        let weight = explained_query.flatten().map(|words| words.weight(scoring));
        let weight = weight.transpose()?;
        let (weight, parts) = (weight.as_deref(), request.parts);
        let (fields, computes) = (&self.fields, parts.computation);
        let explainer = || ScoreExplainer::new(prepared, fields, weight, &highlighter, computes);
        let explain = is_explained.then(explainer);
        let mut page = BoundedHits::new(request.max_bytes);
        for (place, entry) in entries.into_iter().enumerate() {
            let explain = explain.filter(|_| place < MAX_EXPLAINED_HITS);
            if !page.push(self.load_hit(searcher, entry, &highlighter, explain, parts)?) {
                break;
            }
        }
        Ok(page.hits)
    }

    /// Loads a hit. `explain` is set if explanations are requested.
    pub(super) fn load_hit(
        &self,
        searcher: &Searcher,
        entry: PageEntry,
        highlighter: &Highlighter,
        explainer: Option<ScoreExplainer<'_>>,
        parts: RequestedHitParts,
    ) -> Result<HitRow, IndexError> {
        let PageEntry {
            position,
            weak,
            address,
            rescore_bonus: added,
            hybrid_score: blended,
            duplicates,
        } = entry;
        let stored: TantivyDocument = searcher.doc(address)?;
        let text = |field| stored.get_first(field).and_then(|value| value.as_str());
        let joined_texts = text(self.fields.text).unwrap_or_default();
        let (highlights, skills) = match !highlighter.is_empty() && (parts.hit || parts.highlights)
        {
            true => highlighter.find_matches(joined_texts, parts.highlights),
            false => Default::default(),
        };
        let hit = match parts.hit {
            true => {
                let shown = text(self.fields.rendered_skills).unwrap_or_default();
                let numbers = skills.iter().map(|skill| skill.index);
                insert_rendered_skills(rendered_hit(&stored, &self.fields), shown, numbers)
            }
            false => Vec::new(),
        };
        let entry = match parts.catalog_entry {
            true => rendered_catalog_entry(&stored, &self.fields).to_vec(),
            false => Vec::new(),
        };
        let explain = explainer
            .map(|explainer| {
                explainer.explain_score(address, &position.value, added, blended, joined_texts)
            })
            .transpose()?;
        let matched_skills = skills.into_iter().map(|skill| skill.id).collect();
        Ok(HitRow {
            id: position.id,
            weak,
            hit,
            catalog_entry: entry,
            score: match position.value {
                SortValue::Score(score) => Some(score),
                _ => None,
            },
            position,
            highlights,
            matched_skills,
            explain,
            duplicates,
        })
    }

    /// Counts the agents that a search leaves out, if its request asks for them.
    fn count_left_out(
        &self,
        request: &SearchRequest,
        prepared: &PreparedQuery,
    ) -> Result<u64, IndexError> {
        let Some(LeftOutAgents { exact, failed }) = &request.left_out else {
            return Ok(0);
        };
        let filters = Filters {
            exact: exact.clone(),
            ..request.filters.clone()
        };
        let mut clauses = self.filter_and_query_clauses(&filters, &prepared.parsed)?;
        clauses.push(failed_clause(&self.fields, failed));
        let filter = self.document_filter(&prepared.view, clauses, &request.visible_to);
        let searcher = &prepared.view.searcher;
        let mut candidates = 0;
        for reader in searcher.segment_readers() {
            candidates += filter.matching_docs(reader)?.len();
        }
        if candidates == 0 {
            // Opening the postings of the words would take longer than the filter.
            return Ok(0);
        }
        let text = prepared.text.as_ref().map(|text| text.box_clone());
        Ok(searcher.search(&FilteredQuery::new(text, filter), &Count)? as u64)
    }
}

fn new_page_collector(
    request: &SearchRequest,
    prepared: &PreparedQuery,
    sort_key: SortKey,
) -> Result<PageCollector, IndexError> {
    let view = &prepared.view;
    let neighbors = prepared.hybrid.as_ref().map(|hybrid| &hybrid.neighbors);
    Ok(PageCollector {
        sort_key,
        // One hit more than the page holds shows whether another page follows; without a page only counts are needed.
        limit: match request.limit {
            0 => 0,
            limit => limit + 1,
        },
        after: request.after.clone(),
        facets: RequestedFacets::new(request.facets.clone(), Arc::clone(&view.precomputed_facets)),
        neighbors: neighbors.map(Arc::clone),
        separates_neighbors: false,
        groups: match request.group_duplicates && request.limit > 0 {
            true => Some(view.groups.get_or_compute(&view.searcher)?),
            false => None,
        },
        fit: prepared.fit,
        only_fitting: request.only_fitting,
    })
}

impl Index {
    /// Searches the index. Any text is valid. Fails with [`IndexError::Behind`] if more agents changed than can be
    /// hidden, with [`IndexError::TooMany`] beyond a limit, and with [`IndexError::PositionMismatch`] if
    /// [`after`](SearchRequest::after) belongs to another sort order.
    pub fn search(&self, request: &SearchRequest) -> Result<IndexSearchResponse, IndexError> {
        check_request_limits(request)?;
        let prepared = self.0.prepare_query(request)?;
        let relaxed = prepared.parsed.relax_quotations();
        let Some(parsed) = relaxed.filter(|_| !request.is_test) else {
            return self.search_prepared(request, &prepared);
        };
        let as_written = match request.relaxes_quotations {
            true => None,
            false => Some(self.search_prepared(request, &prepared)?),
        };
        match as_written {
            Some(response) if response.total > 0 => Ok(response),
            as_written => {
                let prepared = self.0.prepare_parsed_query(request, parsed)?;
                let relaxed = self.search_prepared(request, &prepared)?;
                // If the words have no matches either, the hints of the query as it was written say more.
                let as_written = as_written.filter(|_| relaxed.total == 0);
                Ok(as_written.unwrap_or(relaxed))
            }
        }
    }

    fn search_prepared(
        &self,
        request: &SearchRequest,
        prepared: &PreparedQuery,
    ) -> Result<IndexSearchResponse, IndexError> {
        let inner = &*self.0;
        let sort_key = sort_key(request.sort, prepared.text.is_some());
        if request
            .after
            .as_ref()
            .is_some_and(|position| !position_matches_sort_key(sort_key, position))
        {
            return Err(IndexError::PositionMismatch);
        }
        let page = new_page_collector(request, prepared, sort_key)?;
        let searcher = &prepared.view.searcher;
        let query = prepared.filtered_query();
        let CollectedPage {
            total,
            total_fitting,
            group_count: groups,
            mut entries,
            matches,
            ..
        } = rank_matches(
            searcher,
            &query,
            &page,
            prepared.rescorer.as_ref(),
            prepared.hybrid.as_ref(),
        )?;

        let has_next_page = entries.len() > request.limit;
        entries.truncate(request.limit);
        let explained = request.explain && prepared.text.is_some();
        let explained = explained.then(|| prepared.text_query_to_explain(&query, sort_key));
        let found_count = entries.len();
        let hits = inner.load_hits(entries, prepared, explained, request)?;
        let has_more = has_next_page || hits.len() < found_count;
        let facets = page
            .facets
            .count_facet_values(searcher, &inner.fields, matches)?;
        let hints = inner.build_hints(request, prepared, total, total_fitting)?;
        let left_out = inner.count_left_out(request, prepared)?;
        Ok(IndexSearchResponse {
            hits,
            has_more,
            total,
            total_fitting,
            groups: page.groups.as_ref().map(|_| groups),
            left_out,
            facets,
            hints,
            has_relaxed_quotations: prepared.parsed.has_relaxed_quotations,
            applied_seq: prepared.view.applied_seq,
            generation: prepared.view.generation,
            overlay_version: prepared.view.overlay_version,
        })
    }

    /// Finds the agents with this exact key: listed ones first, then by trust level, then by last change. Unreachable
    /// agents (`gone`) are included, because a caller that looks up an address needs to know; so are unlisted ones, if
    /// the caller may see them.
    pub fn lookup_agents_by_key(
        &self,
        key: &str,
        visible_to: &[String],
        limit: usize,
    ) -> Result<Vec<HitRow>, IndexError> {
        if limit > MAX_LOOKUP_HITS {
            return Err(IndexError::TooMany {
                what: "hits",
                limit: MAX_LOOKUP_HITS,
            });
        }
        let inner = &*self.0;
        let fields = &inner.fields;
        let view = inner.current_view()?;
        let mut hits = Vec::new();
        // From the highest trust level down; agents without a level come last.
        let levels = TrustLevel::ALL.iter().rev().map(|level| level.as_str());
        let levels = levels.chain(["none"]);
        let by_trust = levels.map(|level| vec![listed_clause(fields), trust_clause(fields, level)]);
        for mut clauses in by_trust.chain([vec![unlisted_clause(fields)]]) {
            if hits.len() == limit {
                break;
            }
            clauses.push(lookup_clause(fields, key));
            let page = PageCollector::new(SortKey::Updated, limit - hits.len());
            let query = FilteredQuery::new(None, inner.document_filter(&view, clauses, visible_to));
            for entry in view.searcher.search(&query, &page)?.entries {
                let none = Highlighter::new(&[]);
                hits.push(inner.load_hit(
                    &view.searcher,
                    entry,
                    &none,
                    None,
                    RequestedHitParts::default(),
                )?);
            }
        }
        Ok(hits)
    }
}

pub(super) fn check_request_limits(request: &SearchRequest) -> Result<(), IndexError> {
    let labels = request.visible_to.len().max(request.class_labels.len());
    for (requested, limit, what) in [
        (request.limit, MAX_HITS, "hits"),
        (labels, MAX_LABELS, "visibility labels"),
    ] {
        if requested > limit {
            return Err(IndexError::TooMany { what, limit });
        }
    }
    Ok(())
}
