//! Statistics behind the scores: the number of agents, their length, and the document frequency of each word.
//!
//! They are counted over the living agents that every member of a class of callers finds without any filter, so no
//! score reveals an agent that some member of the class may not find. They count agents and not documents in segments:
//! every process that has applied the same events has the same counts, whatever its index has merged or deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use moka::sync::Cache;
use tantivy::index::SegmentId;
use tantivy::query::{Bm25StatisticsProvider, BoostWeight, EnableScoring, Query, Weight};
use tantivy::schema::Field;
use tantivy::{Opstamp, Score, Searcher, SegmentReader, TantivyError, Term};

use super::bits::SeenBits;
use super::error::IndexError;
use super::filter::{Filter, clauses};
use super::languages::Languages;
use super::request::Filters;
use super::seen::{CountHolders, SeenAgents, segments_of};
use super::{Index, IndexView, Inner, lock};

/// Counts of segments that are cached across states of the index.
const KEPT_COUNTS: u64 = 16_384;
/// Documents of a term in a segment from which their count is cached: fewer are counted faster than looked up.
const LEAST_KEPT: u32 = 256;
/// Counts of terms that are cached for one class in one state.
const KNOWN_TERMS: usize = 16_384;
/// Classes of callers whose statistics are cached for one state.
const MAX_CLASSES: usize = 8;
/// Mean length assumed for a class without agents.
const UNKNOWN_LENGTH: u64 = 100;
/// tantivy's idf for a class of one agent that does not hold the word: ln 4.
const IDF_OF_NONE: Score = 1.386_294_4;

/// Key of a count in a segment for a class of callers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CountKey {
    /// Total number of words of the segment's agents.
    Words,
    /// Number of the segment's agents that hold a term.
    Holders(Term),
}

/// Cache of counts by segment, its deletions, and class.
pub(super) type SegmentCounts = Cache<(SegmentId, Option<Opstamp>, Arc<[String]>, CountKey), u64>;

pub(super) fn segment_counts() -> SegmentCounts {
    Cache::builder().max_capacity(KEPT_COUNTS).build()
}

/// Statistics of the classes that have searched one state of the index.
#[derive(Default)]
pub(super) struct Classes(Mutex<Vec<Arc<Statistics>>>);

impl Classes {
    /// Statistics of the class whose members all hold these labels; `count` computes them if they are missing.
    pub fn of(
        &self,
        labels: &[String],
        count: impl FnOnce() -> Result<Statistics, IndexError>,
    ) -> Result<Arc<Statistics>, IndexError> {
        let known = || {
            let classes = lock(&self.0);
            let mut classes = classes.iter();
            classes.find(|known| *known.labels == *labels).cloned()
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        let counted = Arc::new(count()?);
        let mut classes = lock(&self.0);
        if classes.len() == MAX_CLASSES {
            classes.remove(0);
        }
        classes.push(Arc::clone(&counted));
        Ok(counted)
    }
}

/// Statistics of one class in one state of the index.
pub(super) struct Statistics {
    labels: Arc<[String]>,
    searcher: Searcher,
    text: Field,
    segments: Vec<SeenBits>,
    agents: u64,
    words: u64,
    /// The languages of which any agent, of whatever class, holds a stem.
    languages: Languages,
    counts: SegmentCounts,
    /// Counts of terms that were counted before.
    known: Mutex<HashMap<Term, u64>>,
}

impl Statistics {
    /// Counts the agents of a class, selected by `filter`.
    pub fn count(
        searcher: &Searcher,
        text: Field,
        labels: &[String],
        filter: &Filter,
        counts: &SegmentCounts,
    ) -> Result<Self, IndexError> {
        let mut statistics = Self {
            labels: labels.into(),
            segments: segments_of(filter, searcher)?,
            searcher: searcher.clone(),
            text,
            agents: 0,
            words: 0,
            languages: Languages::NONE,
            counts: counts.clone(),
            known: Mutex::default(),
        };
        for (reader, segment) in searcher.segment_readers().iter().zip(&statistics.segments) {
            statistics.agents += u64::from(segment.len());
            let terms = reader.inverted_index(text)?;
            let languages = Languages::in_dictionary(terms.terms()).map_err(TantivyError::from)?;
            statistics.languages = statistics.languages.union(languages);
            statistics.words += statistics.kept(reader, CountKey::Words, || {
                let lengths = reader.get_fieldnorms_reader(text)?;
                let lengths = segment
                    .iter()
                    .map(|agent| u64::from(lengths.fieldnorm(agent)));
                Ok(lengths.sum())
            })?;
        }
        Ok(statistics)
    }

    pub fn agents(&self) -> u64 {
        self.agents
    }

    /// The languages in which a word of a query can have a stem that an agent holds.
    pub fn languages(&self) -> Languages {
        self.languages
    }

    pub fn class(&self) -> SeenAgents<'_> {
        SeenAgents::new(&self.searcher, &self.segments)
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean is rough")]
    pub fn mean_length(&self) -> Score {
        match self.agents {
            0 => UNKNOWN_LENGTH as Score,
            agents => self.words.max(1) as Score / agents as Score,
        }
    }

    /// Inverse document frequency (idf) of a term as in BM25: the more agents hold the term, the lower. 1 for every
    /// term if the class has no agents.
    #[expect(clippy::cast_precision_loss, reason = "a score is rough")]
    pub fn idf(&self, term: &Term) -> tantivy::Result<Score> {
        if self.agents == 0 {
            return Ok(1.0);
        }
        let held_by = self.count_of(term)? as f64;
        let agents = self.agents as f64;
        Ok((1.0 + (agents - held_by + 0.5) / (held_by + 0.5)).ln() as Score)
    }

    /// Statistics for scoring one query: the document frequencies of its words, if it has a text.
    pub fn of_query(&self, text: Option<&dyn Query>) -> tantivy::Result<QueryStatistics> {
        let mut terms: Vec<&Term> = Vec::new();
        if let Some(text) = text.filter(|_| self.agents > 0) {
            text.query_terms(&mut |term, _| terms.push(term));
        }
        let words = terms.into_iter().filter(|term| term.field() == self.text);
        let counted = words.map(|word| Ok((word.clone(), self.count_of(word)?)));
        Ok(QueryStatistics {
            text: self.text,
            agents: self.agents,
            words: self.words,
            holders: counted.collect::<tantivy::Result<_>>()?,
        })
    }

    fn count_of(&self, term: &Term) -> tantivy::Result<u64> {
        if let Some(known) = lock(&self.known).get(term) {
            return Ok(*known);
        }
        let mut holders = 0;
        for (reader, segment) in self.class().readers() {
            let index = reader.inverted_index(term.field())?;
            let Some(info) = index.get_term_info(term)? else {
                continue;
            };
            holders += match segment.hides_nobody() || info.doc_freq < LEAST_KEPT {
                true => u64::from(segment.holders(&index, &info, u32::MAX)?),
                false => self.kept(reader, CountKey::Holders(term.clone()), || {
                    Ok(segment.holders(&index, &info, u32::MAX)?.into())
                })?,
            };
        }
        let mut known = lock(&self.known);
        if known.len() < KNOWN_TERMS {
            known.insert(term.clone(), holders);
        }
        Ok(holders)
    }

    /// Count of a segment, recomputed only if more of its agents were deleted since.
    fn kept(
        &self,
        reader: &SegmentReader,
        what: CountKey,
        count: impl FnOnce() -> tantivy::Result<u64>,
    ) -> tantivy::Result<u64> {
        let key = (
            reader.segment_id(),
            reader.delete_opstamp(),
            Arc::clone(&self.labels),
            what,
        );
        if let Some(kept) = self.counts.get(&key) {
            return Ok(kept);
        }
        let count = count()?;
        self.counts.insert(key, count);
        Ok(count)
    }
}

impl CountHolders for Statistics {
    fn holders(&self, term: &Term, _enough: u64) -> Result<u64, IndexError> {
        Ok(self.count_of(term)?)
    }
}

impl Index {
    /// Number of agents that everybody with one of these labels finds without a filter, as of the last commit; 0
    /// without an index.
    pub fn listed_agents(&self, labels: &[String]) -> Result<u64, IndexError> {
        let view = match self.0.view() {
            Err(IndexError::NeedsRebuild { .. }) => return Ok(0),
            view => view?,
        };
        Ok(self.0.statistics(&view, labels)?.agents())
    }
}

impl Inner {
    /// Statistics behind the scores of a class: of the agents that everybody with one of these labels finds without a
    /// filter. They ignore the overlay: the counts are those of the last commit.
    pub(super) fn statistics(
        &self,
        view: &IndexView,
        class: &[String],
    ) -> Result<Arc<Statistics>, IndexError> {
        view.classes.of(class, || {
            let asked = clauses(&self.fields, &Filters::default())?;
            let filter = Filter::new(
                &self.fields,
                asked,
                Arc::default(),
                class,
                self.shared.clone(),
            );
            Statistics::count(
                &view.searcher,
                self.fields.text,
                class,
                &filter,
                &self.counts,
            )
        })
    }
}

/// Statistics for scoring one query. They hold no reference to the index.
#[derive(Debug)]
pub(super) struct QueryStatistics {
    text: Field,
    agents: u64,
    words: u64,
    holders: HashMap<Term, u64>,
}

impl QueryStatistics {
    /// Weight of the query, scored by these statistics.
    pub fn weight(
        &self,
        query: &dyn Query,
        searcher: &Searcher,
    ) -> tantivy::Result<Box<dyn Weight>> {
        let scoring = EnableScoring::enabled_from_statistics_provider(self, searcher);
        let weight = query.weight(scoring)?;
        if self.agents == 0 {
            return Ok(Box::new(BoostWeight::new(weight, 1.0 / IDF_OF_NONE)));
        }
        Ok(weight)
    }
}

impl Bm25StatisticsProvider for QueryStatistics {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(match self.agents {
            0 => UNKNOWN_LENGTH,
            _ if field == self.text => self.words.max(1),
            // Fields without field-length norms are all of mean length.
            agents => agents,
        })
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.agents.max(1))
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        Ok(self.holders.get(term).copied().unwrap_or(0))
    }
}
