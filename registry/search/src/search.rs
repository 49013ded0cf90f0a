//! Search execution: filter, text, page, hits.

use std::sync::Arc;

use a2a_registry_domain::trust::TrustLevel;
use tantivy::collector::Count;
use tantivy::query::{EnableScoring, Query};
use tantivy::schema::Value;
use tantivy::{Searcher, TantivyDocument};

use super::analysis::{AnalyzedQuery, analyze_query};
use super::error::IndexError;
use super::explainable_query::ScoreExplainer;
use super::facets::RequestedFacets;
use super::filter::{
    DocumentFilter, FilterClause, any_condition_clause, filter_clauses, listed_clause,
    lookup_clause, trust_clause, unlisted_clause,
};
use super::filtered_query::FilteredQuery;
use super::highlight::Highlighter;
use super::hybrid_ranking::{HybridMode, HybridRanker};
use super::label_matching::MAX_LABELS;
use super::page_collector::{
    CollectedPage, PageCollector, PageEntry, SortKey, position_matches_sort_key, sort_key,
};
use super::query_expansion::{expand_prefix, expand_query};
use super::query_parser::{self, ParsedQuery};
use super::ranking::rank_matches;
use super::rendered_hits::{insert_rendered_skills, rendered_catalog_entry, rendered_hit};
use super::request::{
    Filters, MAX_EXPLAINED_HITS, MAX_HITS, RequestedHitParts, SearchRequest, SemanticQuery,
    SortOrder, SortValue,
};
use super::rescore::Rescorer;
use super::response::{BoundedHits, HitRow, IndexSearchResponse};
use super::semantic_neighbors::SemanticNeighbors;
use super::statistics::{CorpusStatistics, QueryStatistics};
use super::text_query::TextQueryBuilder;
use super::visible_agents::LazyVisibleAgents;
use super::{Index, IndexInner, IndexView};

/// Queries of up to this many words count as keywords, which rank full-text matches first.
const SHORT_QUERY_WORDS: usize = 2;

const MAX_LOOKUP_HITS: usize = 100;

/// A request compiled for one state of the index.
pub(super) struct PreparedQuery {
    pub view: IndexView,
    pub query: AnalyzedQuery,
    pub filter: DocumentFilter,
    pub text: Option<Box<dyn Query>>,
    pub statistics: Arc<QueryStatistics>,
    pub rescorer: Option<Rescorer>,
    pub parsed: ParsedQuery,
    /// Nearest neighbors to combine with the full-text matches, if requested.
    pub hybrid: Option<HybridRanker>,
    /// Prefixes with more words than are searched.
    pub cut_prefixes: Vec<String>,
}

impl PreparedQuery {
    pub fn filtered_query(&self) -> FilteredQuery {
        let Some(blend) = &self.hybrid else {
            return self.text_query();
        };
        let words = self.text.as_ref().filter(|_| blend.uses_text());
        let query = FilteredQuery::for_text_and_neighbors(
            words.map(|words| words.box_clone()),
            Arc::clone(&blend.neighbors),
            self.filter.clone(),
        );
        query.with_statistics(Arc::clone(&self.statistics))
    }

    /// The query that explains a hit's full-text score in this order; `None` if full text does not count in it.
    fn text_query_to_explain(
        &self,
        query: &FilteredQuery,
        order: SortKey,
    ) -> Option<FilteredQuery> {
        match &self.hybrid {
            // Only the order by relevance combines both scores.
            Some(blend) if order == SortKey::Score => blend.uses_text().then(|| self.text_query()),
            _ => Some(query.clone()),
        }
    }

    fn text_query(&self) -> FilteredQuery {
        let words = self.text.as_ref().map(|words| words.box_clone());
        FilteredQuery::new(words, self.filter.clone()).with_statistics(Arc::clone(&self.statistics))
    }
}

impl IndexInner {
    /// The filter of these conditions for a caller with these labels.
    pub(super) fn document_filter(
        &self,
        view: &IndexView,
        clauses: Vec<FilterClause>,
        labels: &[String],
    ) -> DocumentFilter {
        let excluded = Arc::clone(&view.overlay_exclusions);
        DocumentFilter::new(
            &self.fields,
            clauses,
            excluded,
            labels,
            self.filter_cache.clone(),
        )
    }

    /// The agents that a search without filters finds for a caller with these labels.
    pub(super) fn visible_agents(
        &self,
        view: &IndexView,
        labels: &[String],
    ) -> Result<LazyVisibleAgents, IndexError> {
        let everyone = filter_clauses(&self.fields, &Filters::default())?;
        Ok(LazyVisibleAgents::new(
            self.document_filter(view, everyone, labels),
        ))
    }

    pub(super) fn prepare_query(
        &self,
        request: &SearchRequest,
    ) -> Result<PreparedQuery, IndexError> {
        let parsed = request
            .text
            .as_deref()
            .map(query_parser::parse_query)
            .unwrap_or_default();
        let all_clauses = self.all_clauses(&request.filters, &parsed)?;
        let mut query = analyze_query(&parsed.words);
        let view = self.current_view()?;
        let statistics = self.class_statistics(&view, &request.class_labels)?;
        let visible_to = &request.visible_to;
        let cut_prefixes =
            self.expand_words(&mut query, &parsed, visible_to, &view, &statistics)?;
        // Only the order by relevance is rescored.
        let rescorer = match request.sort {
            SortOrder::Relevance => Rescorer::new(&statistics, &self.fields, &query, &parsed)?,
            _ => None,
        };
        let text_builder = TextQueryBuilder {
            fields: &self.fields,
            parsed: &parsed,
            query: &query,
        };
        let filter = self.document_filter(&view, all_clauses, &request.visible_to);
        let text = text_builder.build(&parsed);
        let scored = text
            .as_deref()
            .filter(|_| request.sort == SortOrder::Relevance || request.explain);
        let query_statistics = Arc::new(statistics.for_query(scored)?);
        // Without a text every agent matches, so neighbors add nothing.
        let hybrid = match request.semantic.as_ref().filter(|_| text.is_some()) {
            Some(meaning) => {
                Some(self.build_hybrid_ranker(meaning, &text_builder, &view.searcher, &filter)?)
            }
            None => None,
        };
        Ok(PreparedQuery {
            filter,
            text,
            statistics: query_statistics,
            rescorer: rescorer.filter(|_| hybrid.as_ref().is_none_or(HybridRanker::uses_text)),
            hybrid,
            parsed,
            cut_prefixes,
            view,
            query,
        })
    }

    /// Expands the words of a query and adds those of its prefixes. Returns the prefixes with more words than are
    /// searched.
    fn expand_words(
        &self,
        query: &mut AnalyzedQuery,
        parsed: &ParsedQuery,
        visible_to: &[String],
        view: &IndexView,
        statistics: &CorpusStatistics,
    ) -> Result<Vec<String>, IndexError> {
        let mut cut_prefixes = Vec::new();
        if query.words.is_empty() && parsed.prefixes.is_empty() {
            return Ok(cut_prefixes);
        }
        expand_query(&self.fields, query, statistics)?;
        if parsed.prefixes.is_empty() {
            return Ok(cut_prefixes);
        }
        let mut visible = self.visible_agents(view, visible_to)?;
        for prefix in &parsed.prefixes {
            let begun = expand_prefix(
                &view.searcher,
                &self.fields,
                prefix,
                &mut visible,
                statistics,
            )?;
            if begun.truncated {
                cut_prefixes.push(prefix.clone());
            }
            query.words.push(begun.word);
        }
        Ok(cut_prefixes)
    }

    /// The nearest neighbors of a query, and how they are combined with its full-text matches.
    fn build_hybrid_ranker(
        &self,
        semantic: &SemanticQuery,
        text_builder: &TextQueryBuilder<'_>,
        searcher: &Searcher,
        filter: &DocumentFilter,
    ) -> Result<HybridRanker, IndexError> {
        let required = text_builder.required_query();
        let mode = match semantic.semantic_only {
            true => HybridMode::SemanticOnly,
            false if required.is_some() || !text_builder.parsed.conditions.is_empty() => {
                HybridMode::TextFirst
            }
            false if text_builder.query.words.len() <= SHORT_QUERY_WORDS => HybridMode::TextFirst,
            false => HybridMode::WeightedSum,
        };
        let tables = &self.slot_cache;
        let neighbors = SemanticNeighbors::find_nearest(
            searcher,
            filter,
            required.as_deref(),
            semantic,
            tables,
        )?;
        Ok(HybridRanker {
            neighbors: Arc::new(neighbors),
            mode,
        })
    }

    /// The conditions of the filters and of the query syntax.
    pub(super) fn all_clauses(
        &self,
        filters: &Filters,
        parsed: &ParsedQuery,
    ) -> Result<Vec<FilterClause>, IndexError> {
        let mut all_clauses = filter_clauses(&self.fields, filters)?;
        let written = parsed.conditions.iter();
        all_clauses.extend(written.map(|any| any_condition_clause(&self.fields, any)));
        Ok(all_clauses)
    }

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
            weak: position.weak,
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
}

fn new_page_collector(
    request: &SearchRequest,
    view: &IndexView,
    sort_key: SortKey,
) -> Result<PageCollector, IndexError> {
    Ok(PageCollector {
        sort_key,
        // One hit more than the page holds shows whether another page follows; without a page only counts are needed.
        limit: match request.limit {
            0 => 0,
            limit => limit + 1,
        },
        after: request.after.clone(),
        facets: RequestedFacets::new(request.facets.clone(), Arc::clone(&view.precomputed_facets)),
        neighbors: None,
        groups: match request.group_duplicates && request.limit > 0 {
            true => Some(view.groups.get_or_compute(&view.searcher)?),
            false => None,
        },
    })
}

impl Index {
    /// Searches the index. Any text is valid. Fails with [`IndexError::Behind`] if more agents changed than can be
    /// hidden, with [`IndexError::TooMany`] beyond a limit, and with [`IndexError::PositionMismatch`] if
    /// [`after`](SearchRequest::after) belongs to another sort order.
    pub fn search(&self, request: &SearchRequest) -> Result<IndexSearchResponse, IndexError> {
        check_request_limits(request)?;
        let inner = &*self.0;
        let prepared = inner.prepare_query(request)?;
        let sort_key = sort_key(request.sort, prepared.text.is_some());
        if request
            .after
            .as_ref()
            .is_some_and(|position| !position_matches_sort_key(sort_key, position))
        {
            return Err(IndexError::PositionMismatch);
        }
        let page = new_page_collector(request, &prepared.view, sort_key)?;
        let searcher = &prepared.view.searcher;
        let query = prepared.filtered_query();
        let CollectedPage {
            total,
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
        let hits = inner.load_hits(entries, &prepared, explained, request)?;
        let has_more = has_next_page || hits.len() < found_count;
        let facets = page
            .facets
            .count_facet_values(searcher, &inner.fields, matches)?;
        let hints = inner.build_hints(request, &prepared, total, hits.first())?;
        Ok(IndexSearchResponse {
            hits,
            has_more,
            total,
            groups: page.groups.as_ref().map(|_| groups),
            facets,
            hints,
            applied_seq: prepared.view.applied_seq,
            generation: prepared.view.generation,
            overlay_version: prepared.view.overlay_version,
        })
    }

    /// Counts all matches, ignoring the page and facets of the request.
    pub fn count_matches(&self, request: &SearchRequest) -> Result<u64, IndexError> {
        check_request_limits(request)?;
        let prepared = self.0.prepare_query(request)?;
        let count = prepared
            .view
            .searcher
            .search(&prepared.filtered_query(), &Count)?;
        Ok(count as u64)
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
            let page = PageCollector {
                sort_key: SortKey::Updated,
                limit: limit - hits.len(),
                after: None,
                facets: RequestedFacets::default(),
                neighbors: None,
                groups: None,
            };
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
