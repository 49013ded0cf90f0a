//! Counts of the values of agent properties, over all matches of a search.

use std::collections::HashMap;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Dictionary, StrColumn};
use tantivy::{DocId, Score, Searcher, SegmentOrdinal, SegmentReader};

use super::Index;
use super::agent_property::{AgentProperty, PATH_SEPARATOR};
use super::doc_bit_set::DocBitSet;
use super::error::IndexError;
use super::page_collector::count_smaller_terms;
use super::prepared_query::PreparedQuery;
use super::request::SearchRequest;
use super::search::check_request_limits;

/// Maximum number of properties counted at once.
pub const MAX_COUNTED_PROPERTIES: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueCountRequest {
    /// The property; not [`AgentProperty::Identifier`], which is different for every agent.
    pub property: AgentProperty,
    pub limit: usize,
    /// Minimum count of a returned value.
    pub min_count: u64,
}

/// The most frequent values of a property, equally frequent ones by value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueCounts {
    /// Values with the number of agents that have them.
    pub values: Vec<(String, u64)>,
    pub other_count: u64,
}

/// Collects the matches of a query as one set per segment.
struct MatchSetCollector;

struct SegmentMatchSet(SegmentOrdinal, DocBitSet);

impl Collector for MatchSetCollector {
    type Fruit = Vec<(SegmentOrdinal, DocBitSet)>;
    type Child = SegmentMatchSet;

    fn for_segment(
        &self,
        ordinal: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<SegmentMatchSet> {
        Ok(SegmentMatchSet(ordinal, DocBitSet::empty(reader.max_doc())))
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(
        &self,
        segments: Vec<(SegmentOrdinal, DocBitSet)>,
    ) -> tantivy::Result<Vec<(SegmentOrdinal, DocBitSet)>> {
        Ok(segments)
    }
}

impl SegmentCollector for SegmentMatchSet {
    type Fruit = (SegmentOrdinal, DocBitSet);

    fn collect(&mut self, document: DocId, _: Score) {
        self.1.insert(document);
    }

    fn harvest(self) -> (SegmentOrdinal, DocBitSet) {
        (self.0, self.1)
    }
}

impl Index {
    /// Counts all values of properties over all matches of a search, ignoring its page and facets.
    ///
    /// # Errors
    /// The errors of [`search`](Self::search); [`IndexError::TooMany`] for more than [`MAX_COUNTED_PROPERTIES`]
    /// properties.
    pub fn count_values(
        &self,
        request: &SearchRequest,
        requests: &[ValueCountRequest],
    ) -> Result<Vec<ValueCounts>, IndexError> {
        if requests.len() > MAX_COUNTED_PROPERTIES {
            return Err(IndexError::TooMany {
                what: "properties counted at once",
                limit: MAX_COUNTED_PROPERTIES,
            });
        }
        check_request_limits(request)?;
        let find_matches = |prepared: &PreparedQuery| {
            let searcher = &prepared.view.searcher;
            searcher.search(&prepared.filtered_query(), &MatchSetCollector)
        };
        let mut prepared = self.0.prepare_query(request)?;
        let mut matches = find_matches(&prepared)?;
        if matches
            .iter()
            .all(|(_, documents)| documents.iter().next().is_none())
            && let Some(parsed) = prepared.parsed.relax_quotations()
        {
            // As a search does.
            prepared = self.0.prepare_parsed_query(request, parsed)?;
            matches = find_matches(&prepared)?;
        }
        let searcher = &prepared.view.searcher;
        let counts = requests.iter();
        counts
            .map(|one| one.count_matching_values(searcher, &matches))
            .collect()
    }
}

impl ValueCountRequest {
    fn count_matching_values(
        &self,
        searcher: &Searcher,
        matches: &[(SegmentOrdinal, DocBitSet)],
    ) -> Result<ValueCounts, IndexError> {
        let mut sums: HashMap<Vec<u8>, u64> = HashMap::new();
        for (ordinal, documents) in matches {
            let reader = searcher.segment_reader(*ordinal);
            if let Some(column) = reader.fast_fields().str(self.property.column_name())? {
                add_value_counts(
                    &column,
                    documents,
                    &self.property.column_prefix(),
                    &mut sums,
                )
                .map_err(tantivy::TantivyError::from)?;
            }
        }
        let mut values: Vec<(Vec<u8>, u64)> = sums.into_iter().collect();
        values.retain(|(_, count)| *count >= self.min_count);
        let total: u64 = values.iter().map(|(_, count)| count).sum();
        values.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        values.truncate(self.limit);
        let shown_sum: u64 = values.iter().map(|(_, count)| count).sum();
        Ok(ValueCounts {
            values: values
                .into_iter()
                .map(|(value, count)| (String::from_utf8_lossy(&value).into_owned(), count))
                .collect(),
            other_count: total - shown_sum,
        })
    }
}

/// Counts these documents by each value of a column that begins with `prefix`; the prefix is removed from the values.
fn add_value_counts(
    column: &StrColumn,
    documents: &DocBitSet,
    prefix: &str,
    sums: &mut HashMap<Vec<u8>, u64>,
) -> std::io::Result<()> {
    let dictionary: &Dictionary = column.dictionary();
    let (low, high) = match prefix.strip_suffix(PATH_SEPARATOR) {
        None => (0, dictionary.num_terms() as u64),
        // The character after the separator is above every value of this path and below every longer path.
        Some(path) => (
            count_smaller_terms(dictionary, prefix)?,
            count_smaller_terms(dictionary, &format!("{path}\u{2}"))?,
        ),
    };
    let mut counts = vec![0_u64; usize::try_from(high - low).unwrap_or(0)];
    for document in documents.iter() {
        for ordinal in column.ords().values_for_doc(document) {
            let place = ordinal
                .checked_sub(low)
                .and_then(|at| usize::try_from(at).ok());
            if let Some(count) = place.and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
    }
    let counted: Vec<(u64, u64)> = (low..)
        .zip(counts)
        .filter(|(_, count)| *count > 0)
        .collect();
    let ordinals: Vec<u64> = counted.iter().map(|(ordinal, _)| *ordinal).collect();
    let mut next = counted.iter().map(|(_, count)| *count);
    dictionary.sorted_ords_to_term_cb(&ordinals, |value| {
        let value = value.get(prefix.len()..).unwrap_or_default();
        *sums.entry(value.to_vec()).or_default() += next.next().unwrap_or(0);
    })?;
    Ok(())
}
