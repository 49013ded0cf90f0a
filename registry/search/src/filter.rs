//! Filters as bit sets of documents per segment.
//!
//! Filter conditions are not scored, so they are not part of the text's boolean query: each condition becomes a bit
//! set, sets of frequent values are shared between searches, and the text query tests one bit per match.

use std::borrow::Cow;
use std::sync::Arc;

use a2a_registry_domain::facet::Facet;
use moka::sync::Cache;
use tantivy::index::SegmentId;
use tantivy::query::{BooleanQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Opstamp, SegmentReader, Term};

use super::analysis::asked_pieces;
use super::bits::Bits;
use super::error::IndexError;
use super::keys::{KeyKind, Keys};
use super::overlay::Excluded;
use super::request::{Filters, MAX_FILTER_VALUES, MAX_WITHIN};
use super::schema::Fields;
use super::visibility::Viewer;

/// Documents of a segment from which sets are shared; in smaller segments the search is too fast to benefit.
const SHARED_FROM_DOCUMENTS: u32 = 4_096;

/// Document frequency, one in this many, from which a value is frequent and its set shared.
const SHARED_FREQUENCY: u32 = 256;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum SharedKey {
    Term(SegmentId, Term),
    Alive(SegmentId, Option<Opstamp>),
    Shown(SegmentId, Arc<Viewer>),
    Found(SegmentId, Option<Opstamp>, Arc<Conditions>),
}

impl SharedKey {
    /// About the bytes that a key occupies.
    fn size(&self) -> usize {
        match self {
            Self::Term(..) | Self::Alive(..) => 128,
            Self::Shown(_, viewer) => 128 + viewer.size(),
            Self::Found(_, _, conditions) => 256 + conditions.viewer.size(),
        }
    }
}

/// Cache of shared sets, bounded by their size in bytes.
pub(super) type SharedBits = Cache<SharedKey, Arc<Bits>>;

/// Creates an empty cache of at most this many bytes.
pub(super) fn shared_bits(bytes: u64) -> SharedBits {
    Cache::builder()
        .max_capacity(bytes)
        .weigher(|key: &SharedKey, bits: &Arc<Bits>| {
            u32::try_from(bits.size() + key.size()).unwrap_or(u32::MAX)
        })
        .build()
}

/// One condition: at least one alternative matches, or none if it is negated. An alternative is a list of terms that
/// must all match, or a list of conditions that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Clause {
    alternatives: Vec<Vec<Term>>,
    nested: Vec<Vec<Clause>>,
    negated: bool,
    /// Whether it is one of the conditions of a search without filters.
    common: bool,
}

impl Clause {
    /// The condition as a query, for conditions joined with words; those are never negated.
    pub fn query(&self) -> Box<dyn Query> {
        let term = |term: &Term| -> Box<dyn Query> {
            Box::new(TermQuery::new(term.clone(), IndexRecordOption::Basic))
        };
        let every = |terms: &Vec<Term>| -> Box<dyn Query> {
            Box::new(BooleanQuery::intersection(terms.iter().map(term).collect()))
        };
        let alternatives = self.alternatives.iter().map(every).collect();
        Box::new(BooleanQuery::union(alternatives))
    }
}

/// Conditions that must all match, one of them being visible to the caller.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Conditions {
    clauses: Vec<Clause>,
    viewer: Arc<Viewer>,
}

/// The documents that match conditions, without the agents of the overlay that the caller may no longer see.
#[derive(Clone)]
pub(super) struct Filter {
    conditions: Arc<Conditions>,
    excluded: Arc<Excluded>,
    keys: Keys,
    shared: SharedBits,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Filter")
            .field(&self.conditions.clauses)
            .finish()
    }
}

impl Filter {
    /// Creates a filter of these conditions, and of being visible to a caller with these labels.
    pub fn new(
        fields: &Fields,
        clauses: Vec<Clause>,
        excluded: Arc<Excluded>,
        labels: &[String],
        shared: SharedBits,
    ) -> Self {
        Self {
            conditions: Arc::new(Conditions {
                clauses,
                viewer: Arc::new(Viewer::of(labels)),
            }),
            excluded,
            keys: fields.keys,
            shared,
        }
    }

    /// Living documents of a segment that match all conditions.
    pub fn bits(&self, reader: &SegmentReader) -> tantivy::Result<Arc<Bits>> {
        let mut bits = self.found(reader)?;
        let changed = self.excluded.get(&reader.segment_id());
        for (document, still_seen_by) in changed.into_iter().flatten() {
            if !self.conditions.viewer.sees(still_seen_by) {
                Arc::make_mut(&mut bits).remove(*document);
            }
        }
        Ok(bits)
    }

    /// The same, whatever is in the overlay. Most searches have no filter, and share these sets as a whole.
    fn found(&self, reader: &SegmentReader) -> tantivy::Result<Arc<Bits>> {
        let conditions = &self.conditions;
        let shared = conditions.clauses.iter().all(|clause| clause.common);
        let (id, deletes) = (reader.segment_id(), reader.delete_opstamp());
        let key = shared.then(|| SharedKey::Found(id, deletes, Arc::clone(conditions)));
        if let Some(bits) = key.as_ref().and_then(|key| self.shared.get(key)) {
            return Ok(bits);
        }
        let mut bits = match reader.alive_bitset() {
            None => Bits::all(reader.max_doc()),
            Some(_) => (*self.alive(reader)).clone(),
        };
        bits.intersect(&*self.shown(reader)?);
        for clause in &conditions.clauses {
            self.narrow(reader, clause, &mut bits)?;
        }
        let bits = Arc::new(bits);
        if let Some(key) = key {
            self.shared.insert(key, Arc::clone(&bits));
        }
        Ok(bits)
    }

    /// Removes from a set the documents that do not fulfil a condition.
    fn narrow(
        &self,
        reader: &SegmentReader,
        clause: &Clause,
        bits: &mut Bits,
    ) -> tantivy::Result<()> {
        let mut any = Bits::none(reader.max_doc());
        for alternative in &clause.alternatives {
            match alternative.as_slice() {
                [term] => self.add_term(reader, term, &mut any)?,
                terms => {
                    let mut every = Bits::all(reader.max_doc());
                    for term in terms {
                        let mut one = Bits::none(reader.max_doc());
                        self.add_term(reader, term, &mut one)?;
                        every.intersect(&one);
                    }
                    any.unite(&every);
                }
            }
        }
        for conditions in &clause.nested {
            let mut every = bits.clone();
            for condition in conditions {
                self.narrow(reader, condition, &mut every)?;
            }
            any.unite(&every);
        }
        match clause.negated {
            true => bits.subtract(&any),
            false => bits.intersect(&any),
        }
        Ok(())
    }

    /// The documents that the caller's labels show. They are shared between callers with the same labels: policies make many
    /// labels, each of which would be looked up for every search.
    fn shown(&self, reader: &SegmentReader) -> tantivy::Result<Arc<Bits>> {
        let shared = reader.max_doc() >= SHARED_FROM_DOCUMENTS;
        let viewer = &self.conditions.viewer;
        let key = shared.then(|| SharedKey::Shown(reader.segment_id(), Arc::clone(viewer)));
        if let Some(bits) = key.as_ref().and_then(|key| self.shared.get(key)) {
            return Ok(bits);
        }
        let add = |term: &Term, target: &mut Bits| self.add_term(reader, term, target);
        let bits = Arc::new(viewer.bits(self.keys, reader, add)?);
        if let Some(key) = key {
            self.shared.insert(key, Arc::clone(&bits));
        }
        Ok(bits)
    }

    fn alive(&self, reader: &SegmentReader) -> Arc<Bits> {
        let key = SharedKey::Alive(reader.segment_id(), reader.delete_opstamp());
        self.shared.get_with(key, || Arc::new(Bits::living(reader)))
    }

    fn add_term(
        &self,
        reader: &SegmentReader,
        term: &Term,
        target: &mut Bits,
    ) -> tantivy::Result<()> {
        let terms = reader.inverted_index(term.field())?;
        let Some(info) = terms.get_term_info(term)? else {
            return Ok(());
        };
        let frequent = info.doc_freq >= reader.max_doc() / SHARED_FREQUENCY;
        let shared = frequent && reader.max_doc() >= SHARED_FROM_DOCUMENTS;
        let key = shared.then(|| SharedKey::Term(reader.segment_id(), term.clone()));
        if let Some(bits) = key.as_ref().and_then(|key| self.shared.get(key)) {
            target.unite(&bits);
            return Ok(());
        }
        let postings = terms.read_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
        let Some(key) = key else {
            target.insert_all(postings);
            return Ok(());
        };
        let mut own = Bits::none(reader.max_doc());
        own.insert_all(postings);
        target.unite(&own);
        self.shared.insert(key, Arc::new(own));
        Ok(())
    }
}

/// Lifecycles that are found without a lifecycle filter.
pub(super) const LISTED: [&str; 2] = ["approved", "deprecated"];

/// Liveness that is found only with a liveness filter.
const GONE: &str = "gone";

pub(super) fn listed(fields: &Fields) -> Clause {
    let lifecycles = LISTED.iter();
    let terms = lifecycles.map(|lifecycle| fields.keys.facet(Facet::Lifecycle, lifecycle));
    Clause {
        common: true,
        ..any_of(terms)
    }
}

/// The condition of not being listed: pending, on hold or rejected.
pub(super) fn unlisted(fields: &Fields) -> Clause {
    Clause {
        negated: true,
        ..listed(fields)
    }
}

fn not_gone(fields: &Fields) -> Clause {
    Clause {
        alternatives: vec![vec![fields.keys.facet(Facet::Liveness, GONE)]],
        negated: true,
        common: true,
        ..Clause::default()
    }
}

pub(super) fn keyed(fields: &Fields, key: &str) -> Clause {
    any_of(std::iter::once(fields.keys.term(KeyKind::Lookup, key)))
}

pub(super) fn clauses(fields: &Fields, filters: &Filters) -> Result<Vec<Clause>, IndexError> {
    let listed_values = filters
        .used()
        .map(|(_, values)| values.len())
        .sum::<usize>();
    let exact_values = filters
        .exact
        .iter()
        .map(|one| one.values.len())
        .sum::<usize>();
    let values = listed_values + exact_values;
    if values > MAX_FILTER_VALUES {
        return Err(IndexError::TooMany {
            what: "filter values",
            limit: MAX_FILTER_VALUES,
        });
    }
    if filters.within.len() > MAX_WITHIN {
        return Err(IndexError::TooMany {
            what: "filters of which one must pass",
            limit: MAX_WITHIN,
        });
    }
    let mut clauses = explicit(fields, filters);
    if filters.values[Facet::Lifecycle].is_empty() {
        clauses.push(listed(fields));
    }
    if filters.values[Facet::Liveness].is_empty() {
        clauses.push(not_gone(fields));
    }
    if !filters.within.is_empty() {
        let within = filters.within.iter();
        clauses.push(Clause {
            nested: within.map(|one| explicit(fields, one)).collect(),
            ..Clause::default()
        });
    }
    Ok(clauses)
}

/// The conditions that filters name themselves.
fn explicit(fields: &Fields, filters: &Filters) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = filters
        .used()
        .map(|(facet, values)| condition(fields, facet, values))
        .collect();
    clauses.extend(filters.exact.iter().map(|one| {
        let values = one.values.iter();
        any_of(values.map(|value| one.property.term(fields, value)))
    }));
    clauses
}

/// The condition that at least one of these holds, as written in the query syntax. There a provider matches by words of
/// its name too, like a skill.
pub(super) fn any_condition(fields: &Fields, any: &[(Facet, String)]) -> Clause {
    let mut alternatives = Vec::new();
    for (facet, value) in any {
        let one = condition(fields, *facet, std::slice::from_ref(value));
        alternatives.extend(one.alternatives);
        if *facet == Facet::Provider {
            alternatives.extend(words(fields.keys, KeyKind::ProviderWord, value));
        }
    }
    Clause {
        alternatives,
        ..Clause::default()
    }
}

fn condition(fields: &Fields, facet: Facet, values: &[String]) -> Clause {
    let indexed = values.iter().map(|value| indexed_form(facet, value));
    match facet {
        Facet::Skill => skill(fields, values),
        _ => any_of(indexed.map(|value| fields.keys.facet(facet, &value))),
    }
}

/// A value in the form in which the index has it: providers and tags are indexed in lower case.
pub(super) fn indexed_form(facet: Facet, value: &str) -> Cow<'_, str> {
    match facet {
        Facet::Provider | Facet::Tag => value.to_lowercase().into(),
        _ => value.into(),
    }
}

fn any_of(terms: impl Iterator<Item = Term>) -> Clause {
    Clause {
        alternatives: terms.map(|term| vec![term]).collect(),
        ..Clause::default()
    }
}

/// The condition of having a skill with this id, or all these words in the names of the agent's skills.
fn skill(fields: &Fields, values: &[String]) -> Clause {
    let mut alternatives = Vec::new();
    for value in values {
        alternatives.push(vec![fields.keys.facet(Facet::Skill, value)]);
        alternatives.extend(words(fields.keys, KeyKind::SkillWord, value));
    }
    Clause {
        alternatives,
        ..Clause::default()
    }
}

/// Terms of all words of a text, stemmed; `None` for a text without words, or with too many.
fn words(keys: Keys, kind: KeyKind, text: &str) -> Option<Vec<Term>> {
    let mut words: Vec<Term> = asked_pieces(text)
        .map(|piece| keys.term(kind, &piece.stem.unwrap_or(piece.exact)))
        .collect();
    words.sort_unstable();
    words.dedup();
    (!words.is_empty() && words.len() <= super::request::MAX_QUERY_WORDS).then_some(words)
}

/// The condition of having exactly this trust level, or `none`.
pub(super) fn trusted(fields: &Fields, level: &str) -> Clause {
    any_of(std::iter::once(fields.keys.facet(Facet::Trust, level)))
}
