//! Index damage: detection and reporting.
//!
//! An index is derived, so damage costs only a rebuild if it is detected. Detection has three ways: a search fails
//! twice, a periodic test query fails, or a file is missing or does not have its original checksum.

use std::error::Error;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use a2a_registry_domain::facet::Facet;
use tantivy::index::SegmentComponent;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{
    Directory as _, DocAddress, DocId, DocSet, HasLen as _, Searcher, SegmentReader,
    TantivyDocument, TantivyError, Term,
};

use super::agent_id_reader::AgentIdReader;
use super::error::IndexError;
use super::schema::IndexFields;
use super::{Index, lock_ignoring_poison};

/// Number of consecutive failed commits from which the index is considered damaged.
const MAX_FAILED_COMMITS: u32 = 3;

/// Maximum total size of the files whose checksums one check compares, in bytes.
const MAX_CHECKED_BYTES: usize = 8 * 1024 * 1024;

/// The files of a segment, except the one with its deletions.
const SEGMENT_COMPONENTS: [SegmentComponent; 6] = [
    SegmentComponent::Postings,
    SegmentComponent::Positions,
    SegmentComponent::Terms,
    SegmentComponent::Store,
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
];

/// Runs a read of the index and catches panics: for some kinds of damage the search library panics instead of failing.
///
/// # Errors
/// The error of `read`; `Damaged` after a panic.
pub(super) fn catch_panics<T>(
    read: impl FnOnce() -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(IndexError::Damaged(
            "the search library panicked while reading it".to_owned(),
        ))
    })
}

impl Index {
    /// Runs a search, and repeats it after an error that may be caused by damage. A second such error is recorded as
    /// damage until the index is rebuilt.
    pub fn run_with_damage_retry<T>(
        &self,
        search: impl Fn(&Self) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let once = || {
            let rebuilt = self.rebuild_count();
            match catch_panics(|| search(self)) {
                Err(error) if error.may_be_damage() => Err((error, rebuilt)),
                answer => Ok(answer),
            }
        };
        once()
            .or_else(|_| once())
            .unwrap_or_else(|(error, rebuilt)| {
                self.record_damage(error.to_string(), rebuilt);
                Err(error)
            })
    }

    /// Number of rebuilds since the index was opened.
    pub fn rebuild_count(&self) -> u64 {
        lock_ignoring_poison(&self.0.serving_state).rebuild_count
    }

    /// Records that the index is damaged; the first report is kept. `rebuild_count` is the value of
    /// [`rebuild_count`](Self::rebuild_count) before anything was read: a report about an index that was replaced
    /// since then is ignored.
    pub fn record_damage(&self, reason: String, rebuild_count: u64) {
        let mut view = lock_ignoring_poison(&self.0.serving_state);
        if view.damage.is_none() && view.rebuild_count == rebuild_count {
            tracing::error!(reason, "the search index is damaged");
            view.damage = Some(reason);
        }
    }

    /// The damage detected since the index was built, if any.
    pub fn damage(&self) -> Option<String> {
        lock_ignoring_poison(&self.0.serving_state).damage.clone()
    }

    /// Checks the index: a test query reads a little from every file of every segment, at another place each time;
    /// then all files must exist, and the checksums of some of the smaller ones must match. A failure is recorded as
    /// damage.
    ///
    /// # Errors
    /// [`IndexError::NeedsRebuild`] without an index; otherwise the damage.
    pub fn check_integrity(&self) -> Result<(), IndexError> {
        let probe_number = self.0.probe_count.fetch_add(1, Ordering::AcqRel);
        let fields = &self.0.fields;
        let result = self.run_with_damage_retry(|index| {
            // Use a new searcher for each attempt: a rebuild removes the files of the index it replaces.
            let searcher = index.0.current_view()?.searcher;
            probe_segments(&searcher, fields, probe_number)?;
            check_files_exist(&searcher)?;
            verify_some_checksums(searcher.index(), probe_number)
        });
        match result {
            // The index is readable; searches report this state themselves.
            Err(IndexError::Behind { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    /// Finds files with a wrong checksum; ends early when `stop` returns `true`. Reads all files, and records the
    /// first damaged one.
    pub fn find_damaged_files(&self, stop: impl Fn() -> bool) -> Result<Vec<PathBuf>, IndexError> {
        let rebuild_count = self.rebuild_count();
        let searcher = self.0.current_view()?.searcher;
        let index = searcher.index();
        let damaged = catch_panics(|| {
            let mut damaged = Vec::new();
            for file in committed_files(index)? {
                if stop() {
                    break;
                }
                // Merges may remove listed files; those are missing in the next list.
                if !is_file_intact(index, &file)? && committed_files(index)?.contains(&file) {
                    damaged.push(file);
                }
            }
            Ok(damaged)
        })?;
        if let Some(first) = damaged.first() {
            self.record_damage(
                format!("the checksum of {} is wrong", first.display()),
                rebuild_count,
            );
        }
        Ok(damaged)
    }

    /// Counts consecutive failed commits, except those caused by the operating system, such as a full disk.
    pub(super) fn record_commit_result(&self, result: &Result<(), IndexError>, rebuild_count: u64) {
        let failed_commits = &self.0.failed_commits;
        match result {
            Err(error) if error.may_be_damage() && !is_disk_error(error) => {
                if failed_commits.fetch_add(1, Ordering::AcqRel) + 1 >= MAX_FAILED_COMMITS {
                    self.record_damage(format!("commits fail: {error}"), rebuild_count);
                }
            }
            _ => failed_commits.store(0, Ordering::Release),
        }
    }
}

/// Counter of events of an index.
pub(super) type AtomicCounter = AtomicU32;

/// Whether the operating system rejects writes; a new index would get the same error.
fn is_disk_error(error: &IndexError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = cause {
        let kind = current
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        let refusal_kinds = [
            ErrorKind::StorageFull,
            ErrorKind::QuotaExceeded,
            ErrorKind::ReadOnlyFilesystem,
            ErrorKind::PermissionDenied,
        ];
        if kind.is_some_and(|kind| refusal_kinds.contains(&kind)) {
            return true;
        }
        cause = current.source();
    }
    // The search library reports some causes as text only.
    let text = error.to_string().to_lowercase();
    [
        "no space left",
        "storagefull",
        "quota exceeded",
        "read-only",
    ]
    .iter()
    .any(|sign| text.contains(sign))
}

/// Reads a little of every file of every segment; `probe_number` selects the documents.
pub(super) fn probe_segments(
    searcher: &Searcher,
    fields: &IndexFields,
    probe_number: u32,
) -> Result<(), IndexError> {
    for (ordinal, reader) in (0..).zip(searcher.segment_readers()) {
        let documents = reader.max_doc();
        if documents > 0 {
            // The step is coprime to most numbers, so over time it visits all documents.
            let document = probe_number.wrapping_mul(2_654_435_761) % documents;
            probe_document(searcher, fields, reader, DocAddress::new(ordinal, document))?;
        }
    }
    Ok(())
}

fn probe_document(
    searcher: &Searcher,
    fields: &IndexFields,
    reader: &SegmentReader,
    address: DocAddress,
) -> Result<(), IndexError> {
    let wrong = |what: &str| Err(IndexError::Damaged(format!("{what} cannot be read")));
    let document = address.doc_id;
    let stored: TantivyDocument = searcher.doc(address)?;
    if stored.get_first(fields.text).is_none() {
        return wrong("a stored agent");
    }
    let id = AgentIdReader::open(reader)?.get(document);
    if !term_has_document(reader, &fields.id_term(id), document)? {
        return wrong("the id of an agent");
    }
    let length = reader
        .get_fieldnorms_reader(fields.text)?
        .fieldnorm(document);
    let index = reader.inverted_index(fields.text)?;
    let terms = index.terms();
    if terms.num_terms() == 0 {
        // A text without words has length 0.
        return if length == 0 {
            Ok(())
        } else {
            wrong("the words of agents")
        };
    }
    let place = u64::from(document) % terms.num_terms() as u64;
    let mut word = Vec::new();
    if !terms.ord_to_term(place, &mut word)? {
        return wrong("a word");
    }
    let Some(info) = terms.get(&word)? else {
        return wrong("a word");
    };
    let read = IndexRecordOption::WithFreqsAndPositions;
    let mut postings = index.read_postings_from_terminfo(&info, read)?;
    let mut places = Vec::new();
    postings.positions(&mut places);
    if postings.doc() >= reader.max_doc() || places.is_empty() {
        return wrong("the places of a word");
    }
    if !facet_values_find_document(reader, fields, document)? {
        return wrong("a value of an agent");
    }
    Ok(())
}

/// Whether the first value of each facet in an agent's columns finds the agent.
fn facet_values_find_document(
    reader: &SegmentReader,
    fields: &IndexFields,
    document: DocId,
) -> Result<bool, IndexError> {
    for &facet in Facet::ALL {
        let Some(column) = reader.fast_fields().str(facet.as_str())? else {
            continue;
        };
        let mut value = String::new();
        if let Some(ordinal) = column.ords().first(document)
            && !(column.ord_to_str(ordinal, &mut value)?
                && term_has_document(reader, &fields.keys.facet_term(facet, &value), document)?)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn term_has_document(
    reader: &SegmentReader,
    term: &Term,
    document: DocId,
) -> Result<bool, IndexError> {
    let index = reader.inverted_index(term.field())?;
    let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? else {
        return Ok(false);
    };
    Ok(postings.doc() == document
        || postings.doc() < document && postings.seek(document) == document)
}

/// Compares the checksums of some files of at most [`MAX_CHECKED_BYTES`], up to that total, starting with another file
/// each time.
fn verify_some_checksums(index: &tantivy::Index, probe_number: u32) -> Result<(), IndexError> {
    let files = committed_files(index)?;
    let first = usize::try_from(probe_number).unwrap_or(0) % files.len().max(1);
    let mut bytes_left = MAX_CHECKED_BYTES;
    for file in files.iter().cycle().skip(first).take(files.len()) {
        // A file removed by a merge is missing in the next list.
        let Ok(length) = index.directory().open_read(file).map(|file| file.len()) else {
            continue;
        };
        if length > MAX_CHECKED_BYTES {
            continue;
        }
        let Some(rest) = bytes_left.checked_sub(length) else {
            break;
        };
        bytes_left = rest;
        if !is_file_intact(index, file)? && committed_files(index)?.contains(file) {
            let message = format!("the checksum of {} is wrong", file.display());
            return Err(IndexError::Damaged(message));
        }
    }
    Ok(())
}

/// Whether a file has its original checksum. An unreadable file does not, unless the process lacks file descriptors.
fn is_file_intact(index: &tantivy::Index, file: &Path) -> Result<bool, IndexError> {
    let checked = index.directory().validate_checksum(file);
    checked.or_else(|error| {
        let error = IndexError::from(TantivyError::from(error));
        match error.is_out_of_descriptors() {
            true => Err(error),
            false => Ok(false),
        }
    })
}

fn committed_files(index: &tantivy::Index) -> Result<Vec<PathBuf>, IndexError> {
    let mut files = Vec::new();
    for segment in index.load_metas()?.segments {
        let deleted = segment.has_deletes().then_some(SegmentComponent::Delete);
        let components = SEGMENT_COMPONENTS.into_iter().chain(deleted);
        files.extend(components.map(|component| segment.relative_path(component)));
    }
    Ok(files)
}

/// Fails if a file of a committed segment is missing. An open file stays readable after its removal but cannot be
/// opened again.
pub(super) fn check_files_exist(searcher: &Searcher) -> Result<(), IndexError> {
    let index = searcher.index();
    let missing = |file: &PathBuf| !index.directory().exists(file).unwrap_or(true);
    match committed_files(index)?.into_iter().find(missing) {
        // Merges may remove listed files; those are missing in the next list.
        Some(file) if committed_files(index)?.contains(&file) => Err(IndexError::Damaged(format!(
            "its file {} is missing",
            file.display()
        ))),
        _ => Ok(()),
    }
}
