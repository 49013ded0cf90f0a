//! Similar agents: the nearest neighbours of an agent's own vector, or the agents that share its most telling words.
//!
//! Neither the agent itself nor its duplicates are similar to it, and of the duplicates among similar agents one stands
//! for all. Which words tell most is decided by the statistics of the caller's class, like every score.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use tantivy::query::{BooleanQuery, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::{DocAddress, DocSet as _, Score, TERMINATED, TantivyDocument, Term};
use uuid::Uuid;

use super::analysis::pieces;
use super::answer::{Duplicates, HitRow, MAX_DUPLICATES};
use super::collect::{AgentIds, Order, PageCollector, PageEntry};
use super::error::IndexError;
use super::facets::Facets;
use super::filter::{Filter, clauses};
use super::filtered::FilteredQuery;
use super::groups::Groups;
use super::highlight::Highlighter;
use super::languages::{Languages, is_stop_word};
use super::layout::{TextKind, texts};
use super::meaning::slots;
use super::request::{Filters, HitParts, SortPosition, SortValue};
use super::rescore::RescoreGain;
use super::seen::CountHolders as _;
use super::statistics::{QueryStatistics, Statistics};
use super::{Index, IndexView, Inner};
use crate::vectors::{NO_SLOT, SlotBits, Vectors};

pub const MAX_SIMILAR: usize = 20;

/// The most words of an agent that similar ones are searched by.
const TELLING_WORDS: usize = 25;
/// The most distinct words of an agent that are compared by how much they tell, the most frequent ones.
const COMPARED_WORDS: usize = 400;
/// Least score of a similar agent, as a part of the agent's own: one rare word among many makes no agent similar.
const OWN_SHARE: Score = 0.1;

#[derive(Debug, Clone, Default)]
pub struct SimilarRequest {
    /// Id of the agent. Whether the caller may see it has to be decided before.
    pub id: Uuid,
    pub visible_to: Vec<String>,
    /// Visibility labels of the caller's class, whose word statistics count.
    pub class: Vec<String>,
    /// The most agents to return, at most [`MAX_SIMILAR`].
    pub limit: usize,
    /// Vectors of all agents, and the least similarity; without them, or without a vector of the agent, words decide.
    pub vectors: Option<(Arc<Vectors>, f32)>,
}

#[derive(Debug, Clone, Default)]
pub struct SimilarAgents {
    /// The most similar agents first.
    pub hits: Vec<HitRow>,
    /// Duplicates of the agent itself that the caller may see.
    pub duplicates: Option<Duplicates>,
    /// Whether vectors were compared, and not words.
    pub by_meaning: bool,
}

impl Index {
    /// Whether a caller with these labels sees an agent, listed or not. For one that is hidden from it as much is looked at as
    /// for one that is missing.
    pub fn sees(&self, id: Uuid, visible_to: &[String]) -> Result<bool, IndexError> {
        let inner = &*self.0;
        let view = inner.view()?;
        let filter = inner.filter(&view, Vec::new(), visible_to);
        let term = inner.fields.id_term(id);
        let mut sees = false;
        for reader in view.searcher.segment_readers() {
            let seen = filter.bits(reader)?;
            let terms = inner.fields.keys.index(reader)?;
            if let Some(postings) = terms.read_postings(&term, IndexRecordOption::Basic)? {
                sees |= seen.among(postings).next().is_some();
            }
        }
        Ok(sees)
    }

    /// Finds listed agents that are similar to an agent; none if it is not in the index.
    ///
    /// # Errors
    /// The errors of [`search`](Self::search); [`IndexError::TooMany`] beyond [`MAX_SIMILAR`] agents.
    pub fn similar(&self, request: &SimilarRequest) -> Result<SimilarAgents, IndexError> {
        if request.limit > MAX_SIMILAR {
            let (what, limit) = ("similar agents", MAX_SIMILAR);
            return Err(IndexError::TooMany { what, limit });
        }
        let inner = &*self.0;
        let view = inner.view()?;
        let Some(own) = inner.address(&view, request.id)? else {
            return Ok(SimilarAgents::default());
        };
        let asked = clauses(&inner.fields, &Filters::default())?;
        let search = SimilarSearch {
            inner,
            filter: inner.filter(&view, asked, &request.visible_to),
            groups: view.groups.get(&view.searcher)?,
            view: &view,
            own,
        };
        let near = match &request.vectors {
            Some((vectors, cutoff)) => search.near(vectors, *cutoff, request.limit)?,
            None => None,
        };
        let by_meaning = near.is_some();
        let entries = match near {
            Some(entries) => entries,
            None => {
                let statistics = inner.statistics(&view, &request.class)?;
                search.by_words(&statistics, request.limit)?
            }
        };
        let words = Highlighter::new(&[]);
        let parts = HitParts {
            entry: false,
            ..HitParts::default()
        };
        let hits = entries.into_iter();
        let hits = hits.map(|entry| inner.hit(&view.searcher, entry, &words, None, parts));
        Ok(SimilarAgents {
            hits: hits.collect::<Result<_, _>>()?,
            duplicates: search.duplicates()?,
            by_meaning,
        })
    }
}

impl Inner {
    /// The living document of an agent, whoever may see it.
    fn address(&self, view: &IndexView, id: Uuid) -> Result<Option<DocAddress>, IndexError> {
        let term = self.fields.id_term(id);
        for (ordinal, reader) in (0..).zip(view.searcher.segment_readers()) {
            let terms = self.fields.keys.index(reader)?;
            let Some(mut postings) = terms.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                if !reader.is_deleted(postings.doc()) {
                    return Ok(Some(DocAddress::new(ordinal, postings.doc())));
                }
                postings.advance();
            }
        }
        Ok(None)
    }
}

/// A search for agents similar to one, in one state of the index.
struct SimilarSearch<'a> {
    inner: &'a Inner,
    view: &'a IndexView,
    /// The listed agents that the caller may see.
    filter: Filter,
    groups: Arc<Groups>,
    own: DocAddress,
}

impl SimilarSearch<'_> {
    /// Number of a document's group, if it has duplicates.
    fn group(&self, address: DocAddress) -> Option<u32> {
        self.groups.find(address).map(|duplicate| duplicate.group)
    }

    /// Whether a document is the agent itself or a duplicate of it.
    fn is_own(&self, address: DocAddress) -> bool {
        let own = self.group(self.own);
        address == self.own || own.is_some() && own == self.group(address)
    }

    fn duplicates(&self) -> Result<Option<Duplicates>, IndexError> {
        let Some(group) = self.group(self.own) else {
            return Ok(None);
        };
        let readers = self.view.searcher.segment_readers().iter();
        let allowed = readers.map(|reader| self.filter.bits(reader));
        let allowed = allowed.collect::<tantivy::Result<Vec<_>>>()?;
        let mut duplicates = Duplicates::default();
        for member in self.groups.members(group) {
            let bits = allowed.get(member.address.segment_ord as usize);
            if member.address == self.own
                || !bits.is_some_and(|bits| bits.contains(member.address.doc_id))
            {
                continue;
            }
            duplicates.count += 1;
            if duplicates.agents.len() < MAX_DUPLICATES {
                duplicates.agents.push(member.id);
            }
        }
        Ok((duplicates.count > 0).then_some(duplicates))
    }

    /// The nearest neighbours of the agent's vector; `None` if it has none.
    fn near(
        &self,
        vectors: &Vectors,
        cutoff: f32,
        limit: usize,
    ) -> Result<Option<Vec<PageEntry>>, IndexError> {
        let readers = self.view.searcher.segment_readers();
        let tables = &self.inner.slot_tables;
        let mut segments = Vec::with_capacity(readers.len());
        for (ordinal, reader) in (0..).zip(readers) {
            let mut bits = Arc::unwrap_or_clone(self.filter.bits(reader)?);
            if ordinal == self.own.segment_ord {
                bits.remove(self.own.doc_id);
            }
            segments.push((bits, slots(tables, vectors, reader)?));
        }
        if let Some(group) = self.group(self.own) {
            for member in self.groups.members(group) {
                if let Some((bits, _)) = segments.get_mut(member.address.segment_ord as usize) {
                    bits.remove(member.address.doc_id);
                }
            }
        }
        // The snapshot is taken after the tables, so it contains every slot in them.
        let snapshot = vectors.snapshot();
        let own = segments.get(self.own.segment_ord as usize);
        let own = own.and_then(|(_, slots)| slots.get(self.own.doc_id as usize));
        let Some(query) = snapshot.first_vector(own.copied().unwrap_or(NO_SLOT))? else {
            return Ok(None);
        };
        let mut allowed = SlotBits::none(snapshot.slots());
        let mut addresses: HashMap<u32, DocAddress> = HashMap::new();
        for (bits, slots) in &segments {
            let slots = bits
                .iter()
                .filter_map(|document| slots.get(document as usize));
            slots.for_each(|slot| allowed.insert(*slot));
        }
        let near = snapshot.nearest(&query, &allowed)?;
        let found: HashMap<u32, Score> = near
            .iter()
            .map(|near| (near.slot, near.similarity.mean()))
            .filter(|(_, similarity)| *similarity >= cutoff)
            .collect();
        for (ordinal, (bits, slots)) in (0..).zip(&segments) {
            for document in bits.iter() {
                if let Some(slot) = slots
                    .get(document as usize)
                    .filter(|slot| found.contains_key(slot))
                {
                    addresses.insert(*slot, DocAddress::new(ordinal, document));
                }
            }
        }
        let entries = found.into_iter();
        let entries = entries.filter_map(|(slot, score)| Some((*addresses.get(&slot)?, score)));
        Ok(Some(self.entries(entries.collect(), limit)?))
    }

    /// The first entries by score, of each group only its first member.
    fn entries(
        &self,
        mut scored: Vec<(DocAddress, Score)>,
        limit: usize,
    ) -> Result<Vec<PageEntry>, IndexError> {
        let mut heads: HashMap<u32, u32> = HashMap::new();
        for (address, _) in &scored {
            if let Some(duplicate) = self.groups.find(*address) {
                let head = heads.entry(duplicate.group).or_insert(duplicate.place);
                *head = duplicate.place.min(*head);
            }
        }
        scored.retain(|(address, _)| {
            let duplicate = self.groups.find(*address);
            duplicate.is_none_or(|one| heads.get(&one.group) == Some(&one.place))
        });
        let readers = self.view.searcher.segment_readers().iter();
        let ids = readers.map(AgentIds::open);
        let ids = ids.collect::<tantivy::Result<Vec<_>>>()?;
        let mut entries: Vec<PageEntry> = scored
            .into_iter()
            .map(|(address, score)| PageEntry {
                position: SortPosition {
                    weak: false,
                    value: SortValue::Score(score),
                    id: ids[address.segment_ord as usize].get(address.doc_id),
                },
                added: RescoreGain::default(),
                blended: None,
                duplicates: None,
                address,
            })
            .collect();
        entries.sort_by(|left, right| super::collect::compare(&left.position, &right.position));
        entries.truncate(limit);
        Ok(entries)
    }

    /// The agents that share most with the agent's telling words.
    fn by_words(
        &self,
        statistics: &Statistics,
        limit: usize,
    ) -> Result<Vec<PageEntry>, IndexError> {
        let words = self.telling_words(statistics)?.into_iter();
        let queries: Vec<Box<dyn Query>> = words
            .map(|word| TermQuery::new(word, IndexRecordOption::WithFreqs))
            .map(|query| Box::new(query) as Box<dyn Query>)
            .collect();
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let query = BooleanQuery::union(queries);
        let scored_by = Arc::new(statistics.of_query(Some(&query))?);
        let least = OWN_SHARE * self.own_score(&scored_by, &query)?;
        let query = FilteredQuery::new(Some(Box::new(query)), self.filter.clone());
        let page = PageCollector {
            order: Order::Score,
            // The agent, or one of its duplicates, is among them at most once.
            top: limit + 1,
            after: None,
            facets: Facets::default(),
            apart: None,
            groups: Some(Arc::clone(&self.groups)),
        };
        let query = query.scored_by(scored_by);
        let mut entries = self.view.searcher.search(&query, &page)?.entries;
        entries.retain(|entry| {
            let score = &entry.position.value;
            let is_enough = matches!(score, SortValue::Score(score) if *score >= least);
            is_enough && !self.is_own(entry.address)
        });
        entries.iter_mut().for_each(|entry| entry.duplicates = None);
        entries.truncate(limit);
        Ok(entries)
    }

    fn own_score(
        &self,
        statistics: &QueryStatistics,
        query: &dyn Query,
    ) -> Result<Score, IndexError> {
        let weight = statistics.weight(query, &self.view.searcher)?;
        let reader = self.view.searcher.segment_reader(self.own.segment_ord);
        let mut scorer = weight.scorer(reader, 1.0)?;
        if scorer.doc() < self.own.doc_id {
            scorer.seek(self.own.doc_id);
        }
        Ok(match scorer.doc() == self.own.doc_id {
            true => scorer.score(),
            false => 0.0,
        })
    }

    /// Terms of the words that tell most about the agent, the most telling first: frequent in its texts, and rare among
    /// others, but not without any other holder.
    fn telling_words(&self, statistics: &Statistics) -> Result<Vec<Term>, IndexError> {
        let document: TantivyDocument = self.view.searcher.doc(self.own)?;
        let field = self.inner.fields.text;
        let written = document.get_first(field).and_then(|text| text.as_str());
        let mut counts: HashMap<String, usize> = HashMap::new();
        for (kind, text) in texts(written.unwrap_or_default()) {
            // The provider's name and protocol features say nothing about what an agent does, and texts outside the model
            // may say anything.
            if matches!(
                kind,
                TextKind::Provider | TextKind::Protocol | TextKind::Other | TextKind::Languages
            ) {
                continue;
            }
            for piece in pieces(text, Languages::NONE) {
                if !piece.exact.is_empty() && !is_stop_word(&piece.exact) {
                    *counts.entry(piece.stem.unwrap_or(piece.exact)).or_default() += kind.times();
                }
            }
        }
        let mut words: Vec<(usize, String)> = counts
            .into_iter()
            .map(|(word, count)| (count, word))
            .collect();
        words.sort_unstable_by(|left, right| {
            (Reverse(left.0), &left.1).cmp(&(Reverse(right.0), &right.1))
        });
        words.truncate(COMPARED_WORDS);
        let reader = self.view.searcher.segment_reader(self.own.segment_ord);
        let counts_itself = self.filter.bits(reader)?.contains(self.own.doc_id);
        let mut telling: Vec<(Score, Term)> = Vec::with_capacity(words.len());
        for (count, word) in words {
            let term = Term::from_field_text(field, &word);
            if statistics.holders(&term, 2)? > u64::from(counts_itself) {
                telling.push((weight(count) * statistics.idf(&term)?, term));
            }
        }
        telling.sort_by(|left, right| {
            right
                .0
                .total_cmp(&left.0)
                .then_with(|| left.1.cmp(&right.1))
        });
        telling.truncate(TELLING_WORDS);
        Ok(telling.into_iter().map(|(_, term)| term).collect())
    }
}

/// Weight of a word that occurs this often: each further occurrence adds less.
#[expect(clippy::cast_precision_loss, reason = "a weight is rough")]
fn weight(count: usize) -> Score {
    count as Score / (count as Score + 1.2)
}
