//! The search index: what may be found, derived from the database and never the truth.
//!
//! It is fed [`Document`]s and answers [`SearchRequest`]s; it knows neither database nor HTTP. Three rules hold
//! in every answer, in hits, totals, facets and suggestions alike: only agents that carry one of the caller's
//! visibility labels count, agents that an act has forbidden since the index last caught up (the overlay) do not, and a
//! hidden agent is the same as a missing one. Scores count how often words are used by the agents that everybody of
//! the caller's class finds.
//!
//! An answer depends on the agents and the events applied, and not on how an index came to hold them: two that have
//! applied the same events give the same scores, orders and counts, whatever their segments hold and have deleted.
//!
//! The folder holds one sub-folder per generation and a stamp that names the one in use. Everyday changes go
//! into it with [`Index::apply`]; a rebuild writes a new one beside it and swaps them at the end.
//!
//! All calls block; a server runs them off its event loop. [`Index`] is cheap to clone and every clone is the
//! same index.

mod analysis;
mod answer;
mod bits;
mod blend;
mod collect;
mod damage;
mod demands;
mod document;
mod error;
mod expansion;
mod explained;
mod facets;
mod fetch;
mod filter;
mod filtered;
mod frozen;
mod generation;
mod highlight;
mod hints;
mod layout;
mod meaning;
mod overlay;
mod pairs;
mod query;
mod ranking;
mod rebuild;
mod request;
mod rescore;
mod schema;
mod search;
mod seen;
mod stamp;
mod statistics;
mod suggest;
mod syntax;
#[cfg(test)]
mod tests;
mod typing_errors;
pub mod vectors;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::{IndexWriter, Searcher};
use uuid::Uuid;

pub use answer::{
    FACET_VALUES, FacetCounts, Highlight, Hint, HintKind, HitRow, SearchAnswer, Suggestion,
    SuggestionKind,
};
pub use blend::Blended;
pub use document::{Document, MAX_SKILLS, MAX_TEXT_BYTES, MAX_VALUE_BYTES, SkillText};
pub use error::IndexError;
pub use facets::FacetLimits;
pub use frozen::{FrozenOrder, FrozenPlace, OrderState};
pub use overlay::ChangedAgent;
pub use rebuild::Rebuild;
pub use request::{
    FacetName, Filters, MAX_FILTER_VALUES, MAX_LIMIT, MAX_ORDER, MAX_QUERY_WORDS, Meaning,
    SearchRequest, Sort, SortPosition, SortValue,
};
pub use schema::SCHEMA_VERSION;
pub use search::CompiledQuery;
pub use syntax::asked_text;

use damage::Counter;
use facets::FrequentValues;
use filter::{SharedBits, shared_bits};
use generation::Generation;
use meaning::{SlotTables, slot_tables};
use overlay::{Excluded, Overlay};
use schema::Fields;
use stamp::Stamp;
use statistics::{Classes, SegmentCounts, segment_counts};

/// How much the index may use.
#[derive(Debug, Clone)]
pub struct IndexConfig {
    /// Memory in bytes that everyday changes may fill before they are flushed; at least 16 MiB.
    pub writer_memory: usize,
    /// The same during a rebuild, over all its threads; at least 16 MiB each. It is used as it is filled, so only by
    /// large registries. The more there is, the fewer times a document is written again when segments are merged.
    pub rebuild_memory: usize,
    /// Threads that write during a rebuild, 1 to 8; everyday changes are written by one.
    pub rebuild_threads: usize,
    /// Memory in bytes for sets of agents that filters share.
    pub filter_cache: u64,
    /// What is kept ready for counting facets.
    pub facets: FacetLimits,
    /// How many changed agents may wait before [`Index::overlay_full`] asks for a commit. Searches hide up to
    /// sixteen times as many and answer [`IndexError::Behind`] beyond that.
    pub overlay_limit: usize,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self {
            writer_memory: 64 * 1024 * 1024,
            rebuild_memory: 256 * 1024 * 1024,
            rebuild_threads: 2,
            filter_cache: 32 * 1024 * 1024,
            facets: FacetLimits::default(),
            overlay_limit: 10_000,
        }
    }
}

/// What [`Index::open`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// A usable index.
    Ready {
        /// The last event it has applied.
        applied_seq: i64,
    },
    /// None that this program can use: until a rebuild is finished every search is
    /// [`IndexError::NeedsRebuild`].
    Rebuild {
        /// Why.
        reason: String,
    },
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
    /// Number of test queries that checked whether the index can be read.
    questions: Counter,
    /// How many commits have failed one after another.
    failed_commits: Counter,
}

struct WriterState {
    generation: Generation,
    /// Made at the first change, and again after one that failed.
    writer: Option<IndexWriter>,
}

struct ViewState {
    serving: Option<ServedIndex>,
    generation: u64,
    overlay: Overlay,
    /// Why nothing serves.
    reason: String,
    /// What is wrong with what serves.
    damage: Option<String>,
    /// How often another one was put in its place by a rebuild.
    rebuilt: u64,
}

struct ServedIndex {
    searcher: Searcher,
    applied: i64,
    frequent: Arc<FrequentValues>,
    /// Statistics for the scores, by class of callers.
    classes: Arc<Classes>,
}

/// One consistent state for searches: a searcher and the agents to exclude.
struct IndexView {
    searcher: Searcher,
    /// What is known of the values of its facets.
    frequent: Arc<FrequentValues>,
    classes: Arc<Classes>,
    excluded: Arc<Excluded>,
    excluded_digest: u64,
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

/// A lock whose holder panicked is taken all the same: everything behind it is replaced whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a generation, after reading a little of everything in it.
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
    };
    Ok((generation, serving))
}

impl Index {
    /// Opens the index in `dir`, which is made when it is missing, and says what is there. An index that is
    /// missing, unreadable or of another schema is no error: it stays untouched until a rebuild is finished.
    ///
    /// # Errors
    /// [`IndexError::Io`] when the folder cannot be made.
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

    /// Puts documents in the place of their agents' earlier ones, takes `deletes` out (an id in both stays in),
    /// commits together with the event `seq` they reach up to, and lets searches see it. Applying the same
    /// again changes nothing. Of two documents for one agent the later counts.
    ///
    /// # Errors
    /// [`IndexError::NeedsRebuild`] when there is no index or its folder went away; otherwise what the system
    /// said (a full disk). After an error the last committed state stays in use, and the same call may be
    /// tried again.
    pub fn apply(
        &self,
        upserts: Vec<Document>,
        deletes: &[Uuid],
        seq: i64,
    ) -> Result<(), IndexError> {
        let rebuilt = self.rebuilt();
        let outcome = damage::guarded(|| self.commit(upserts, deletes, seq));
        self.note_commit(&outcome, rebuilt);
        outcome
    }

    fn commit(&self, upserts: Vec<Document>, deletes: &[Uuid], seq: i64) -> Result<(), IndexError> {
        let inner = &*self.0;
        let mut live = lock(&inner.live);
        let Some(state) = live.as_mut() else {
            return Err(inner.needs_rebuild());
        };
        let gone = || IndexError::NeedsRebuild {
            reason: "its folder went away".to_owned(),
        };
        if !state.generation.exists() {
            state.writer = None;
            return Err(gone());
        }
        let seq = seq.max(self.applied_seq());
        let result = inner.write(state, upserts, deletes, seq);
        if result.is_err() {
            // A writer that failed may be stopped for good. Without it the uncommitted part is forgotten.
            state.writer = None;
            if !state.generation.exists() {
                return Err(gone());
            }
        }
        inner.publish(inner.serving(result?, seq)?);
        Ok(())
    }

    /// Starts a rebuild of the index, beside the one that serves.
    ///
    /// # Errors
    /// [`IndexError::RebuildRunning`] if one runs already; otherwise the error of the system.
    pub fn begin_rebuild(&self) -> Result<Rebuild, IndexError> {
        if self.0.rebuilding.swap(true, Ordering::AcqRel) {
            return Err(IndexError::RebuildRunning);
        }
        Rebuild::begin(Arc::clone(&self.0))
    }

    /// Tells that these agents changed with event `seq`, before the change is acknowledged: from now on, until
    /// [`apply`](Self::apply) has reached `seq`, answers show them as they were, and to nobody who may not see them
    /// any more.
    pub fn note(&self, changed: &[ChangedAgent], seq: i64) {
        let mut view = lock(&self.0.view);
        let applied = view.applied();
        view.overlay.note(changed, seq, applied);
    }

    /// As [`note`](Self::note), for agents that nobody may see any more.
    pub fn note_forbidden(&self, ids: &[Uuid], seq: i64) {
        let changed: Vec<ChangedAgent> = ids.iter().copied().map(ChangedAgent::forbidden).collect();
        self.note(&changed, seq);
    }

    /// The last event that searches see; 0 without an index.
    pub fn applied_seq(&self) -> i64 {
        lock(&self.0.view).applied().max(0)
    }

    /// Whether there is nothing to search in before a rebuild.
    pub fn is_missing(&self) -> bool {
        lock(&self.0.view).serving.is_none()
    }

    /// A counter that rises whenever searches see another state of the index.
    pub fn generation(&self) -> u64 {
        lock(&self.0.view).generation
    }

    /// A counter that rises whenever the overlay changes.
    pub fn overlay_version(&self) -> u64 {
        lock(&self.0.view).overlay.version()
    }

    /// How many changed agents the overlay holds.
    pub fn overlay_len(&self) -> usize {
        lock(&self.0.view).overlay.len()
    }

    /// Whether so many changes wait that a commit is due at once.
    pub fn overlay_full(&self) -> bool {
        lock(&self.0.view).overlay.is_full()
    }

    /// How many agents the index holds, hidden ones included.
    pub fn num_agents(&self) -> u64 {
        lock(&self.0.view)
            .serving
            .as_ref()
            .map_or(0, |serving| serving.searcher.num_docs())
    }
}

impl Inner {
    fn write(
        &self,
        state: &mut WriterState,
        upserts: Vec<Document>,
        deletes: &[Uuid],
        seq: i64,
    ) -> Result<Searcher, IndexError> {
        let mut writer = match state.writer.take() {
            Some(writer) => writer,
            None => state.generation.writer(1, self.config.writer_memory)?,
        };
        generation::replace(&writer, &self.fields, upserts, deletes)?;
        generation::commit(&mut writer, seq)?;
        state.writer = Some(writer);
        state.generation.reload()
    }

    /// A state of the index with what is kept ready for it.
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
        })
    }

    /// Lets searches see a new state. Searcher and overlay change together, so that no search combines the old
    /// searcher with an overlay that has forgotten what it must not show.
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
            excluded_digest: state.overlay.digest(),
            searcher: serving.searcher.clone(),
            frequent: Arc::clone(&serving.frequent),
            classes: Arc::clone(&serving.classes),
            applied: serving.applied,
            generation: state.generation,
            overlay_version: state.overlay.version(),
        })
    }
}

impl ViewState {
    /// Puts another state in the place of the one that serves, and answers that.
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
