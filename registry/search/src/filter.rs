//! Filters as bit sets of documents per segment.
//!
//! Filter conditions are not scored, so they are not part of the text's boolean query: each condition becomes a bit
//! set, the sets of frequent values are shared between searches, and the text query tests one bit per match.

use std::borrow::Cow;
use std::sync::Arc;

use a2a_registry_domain::facet::Facet;
use moka::sync::Cache;
use tantivy::index::SegmentId;
use tantivy::query::{BooleanQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Opstamp, SegmentReader, Term};

use super::agent_property::ExactFilter;
use super::analysis::{MAX_QUERY_WORDS, split_query_words};
use super::doc_bit_set::DocBitSet;
use super::error::IndexError;
use super::keys::{KeyField, KeyKind};
use super::label_matching::CallerLabels;
use super::overlay::OverlayExclusions;
use super::request::{Filters, LISTED_LIFECYCLES, MAX_ANY_OF_FILTERS, MAX_FILTER_VALUES};
use super::rule_labels::RuleLabels;
use super::schema::IndexFields;

/// Segment size in documents from which sets are shared; searches of smaller segments are too fast to benefit.
const MIN_CACHED_SEGMENT_DOCS: u32 = 4_096;

/// Fraction of the documents (one in this many) from which a value is frequent and its set shared.
const CACHED_TERM_FRACTION: u32 = 256;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum FilterBitKey {
    Term(SegmentId, Term),
    Alive(SegmentId, Option<Opstamp>),
    Visible(SegmentId, Arc<CallerLabels>),
    Matching(SegmentId, Option<Opstamp>, Arc<FilterConditions>),
}

impl FilterBitKey {
    /// Approximate size of a key in bytes.
    fn byte_size(&self) -> usize {
        match self {
            Self::Term(..) | Self::Alive(..) => 128,
            Self::Visible(_, caller_labels) => 128 + caller_labels.byte_size(),
            Self::Matching(_, _, conditions) => 256 + conditions.caller_labels.byte_size(),
        }
    }
}

/// A shared set.
#[derive(Clone)]
pub(super) struct CachedBits {
    bits: Arc<DocBitSet>,
    /// The version of the rule labels that it was made from, of which a search of an earlier state must know nothing;
    /// 0 if it depends on none.
    rule_version: u64,
}

/// Cache of shared sets, bounded by their size in bytes.
pub(super) type FilterBitCache = Cache<FilterBitKey, CachedBits>;

/// Creates an empty cache of at most this many bytes.
pub(super) fn new_filter_cache(bytes: u64) -> FilterBitCache {
    Cache::builder()
        .max_capacity(bytes)
        .weigher(|key: &FilterBitKey, cached: &CachedBits| {
            u32::try_from(cached.bits.byte_size() + key.byte_size()).unwrap_or(u32::MAX)
        })
        .build()
}

/// One condition: at least one alternative matches, or none if it is negated. An alternative is a list of terms that
/// must all match, or a list of conditions that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct FilterClause {
    alternatives: Vec<Vec<Term>>,
    nested: Vec<Vec<FilterClause>>,
    negated: bool,
    /// Whether this is one of the conditions of a search without filters.
    is_default: bool,
}

impl FilterClause {
    /// The condition as a query, for conditions joined with words, which are never negated.
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

/// Conditions that must all match, including visibility to the caller.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct FilterConditions {
    clauses: Vec<FilterClause>,
    caller_labels: Arc<CallerLabels>,
}

/// A filter of documents by conditions, without the agents of the overlay that the caller may no longer see.
#[derive(Clone)]
pub(super) struct DocumentFilter {
    conditions: Arc<FilterConditions>,
    overlay_exclusions: Arc<OverlayExclusions>,
    keys: KeyField,
    cache: FilterBitCache,
    rule_labels: RuleLabels,
}

impl std::fmt::Debug for DocumentFilter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Filter")
            .field(&self.conditions.clauses)
            .finish()
    }
}

impl DocumentFilter {
    /// Creates a filter of these conditions and of visibility to a caller with these labels.
    pub fn new(
        fields: &IndexFields,
        clauses: Vec<FilterClause>,
        overlay_exclusions: Arc<OverlayExclusions>,
        labels: &[String],
        cache: FilterBitCache,
        rule_labels: RuleLabels,
    ) -> Self {
        let caller_labels = CallerLabels::from_labels(labels);
        let caller_labels = caller_labels.at_generation(rule_labels.generation());
        Self {
            conditions: Arc::new(FilterConditions {
                clauses,
                caller_labels: Arc::new(caller_labels),
            }),
            overlay_exclusions,
            keys: fields.keys,
            cache,
            rule_labels,
        }
    }

    /// The generation of the rule labels by which it filters; 0 if it filters by none.
    pub fn rule_generation(&self) -> u64 {
        self.conditions.caller_labels.rule_generation()
    }

    fn cached_bits(&self, key: &FilterBitKey) -> Option<Arc<DocBitSet>> {
        let cached = self.cache.get(key)?;
        (cached.rule_version <= self.rule_labels.version()).then_some(cached.bits)
    }

    fn cache_bits(&self, key: FilterBitKey, bits: &Arc<DocBitSet>) {
        let by_rules = match &key {
            FilterBitKey::Term(..) | FilterBitKey::Alive(..) => false,
            FilterBitKey::Visible(..) | FilterBitKey::Matching(..) => {
                self.conditions.caller_labels.has_rules()
            }
        };
        let cached = CachedBits {
            bits: Arc::clone(bits),
            rule_version: if by_rules {
                self.rule_labels.version()
            } else {
                0
            },
        };
        self.cache.insert(key, cached);
    }

    /// The undeleted documents of a segment that match all conditions.
    pub fn matching_docs(&self, reader: &SegmentReader) -> tantivy::Result<Arc<DocBitSet>> {
        let mut bits = self.matching_docs_before_overlay(reader)?;
        let changed = self.overlay_exclusions.get(&reader.segment_id());
        for (document, still_seen_by) in changed.into_iter().flatten() {
            if !self.conditions.caller_labels.can_see(still_seen_by) {
                Arc::make_mut(&mut bits).remove(*document);
            }
        }
        Ok(bits)
    }

    /// The same without considering the overlay. Most searches have no filter and share these sets as a whole.
    fn matching_docs_before_overlay(
        &self,
        reader: &SegmentReader,
    ) -> tantivy::Result<Arc<DocBitSet>> {
        let conditions = &self.conditions;
        let shared = conditions.clauses.iter().all(|clause| clause.is_default);
        let (id, deletes) = (reader.segment_id(), reader.delete_opstamp());
        let key = shared.then(|| FilterBitKey::Matching(id, deletes, Arc::clone(conditions)));
        if let Some(bits) = key.as_ref().and_then(|key| self.cached_bits(key)) {
            return Ok(bits);
        }
        let mut bits = match reader.alive_bitset() {
            None => DocBitSet::full(reader.max_doc()),
            Some(_) => (*self.alive_docs(reader)).clone(),
        };
        bits.intersect_with(&*self.visible_docs(reader)?);
        for clause in &conditions.clauses {
            self.apply_clause(reader, clause, &mut bits)?;
        }
        let bits = Arc::new(bits);
        if let Some(key) = key {
            self.cache_bits(key, &bits);
        }
        Ok(bits)
    }

    /// Removes the documents from a set that do not match a condition.
    fn apply_clause(
        &self,
        reader: &SegmentReader,
        clause: &FilterClause,
        bits: &mut DocBitSet,
    ) -> tantivy::Result<()> {
        let mut matching = DocBitSet::empty(reader.max_doc());
        for alternative in &clause.alternatives {
            match alternative.as_slice() {
                [term] => self.add_term_docs(reader, term, &mut matching)?,
                terms => {
                    let mut all_terms = DocBitSet::full(reader.max_doc());
                    for term in terms {
                        let mut one = DocBitSet::empty(reader.max_doc());
                        self.add_term_docs(reader, term, &mut one)?;
                        all_terms.intersect_with(&one);
                    }
                    matching.union_with(&all_terms);
                }
            }
        }
        for conditions in &clause.nested {
            let mut every = bits.clone();
            for condition in conditions {
                self.apply_clause(reader, condition, &mut every)?;
            }
            matching.union_with(&every);
        }
        match clause.negated {
            true => bits.subtract(&matching),
            false => bits.intersect_with(&matching),
        }
        Ok(())
    }

    /// The documents visible with the caller's labels. Callers with the same labels share them: policies create many
    /// labels, and each would otherwise be looked up for every search.
    fn visible_docs(&self, reader: &SegmentReader) -> tantivy::Result<Arc<DocBitSet>> {
        let caller_labels = &self.conditions.caller_labels;
        let shared = reader.max_doc() >= MIN_CACHED_SEGMENT_DOCS || caller_labels.has_rules();
        let key =
            shared.then(|| FilterBitKey::Visible(reader.segment_id(), Arc::clone(caller_labels)));
        if let Some(bits) = key.as_ref().and_then(|key| self.cached_bits(key)) {
            return Ok(bits);
        }
        let add = |term: &Term, target: &mut DocBitSet| self.add_term_docs(reader, term, target);
        let by_rules = |labels: &[String]| self.rule_labels.docs_with_any(labels, reader);
        let bits = Arc::new(caller_labels.visible_docs(self.keys, reader, add, by_rules)?);
        if let Some(key) = key {
            self.cache_bits(key, &bits);
        }
        Ok(bits)
    }

    fn alive_docs(&self, reader: &SegmentReader) -> Arc<DocBitSet> {
        let key = FilterBitKey::Alive(reader.segment_id(), reader.delete_opstamp());
        let alive = || CachedBits {
            bits: Arc::new(DocBitSet::alive(reader)),
            rule_version: 0,
        };
        self.cache.get_with(key, alive).bits
    }

    fn add_term_docs(
        &self,
        reader: &SegmentReader,
        term: &Term,
        target: &mut DocBitSet,
    ) -> tantivy::Result<()> {
        let terms = reader.inverted_index(term.field())?;
        let Some(info) = terms.get_term_info(term)? else {
            return Ok(());
        };
        let frequent = info.doc_freq >= reader.max_doc() / CACHED_TERM_FRACTION;
        let shared = frequent && reader.max_doc() >= MIN_CACHED_SEGMENT_DOCS;
        let key = shared.then(|| FilterBitKey::Term(reader.segment_id(), term.clone()));
        if let Some(bits) = key.as_ref().and_then(|key| self.cached_bits(key)) {
            target.union_with(&bits);
            return Ok(());
        }
        let postings = terms.read_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
        let Some(key) = key else {
            target.insert_postings(postings);
            return Ok(());
        };
        let mut own = DocBitSet::empty(reader.max_doc());
        own.insert_postings(postings);
        target.union_with(&own);
        self.cache_bits(key, &Arc::new(own));
        Ok(())
    }
}

/// The liveness found only with a liveness filter.
const GONE_LIVENESS: &str = "gone";

pub(super) fn listed_clause(fields: &IndexFields) -> FilterClause {
    let lifecycles = LISTED_LIFECYCLES.iter();
    let terms = lifecycles.map(|lifecycle| fields.keys.facet_term(Facet::Lifecycle, lifecycle));
    FilterClause {
        is_default: true,
        ..any_term_clause(terms)
    }
}

/// The condition of an unlisted agent: pending, on hold or rejected.
pub(super) fn unlisted_clause(fields: &IndexFields) -> FilterClause {
    FilterClause {
        negated: true,
        ..listed_clause(fields)
    }
}

fn not_gone_clause(fields: &IndexFields) -> FilterClause {
    FilterClause {
        alternatives: vec![vec![fields.keys.facet_term(Facet::Liveness, GONE_LIVENESS)]],
        negated: true,
        is_default: true,
        ..FilterClause::default()
    }
}

pub(super) fn lookup_clause(fields: &IndexFields, key: &str) -> FilterClause {
    any_term_clause(std::iter::once(fields.keys.term(KeyKind::Lookup, key)))
}

pub(super) fn build_filter_clauses(
    fields: &IndexFields,
    filters: &Filters,
) -> Result<Vec<FilterClause>, IndexError> {
    let listed_values = filters
        .used_facets()
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
    if filters.any_of.len() > MAX_ANY_OF_FILTERS {
        return Err(IndexError::TooMany {
            what: "alternative filters",
            limit: MAX_ANY_OF_FILTERS,
        });
    }
    let mut clauses = clauses_without_defaults(fields, filters);
    if filters.values[Facet::Lifecycle].is_empty() {
        clauses.push(listed_clause(fields));
    }
    if filters.values[Facet::Liveness].is_empty() {
        clauses.push(not_gone_clause(fields));
    }
    if !filters.any_of.is_empty() {
        let within = filters.any_of.iter();
        clauses.push(FilterClause {
            nested: within
                .map(|one| clauses_without_defaults(fields, one))
                .collect(),
            ..FilterClause::default()
        });
    }
    Ok(clauses)
}

/// The explicit conditions of filters, without default ones.
fn clauses_without_defaults(fields: &IndexFields, filters: &Filters) -> Vec<FilterClause> {
    let mut clauses: Vec<FilterClause> = filters
        .used_facets()
        .map(|(facet, values)| facet_clause(fields, facet, values))
        .collect();
    clauses.extend(filters.exact.iter().map(|one| exact_clause(fields, one)));
    clauses
}

fn exact_clause(fields: &IndexFields, filter: &ExactFilter) -> FilterClause {
    let values = filter.values.iter();
    any_term_clause(values.map(|value| filter.property.term(fields.keys, value)))
}

/// The condition that an agent fails this filter.
pub(super) fn failed_clause(fields: &IndexFields, filter: &ExactFilter) -> FilterClause {
    FilterClause {
        negated: true,
        ..exact_clause(fields, filter)
    }
}

/// The condition that at least one of these values matches, as in the query syntax. There, a provider also matches by
/// words of its name, like a skill.
pub(super) fn any_condition_clause(
    fields: &IndexFields,
    conditions: &[(Facet, String)],
) -> FilterClause {
    let mut alternatives = Vec::new();
    for (facet, value) in conditions {
        let one = facet_clause(fields, *facet, std::slice::from_ref(value));
        alternatives.extend(one.alternatives);
        if *facet == Facet::Provider {
            alternatives.extend(word_terms(fields.keys, KeyKind::ProviderWord, value));
        }
    }
    FilterClause {
        alternatives,
        ..FilterClause::default()
    }
}

fn facet_clause(fields: &IndexFields, facet: Facet, values: &[String]) -> FilterClause {
    let indexed = values.iter().map(|value| indexed_facet_value(facet, value));
    match facet {
        Facet::Skill => skill_clause(fields, values),
        _ => any_term_clause(indexed.map(|value| fields.keys.facet_term(facet, &value))),
    }
}

/// A value in its indexed form: providers and tags are indexed in lower case.
pub(super) fn indexed_facet_value(facet: Facet, value: &str) -> Cow<'_, str> {
    match facet {
        Facet::Provider | Facet::Tag => value.to_lowercase().into(),
        _ => value.into(),
    }
}

fn any_term_clause(terms: impl Iterator<Item = Term>) -> FilterClause {
    FilterClause {
        alternatives: terms.map(|term| vec![term]).collect(),
        ..FilterClause::default()
    }
}

/// The condition of a skill with this id, or of skill names that contain all these words.
fn skill_clause(fields: &IndexFields, values: &[String]) -> FilterClause {
    let mut alternatives = Vec::new();
    for value in values {
        alternatives.push(vec![fields.keys.facet_term(Facet::Skill, value)]);
        alternatives.extend(word_terms(fields.keys, KeyKind::SkillWord, value));
    }
    FilterClause {
        alternatives,
        ..FilterClause::default()
    }
}

/// The terms of all words of a text, stemmed; `None` for a text without words, or with too many.
fn word_terms(keys: KeyField, kind: KeyKind, text: &str) -> Option<Vec<Term>> {
    let mut words: Vec<Term> = split_query_words(text)
        .map(|piece| keys.term(kind, &piece.stem.unwrap_or(piece.exact)))
        .collect();
    words.sort_unstable();
    words.dedup();
    (!words.is_empty() && words.len() <= MAX_QUERY_WORDS).then_some(words)
}

/// The condition of exactly this trust level, or `none`.
pub(super) fn trust_clause(fields: &IndexFields, level: &str) -> FilterClause {
    any_term_clause(std::iter::once(fields.keys.facet_term(Facet::Trust, level)))
}
