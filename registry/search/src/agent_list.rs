//! Agent lists, ordered by several keys, each ascending or descending; a search orders by one key.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, Dictionary, StrColumn};
use tantivy::{DocAddress, DocId, Score, Searcher, SegmentOrdinal, SegmentReader};

use super::Index;
use super::agent_id_reader::AgentIdReader;
use super::error::IndexError;
use super::filter::build_filter_clauses;
use super::filtered_query::FilteredQuery;
use super::keys::IDENTIFIER_COLUMN;
use super::page_collector::count_smaller_terms;
use super::rendered_hits::{rendered_catalog_entry, rendered_hit};
use super::request::{Filters, MAX_HITS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListSortKey {
    /// The name, ignoring case and accents.
    Name,
    Updated,
    Created,
    Identifier,
}

/// The number of keys; an order contains each at most once.
const KEY_COUNT: usize = 4;

#[derive(Debug, Clone, Default)]
pub struct AgentListRequest {
    pub filters: Filters,
    pub visible_to: Vec<String>,
    /// Only agents first seen after this time; microseconds since 1970 UTC.
    pub created_after: Option<i64>,
    /// Only agents changed after this time; microseconds since 1970 UTC.
    pub updated_after: Option<i64>,
    /// The keys, each with whether it is descending. The identifier, ascending, decides last.
    pub sort_order: Vec<(ListSortKey, bool)>,
    /// The values of the previous page's last agent, one for each key of [`full_sort_order`](Self::full_sort_order).
    pub after: Option<Vec<ListSortValue>>,
    /// Maximum number of agents on the page, up to [`MAX_HITS`].
    pub limit: usize,
    /// Maximum total size of the returned agents, in bytes, if bounded; at least one agent is returned.
    pub max_bytes: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListSortValue {
    /// A folded name or an identifier.
    Text(String),
    /// Microseconds since 1970 UTC.
    Time(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentListRow {
    /// The rendered hit, without separately rendered skills.
    pub hit: Vec<u8>,
    /// The entry rendered for catalogs; empty if they do not list the agent.
    pub entry: Vec<u8>,
    /// Its position in the order, for [`AgentListRequest::after`].
    pub position: Vec<ListSortValue>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentListResponse {
    pub rows: Vec<AgentListRow>,
    pub total: u64,
    pub has_more: bool,
}

impl AgentListRequest {
    /// The effective keys in order: the requested ones, each only once, then the identifier.
    pub fn full_sort_order(&self) -> Vec<(ListSortKey, bool)> {
        let mut sort_order: Vec<(ListSortKey, bool)> = Vec::with_capacity(KEY_COUNT);
        let requested = self.sort_order.iter().copied();
        for (key, descending) in requested.chain([(ListSortKey::Identifier, false)]) {
            if sort_order.iter().all(|(known, _)| *known != key) {
                sort_order.push((key, descending));
            }
        }
        sort_order
    }
}

impl Index {
    /// Lists agents. Fails like [`search`](Self::search), and with [`IndexError::PositionMismatch`] for a position in
    /// another order.
    pub fn list_agents(&self, request: &AgentListRequest) -> Result<AgentListResponse, IndexError> {
        if request.limit > MAX_HITS {
            return Err(IndexError::TooMany {
                what: "hits",
                limit: MAX_HITS,
            });
        }
        let sort_order = request.full_sort_order();
        let fits = |place: &Vec<ListSortValue>| {
            let same = |((key, _), value): (&(ListSortKey, bool), &ListSortValue)| {
                matches!(key, ListSortKey::Updated | ListSortKey::Created)
                    == matches!(value, ListSortValue::Time(_))
            };
            place.len() == sort_order.len() && sort_order.iter().zip(place).all(same)
        };
        if request.after.as_ref().is_some_and(|place| !fits(place)) {
            return Err(IndexError::PositionMismatch);
        }
        let inner = &*self.0;
        let view = inner.current_view()?;
        let filters = build_filter_clauses(&inner.fields, &request.filters)?;
        let filter = inner.document_filter(&view, filters, &request.visible_to);
        let collector = AgentListCollector {
            sort_order: &sort_order,
            request,
        };
        let query = FilteredQuery::new(None, filter);
        let (total, mut rows) = view.searcher.search(&query, &collector)?;
        rows.sort_unstable_by(|one, other| compare_list_positions(&sort_order, &one.0, &other.0));
        let mut has_more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let mut page: Vec<AgentListRow> = Vec::with_capacity(rows.len());
        let mut bytes_left = request.max_bytes.unwrap_or(usize::MAX);
        for (place, address) in rows {
            let row = load_agent_list_row(&view.searcher, &inner.fields, place, address)?;
            let bytes = row.hit.len() + row.entry.len();
            if bytes > bytes_left && !page.is_empty() {
                has_more = true;
                break;
            }
            bytes_left = bytes_left.saturating_sub(bytes);
            page.push(row);
        }
        Ok(AgentListResponse {
            rows: page,
            total,
            has_more,
        })
    }
}

fn load_agent_list_row(
    searcher: &Searcher,
    fields: &super::schema::IndexFields,
    position: Vec<ListSortValue>,
    address: DocAddress,
) -> Result<AgentListRow, IndexError> {
    let stored: tantivy::TantivyDocument = searcher.doc(address)?;
    Ok(AgentListRow {
        hit: rendered_hit(&stored, fields).to_vec(),
        entry: rendered_catalog_entry(&stored, fields).to_vec(),
        position,
    })
}

fn compare_list_positions(
    sort_order: &[(ListSortKey, bool)],
    left: &[ListSortValue],
    right: &[ListSortValue],
) -> Ordering {
    for ((_, descending), (one, other)) in sort_order.iter().zip(left.iter().zip(right)) {
        let by_value = match descending {
            true => other.cmp(one),
            false => one.cmp(other),
        };
        if by_value.is_ne() {
            return by_value;
        }
    }
    Ordering::Equal
}

/// The ranks of a document by the keys of an order; the smallest come first.
type RankTuple = [u64; KEY_COUNT];

struct AgentListCollector<'a> {
    sort_order: &'a [(ListSortKey, bool)],
    request: &'a AgentListRequest,
}

enum SortKeyColumn {
    Text(Option<StrColumn>),
    Time(Column<i64>),
}

/// The first documents of a segment, and the number of its matches.
struct AgentListSegmentCollector {
    ordinal: SegmentOrdinal,
    keys: Vec<(SortKeyColumn, bool)>,
    times: [(Column<i64>, Option<i64>); 2],
    ids: AgentIdReader,
    after: Option<RankTuple>,
    limit: usize,
    total: u64,
    /// The best documents, with the largest ranks on top. Agents with equal ranks, which have no identifier, are
    /// ordered by id.
    candidates: BinaryHeap<(RankTuple, uuid::Uuid, DocId)>,
}

type PositionedDocument = (Vec<ListSortValue>, DocAddress);

impl SortKeyColumn {
    fn open(reader: &SegmentReader, key: ListSortKey) -> tantivy::Result<Self> {
        let fast = reader.fast_fields();
        Ok(match key {
            ListSortKey::Name => Self::Text(fast.str("name_key")?),
            ListSortKey::Identifier => Self::Text(fast.str(IDENTIFIER_COLUMN)?),
            ListSortKey::Updated => Self::Time(fast.i64("updated_at")?),
            ListSortKey::Created => Self::Time(fast.i64("created_at")?),
        })
    }

    /// The rank of a document. Texts have even ranks, so a text that is missing in the segment fits between two.
    fn rank(&self, document: DocId) -> u64 {
        match self {
            Self::Time(column) => tantivy::i64_to_u64(column.first(document).unwrap_or(i64::MIN)),
            Self::Text(column) => {
                let ordinal = column.as_ref().and_then(|one| one.ords().first(document));
                ordinal.map_or(0, |ordinal| 2 * (ordinal + 1))
            }
        }
    }

    fn rank_of_value(&self, value: &ListSortValue) -> std::io::Result<u64> {
        Ok(match (self, value) {
            (Self::Time(_), ListSortValue::Time(time)) => tantivy::i64_to_u64(*time),
            (Self::Text(Some(column)), ListSortValue::Text(text)) if !text.is_empty() => {
                let dictionary: &Dictionary = column.dictionary();
                match dictionary.term_ord(text)? {
                    Some(ordinal) => 2 * (ordinal + 1),
                    None => 2 * count_smaller_terms(dictionary, text)? + 1,
                }
            }
            (Self::Text(None), ListSortValue::Text(text)) if !text.is_empty() => 1,
            _ => 0,
        })
    }

    fn value(&self, document: DocId) -> std::io::Result<ListSortValue> {
        Ok(match self {
            Self::Time(column) => ListSortValue::Time(column.first(document).unwrap_or(i64::MIN)),
            Self::Text(column) => {
                let mut text = String::new();
                if let Some(column) = column
                    && let Some(ordinal) = column.ords().first(document)
                {
                    column.ord_to_str(ordinal, &mut text)?;
                }
                ListSortValue::Text(text)
            }
        })
    }
}

fn apply_sort_direction(rank: u64, descending: bool) -> u64 {
    if descending { !rank } else { rank }
}

impl Collector for AgentListCollector<'_> {
    type Fruit = (u64, Vec<PositionedDocument>);
    type Child = AgentListSegmentCollector;

    fn for_segment(
        &self,
        ordinal: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<AgentListSegmentCollector> {
        let keys = self
            .sort_order
            .iter()
            .map(|(key, descending)| Ok((SortKeyColumn::open(reader, *key)?, *descending)))
            .collect::<tantivy::Result<Vec<_>>>()?;
        let after = match &self.request.after {
            None => None,
            Some(place) => {
                let mut ranks = RankTuple::default();
                for (rank, ((key, descending), value)) in
                    ranks.iter_mut().zip(keys.iter().zip(place))
                {
                    *rank = apply_sort_direction(key.rank_of_value(value)?, *descending);
                }
                Some(ranks)
            }
        };
        let fast = reader.fast_fields();
        Ok(AgentListSegmentCollector {
            ordinal,
            keys,
            times: [
                (fast.i64("created_at")?, self.request.created_after),
                (fast.i64("updated_at")?, self.request.updated_after),
            ],
            ids: AgentIdReader::open(reader)?,
            after,
            limit: self.request.limit + 1,
            total: 0,
            candidates: BinaryHeap::new(),
        })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(
        &self,
        segments: Vec<tantivy::Result<(u64, Vec<PositionedDocument>)>>,
    ) -> tantivy::Result<(u64, Vec<PositionedDocument>)> {
        let mut merged = (0, Vec::new());
        for segment in segments {
            let (total, rows) = segment?;
            merged.0 += total;
            merged.1.extend(rows);
        }
        Ok(merged)
    }
}

impl SegmentCollector for AgentListSegmentCollector {
    type Fruit = tantivy::Result<(u64, Vec<PositionedDocument>)>;

    fn collect(&mut self, document: DocId, _: Score) {
        let is_late = |(column, after): &(Column<i64>, Option<i64>)| {
            after.is_none_or(|after| column.first(document).is_some_and(|time| time > after))
        };
        if !self.times.iter().all(is_late) {
            return;
        }
        self.total += 1;
        let mut ranks = RankTuple::default();
        for (rank, (key, descending)) in ranks.iter_mut().zip(&self.keys) {
            *rank = apply_sort_direction(key.rank(document), *descending);
        }
        if self.after.is_some_and(|after| ranks <= after) {
            return;
        }
        let candidate = (ranks, self.ids.get(document), document);
        if self.candidates.len() < self.limit {
            self.candidates.push(candidate);
        } else if let Some(mut last) = self.candidates.peek_mut()
            && candidate < *last
        {
            *last = candidate;
        }
    }

    fn harvest(self) -> Self::Fruit {
        let rows = self.candidates.iter().map(|(_, _, document)| {
            let place = self.keys.iter().map(|(key, _)| key.value(*document));
            let place = place.collect::<std::io::Result<Vec<_>>>()?;
            Ok((place, DocAddress::new(self.ordinal, *document)))
        });
        Ok((self.total, rows.collect::<tantivy::Result<_>>()?))
    }
}
