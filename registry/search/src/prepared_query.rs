//! Requests compiled for one state of the index.

use std::sync::Arc;

use tantivy::Searcher;
use tantivy::query::Query;

use super::analysis::{AnalyzedQuery, analyze_query};
use super::error::IndexError;
use super::exact_match::ExactMatcher;
use super::filter::{DocumentFilter, FilterClause, any_condition_clause, build_filter_clauses};
use super::filtered_query::FilteredQuery;
use super::fitting::FitModel;
use super::hybrid_ranking::HybridRanker;
use super::hybrid_score::HybridMode;
use super::page_collector::SortKey;
use super::query_expansion::{expand_prefix, expand_query};
use super::query_parser::{self, ParsedQuery};
use super::request::{Filters, SearchRequest, SemanticQuery, SortOrder};
use super::rescore::Rescorer;
use super::semantic_neighbors::SemanticNeighbors;
use super::statistics::{CorpusStatistics, QueryStatistics};
use super::text_query::TextQueryBuilder;
use super::visible_agents::LazyVisibleAgents;
use super::{IndexInner, IndexView};

/// A request compiled for one state of the index.
pub(super) struct PreparedQuery {
    pub view: IndexView,
    pub query: AnalyzedQuery,
    pub filter: DocumentFilter,
    pub text: Option<Box<dyn Query>>,
    pub statistics: Arc<QueryStatistics>,
    pub rescorer: Option<Rescorer>,
    pub parsed: ParsedQuery,
    /// Decides which matches fit; `None` if all do.
    pub fit: Option<FitModel>,
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
    pub fn text_query_to_explain(
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
            view.rule_labels.clone(),
        )
    }

    /// The agents that a search without filters finds for a caller with these labels.
    pub(super) fn visible_agents(
        &self,
        view: &IndexView,
        labels: &[String],
    ) -> Result<LazyVisibleAgents, IndexError> {
        let everyone = build_filter_clauses(&self.fields, &Filters::default())?;
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
        self.prepare_parsed_query(request, parsed)
    }

    /// Prepares a request whose text is parsed.
    pub(super) fn prepare_parsed_query(
        &self,
        request: &SearchRequest,
        parsed: ParsedQuery,
    ) -> Result<PreparedQuery, IndexError> {
        let all_clauses = self.filter_and_query_clauses(&request.filters, &parsed)?;
        let mut query = analyze_query(&parsed.words);
        let view = self.current_view()?;
        let statistics = self.corpus_statistics(&view, &request.class_labels)?;
        let visible_to = &request.visible_to;
        let cut_prefixes =
            self.expand_words(&mut query, &parsed, visible_to, &view, &statistics)?;
        // Only the order by relevance is rescored.
        let rescorer = match request.sort {
            SortOrder::Relevance => Rescorer::new(&statistics, &self.fields, &query)?,
            _ => None,
        };
        let text_builder = TextQueryBuilder {
            fields: &self.fields,
            parsed: &parsed,
            query: &query,
        };
        let filter = self.document_filter(&view, all_clauses, &request.visible_to);
        let text = text_builder.build(&parsed);
        // Without a text every agent matches, so neighbors add nothing.
        let semantic = request.semantic.as_ref().filter(|_| text.is_some());
        let fit = self.build_fit_model(semantic, &text_builder, &statistics)?;
        let scored = text
            .as_deref()
            .filter(|_| request.sort == SortOrder::Relevance || request.explain || fit.is_some());
        let query_statistics = Arc::new(statistics.query_statistics(scored)?);
        let hybrid = match semantic {
            Some(semantic) => {
                let written = request.text.as_deref().unwrap_or_default();
                let (builder, searcher) = (&text_builder, &view.searcher);
                Some(self.build_hybrid_ranker(semantic, written, builder, searcher, &filter)?)
            }
            None => None,
        };
        Ok(PreparedQuery {
            filter,
            text,
            statistics: query_statistics,
            rescorer: rescorer.filter(|_| hybrid.as_ref().is_none_or(HybridRanker::uses_text)),
            hybrid,
            fit,
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

    /// The model that decides which matches fit; `None` if all do: any match of a required part or of a single word
    /// suffices, and without words there is nothing to fit.
    fn build_fit_model(
        &self,
        semantic: Option<&SemanticQuery>,
        text_builder: &TextQueryBuilder<'_>,
        statistics: &CorpusStatistics,
    ) -> Result<Option<FitModel>, IndexError> {
        if let Some(semantic) = semantic.filter(|semantic| semantic.semantic_only) {
            return Ok(Some(FitModel::by_meaning(semantic.cutoff)));
        }
        let words = &text_builder.query.words;
        let suffices = match semantic {
            Some(_) => words.is_empty(),
            None => words.len() <= 1,
        };
        if suffices || !text_builder.parsed.required.is_empty() {
            return Ok(None);
        }
        let cutoff = semantic.map(|semantic| semantic.cutoff);
        FitModel::for_words(statistics, &self.fields, words, cutoff).map(Some)
    }

    /// The nearest neighbors of a query, and how they are combined with its full-text matches.
    fn build_hybrid_ranker(
        &self,
        semantic: &SemanticQuery,
        written: &str,
        text_builder: &TextQueryBuilder<'_>,
        searcher: &Searcher,
        filter: &DocumentFilter,
    ) -> Result<HybridRanker, IndexError> {
        let required = text_builder.required_query();
        // An exclusion leaves the order to words and meaning.
        let parsed = text_builder.parsed;
        let has_required_parts = !parsed.required.is_empty() || !parsed.conditions.is_empty();
        let mode = match semantic.semantic_only {
            true => HybridMode::SemanticOnly,
            false if has_required_parts => HybridMode::TextFirst,
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
            exact_matcher: (mode == HybridMode::WeightedSum)
                .then(|| ExactMatcher::new(self.fields.keys, written)),
        })
    }

    /// The conditions of the filters and of the query syntax.
    pub(super) fn filter_and_query_clauses(
        &self,
        filters: &Filters,
        parsed: &ParsedQuery,
    ) -> Result<Vec<FilterClause>, IndexError> {
        let mut all_clauses = build_filter_clauses(&self.fields, filters)?;
        let written = parsed.conditions.iter();
        all_clauses.extend(written.map(|any| any_condition_clause(&self.fields, any)));
        Ok(all_clauses)
    }
}
