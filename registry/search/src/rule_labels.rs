//! Rule labels: the labels of agents that the marked labels of callers are compared with, kept beside the documents.
//!
//! Rules change for all agents at once. If their labels were keys of the documents, each change would write every
//! document again. So each label is a column of bits instead, one for each agent, and the documents of a segment find
//! their bits by the numbers of their agents.
//!
//! A document is replaced whenever its agent's facts change, so the labels of the undeleted documents of a segment are
//! those of any state of the table, unless the rules themselves have changed in between, which the generation counts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use moka::sync::Cache;
use tantivy::SegmentReader;
use tantivy::index::SegmentId;
use uuid::Uuid;

use super::agent_id_reader::AgentIdReader;
use super::doc_bit_set::DocBitSet;
use super::lock_ignoring_poison;

/// Words of a chunk, which is copied when one of its agents changes: 16,384 agents in 2 KiB.
pub(super) const CHUNK_WORDS: usize = 256;

/// Maximum total size of the cached numbers of documents, in bytes; each document has four.
const NUMBER_CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// The agents with one label. Chunks without any are missing.
#[derive(Debug, Clone, Default)]
pub(super) struct LabelColumn(Vec<Option<Arc<[u64; CHUNK_WORDS]>>>);

impl LabelColumn {
    pub fn from_chunks(chunks: Vec<Option<Arc<[u64; CHUNK_WORDS]>>>) -> Self {
        Self(chunks)
    }

    pub fn chunks(&self) -> &[Option<Arc<[u64; CHUNK_WORDS]>>] {
        &self.0
    }

    pub fn word(&self, index: usize) -> u64 {
        let chunk = self.0.get(index / CHUNK_WORDS).and_then(Option::as_ref);
        chunk.map_or(0, |chunk| chunk[index % CHUNK_WORDS])
    }

    fn word_count(&self) -> usize {
        self.0.len() * CHUNK_WORDS
    }

    pub fn contains(&self, number: u32) -> bool {
        self.word(number as usize / 64) >> (number % 64) & 1 == 1
    }

    fn set_word(&mut self, index: usize, word: u64) {
        if self.word(index) == word {
            return;
        }
        let chunk = index / CHUNK_WORDS;
        if self.0.len() <= chunk {
            self.0.resize(chunk + 1, None);
        }
        let words = self.0[chunk].get_or_insert_with(|| Arc::new([0; CHUNK_WORDS]));
        Arc::make_mut(words)[index % CHUNK_WORDS] = word;
    }

    pub fn set(&mut self, number: u32, value: bool) {
        let index = number as usize / 64;
        let bit = 1_u64 << (number % 64);
        let word = self.word(index);
        self.set_word(index, if value { word | bit } else { word & !bit });
    }

    /// Adds the agents of another column that are also in `mask`.
    fn add_masked(&mut self, other: &Self, mask: &Self) {
        for index in 0..other.word_count().min(mask.word_count()) {
            let added = other.word(index) & mask.word(index);
            self.set_word(index, self.word(index) | added);
        }
    }

    /// The agents of this column that are not in the other one.
    fn difference(&self, other: &Self) -> Self {
        let mut difference = Self::default();
        for index in 0..self.word_count() {
            difference.set_word(index, self.word(index) & !other.word(index));
        }
        difference
    }

    fn byte_size(&self) -> usize {
        let chunks = self.0.iter().flatten().count();
        chunks * CHUNK_WORDS * size_of::<u64>() + self.0.capacity() * size_of::<usize>()
    }
}

/// The numbers of agents. A number is never given to another agent while the table exists.
pub(super) struct AgentNumbers {
    by_id: Mutex<HashMap<Uuid, u32>>,
    /// The numbers of the documents' agents, by segment.
    by_segment: Cache<SegmentId, Arc<[u32]>>,
}

impl AgentNumbers {
    fn new(by_id: HashMap<Uuid, u32>) -> Self {
        let by_segment = Cache::builder()
            .max_capacity(NUMBER_CACHE_BYTES)
            .weigher(|_, numbers: &Arc<[u32]>| {
                u32::try_from(size_of_val(&**numbers)).unwrap_or(u32::MAX)
            })
            .build();
        Self {
            by_id: Mutex::new(by_id),
            by_segment,
        }
    }

    /// The ids of all agents, in the order of their numbers.
    pub fn ids_in_order(&self) -> Vec<Uuid> {
        let by_id = lock_ignoring_poison(&self.by_id);
        let mut ids = vec![Uuid::nil(); by_id.len()];
        for (id, number) in &*by_id {
            if let Some(place) = ids.get_mut(*number as usize) {
                *place = *id;
            }
        }
        ids
    }

    fn get_or_assign(&self, id: Uuid) -> u32 {
        assign_number(&mut lock_ignoring_poison(&self.by_id), id)
    }

    /// The numbers of the agents of a segment's documents. The ids are read once per segment.
    fn of_segment(&self, reader: &SegmentReader) -> tantivy::Result<Arc<[u32]>> {
        let segment = reader.segment_id();
        if let Some(numbers) = self.by_segment.get(&segment) {
            return Ok(numbers);
        }
        let ids = AgentIdReader::open(reader)?;
        let mut assigned = lock_ignoring_poison(&self.by_id);
        let numbers: Arc<[u32]> = (0..reader.max_doc())
            .map(|document| assign_number(&mut assigned, ids.get(document)))
            .collect();
        drop(assigned);
        self.by_segment.insert(segment, Arc::clone(&numbers));
        Ok(numbers)
    }

    fn byte_size(&self) -> usize {
        // A hash table needs one more byte per entry.
        lock_ignoring_poison(&self.by_id).capacity() * (size_of::<(Uuid, u32)>() + 1)
    }
}

/// One state of the table. Copies share what has not changed.
#[derive(Clone)]
pub(super) struct RuleLabels {
    numbers: Arc<AgentNumbers>,
    columns: Arc<BTreeMap<Arc<str>, Arc<LabelColumn>>>,
    /// Rises with each change.
    version: u64,
    /// Rises with each change that came without new documents.
    generation: u64,
}

impl Default for RuleLabels {
    fn default() -> Self {
        Self::from_parts(HashMap::new(), BTreeMap::new())
    }
}

impl RuleLabels {
    pub fn from_parts(
        numbers: HashMap<Uuid, u32>,
        columns: BTreeMap<Arc<str>, Arc<LabelColumn>>,
    ) -> Self {
        Self {
            numbers: Arc::new(AgentNumbers::new(numbers)),
            columns: Arc::new(columns),
            version: 0,
            generation: 0,
        }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn numbers(&self) -> &Arc<AgentNumbers> {
        &self.numbers
    }

    pub fn columns(&self) -> &BTreeMap<Arc<str>, Arc<LabelColumn>> {
        &self.columns
    }

    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Bytes of memory used, without the allocator's overhead and the cached numbers of documents.
    pub fn byte_size(&self) -> usize {
        let columns: usize = self.columns.values().map(|column| column.byte_size()).sum();
        columns + self.numbers.byte_size()
    }

    fn column_mut(&mut self, label: &str) -> &mut LabelColumn {
        let columns = Arc::make_mut(&mut self.columns);
        Arc::make_mut(columns.entry(Arc::from(label)).or_default())
    }

    fn contains(&self, label: &str, number: u32) -> bool {
        let column = self.columns.get(label);
        column.is_some_and(|column| column.contains(number))
    }

    /// Replaces the labels of an agent whose document is replaced too.
    pub fn replace_agent(&mut self, id: Uuid, labels: &[String]) {
        if labels.is_empty() && self.columns.is_empty() {
            return;
        }
        let number = self.numbers.get_or_assign(id);
        self.version += 1;
        let is_stale = |(label, column): &(&Arc<str>, &Arc<LabelColumn>)| {
            column.contains(number) && !labels.iter().any(|one| **one == ***label)
        };
        let stale: Vec<Arc<str>> = self
            .columns
            .iter()
            .filter(is_stale)
            .map(|(label, _)| Arc::clone(label))
            .collect();
        for label in stale {
            self.column_mut(&label).set(number, false);
        }
        for label in labels {
            if !self.contains(label, number) {
                self.column_mut(label).set(number, true);
            }
        }
    }

    /// Removes all labels of these agents while their documents stay.
    pub fn forget_agents(&mut self, ids: &[Uuid]) {
        for id in ids {
            self.replace_agent(*id, &[]);
        }
        self.generation += 1;
    }

    /// Adds the labels of an update for its agents, apart from those whose documents were replaced in the meantime:
    /// these came with labels of their own, the marker included.
    pub fn apply_update(&mut self, update: &RuleLabelUpdate) {
        if !Arc::ptr_eq(&self.numbers, &update.numbers) {
            // The index was rebuilt since the update began, and its agents have other numbers.
            return;
        }
        let column = |label: &str| self.columns.get(label).cloned().unwrap_or_default();
        let mut evaluated = update.evaluated.clone();
        if let Some(label) = &update.carried_marker {
            let carried = column(label);
            evaluated.add_masked(&carried, &carried);
        }
        let mask = evaluated.difference(&column(&update.marker));
        let copied: Vec<(&str, Arc<LabelColumn>)> = update
            .copies
            .iter()
            .map(|(from, to)| (to.as_str(), column(from)))
            .filter(|(_, from)| from.word_count() > 0)
            .collect();
        for (label, from) in copied {
            self.add_column(label, &from, &mask);
        }
        for (label, from) in &update.columns {
            self.add_column(label, from, &mask);
        }
        self.add_column(&update.marker, &mask, &mask);
        self.version += 1;
        self.generation += 1;
    }

    /// Adds the agents of a column that are also in `mask` to a label. Where that gives the column itself, its chunks
    /// are shared.
    fn add_column(&mut self, label: &str, from: &LabelColumn, mask: &LabelColumn) {
        let column = self.column_mut(label);
        column.add_masked(from, mask);
        for (chunk, other) in column.0.iter_mut().zip(&from.0) {
            if chunk.as_deref() == other.as_deref() {
                chunk.clone_from(other);
            }
        }
    }

    /// Drops the labels that `is_kept` does not name.
    pub fn retain_labels(&mut self, is_kept: impl Fn(&str) -> bool) {
        Arc::make_mut(&mut self.columns).retain(|label, _| is_kept(label));
        self.version += 1;
    }

    /// The documents of a segment whose agents have one of these labels, deleted ones included.
    pub fn docs_with_any(
        &self,
        labels: &[String],
        reader: &SegmentReader,
    ) -> tantivy::Result<DocBitSet> {
        let mut docs = DocBitSet::empty(reader.max_doc());
        let columns = labels.iter();
        let columns: Vec<&LabelColumn> = columns
            .filter_map(|label| self.columns.get(label.as_str()))
            .map(|column| &**column)
            .collect();
        let words = columns.iter().map(|column| column.word_count()).max();
        let Some(words) = words.filter(|words| *words > 0) else {
            return Ok(docs);
        };
        let numbers = self.numbers.of_segment(reader)?;
        // Only the words of the segment's agents are combined, which are few in a small segment.
        let mut is_needed = vec![false; words];
        for number in &*numbers {
            if let Some(needed) = is_needed.get_mut(*number as usize / 64) {
                *needed = true;
            }
        }
        let needed = (0..words).filter(|word| is_needed[*word]);
        let needed: Vec<usize> = needed.collect();
        let mut combined = vec![0_u64; words];
        for column in columns {
            for word in &needed {
                combined[*word] |= column.word(*word);
            }
        }
        for (document, number) in (0..).zip(&*numbers) {
            let word = combined.get(*number as usize / 64);
            if word.is_some_and(|word| word >> (number % 64) & 1 == 1) {
                docs.insert(document);
            }
        }
        Ok(docs)
    }
}

fn assign_number(numbers: &mut HashMap<Uuid, u32>, id: Uuid) -> u32 {
    let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    *numbers.entry(id).or_insert(next)
}

/// Labels by changed rules, collected for many agents and then added at once.
///
/// Each agent of the update gets the marker, the labels that it was added with, and those of `copies` by labels that
/// it has already.
pub struct RuleLabelUpdate {
    marker: String,
    copies: Vec<(String, String)>,
    carried_marker: Option<String>,
    numbers: Arc<AgentNumbers>,
    evaluated: LabelColumn,
    columns: BTreeMap<String, LabelColumn>,
}

impl std::fmt::Debug for RuleLabelUpdate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RuleLabelUpdate")
            .field("marker", &self.marker)
            .finish_non_exhaustive()
    }
}

impl RuleLabelUpdate {
    /// An update without agents; `copies` are labels with those that they stand for under the changed rules.
    pub(super) fn new(
        numbers: Arc<AgentNumbers>,
        marker: String,
        copies: Vec<(String, String)>,
    ) -> Self {
        Self {
            marker,
            copies,
            carried_marker: None,
            numbers,
            evaluated: LabelColumn::default(),
            columns: BTreeMap::new(),
        }
    }

    pub fn add_agent(&mut self, id: Uuid, labels: &[String]) {
        let number = self.numbers.get_or_assign(id);
        self.evaluated.set(number, true);
        for label in labels {
            match self.columns.get_mut(label) {
                Some(column) => column.set(number, true),
                None => {
                    let mut column = LabelColumn::default();
                    column.set(number, true);
                    self.columns.insert(label.clone(), column);
                }
            }
        }
    }

    /// Adds all agents with this label, for rules that need no evaluation.
    pub fn add_agents_with(&mut self, label: String) {
        self.carried_marker = Some(label);
    }
}
