//! Similar agents: the nearest neighbors of an agent's own vector, or the agents that share its most distinctive
//! words.
//!
//! Neither the agent itself nor its duplicates are similar to it, and one agent of each duplicate group represents the
//! group. The statistics of the caller's class determine which words are distinctive, as for every score.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use tantivy::query::{BooleanQuery, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::{DocAddress, DocSet as _, Score, TERMINATED, TantivyDocument, Term};
use uuid::Uuid;

use super::agent_id_reader::AgentIdReader;
use super::analysis::indexed_words;
use super::duplicate_groups::DuplicateGroups;
use super::error::IndexError;
use super::filter::{DocumentFilter, build_filter_clauses};
use super::filtered_query::FilteredQuery;
use super::highlight::Highlighter;
use super::languages::{LanguageSet, is_universal_stop_word};
use super::page_collector::{PageCollector, SortKey};
use super::page_entry::PageEntry;
use super::request::{Filters, RequestedHitParts, SortPosition, SortValue};
use super::rescore_bonus::RescoreBonus;
use super::response::{DuplicateAgents, HitRow, MAX_DUPLICATES};
use super::semantic_neighbors::segment_vector_slots;
use super::statistics::{CorpusStatistics, QueryStatistics};
use super::text_layout::{AgentTextKind, split_agent_texts};
use super::visible_agents::CountTermDocs as _;
use super::{Index, IndexInner, IndexView};
use crate::vectors::{NO_SLOT, SlotBitSet, VectorStore};

pub const MAX_SIMILAR_AGENTS: usize = 20;

/// Maximum number of words of an agent by which similar ones are searched.
const MAX_DISTINCTIVE_WORDS: usize = 25;
/// Maximum number of distinct words of an agent that are considered, starting with the most frequent ones.
const MAX_COMPARED_WORDS: usize = 400;
/// Minimum score of a similar agent, as a share of the agent's own: one rare word among many does not make an agent
/// similar.
const MIN_SCORE_SHARE: Score = 0.1;

#[derive(Debug, Clone, Default)]
pub struct SimilarRequest {
    /// Id of the agent. The caller's access to it must be checked before.
    pub id: Uuid,
    pub visible_to: Vec<String>,
    /// Visibility labels of the caller's class, whose word statistics count.
    pub class_labels: Vec<String>,
    /// Maximum number of agents to return, up to [`MAX_SIMILAR_AGENTS`].
    pub limit: usize,
    /// Vectors of all agents, and the least similarity. Without them, or if the agent has no vector, words are
    /// compared.
    pub vectors: Option<(Arc<VectorStore>, f32)>,
}

#[derive(Debug, Clone, Default)]
pub struct SimilarAgents {
    /// The most similar agents first.
    pub hits: Vec<HitRow>,
    /// Duplicates of the agent itself that the caller may see.
    pub duplicates: Option<DuplicateAgents>,
    /// Whether vectors were compared instead of words.
    pub by_vectors: bool,
}

impl Index {
    /// Whether a caller with these labels may see an agent, listed or not. Takes the same work for a hidden agent as
    /// for a missing one.
    pub fn is_agent_visible(&self, id: Uuid, visible_to: &[String]) -> Result<bool, IndexError> {
        let inner = &*self.0;
        let view = inner.current_view()?;
        let filter = inner.document_filter(&view, Vec::new(), visible_to);
        let term = inner.fields.id_term(id);
        let mut is_visible = false;
        for reader in view.searcher.segment_readers() {
            let visible = filter.matching_docs(reader)?;
            let terms = inner.fields.keys.inverted_index(reader)?;
            if let Some(postings) = terms.read_postings(&term, IndexRecordOption::Basic)? {
                is_visible |= visible.intersect_postings(postings).next().is_some();
            }
        }
        Ok(is_visible)
    }

    /// Finds listed agents similar to an agent; none if the agent is not in the index.
    ///
    /// # Errors
    /// The errors of [`search`](Self::search); [`IndexError::TooMany`] beyond [`MAX_SIMILAR_AGENTS`] agents.
    pub fn find_similar_agents(
        &self,
        request: &SimilarRequest,
    ) -> Result<SimilarAgents, IndexError> {
        if request.limit > MAX_SIMILAR_AGENTS {
            let (what, limit) = ("similar agents", MAX_SIMILAR_AGENTS);
            return Err(IndexError::TooMany { what, limit });
        }
        let inner = &*self.0;
        let view = inner.current_view()?;
        let Some(agent_address) = inner.agent_doc_address(&view, request.id)? else {
            return Ok(SimilarAgents::default());
        };
        let default_clauses = build_filter_clauses(&inner.fields, &Filters::default())?;
        let search = SimilarSearch {
            inner,
            filter: inner.document_filter(&view, default_clauses, &request.visible_to),
            groups: view.groups.get_or_compute(&view.searcher)?,
            view: &view,
            agent_address,
        };
        let nearest = match &request.vectors {
            Some((vectors, cutoff)) => search.entries_by_vector(vectors, *cutoff, request.limit)?,
            None => None,
        };
        let by_vectors = nearest.is_some();
        let entries = match nearest {
            Some(entries) => entries,
            None => {
                let statistics = inner.corpus_statistics(&view, &request.class_labels)?;
                search.entries_by_words(&statistics, request.limit)?
            }
        };
        let highlighter = Highlighter::new(&[]);
        let parts = RequestedHitParts {
            catalog_entry: false,
            ..RequestedHitParts::default()
        };
        let hits = entries.into_iter();
        let hits =
            hits.map(|entry| inner.load_hit(&view.searcher, entry, &highlighter, None, parts));
        Ok(SimilarAgents {
            hits: hits.collect::<Result<_, _>>()?,
            duplicates: search.visible_duplicates()?,
            by_vectors,
        })
    }
}

impl IndexInner {
    /// The undeleted document of an agent, whether visible to the caller or not.
    fn agent_doc_address(
        &self,
        view: &IndexView,
        id: Uuid,
    ) -> Result<Option<DocAddress>, IndexError> {
        let term = self.fields.id_term(id);
        for (ordinal, reader) in (0..).zip(view.searcher.segment_readers()) {
            let terms = self.fields.keys.inverted_index(reader)?;
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

/// A search for similar agents in one state of the index.
struct SimilarSearch<'a> {
    inner: &'a IndexInner,
    view: &'a IndexView,
    /// The listed agents that the caller may see.
    filter: DocumentFilter,
    groups: Arc<DuplicateGroups>,
    agent_address: DocAddress,
}

impl SimilarSearch<'_> {
    /// Number of a document's group, if it has duplicates.
    fn duplicate_group_number(&self, address: DocAddress) -> Option<u32> {
        self.groups
            .find_duplicate(address)
            .map(|duplicate| duplicate.group)
    }

    /// Whether a document is the agent itself or a duplicate of it.
    fn is_self_or_duplicate(&self, address: DocAddress) -> bool {
        let own = self.duplicate_group_number(self.agent_address);
        address == self.agent_address
            || own.is_some() && own == self.duplicate_group_number(address)
    }

    fn visible_duplicates(&self) -> Result<Option<DuplicateAgents>, IndexError> {
        let Some(group) = self.duplicate_group_number(self.agent_address) else {
            return Ok(None);
        };
        let readers = self.view.searcher.segment_readers().iter();
        let allowed = readers.map(|reader| self.filter.matching_docs(reader));
        let allowed = allowed.collect::<tantivy::Result<Vec<_>>>()?;
        let mut duplicates = DuplicateAgents::default();
        for member in self.groups.members(group) {
            let bits = allowed.get(member.address.segment_ord as usize);
            if member.address == self.agent_address
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

    /// The nearest neighbors of the agent's vector; `None` if it has none.
    fn entries_by_vector(
        &self,
        vectors: &VectorStore,
        cutoff: f32,
        limit: usize,
    ) -> Result<Option<Vec<PageEntry>>, IndexError> {
        let readers = self.view.searcher.segment_readers();
        let slot_cache = &self.inner.slot_cache;
        let mut segments = Vec::with_capacity(readers.len());
        for (ordinal, reader) in (0..).zip(readers) {
            let mut bits = Arc::unwrap_or_clone(self.filter.matching_docs(reader)?);
            if ordinal == self.agent_address.segment_ord {
                bits.remove(self.agent_address.doc_id);
            }
            segments.push((bits, segment_vector_slots(slot_cache, vectors, reader)?));
        }
        if let Some(group) = self.duplicate_group_number(self.agent_address) {
            for member in self.groups.members(group) {
                if let Some((bits, _)) = segments.get_mut(member.address.segment_ord as usize) {
                    bits.remove(member.address.doc_id);
                }
            }
        }
        // Take the snapshot after the tables, so that it contains every slot in them.
        let snapshot = vectors.snapshot();
        let own = segments.get(self.agent_address.segment_ord as usize);
        let own = own.and_then(|(_, slots)| slots.get(self.agent_address.doc_id as usize));
        let Some(query) = snapshot.card_vector(own.copied().unwrap_or(NO_SLOT))? else {
            return Ok(None);
        };
        let mut allowed = SlotBitSet::with_capacity(snapshot.slot_count());
        let mut addresses: HashMap<u32, DocAddress> = HashMap::new();
        for (bits, slots) in &segments {
            let slots = bits
                .iter()
                .filter_map(|document| slots.get(document as usize));
            slots.for_each(|slot| allowed.insert(*slot));
        }
        let neighbors = snapshot.find_nearest(&query, &allowed)?;
        let similarity_by_slot: HashMap<u32, Score> = neighbors
            .iter()
            .map(|near| (near.slot, near.similarity.combined_cosine()))
            .filter(|(_, similarity)| *similarity >= cutoff)
            .collect();
        for (ordinal, (bits, slots)) in (0..).zip(&segments) {
            for document in bits.iter() {
                if let Some(slot) = slots
                    .get(document as usize)
                    .filter(|slot| similarity_by_slot.contains_key(slot))
                {
                    addresses.insert(*slot, DocAddress::new(ordinal, document));
                }
            }
        }
        let entries = similarity_by_slot.into_iter();
        let entries = entries.filter_map(|(slot, score)| Some((*addresses.get(&slot)?, score)));
        Ok(Some(self.first_entries_by_group(entries.collect(), limit)?))
    }

    /// The first entries by score, with only the first member of each group.
    fn first_entries_by_group(
        &self,
        mut scored: Vec<(DocAddress, Score)>,
        limit: usize,
    ) -> Result<Vec<PageEntry>, IndexError> {
        let mut heads: HashMap<u32, u32> = HashMap::new();
        for (address, _) in &scored {
            if let Some(duplicate) = self.groups.find_duplicate(*address) {
                let head = heads.entry(duplicate.group).or_insert(duplicate.position);
                *head = duplicate.position.min(*head);
            }
        }
        scored.retain(|(address, _)| {
            let duplicate = self.groups.find_duplicate(*address);
            duplicate.is_none_or(|one| heads.get(&one.group) == Some(&one.position))
        });
        let readers = self.view.searcher.segment_readers().iter();
        let ids = readers.map(AgentIdReader::open);
        let ids = ids.collect::<tantivy::Result<Vec<_>>>()?;
        let mut entries: Vec<PageEntry> = scored
            .into_iter()
            .map(|(address, score)| PageEntry {
                position: SortPosition {
                    weak: false,
                    value: SortValue::Score(score),
                    tie_rank: 0,
                    id: ids[address.segment_ord as usize].get(address.doc_id),
                },
                weak: false,
                rescore_bonus: RescoreBonus::default(),
                hybrid_score: None,
                duplicates: None,
                address,
            })
            .collect();
        entries.sort_by(|left, right| {
            super::page_entry::compare_sort_positions(&left.position, &right.position)
        });
        entries.truncate(limit);
        Ok(entries)
    }

    /// The agents that share most with the agent's distinctive words.
    fn entries_by_words(
        &self,
        statistics: &CorpusStatistics,
        limit: usize,
    ) -> Result<Vec<PageEntry>, IndexError> {
        let words = self.distinctive_terms(statistics)?.into_iter();
        let queries: Vec<Box<dyn Query>> = words
            .map(|word| TermQuery::new(word, IndexRecordOption::WithFreqs))
            .map(|query| Box::new(query) as Box<dyn Query>)
            .collect();
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let query = BooleanQuery::union(queries);
        let query_statistics = Arc::new(statistics.query_statistics(Some(&query))?);
        let min_score = MIN_SCORE_SHARE * self.own_score(&query_statistics, &query)?;
        let query = FilteredQuery::new(Some(Box::new(query)), self.filter.clone());
        let page = PageCollector {
            groups: Some(Arc::clone(&self.groups)),
            // The agent, or one of its duplicates, is among them at most once.
            ..PageCollector::new(SortKey::Score, limit + 1)
        };
        let query = query.with_statistics(query_statistics);
        let mut entries = self.view.searcher.search(&query, &page)?.entries;
        entries.retain(|entry| {
            let score = &entry.position.value;
            let is_enough = matches!(score, SortValue::Score(score) if *score >= min_score);
            is_enough && !self.is_self_or_duplicate(entry.address)
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
        let weight = statistics.build_query_weight(query, &self.view.searcher)?;
        let reader = self
            .view
            .searcher
            .segment_reader(self.agent_address.segment_ord);
        let mut scorer = weight.scorer(reader, 1.0)?;
        if scorer.doc() < self.agent_address.doc_id {
            scorer.seek(self.agent_address.doc_id);
        }
        Ok(match scorer.doc() == self.agent_address.doc_id {
            true => scorer.score(),
            false => 0.0,
        })
    }

    /// The terms of the agent's distinctive words, most distinctive first: frequent in its texts and rare in others,
    /// but contained in at least one other agent.
    fn distinctive_terms(&self, statistics: &CorpusStatistics) -> Result<Vec<Term>, IndexError> {
        let document: TantivyDocument = self.view.searcher.doc(self.agent_address)?;
        let field = self.inner.fields.text;
        let written = document.get_first(field).and_then(|text| text.as_str());
        let mut counts: HashMap<String, usize> = HashMap::new();
        for (kind, text) in split_agent_texts(written.unwrap_or_default()) {
            // The provider's name and protocol features do not describe what an agent does, and texts outside the
            // model may contain anything.
            if matches!(
                kind,
                AgentTextKind::Provider
                    | AgentTextKind::Protocol
                    | AgentTextKind::Other
                    | AgentTextKind::Languages
            ) {
                continue;
            }
            for piece in indexed_words(text, LanguageSet::NONE) {
                if !piece.exact.is_empty() && !is_universal_stop_word(&piece.exact) {
                    *counts.entry(piece.stem.unwrap_or(piece.exact)).or_default() +=
                        kind.repetitions();
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
        words.truncate(MAX_COMPARED_WORDS);
        let reader = self
            .view
            .searcher
            .segment_reader(self.agent_address.segment_ord);
        let counts_itself = self
            .filter
            .matching_docs(reader)?
            .contains(self.agent_address.doc_id);
        let mut weighted_terms: Vec<(Score, Term)> = Vec::with_capacity(words.len());
        for (count, word) in words {
            let term = Term::from_field_text(field, &word);
            if statistics.count_term_docs(&term, 2)? > u64::from(counts_itself) {
                weighted_terms.push((occurrence_weight(count) * statistics.idf(&term)?, term));
            }
        }
        weighted_terms.sort_by(|left, right| {
            right
                .0
                .total_cmp(&left.0)
                .then_with(|| left.1.cmp(&right.1))
        });
        weighted_terms.truncate(MAX_DISTINCTIVE_WORDS);
        Ok(weighted_terms.into_iter().map(|(_, term)| term).collect())
    }
}

/// The weight of a word by its number of occurrences: each further one adds less.
#[expect(clippy::cast_precision_loss, reason = "a weight is rough")]
fn occurrence_weight(count: usize) -> Score {
    count as Score / (count as Score + 1.2)
}
