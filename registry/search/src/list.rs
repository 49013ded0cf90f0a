//! Lists of agents in an order of several keys, each ascending or descending; a search orders by one.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, Dictionary, StrColumn};
use tantivy::{DocAddress, DocId, Score, Searcher, SegmentOrdinal, SegmentReader};

use super::Index;
use super::collect::{AgentIds, smaller};
use super::error::IndexError;
use super::filter::clauses;
use super::filtered::FilteredQuery;
use super::rendered::{rendered_entry, rendered_hit};
use super::request::{Filters, MAX_LIMIT};
use super::schema::IDENTIFIER;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKey {
    /// Ignoring case and accents.
    Name,
    Updated,
    Created,
    Identifier,
}

/// The number of keys; an order has each at most once.
const KEYS: usize = 4;

#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    pub filters: Filters,
    pub visible_to: Vec<String>,
    /// Only agents first seen after this time; microseconds since 1970 UTC.
    pub created_after: Option<i64>,
    /// Only agents changed after this time; microseconds since 1970 UTC.
    pub updated_after: Option<i64>,
    /// Each key with whether it descends. The identifier, ascending, decides last.
    pub order: Vec<(ListKey, bool)>,
    /// The values of the previous page's last agent, one for each key of [`whole_order`](Self::whole_order).
    pub after: Option<Vec<ListValue>>,
    /// May be at most [`MAX_LIMIT`].
    pub limit: usize,
    /// The most bytes of the agents returned, if bounded; there is at least one agent.
    pub max_bytes: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListValue {
    /// A folded name or an identifier.
    Text(String),
    /// Microseconds since 1970 UTC.
    Time(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRow {
    /// The rendered hit, without skills that are rendered apart.
    pub hit: Vec<u8>,
    /// As rendered for catalogs; empty for an agent that they do not list.
    pub entry: Vec<u8>,
    /// Its position in the order, for [`ListRequest::after`].
    pub place: Vec<ListValue>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListAnswer {
    pub rows: Vec<ListRow>,
    pub total: u64,
    pub more: bool,
}

impl ListRequest {
    /// The keys that decide, in order: the requested ones, each only once, and the identifier.
    pub fn whole_order(&self) -> Vec<(ListKey, bool)> {
        let mut order: Vec<(ListKey, bool)> = Vec::with_capacity(KEYS);
        let asked = self.order.iter().copied();
        for (key, descending) in asked.chain([(ListKey::Identifier, false)]) {
            if order.iter().all(|(known, _)| *known != key) {
                order.push((key, descending));
            }
        }
        order
    }
}

impl Index {
    /// Fails like [`search`](Self::search), and with [`IndexError::Position`] for a position in another order.
    pub fn list(&self, request: &ListRequest) -> Result<ListAnswer, IndexError> {
        if request.limit > MAX_LIMIT {
            return Err(IndexError::TooMany {
                what: "hits",
                limit: MAX_LIMIT,
            });
        }
        let order = request.whole_order();
        let fits = |place: &Vec<ListValue>| {
            let same = |((key, _), value): (&(ListKey, bool), &ListValue)| {
                matches!(key, ListKey::Updated | ListKey::Created)
                    == matches!(value, ListValue::Time(_))
            };
            place.len() == order.len() && order.iter().zip(place).all(same)
        };
        if request.after.as_ref().is_some_and(|place| !fits(place)) {
            return Err(IndexError::Position);
        }
        let inner = &*self.0;
        let view = inner.view()?;
        let filters = clauses(&inner.fields, &request.filters)?;
        let filter = inner.filter(&view, filters, &request.visible_to);
        let collector = ListCollector {
            order: &order,
            request,
        };
        let query = FilteredQuery::new(None, filter);
        let (total, mut rows) = view.searcher.search(&query, &collector)?;
        rows.sort_unstable_by(|one, other| compare(&order, &one.0, &other.0));
        let mut more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let mut page: Vec<ListRow> = Vec::with_capacity(rows.len());
        let mut left = request.max_bytes.unwrap_or(usize::MAX);
        for (place, address) in rows {
            let row = row(&view.searcher, &inner.fields, place, address)?;
            let bytes = row.hit.len() + row.entry.len();
            if bytes > left && !page.is_empty() {
                more = true;
                break;
            }
            left = left.saturating_sub(bytes);
            page.push(row);
        }
        Ok(ListAnswer {
            rows: page,
            total,
            more,
        })
    }
}

fn row(
    searcher: &Searcher,
    fields: &super::schema::Fields,
    place: Vec<ListValue>,
    address: DocAddress,
) -> Result<ListRow, IndexError> {
    let stored: tantivy::TantivyDocument = searcher.doc(address)?;
    Ok(ListRow {
        hit: rendered_hit(&stored, fields).to_vec(),
        entry: rendered_entry(&stored, fields).to_vec(),
        place,
    })
}

fn compare(order: &[(ListKey, bool)], one: &[ListValue], other: &[ListValue]) -> Ordering {
    for ((_, descending), (one, other)) in order.iter().zip(one.iter().zip(other)) {
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

/// The ranks of a document under the keys of an order; the smallest come first.
type Ranks = [u64; KEYS];

struct ListCollector<'a> {
    order: &'a [(ListKey, bool)],
    request: &'a ListRequest,
}

enum KeyColumn {
    Text(Option<StrColumn>),
    Time(Column<i64>),
}

/// The first documents of a segment, and the number of its matches.
struct SegmentList {
    ordinal: SegmentOrdinal,
    keys: Vec<(KeyColumn, bool)>,
    times: [(Column<i64>, Option<i64>); 2],
    ids: AgentIds,
    after: Option<Ranks>,
    top: usize,
    total: u64,
    /// Largest ranks on top. Agents with equal ranks, which have no identifier, are ordered by id.
    first: BinaryHeap<(Ranks, uuid::Uuid, DocId)>,
}

type Placed = (Vec<ListValue>, DocAddress);

impl KeyColumn {
    fn open(reader: &SegmentReader, key: ListKey) -> tantivy::Result<Self> {
        let fast = reader.fast_fields();
        Ok(match key {
            ListKey::Name => Self::Text(fast.str("name_key")?),
            ListKey::Identifier => Self::Text(fast.str(IDENTIFIER)?),
            ListKey::Updated => Self::Time(fast.i64("updated_at")?),
            ListKey::Created => Self::Time(fast.i64("created_at")?),
        })
    }

    /// Texts have even ranks, so that a text that the segment does not have fits between two.
    fn rank(&self, document: DocId) -> u64 {
        match self {
            Self::Time(column) => tantivy::i64_to_u64(column.first(document).unwrap_or(i64::MIN)),
            Self::Text(column) => {
                let ordinal = column.as_ref().and_then(|one| one.ords().first(document));
                ordinal.map_or(0, |ordinal| 2 * (ordinal + 1))
            }
        }
    }

    fn rank_of(&self, value: &ListValue) -> std::io::Result<u64> {
        Ok(match (self, value) {
            (Self::Time(_), ListValue::Time(time)) => tantivy::i64_to_u64(*time),
            (Self::Text(Some(column)), ListValue::Text(text)) if !text.is_empty() => {
                let dictionary: &Dictionary = column.dictionary();
                match dictionary.term_ord(text)? {
                    Some(ordinal) => 2 * (ordinal + 1),
                    None => 2 * smaller(dictionary, text)? + 1,
                }
            }
            (Self::Text(None), ListValue::Text(text)) if !text.is_empty() => 1,
            _ => 0,
        })
    }

    fn value(&self, document: DocId) -> std::io::Result<ListValue> {
        Ok(match self {
            Self::Time(column) => ListValue::Time(column.first(document).unwrap_or(i64::MIN)),
            Self::Text(column) => {
                let mut text = String::new();
                if let Some(column) = column
                    && let Some(ordinal) = column.ords().first(document)
                {
                    column.ord_to_str(ordinal, &mut text)?;
                }
                ListValue::Text(text)
            }
        })
    }
}

fn directed(rank: u64, descending: bool) -> u64 {
    if descending { !rank } else { rank }
}

impl Collector for ListCollector<'_> {
    type Fruit = (u64, Vec<Placed>);
    type Child = SegmentList;

    fn for_segment(
        &self,
        ordinal: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<SegmentList> {
        let keys = self
            .order
            .iter()
            .map(|(key, descending)| Ok((KeyColumn::open(reader, *key)?, *descending)))
            .collect::<tantivy::Result<Vec<_>>>()?;
        let after = match &self.request.after {
            None => None,
            Some(place) => {
                let mut ranks = Ranks::default();
                for (rank, ((key, descending), value)) in
                    ranks.iter_mut().zip(keys.iter().zip(place))
                {
                    *rank = directed(key.rank_of(value)?, *descending);
                }
                Some(ranks)
            }
        };
        let fast = reader.fast_fields();
        Ok(SegmentList {
            ordinal,
            keys,
            times: [
                (fast.i64("created_at")?, self.request.created_after),
                (fast.i64("updated_at")?, self.request.updated_after),
            ],
            ids: AgentIds::open(reader)?,
            after,
            top: self.request.limit + 1,
            total: 0,
            first: BinaryHeap::new(),
        })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(
        &self,
        segments: Vec<tantivy::Result<(u64, Vec<Placed>)>>,
    ) -> tantivy::Result<(u64, Vec<Placed>)> {
        let mut all = (0, Vec::new());
        for segment in segments {
            let (total, rows) = segment?;
            all.0 += total;
            all.1.extend(rows);
        }
        Ok(all)
    }
}

impl SegmentCollector for SegmentList {
    type Fruit = tantivy::Result<(u64, Vec<Placed>)>;

    fn collect(&mut self, document: DocId, _: Score) {
        let is_late = |(column, after): &(Column<i64>, Option<i64>)| {
            after.is_none_or(|after| column.first(document).is_some_and(|time| time > after))
        };
        if !self.times.iter().all(is_late) {
            return;
        }
        self.total += 1;
        let mut ranks = Ranks::default();
        for (rank, (key, descending)) in ranks.iter_mut().zip(&self.keys) {
            *rank = directed(key.rank(document), *descending);
        }
        if self.after.is_some_and(|after| ranks <= after) {
            return;
        }
        let place = (ranks, self.ids.get(document), document);
        if self.first.len() < self.top {
            self.first.push(place);
        } else if let Some(mut last) = self.first.peek_mut()
            && place < *last
        {
            *last = place;
        }
    }

    fn harvest(self) -> Self::Fruit {
        let rows = self.first.iter().map(|(_, _, document)| {
            let place = self.keys.iter().map(|(key, _)| key.value(*document));
            let place = place.collect::<std::io::Result<Vec<_>>>()?;
            Ok((place, DocAddress::new(self.ordinal, *document)))
        });
        Ok((self.total, rows.collect::<tantivy::Result<_>>()?))
    }
}
