//! The search index, derived from the database and never the source of truth.
//!
//! The index takes [`AgentDocument`]s and responds to [`SearchRequest`]s; it knows neither the database nor HTTP.
//! Three rules hold for hits, totals, facets and suggestions of every response: only agents with one of the caller's
//! visibility labels count; agents that were hidden since the last commit (the overlay) do not; and a hidden agent is
//! indistinguishable from a missing one. Scores use the word statistics of the agents that every member of the
//! caller's class finds.
//!
//! A response depends on the agents and the applied events, not on the history of the index: two indexes that have
//! applied the same events give the same scores, orders and counts, whatever their segments contain or have deleted.
//!
//! The folder contains one sub-folder per build of the index, and a manifest that names the one in use.
//! [`Index::apply_changes`] writes changes into it; a rebuild creates another one and swaps them at the end.
//!
//! All calls block; a server runs them off its event loop. [`Index`] is cheap to clone, and all clones share one index.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod agent_id_reader;
mod agent_list;
mod agent_property;
mod analysis;
mod commits;
mod compiled_query;
mod config;
mod damage;
mod doc_bit_set;
mod document;
mod domain_counts;
mod duplicate_groups;
mod error;
mod everyday_words;
mod exact_match;
mod explainable_query;
mod facets;
mod filter;
mod filter_matching;
mod filtered_query;
mod fitting;
mod highlight;
mod hints;
mod hybrid_ranking;
mod hybrid_score;
mod index_folder;
mod index_manifest;
mod key_lookup;
mod keys;
mod label_matching;
mod languages;
mod match_groups;
mod merge_policy;
mod newest_agents;
mod ordered_intersection;
mod overlay;
mod page_collector;
mod page_entry;
mod prepared_query;
mod query_correction;
mod query_expansion;
mod query_parser;
mod ranking;
mod rebuild;
mod rendered_hits;
mod request;
mod request_phrases;
mod rescore;
mod rescore_bonus;
mod response;
mod rule_label_file;
mod rule_label_updates;
mod rule_labels;
mod schema;
mod score_explainer;
mod score_reasons;
mod search;
mod semantic_neighbors;
mod similar;
mod small_commit;
mod statistics;
mod suggest;
mod suggestion_kind;
#[cfg(test)]
mod tests;
mod text_folding;
mod text_layout;
mod text_query;
mod tie_reader;
mod top_documents;
mod typing_errors;
mod value_counts;
pub mod vectors;
mod visible_agents;
mod word_prefix_scan;
mod word_proximity;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::{IndexWriter, Searcher};
use uuid::Uuid;

pub use agent_list::{
    AgentListRequest, AgentListResponse, AgentListRow, ListSortKey, ListSortValue,
};
pub use agent_property::{AgentProperty, ExactFilter, MAX_ATTRIBUTES};
pub use analysis::MAX_QUERY_WORDS;
pub use compiled_query::CompiledQuery;
pub use config::IndexConfig;
pub use document::{
    AgentDocument, MAX_OTHER_TEXT_BYTES, MAX_SHOWN_SKILLS, MAX_SKILLS, MAX_TEXT_BYTES,
    MAX_VALUE_BYTES, SkillText,
};
pub use error::IndexError;
pub use facets::FacetPrecomputationLimits;
pub use label_matching::{ALWAYS_MARK, MAX_LABELS, NEVER_MARK, ONLY_MARK, is_visible_to};
pub use overlay::ChangedAgent;
pub use query_correction::may_have_typing_errors;
pub use query_parser::query_words;
pub use rebuild::IndexRebuild;
pub use request::{
    Filters, LeftOutAgents, MAX_ANY_OF_FILTERS, MAX_EXPLAINED_HITS, MAX_FILTER_VALUES, MAX_HITS,
    RequestedHitParts, SearchRequest, SemanticQuery, SortOrder, SortPosition, SortValue,
};
pub use response::{
    DuplicateAgents, FacetCounts, Highlight, Hint, HintKind, HitRow, IndexSearchResponse,
    MAX_DUPLICATES, MAX_FACET_VALUES, Suggestion,
};
pub use rule_labels::RuleLabelUpdate;
pub use schema::SCHEMA_VERSION;
pub use similar::{MAX_SIMILAR_AGENTS, SimilarAgents, SimilarRequest};
pub use suggestion_kind::SuggestionKind;
pub use value_counts::{MAX_COUNTED_PROPERTIES, ValueCountRequest, ValueCounts};

use damage::AtomicCounter;
use duplicate_groups::LazyDuplicateGroups;
use facets::PrecomputedFacets;
use filter::{FilterBitCache, new_filter_cache};
use index_folder::IndexFolder;
use index_manifest::IndexManifest;
use overlay::{OverlayExclusions, PendingChangesOverlay};
use rule_label_file::read_rule_labels;
use rule_labels::RuleLabels;
use schema::IndexFields;
use semantic_neighbors::{VectorSlotCache, new_slot_cache};
use statistics::{CorpusStatisticsCache, SegmentCountCache, new_count_cache};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexOpenResult {
    Ready {
        /// The last event that the index has applied.
        applied_seq: i64,
    },
    /// There is no usable index: until a rebuild is finished, every search fails with [`IndexError::NeedsRebuild`].
    NeedsRebuild { reason: String },
}

/// The search index of one process.
#[derive(Clone)]
pub struct Index(Arc<IndexInner>);

struct IndexInner {
    dir: PathBuf,
    config: IndexConfig,
    fields: IndexFields,
    filter_cache: FilterBitCache,
    slot_cache: VectorSlotCache,
    count_cache: SegmentCountCache,
    /// State for searches. Locked only briefly.
    serving_state: Mutex<ServingState>,
    /// State for writes. Locked while a commit runs; locked before `serving_state`, never after it.
    writer_state: Mutex<Option<WriterState>>,
    rebuilding: AtomicBool,
    /// Number of test queries that checked whether the index is readable.
    probe_count: AtomicCounter,
    failed_commits: AtomicCounter,
    /// Agents whose rule labels may have changed since the file of the rule labels was written.
    unsaved_agents: AtomicUsize,
}

struct WriterState {
    folder: IndexFolder,
    /// Writer, created for the first change, and again after a failed one.
    writer: Option<IndexWriter>,
    /// The last event of the newest commit.
    committed_seq: i64,
}

struct ServingState {
    served: Option<ServedIndex>,
    generation: u64,
    overlay: PendingChangesOverlay,
    /// Reason why no index is in use.
    rebuild_reason: String,
    damage: Option<String>,
    /// Number of rebuilds that replaced the index in use.
    rebuild_count: u64,
    /// The event up to which the rule labels that were read from a file are current.
    restored_rule_labels_seq: Option<i64>,
}

struct ServedIndex {
    searcher: Searcher,
    applied_seq: i64,
    precomputed_facets: Arc<PrecomputedFacets>,
    /// Statistics for scoring, by class of callers.
    class_statistics: Arc<CorpusStatisticsCache>,
    groups: Arc<LazyDuplicateGroups>,
    rule_labels: RuleLabels,
}

/// One consistent state for searches: a searcher and the agents to exclude.
struct IndexView {
    searcher: Searcher,
    /// Precomputed facet values of the searcher's large segments.
    precomputed_facets: Arc<PrecomputedFacets>,
    class_statistics: Arc<CorpusStatisticsCache>,
    groups: Arc<LazyDuplicateGroups>,
    rule_labels: RuleLabels,
    overlay_exclusions: Arc<OverlayExclusions>,
    applied_seq: i64,
    generation: u64,
    overlay_version: u64,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Index")
            .field("dir", &self.0.dir)
            .finish_non_exhaustive()
    }
}

/// Locks a mutex, even if another thread panicked while holding it: each value behind it is replaced as a whole.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens an index folder, and reads a little of everything in it as a test.
fn open_index_folder(
    dir: &Path,
    name: String,
    fields: &IndexFields,
    config: &IndexConfig,
) -> Result<(IndexFolder, ServedIndex, Option<i64>), IndexError> {
    let (folder, applied_seq) = IndexFolder::open(dir, name)?;
    let searcher = folder.reload_searcher()?;
    damage::probe_segments(&searcher, fields, 0)?;
    damage::check_files_exist(&searcher)?;
    let (rule_labels, restored_seq) = read_rule_labels(folder.path()).unzip();
    let served = ServedIndex {
        precomputed_facets: PrecomputedFacets::build(&searcher, fields, config.facets, None)?,
        searcher,
        applied_seq,
        class_statistics: Arc::default(),
        groups: Arc::default(),
        rule_labels: rule_labels.unwrap_or_default(),
    };
    Ok((folder, served, restored_seq))
}

impl Index {
    /// Opens the index in `dir`, which is created if it is missing, and reports its state. An index that is missing,
    /// unreadable or of another schema is not an error: it stays untouched until a rebuild is finished.
    ///
    /// # Errors
    /// [`IndexError::Io`] if the folder cannot be created.
    pub fn open(dir: &Path, config: IndexConfig) -> Result<(Self, IndexOpenResult), IndexError> {
        fs::create_dir_all(dir).map_err(|source| IndexError::Io {
            path: dir.to_owned(),
            source,
        })?;
        let fields = IndexFields::build_schema().1;
        let result = IndexManifest::read(dir).and_then(|manifest| {
            let open = || open_index_folder(dir, manifest.folder, &fields, &config);
            damage::catch_panics(open).map_err(|error| format!("it cannot be read: {error}"))
        });
        let overlay = PendingChangesOverlay::new(config.overlay_limit);
        let filter_cache = new_filter_cache(config.filter_cache_bytes);
        let mut restored_rule_labels_seq = None;
        let (writer_state, served, opened) = match result {
            Ok((folder, served, restored_seq)) => {
                restored_rule_labels_seq = restored_seq;
                index_manifest::remove_stale_folders(dir, &folder.name);
                let writer_state = WriterState {
                    folder,
                    writer: None,
                    committed_seq: served.applied_seq,
                };
                let opened = IndexOpenResult::Ready {
                    applied_seq: served.applied_seq,
                };
                (Some(writer_state), Some(served), opened)
            }
            Err(reason) => (None, None, IndexOpenResult::NeedsRebuild { reason }),
        };
        let reason = match &opened {
            IndexOpenResult::Ready { .. } => String::new(),
            IndexOpenResult::NeedsRebuild { reason } => reason.clone(),
        };
        let inner = IndexInner {
            dir: dir.to_owned(),
            config,
            fields,
            filter_cache,
            slot_cache: new_slot_cache(),
            count_cache: new_count_cache(),
            serving_state: Mutex::new(ServingState {
                served,
                generation: 1,
                overlay,
                rebuild_reason: reason,
                damage: None,
                rebuild_count: 0,
                restored_rule_labels_seq,
            }),
            writer_state: Mutex::new(writer_state),
            rebuilding: AtomicBool::new(false),
            probe_count: AtomicCounter::default(),
            failed_commits: AtomicCounter::default(),
            unsaved_agents: AtomicUsize::new(0),
        };
        Ok((Self(Arc::new(inner)), opened))
    }

    /// Starts a rebuild of the index in another folder, while the current one stays in use.
    ///
    /// # Errors
    /// [`IndexError::RebuildRunning`] if another rebuild is running; otherwise the error of the operating system.
    pub fn begin_rebuild(&self) -> Result<IndexRebuild, IndexError> {
        if self.0.rebuilding.swap(true, Ordering::AcqRel) {
            return Err(IndexError::RebuildRunning);
        }
        IndexRebuild::start(Arc::clone(&self.0))
    }

    /// Records that these agents changed with event `seq`, before the change is acknowledged: until
    /// [`apply_changes`](Self::apply_changes) has reached `seq`, searches show the agents in their old state, but only
    /// to callers who may still see them.
    pub fn record_pending_changes(&self, changed: &[ChangedAgent], seq: i64) {
        let mut view = lock_ignoring_poison(&self.0.serving_state);
        let applied = view.applied_seq();
        view.overlay.record_changes(changed, seq, applied);
    }

    /// Does the same as [`record_pending_changes`](Self::record_pending_changes) for agents that are no longer visible to any caller.
    pub fn record_hidden_agents(&self, ids: &[Uuid], seq: i64) {
        let changed: Vec<ChangedAgent> = ids.iter().copied().map(ChangedAgent::hidden).collect();
        self.record_pending_changes(&changed, seq);
    }

    /// The last event that searches reflect; 0 without an index.
    pub fn applied_seq(&self) -> i64 {
        lock_ignoring_poison(&self.0.serving_state)
            .applied_seq()
            .max(0)
    }

    /// Whether no index can be searched until a rebuild.
    pub fn is_missing(&self) -> bool {
        lock_ignoring_poison(&self.0.serving_state).served.is_none()
    }

    /// Counter that increases whenever searches use another state of the index.
    pub fn generation(&self) -> u64 {
        lock_ignoring_poison(&self.0.serving_state).generation
    }

    /// Counter that increases whenever the overlay changes.
    pub fn overlay_version(&self) -> u64 {
        lock_ignoring_poison(&self.0.serving_state)
            .overlay
            .version()
    }

    pub fn overlay_len(&self) -> usize {
        lock_ignoring_poison(&self.0.serving_state).overlay.len()
    }

    /// Number of agents in the index, including hidden ones.
    pub fn num_agents(&self) -> u64 {
        lock_ignoring_poison(&self.0.serving_state)
            .served
            .as_ref()
            .map_or(0, |serving| serving.searcher.num_docs())
    }
}

impl IndexInner {
    /// Builds a state of the index with its precomputed facet values.
    fn build_served_index(
        &self,
        searcher: Searcher,
        applied_seq: i64,
        rule_labels: RuleLabels,
    ) -> Result<ServedIndex, IndexError> {
        let before = lock_ignoring_poison(&self.serving_state)
            .served
            .as_ref()
            .map(|before| Arc::clone(&before.precomputed_facets));
        let frequent =
            PrecomputedFacets::build(&searcher, &self.fields, self.config.facets, before)?;
        Ok(ServedIndex {
            searcher,
            applied_seq,
            precomputed_facets: frequent,
            class_statistics: Arc::default(),
            groups: Arc::default(),
            rule_labels,
        })
    }

    /// Makes a new state visible to searches. Searcher and overlay change together, so that no search combines the old
    /// searcher with an overlay that has dropped the changes it lacks.
    fn replace_served(&self, served: ServedIndex) {
        let mut view = lock_ignoring_poison(&self.serving_state);
        let old = view.replace_served(served);
        drop(view);
        drop(old);
    }

    fn needs_rebuild_error(&self) -> IndexError {
        IndexError::NeedsRebuild {
            reason: lock_ignoring_poison(&self.serving_state)
                .rebuild_reason
                .clone(),
        }
    }

    fn current_view(&self) -> Result<IndexView, IndexError> {
        let mut guard = lock_ignoring_poison(&self.serving_state);
        let state = &mut *guard;
        let Some(served) = &state.served else {
            return Err(IndexError::NeedsRebuild {
                reason: state.rebuild_reason.clone(),
            });
        };
        if state.overlay.has_lost_changes(served.applied_seq) {
            return Err(IndexError::Behind {
                waiting: state.overlay.len(),
            });
        }
        Ok(IndexView {
            overlay_exclusions: state
                .overlay
                .resolve_exclusions(&served.searcher, &self.fields)?,
            searcher: served.searcher.clone(),
            precomputed_facets: Arc::clone(&served.precomputed_facets),
            class_statistics: Arc::clone(&served.class_statistics),
            groups: Arc::clone(&served.groups),
            rule_labels: served.rule_labels.clone(),
            applied_seq: served.applied_seq,
            generation: state.generation,
            overlay_version: state.overlay.version(),
        })
    }
}

impl ServingState {
    /// Replaces the state in use and returns the old one.
    fn replace_served(&mut self, served: ServedIndex) -> Option<ServedIndex> {
        self.overlay.advance_to_seq(served.applied_seq);
        self.generation += 1;
        self.served.replace(served)
    }

    fn applied_seq(&self) -> i64 {
        self.served
            .as_ref()
            .map_or(i64::MIN, |serving| serving.applied_seq)
    }
}
