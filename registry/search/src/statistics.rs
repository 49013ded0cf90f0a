//! Statistics for scoring: the number of agents, their length, and the document frequency of each word.
//!
//! They cover the undeleted agents that every member of a class of callers finds without any filter, so no score
//! reveals an agent that some member of the class may not find. They count agents instead of documents in segments:
//! all processes that have applied the same events have the same counts, whatever their indexes have merged or
//! deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use moka::sync::Cache;
use tantivy::index::SegmentId;
use tantivy::query::{Bm25StatisticsProvider, BoostWeight, EnableScoring, Query, Weight};
use tantivy::schema::Field;
use tantivy::{Opstamp, Score, Searcher, SegmentReader, TantivyError, Term};

use super::doc_bit_set::VisibleDocs;
use super::error::IndexError;
use super::filter::{DocumentFilter, build_filter_clauses};
use super::languages::LanguageSet;
use super::request::Filters;
use super::visible_agents::{CountTermDocs, VisibleAgentSet, visible_docs_by_segment};
use super::{Index, IndexInner, IndexView, lock_ignoring_poison};

/// Maximum number of segment counts cached across states of the index.
const MAX_CACHED_COUNTS: u64 = 16_384;
/// Document frequency in a segment from which a count is cached: lower ones are counted faster than looked up.
const MIN_CACHED_DOC_FREQ: u32 = 256;
/// Maximum number of term counts cached for one class in one state.
const MAX_CACHED_TERMS: usize = 16_384;
/// Maximum number of classes of callers whose statistics are cached for one state.
const MAX_CLASSES: usize = 8;
/// Mean length assumed for a class without agents.
const DEFAULT_MEAN_LENGTH: u64 = 100;
/// tantivy's idf for a class of one agent that does not contain the word: ln 4.
const EMPTY_CLASS_IDF: Score = 1.386_294_4;

/// Key of a cached count in a segment for a class of callers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum SegmentCountKind {
    /// Total number of words of the segment's agents.
    Words,
    /// Number of the segment's agents that contain a term.
    TermDocs(Term),
}

/// Cache of counts by segment, its deletions, the generation of the rule labels, and class.
pub(super) type SegmentCountCache = Cache<
    (
        SegmentId,
        Option<Opstamp>,
        u64,
        Arc<[String]>,
        SegmentCountKind,
    ),
    u64,
>;

pub(super) fn new_count_cache() -> SegmentCountCache {
    Cache::builder().max_capacity(MAX_CACHED_COUNTS).build()
}

/// Statistics of the classes that have searched one state of the index.
#[derive(Default)]
pub(super) struct CorpusStatisticsCache(Mutex<Vec<Arc<CorpusStatistics>>>);

impl CorpusStatisticsCache {
    /// Statistics of the class whose members all have these labels; `count` computes missing ones.
    pub fn get_or_compute(
        &self,
        labels: &[String],
        compute: impl FnOnce() -> Result<CorpusStatistics, IndexError>,
    ) -> Result<Arc<CorpusStatistics>, IndexError> {
        let find_cached = || {
            let classes = lock_ignoring_poison(&self.0);
            let mut classes = classes.iter();
            classes.find(|known| *known.labels == *labels).cloned()
        };
        if let Some(known) = find_cached() {
            return Ok(known);
        }
        let computed = Arc::new(compute()?);
        let mut classes = lock_ignoring_poison(&self.0);
        if classes.len() == MAX_CLASSES {
            classes.remove(0);
        }
        classes.push(Arc::clone(&computed));
        Ok(computed)
    }
}

/// Statistics of one class in one state of the index.
pub(super) struct CorpusStatistics {
    labels: Arc<[String]>,
    rule_generation: u64,
    searcher: Searcher,
    text: Field,
    segments: Vec<VisibleDocs>,
    agent_count: u64,
    word_count: u64,
    /// The languages with a stem in any agent, whatever its class.
    languages: LanguageSet,
    count_cache: SegmentCountCache,
    /// Cached counts of terms.
    term_counts: Mutex<HashMap<Term, u64>>,
}

impl CorpusStatistics {
    /// Computes the statistics of a class, whose agents `filter` selects.
    pub fn compute(
        searcher: &Searcher,
        text: Field,
        labels: &[String],
        filter: &DocumentFilter,
        count_cache: &SegmentCountCache,
    ) -> Result<Self, IndexError> {
        let mut statistics = Self {
            labels: labels.into(),
            rule_generation: filter.rule_generation(),
            segments: visible_docs_by_segment(filter, searcher)?,
            searcher: searcher.clone(),
            text,
            agent_count: 0,
            word_count: 0,
            languages: LanguageSet::NONE,
            count_cache: count_cache.clone(),
            term_counts: Mutex::default(),
        };
        for (reader, segment) in searcher.segment_readers().iter().zip(&statistics.segments) {
            statistics.agent_count += u64::from(segment.len());
            let terms = reader.inverted_index(text)?;
            let languages =
                LanguageSet::from_dictionary(terms.terms()).map_err(TantivyError::from)?;
            statistics.languages = statistics.languages.union(languages);
            statistics.word_count +=
                statistics.cached_count(reader, SegmentCountKind::Words, || {
                    let lengths = reader.get_fieldnorms_reader(text)?;
                    let lengths = segment
                        .iter()
                        .map(|agent| u64::from(lengths.fieldnorm(agent)));
                    Ok(lengths.sum())
                })?;
        }
        Ok(statistics)
    }

    pub fn agent_count(&self) -> u64 {
        self.agent_count
    }

    /// The languages in which a query word can have a stem that an agent contains.
    pub fn languages(&self) -> LanguageSet {
        self.languages
    }

    pub fn visible_agents(&self) -> VisibleAgentSet<'_> {
        VisibleAgentSet::new(&self.searcher, &self.segments)
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean is rough")]
    pub fn mean_length(&self) -> Score {
        match self.agent_count {
            0 => DEFAULT_MEAN_LENGTH as Score,
            agents => self.word_count.max(1) as Score / agents as Score,
        }
    }

    /// Inverse document frequency (idf) of a term as in BM25: the more agents contain the term, the lower. 1 for every
    /// term if the class has no agents.
    #[expect(clippy::cast_precision_loss, reason = "a score is rough")]
    pub fn idf(&self, term: &Term) -> tantivy::Result<Score> {
        if self.agent_count == 0 {
            return Ok(1.0);
        }
        let held_by = self.term_doc_count(term)? as f64;
        let agents = self.agent_count as f64;
        Ok((1.0 + (agents - held_by + 0.5) / (held_by + 0.5)).ln() as Score)
    }

    /// Statistics for scoring one query: the document frequencies of its words, if it has a text.
    pub fn query_statistics(&self, text: Option<&dyn Query>) -> tantivy::Result<QueryStatistics> {
        let mut terms: Vec<&Term> = Vec::new();
        if let Some(text) = text.filter(|_| self.agent_count > 0) {
            text.query_terms(&mut |term, _| terms.push(term));
        }
        let words = terms.into_iter().filter(|term| term.field() == self.text);
        let doc_freqs = words.map(|word| Ok((word.clone(), self.term_doc_count(word)?)));
        Ok(QueryStatistics {
            text: self.text,
            agent_count: self.agent_count,
            word_count: self.word_count,
            doc_freqs: doc_freqs.collect::<tantivy::Result<_>>()?,
        })
    }

    fn term_doc_count(&self, term: &Term) -> tantivy::Result<u64> {
        if let Some(cached) = lock_ignoring_poison(&self.term_counts).get(term) {
            return Ok(*cached);
        }
        let mut count = 0;
        for (reader, segment) in self.visible_agents().segments_with_docs() {
            let index = reader.inverted_index(term.field())?;
            let Some(info) = index.get_term_info(term)? else {
                continue;
            };
            count += match segment.covers_segment() || info.doc_freq < MIN_CACHED_DOC_FREQ {
                true => u64::from(segment.count_term_docs(&index, &info, u32::MAX)?),
                false => {
                    self.cached_count(reader, SegmentCountKind::TermDocs(term.clone()), || {
                        Ok(segment.count_term_docs(&index, &info, u32::MAX)?.into())
                    })?
                }
            };
        }
        let mut known = lock_ignoring_poison(&self.term_counts);
        if known.len() < MAX_CACHED_TERMS {
            known.insert(term.clone(), count);
        }
        Ok(count)
    }

    /// A count of a segment, recomputed only if more of its agents have been deleted.
    fn cached_count(
        &self,
        reader: &SegmentReader,
        kind: SegmentCountKind,
        compute: impl FnOnce() -> tantivy::Result<u64>,
    ) -> tantivy::Result<u64> {
        let key = (
            reader.segment_id(),
            reader.delete_opstamp(),
            self.rule_generation,
            Arc::clone(&self.labels),
            kind,
        );
        if let Some(kept) = self.count_cache.get(&key) {
            return Ok(kept);
        }
        let count = compute()?;
        self.count_cache.insert(key, count);
        Ok(count)
    }
}

impl CountTermDocs for CorpusStatistics {
    fn count_term_docs(&self, term: &Term, _enough: u64) -> Result<u64, IndexError> {
        Ok(self.term_doc_count(term)?)
    }
}

impl Index {
    /// Number of agents that every caller with one of these labels finds without a filter, as of the last commit; 0
    /// without an index.
    pub fn count_listed_agents(&self, labels: &[String]) -> Result<u64, IndexError> {
        let view = match self.0.current_view() {
            Err(IndexError::NeedsRebuild { .. }) => return Ok(0),
            view => view?,
        };
        Ok(self.0.corpus_statistics(&view, labels)?.agent_count())
    }
}

impl IndexInner {
    /// Statistics for scoring in a class: of the agents that every caller with one of these labels finds without a
    /// filter. They ignore the overlay: the counts are those of the last commit.
    pub(super) fn corpus_statistics(
        &self,
        view: &IndexView,
        class_labels: &[String],
    ) -> Result<Arc<CorpusStatistics>, IndexError> {
        view.class_statistics.get_or_compute(class_labels, || {
            let default_clauses = build_filter_clauses(&self.fields, &Filters::default())?;
            let filter = DocumentFilter::new(
                &self.fields,
                default_clauses,
                Arc::default(),
                class_labels,
                self.filter_cache.clone(),
                view.rule_labels.clone(),
            );
            CorpusStatistics::compute(
                &view.searcher,
                self.fields.text,
                class_labels,
                &filter,
                &self.count_cache,
            )
        })
    }
}

/// Statistics for scoring one query, without a reference to the index.
#[derive(Debug)]
pub(super) struct QueryStatistics {
    text: Field,
    agent_count: u64,
    word_count: u64,
    doc_freqs: HashMap<Term, u64>,
}

impl QueryStatistics {
    /// The weight of the query, scored with these statistics.
    pub fn build_query_weight(
        &self,
        query: &dyn Query,
        searcher: &Searcher,
    ) -> tantivy::Result<Box<dyn Weight>> {
        let scoring = EnableScoring::enabled_from_statistics_provider(self, searcher);
        let weight = query.weight(scoring)?;
        if self.agent_count == 0 {
            return Ok(Box::new(BoostWeight::new(weight, 1.0 / EMPTY_CLASS_IDF)));
        }
        Ok(weight)
    }
}

impl Bm25StatisticsProvider for QueryStatistics {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(match self.agent_count {
            0 => DEFAULT_MEAN_LENGTH,
            _ if field == self.text => self.word_count.max(1),
            // Without field-length norms, all fields have the mean length.
            agents => agents,
        })
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.agent_count.max(1))
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        Ok(self.doc_freqs.get(term).copied().unwrap_or(0))
    }
}
