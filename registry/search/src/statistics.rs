//! What scores are worked out from: how many agents there are, how long they are, and how many of them hold a word.
//!
//! They are counted over the living agents that every member of a class of callers finds without any filter, so no
//! score tells of an agent that somebody of the class may not find. They are counts of agents and not of documents in
//! segments: every process that has applied the same events has the same, whatever its index has merged or deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use moka::sync::Cache;
use tantivy::index::SegmentId;
use tantivy::query::{Bm25StatisticsProvider, BoostWeight, EnableScoring, Query, Weight};
use tantivy::schema::Field;
use tantivy::{Opstamp, Score, Searcher, SegmentReader, Term};

use super::bits::SeenBits;
use super::error::IndexError;
use super::filter::{Filter, clauses};
use super::request::Filters;
use super::seen::{CountHolders, SeenAgents, segments_of};
use super::{Index, IndexView, Inner, lock};

/// Counts of segments that are kept from one state of the index to the next.
const KEPT_COUNTS: u64 = 16_384;
/// Counts that one state keeps for one class.
const KNOWN_TERMS: usize = 16_384;
/// Classes of callers that one state keeps statistics of.
const MAX_CLASSES: usize = 8;
/// How long agents count as where a class has none to measure.
const UNKNOWN_LENGTH: u64 = 100;
/// What the search library's idf is for a class of one agent that does not hold the word: ln 4.
const IDF_OF_NONE: Score = 1.386_294_4;

/// Key of a count in a segment for a class of callers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CountKey {
    /// The words of all its agents.
    Words,
    /// Those of its agents who hold a term.
    Holders(Term),
}

/// Counts by segment and what of it is deleted, and by class.
pub(super) type SegmentCounts = Cache<(SegmentId, Option<Opstamp>, Arc<[String]>, CountKey), u64>;

/// No counts yet.
pub(super) fn segment_counts() -> SegmentCounts {
    Cache::builder().max_capacity(KEPT_COUNTS).build()
}

/// The statistics of the classes that have searched one state of the index.
#[derive(Default)]
pub(super) struct Classes(Mutex<Vec<Arc<Statistics>>>);

impl Classes {
    /// The statistics of the class whose members all hold these labels; `count` makes them where there are none yet.
    ///
    /// # Errors
    /// Where the index cannot be read.
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

/// The statistics of one class as of one state of the index.
pub(super) struct Statistics {
    labels: Arc<[String]>,
    searcher: Searcher,
    text: Field,
    /// The agents of the class in each segment.
    segments: Vec<SeenBits>,
    agents: u64,
    words: u64,
    counts: SegmentCounts,
    /// Terms that were counted already.
    known: Mutex<HashMap<Term, u64>>,
}

impl Statistics {
    /// Those of a class: `filter` lets its agents through.
    ///
    /// # Errors
    /// Where the index cannot be read.
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
            counts: counts.clone(),
            known: Mutex::default(),
        };
        for (reader, segment) in searcher.segment_readers().iter().zip(&statistics.segments) {
            statistics.agents += u64::from(segment.len());
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

    /// How many agents are counted.
    pub fn agents(&self) -> u64 {
        self.agents
    }

    /// The agents that are counted.
    pub fn class(&self) -> SeenAgents<'_> {
        SeenAgents::new(&self.searcher, &self.segments)
    }

    /// How long an agent is on average, in words.
    #[expect(clippy::cast_precision_loss, reason = "a mean is rough")]
    pub fn mean_length(&self) -> Score {
        match self.agents {
            0 => UNKNOWN_LENGTH as Score,
            agents => self.words.max(1) as Score / agents as Score,
        }
    }

    /// How much a word says, as BM25 has it: the less the more agents hold it. Where nobody is counted every word
    /// says the same.
    ///
    /// # Errors
    /// Where the index cannot be read.
    #[expect(clippy::cast_precision_loss, reason = "a score is rough")]
    pub fn idf(&self, term: &Term) -> tantivy::Result<Score> {
        if self.agents == 0 {
            return Ok(1.0);
        }
        let held_by = self.count_of(term)? as f64;
        let agents = self.agents as f64;
        Ok((1.0 + (agents - held_by + 0.5) / (held_by + 0.5)).ln() as Score)
    }

    /// What a query is scored by: the counts of its words, where it has a text.
    ///
    /// # Errors
    /// Where the index cannot be read.
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
            holders += match segment.hides_nobody() {
                true => u64::from(info.doc_freq),
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

    /// A count of a segment, recomputed only if the segment has lost agents since.
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
    /// How many agents everybody with one of these labels finds without a filter, as of the last commit; 0 without an
    /// index.
    ///
    /// # Errors
    /// Where the index cannot be read.
    pub fn listed_agents(&self, labels: &[String]) -> Result<u64, IndexError> {
        let view = match self.0.view() {
            Err(IndexError::NeedsRebuild { .. }) => return Ok(0),
            view => view?,
        };
        Ok(self.0.statistics(&view, labels)?.agents())
    }
}

impl Inner {
    /// What scores for a class are worked out from: the agents that everybody with one of these labels finds without
    /// a filter. The overlay is left aside: the counts are those of the last commit.
    pub(super) fn statistics(
        &self,
        view: &IndexView,
        class: &[String],
    ) -> Result<Arc<Statistics>, IndexError> {
        view.classes.of(class, || {
            let asked = clauses(&self.fields, &Filters::default(), class)?;
            let filter = Filter::new(asked, Arc::default(), class, self.shared.clone());
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

/// The statistics behind the scores of one query. They hold nothing of the index, so an order that is held for its
/// pages holds them too.
#[derive(Debug)]
pub(super) struct QueryStatistics {
    text: Field,
    agents: u64,
    words: u64,
    holders: HashMap<Term, u64>,
}

impl QueryStatistics {
    /// The query as it is scored by these.
    ///
    /// # Errors
    /// Where the index cannot be read.
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
            // Fields without lengths are all as long as the mean.
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
