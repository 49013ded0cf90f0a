//! The search index, derived from the database and never the source of truth.
//!
//! The index takes [`Document`]s and responds to [`SearchRequest`]s; it knows neither the database nor HTTP. Three
//! rules hold in every response, for hits, totals, facets and suggestions alike: only agents that carry one of the
//! caller's visibility labels count; agents that were hidden since the last commit (the overlay) do not; and a hidden
//! agent is indistinguishable from a missing one. Scores are computed from the word statistics of the agents that
//! everybody of the caller's class finds.
//!
//! A response depends on the agents and the events applied, and not on the history of the index: two indexes that have
//! applied the same events give the same scores, orders and counts, whatever their segments hold and have deleted.
//!
//! The folder holds one sub-folder per generation, and a stamp that names the one in use. [`Index::apply`] writes
//! changes into it; a rebuild writes a new one beside it and swaps them at the end.
//!
//! All calls block; a server runs them off its event loop. [`Index`] is cheap to clone, and all clones share one index.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod analysis;
mod answer;
mod asking;
mod beginnings;
mod best;
mod bits;
mod blend;
mod carried;
mod collect;
mod commits;
mod compiled;
mod config;
mod damage;
mod demands;
mod document;
mod domains;
mod error;
mod expansion;
mod explained;
mod facets;
mod filter;
mod filtered;
mod folded;
mod folding;
mod generation;
mod groups;
mod highlight;
mod hints;
mod keys;
mod languages;
mod layout;
mod list;
mod meaning;
mod membership;
mod merge_policy;
mod newest;
mod overlay;
mod pairs;
mod property;
mod query;
mod ranking;
mod reasons;
mod rebuild;
mod rendered;
mod request;
mod rescore;
mod schema;
mod search;
mod seen;
mod similar;
mod small_commit;
mod stamp;
mod statistics;
mod suggest;
mod syntax;
#[cfg(test)]
mod tests;
mod typing_errors;
pub mod vectors;
mod visibility;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::{IndexWriter, Searcher};
use uuid::Uuid;

pub use answer::{
    Duplicates, FACET_VALUES, FacetCounts, Highlight, Hint, HintKind, HitRow, MAX_DUPLICATES,
    SearchAnswer, Suggestion, SuggestionKind,
};
pub use compiled::CompiledQuery;
pub use config::IndexConfig;
pub use document::{
    Document, MAX_OTHER_BYTES, MAX_SHOWN_SKILLS, MAX_SKILLS, MAX_TEXT_BYTES, MAX_VALUE_BYTES,
    SkillText,
};
pub use error::IndexError;
pub use facets::FacetLimits;
pub use list::{ListAnswer, ListKey, ListRequest, ListRow, ListValue};
pub use overlay::ChangedAgent;
pub use property::{ExactFilter, MAX_ATTRIBUTES, MAX_COUNTED, Property, ValueCount, ValueCounts};
pub use rebuild::Rebuild;
pub use request::{
    Filters, HitParts, MAX_EXPLAINED, MAX_FILTER_VALUES, MAX_LIMIT, MAX_QUERY_WORDS, MAX_WITHIN,
    Meaning, SearchRequest, Sort, SortPosition, SortValue,
};
pub use schema::SCHEMA_VERSION;
pub use similar::{MAX_SIMILAR, SimilarAgents, SimilarRequest};
pub use syntax::asked_text;
pub use visibility::{ALWAYS, MAX_LABELS, NEVER, ONLY, sees};

use damage::Counter;
use facets::FrequentValues;
use filter::{SharedBits, shared_bits};
use generation::Generation;
use groups::StateGroups;
use meaning::{SlotTables, slot_tables};
use overlay::{Excluded, Overlay};
use schema::Fields;
use stamp::Stamp;
use statistics::{Classes, SegmentCounts, segment_counts};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    Ready {
        /// The last event that the index has applied.
        applied_seq: i64,
    },
    /// No index that this program can use: until a rebuild is finished every search fails with
    /// [`IndexError::NeedsRebuild`].
    Rebuild { reason: String },
}

/// The search index of one process.
#[derive(Clone)]
pub struct Index(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    config: IndexConfig,
    fields: Fields,
    shared: SharedBits,
    slot_tables: SlotTables,
    counts: SegmentCounts,
    /// State for searches. Locked for moments only.
    view: Mutex<ViewState>,
    /// State for writes. Locked while a commit runs; locked before `view`, never after it.
    live: Mutex<Option<WriterState>>,
    rebuilding: AtomicBool,
    /// Number of test queries that checked whether the index is readable.
    questions: Counter,
    failed_commits: Counter,
}

struct WriterState {
    generation: Generation,
    /// Created for the first change, and again after a failed one.
    writer: Option<IndexWriter>,
    /// The last event of the newest commit.
    committed: i64,
}

struct ViewState {
    serving: Option<ServedIndex>,
    generation: u64,
    overlay: Overlay,
    /// Reason why no index is in use.
    reason: String,
    damage: Option<String>,
    /// Number of rebuilds that replaced the index in use.
    rebuilt: u64,
}

struct ServedIndex {
    searcher: Searcher,
    applied: i64,
    frequent: Arc<FrequentValues>,
    /// Statistics behind the scores, by class of callers.
    classes: Arc<Classes>,
    groups: Arc<StateGroups>,
}

/// One consistent state for searches: a searcher and the agents to exclude.
struct IndexView {
    searcher: Searcher,
    /// Frequent facet values of the searcher's large segments.
    frequent: Arc<FrequentValues>,
    classes: Arc<Classes>,
    groups: Arc<StateGroups>,
    excluded: Arc<Excluded>,
    applied: i64,
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

/// Locks a mutex, also after a panic of another holder: each value behind it is replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a generation, after a test read of a little of everything in it.
fn open_generation(
    dir: &Path,
    name: String,
    fields: &Fields,
    config: &IndexConfig,
) -> Result<(Generation, ServedIndex), IndexError> {
    let (generation, applied) = Generation::open(dir, name)?;
    let searcher = generation.reload()?;
    damage::question(&searcher, fields, 0)?;
    damage::missing_file(&searcher)?;
    let serving = ServedIndex {
        frequent: FrequentValues::of(&searcher, fields, config.facets, None)?,
        searcher,
        applied,
        classes: Arc::default(),
        groups: Arc::default(),
    };
    Ok((generation, serving))
}

impl Index {
    /// Opens the index in `dir`, which is created if it is missing, and reports its state. A missing or unreadable
    /// index, or one with another schema, is no error: it stays untouched until a rebuild is finished.
    ///
    /// # Errors
    /// [`IndexError::Io`] if the folder cannot be created.
    pub fn open(dir: &Path, config: IndexConfig) -> Result<(Self, Opened), IndexError> {
        fs::create_dir_all(dir).map_err(|source| IndexError::Io {
            path: dir.to_owned(),
            source,
        })?;
        let fields = Fields::build().1;
        let found = Stamp::read(dir).and_then(|stamp| {
            let open = || open_generation(dir, stamp.folder, &fields, &config);
            damage::guarded(open).map_err(|error| format!("it cannot be read: {error}"))
        });
        let overlay = Overlay::new(config.overlay_limit);
        let shared = shared_bits(config.filter_cache);
        let (live, serving, opened) = match found {
            Ok((generation, serving)) => {
                stamp::remove_others(dir, &generation.name);
                let live = WriterState {
                    generation,
                    writer: None,
                    committed: serving.applied,
                };
                let opened = Opened::Ready {
                    applied_seq: serving.applied,
                };
                (Some(live), Some(serving), opened)
            }
            Err(reason) => (None, None, Opened::Rebuild { reason }),
        };
        let reason = match &opened {
            Opened::Ready { .. } => String::new(),
            Opened::Rebuild { reason } => reason.clone(),
        };
        let inner = Inner {
            dir: dir.to_owned(),
            config,
            fields,
            shared,
            slot_tables: slot_tables(),
            counts: segment_counts(),
            view: Mutex::new(ViewState {
                serving,
                generation: 1,
                overlay,
                reason,
                damage: None,
                rebuilt: 0,
            }),
            live: Mutex::new(live),
            rebuilding: AtomicBool::new(false),
            questions: Counter::default(),
            failed_commits: Counter::default(),
        };
        Ok((Self(Arc::new(inner)), opened))
    }

    /// Starts a rebuild of the index, beside the one in use.
    ///
    /// # Errors
    /// [`IndexError::RebuildRunning`] if another rebuild is running; otherwise the error of the operating system.
    pub fn begin_rebuild(&self) -> Result<Rebuild, IndexError> {
        if self.0.rebuilding.swap(true, Ordering::AcqRel) {
            return Err(IndexError::RebuildRunning);
        }
        Rebuild::begin(Arc::clone(&self.0))
    }

    /// Records that these agents changed with event `seq`, before the change is acknowledged: until
    /// [`apply`](Self::apply) has reached `seq`, searches show the agents as they were, but only to callers who may
    /// still see them.
    pub fn note(&self, changed: &[ChangedAgent], seq: i64) {
        let mut view = lock(&self.0.view);
        let applied = view.applied();
        view.overlay.note(changed, seq, applied);
    }

    /// The same as [`note`](Self::note), for agents that are no longer visible to anybody.
    pub fn note_forbidden(&self, ids: &[Uuid], seq: i64) {
        let changed: Vec<ChangedAgent> = ids.iter().copied().map(ChangedAgent::forbidden).collect();
        self.note(&changed, seq);
    }

    /// The last event that searches reflect; 0 without an index.
    pub fn applied_seq(&self) -> i64 {
        lock(&self.0.view).applied().max(0)
    }

    /// Whether there is no index to search until a rebuild.
    pub fn is_missing(&self) -> bool {
        lock(&self.0.view).serving.is_none()
    }

    /// Counter that rises whenever searches use another state of the index.
    pub fn generation(&self) -> u64 {
        lock(&self.0.view).generation
    }

    /// Counter that rises whenever the overlay changes.
    pub fn overlay_version(&self) -> u64 {
        lock(&self.0.view).overlay.version()
    }

    pub fn overlay_len(&self) -> usize {
        lock(&self.0.view).overlay.len()
    }

    /// Number of agents in the index, hidden ones included.
    pub fn num_agents(&self) -> u64 {
        lock(&self.0.view)
            .serving
            .as_ref()
            .map_or(0, |serving| serving.searcher.num_docs())
    }
}

impl Inner {
    /// A state of the index with its precomputed facet values.
    fn serving(&self, searcher: Searcher, applied: i64) -> Result<ServedIndex, IndexError> {
        let before = lock(&self.view)
            .serving
            .as_ref()
            .map(|before| Arc::clone(&before.frequent));
        let frequent = FrequentValues::of(&searcher, &self.fields, self.config.facets, before)?;
        Ok(ServedIndex {
            searcher,
            applied,
            frequent,
            classes: Arc::default(),
            groups: Arc::default(),
        })
    }

    /// Makes a new state visible to searches. Searcher and overlay change together, so that no search combines the old
    /// searcher with an overlay that has dropped the changes it lacks.
    fn publish(&self, serving: ServedIndex) {
        let mut view = lock(&self.view);
        let old = view.serve(serving);
        drop(view);
        drop(old);
    }

    fn needs_rebuild(&self) -> IndexError {
        IndexError::NeedsRebuild {
            reason: lock(&self.view).reason.clone(),
        }
    }

    fn view(&self) -> Result<IndexView, IndexError> {
        let mut guard = lock(&self.view);
        let state = &mut *guard;
        let Some(serving) = &state.serving else {
            return Err(IndexError::NeedsRebuild {
                reason: state.reason.clone(),
            });
        };
        if state.overlay.is_blind(serving.applied) {
            return Err(IndexError::Behind {
                waiting: state.overlay.len(),
            });
        }
        Ok(IndexView {
            excluded: state.overlay.excluded(&serving.searcher, &self.fields)?,
            searcher: serving.searcher.clone(),
            frequent: Arc::clone(&serving.frequent),
            classes: Arc::clone(&serving.classes),
            groups: Arc::clone(&serving.groups),
            applied: serving.applied,
            generation: state.generation,
            overlay_version: state.overlay.version(),
        })
    }
}

impl ViewState {
    /// Replaces the state in use and returns the old one.
    fn serve(&mut self, serving: ServedIndex) -> Option<ServedIndex> {
        self.overlay.follow(serving.applied);
        self.generation += 1;
        self.serving.replace(serving)
    }

    fn applied(&self) -> i64 {
        self.serving
            .as_ref()
            .map_or(i64::MIN, |serving| serving.applied)
    }
}
