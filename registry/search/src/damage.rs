//! Whether the files of an index can be read, and what was found of those that cannot.
//!
//! An index is derived, so damage costs no more than a rebuild, if only somebody notices. It is noticed in three ways:
//! a search fails twice, a question that is asked now and then for this alone fails, or a file is missing or has
//! another checksum than it was written with.

use std::error::Error;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use tantivy::index::SegmentComponent;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{
    Directory as _, DocAddress, DocId, DocSet, HasLen as _, Searcher, SegmentReader,
    TantivyDocument, Term,
};

use super::collect::AgentIds;
use super::error::IndexError;
use super::request::FacetName;
use super::schema::Fields;
use super::{Index, lock};

/// Commits that fail one after another before the index itself is taken for damaged.
const FAILED_COMMITS: u32 = 3;

/// Bytes that one check compares with checksums.
const CHECKED_BYTES: usize = 8 * 1024 * 1024;

/// The files of a segment, beside those of what is deleted.
const COMPONENTS: [SegmentComponent; 6] = [
    SegmentComponent::Postings,
    SegmentComponent::Positions,
    SegmentComponent::Terms,
    SegmentComponent::Store,
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
];

/// Runs what reads an index; on some kinds of damage the search library panics instead of failing.
///
/// # Errors
/// What it fails with; `Damaged` for a panic.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(IndexError::Damaged("reading it broke off".to_owned())))
}

impl Index {
    /// Runs a search, and where it fails by what may be damage once more. What fails again is damage, and is
    /// remembered until the index is rebuilt.
    ///
    /// # Errors
    /// As the search.
    pub fn asked<T>(
        &self,
        search: impl Fn(&Self) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let once = || {
            let rebuilt = self.rebuilt();
            match guarded(|| search(self)) {
                Err(error) if error.may_be_damage() => Err((error, rebuilt)),
                answer => Ok(answer),
            }
        };
        once()
            .or_else(|_| once())
            .unwrap_or_else(|(error, rebuilt)| {
                self.report_damage(error.to_string(), rebuilt);
                Err(error)
            })
    }

    /// Number of rebuilds since the index was opened.
    pub fn rebuilt(&self) -> u64 {
        lock(&self.0.view).rebuilt
    }

    /// Remembers that the index is damaged; the first report counts. `rebuilt` is what [`rebuilt`](Self::rebuilt) said
    /// before anything was read: what another rebuild has replaced since is nobody's damage any more.
    pub fn report_damage(&self, reason: String, rebuilt: u64) {
        let mut view = lock(&self.0.view);
        if view.damage.is_none() && view.rebuilt == rebuilt {
            tracing::error!(reason, "the search index is damaged");
            view.damage = Some(reason);
        }
    }

    /// How the index is damaged, as far as anybody has noticed since it was built.
    pub fn damage(&self) -> Option<String> {
        lock(&self.0.view).damage.clone()
    }

    /// Asks the index a question that reads a little from every file of every segment, another place each time, looks
    /// whether the files are there, and compares some of the smaller ones with their checksums. What is wrong is
    /// remembered as damage.
    ///
    /// # Errors
    /// [`IndexError::NeedsRebuild`] without an index; what is wrong with it.
    pub fn check(&self) -> Result<(), IndexError> {
        let turn = self.0.questions.fetch_add(1, Ordering::AcqRel);
        let fields = &self.0.fields;
        let outcome = self.asked(|index| {
            // Taken anew each time: a rebuild removes the files of what it replaces.
            let searcher = index.0.view()?.searcher;
            question(&searcher, fields, turn)?;
            missing_file(&searcher)?;
            some_checksums(searcher.index(), turn)
        });
        match outcome {
            // It can be read, and says for itself when it is too far behind.
            Err(IndexError::Behind { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    /// The files whose checksum is not the one that they were written with, the first ones until `stop` says so. Reads
    /// all of them. What is wrong is remembered as damage.
    pub fn damaged_files(&self, stop: impl Fn() -> bool) -> Result<Vec<PathBuf>, IndexError> {
        let rebuilt = self.rebuilt();
        let searcher = self.0.view()?.searcher;
        let index = searcher.index();
        let damaged = guarded(|| {
            let mut damaged = Vec::new();
            for file in committed_files(index)? {
                if stop() {
                    break;
                }
                let intact = index.directory().validate_checksum(&file).unwrap_or(false);
                // Merges remove files that were in the list; they are not in the next one.
                if !intact && committed_files(index)?.contains(&file) {
                    damaged.push(file);
                }
            }
            Ok(damaged)
        })?;
        if let Some(first) = damaged.first() {
            self.report_damage(
                format!("the checksum of {} is wrong", first.display()),
                rebuilt,
            );
        }
        Ok(damaged)
    }

    /// Counts commits that fail, for as long as nothing but the index itself can be the cause.
    pub(super) fn note_commit(&self, outcome: &Result<(), IndexError>, rebuilt: u64) {
        let failed = &self.0.failed_commits;
        match outcome {
            Err(error) if error.may_be_damage() && !is_of_the_disk(error) => {
                if failed.fetch_add(1, Ordering::AcqRel) + 1 >= FAILED_COMMITS {
                    self.report_damage(format!("it takes no commits: {error}"), rebuilt);
                }
            }
            _ => failed.store(0, Ordering::Release),
        }
    }
}

/// Counters of what happened to an index.
pub(super) type Counter = AtomicU32;

/// Whether the system refuses to write, which another index would meet as well.
fn is_of_the_disk(error: &IndexError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(here) = cause {
        let kind = here
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        let refused = [
            ErrorKind::StorageFull,
            ErrorKind::QuotaExceeded,
            ErrorKind::ReadOnlyFilesystem,
            ErrorKind::PermissionDenied,
        ];
        if kind.is_some_and(|kind| refused.contains(&kind)) {
            return true;
        }
        cause = here.source();
    }
    // The search library says some causes in words alone.
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

/// Reads a little of every file of every segment; `turn` says from where.
pub(super) fn question(searcher: &Searcher, fields: &Fields, turn: u32) -> Result<(), IndexError> {
    for (ordinal, reader) in (0..).zip(searcher.segment_readers()) {
        let documents = reader.max_doc();
        if documents > 0 {
            // A step that has no common part with most numbers goes through all documents in time.
            let document = turn.wrapping_mul(2_654_435_761) % documents;
            ask_of(searcher, fields, reader, DocAddress::new(ordinal, document))?;
        }
    }
    Ok(())
}

fn ask_of(
    searcher: &Searcher,
    fields: &Fields,
    reader: &SegmentReader,
    address: DocAddress,
) -> Result<(), IndexError> {
    let wrong = |what: &str| Err(IndexError::Damaged(format!("{what} cannot be read")));
    let document = address.doc_id;
    let stored: TantivyDocument = searcher.doc(address)?;
    if stored.get_first(fields.text).is_none() {
        return wrong("a stored agent");
    }
    let id = AgentIds::open(reader)?.get(document);
    if !holds(reader, &fields.id_term(id), document)? {
        return wrong("the id of an agent");
    }
    let length = reader
        .get_fieldnorms_reader(fields.text)?
        .fieldnorm(document);
    let index = reader.inverted_index(fields.text)?;
    let terms = index.terms();
    if terms.num_terms() == 0 {
        // A text without any word is no longer than nothing.
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
    if !holds_its_values(reader, fields, document)? {
        return wrong("a value of an agent");
    }
    Ok(())
}

/// Whether an agent is found by the first value of each facet that its columns have.
fn holds_its_values(
    reader: &SegmentReader,
    fields: &Fields,
    document: DocId,
) -> Result<bool, IndexError> {
    for facet in FacetName::ALL {
        let Some(column) = reader.fast_fields().str(facet.as_str())? else {
            continue;
        };
        let mut value = String::new();
        if let Some(ordinal) = column.ords().first(document)
            && !(column.ord_to_str(ordinal, &mut value)?
                && holds(
                    reader,
                    &Term::from_field_text(fields.exact(facet), &value),
                    document,
                )?)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(reader: &SegmentReader, term: &Term, document: DocId) -> Result<bool, IndexError> {
    let index = reader.inverted_index(term.field())?;
    let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? else {
        return Ok(false);
    };
    Ok(postings.doc() == document
        || postings.doc() < document && postings.seek(document) == document)
}

/// Fails where a file has another checksum than it was written with: of the files of at most [`CHECKED_BYTES`], as many
/// as come to no more than that together, other ones each time.
fn some_checksums(index: &tantivy::Index, turn: u32) -> Result<(), IndexError> {
    let files = committed_files(index)?;
    let first = usize::try_from(turn).unwrap_or(0) % files.len().max(1);
    let mut left = CHECKED_BYTES;
    for file in files.iter().cycle().skip(first).take(files.len()) {
        // A file that a merge has removed meanwhile is not in the next list.
        let Ok(length) = index.directory().open_read(file).map(|file| file.len()) else {
            continue;
        };
        if length > CHECKED_BYTES {
            continue;
        }
        let Some(rest) = left.checked_sub(length) else {
            break;
        };
        left = rest;
        if !index.directory().validate_checksum(file).unwrap_or(false)
            && committed_files(index)?.contains(file)
        {
            let message = format!("the checksum of {} is wrong", file.display());
            return Err(IndexError::Damaged(message));
        }
    }
    Ok(())
}

/// The files of the segments of the last commit.
fn committed_files(index: &tantivy::Index) -> Result<Vec<PathBuf>, IndexError> {
    let mut files = Vec::new();
    for segment in index.load_metas()?.segments {
        let deleted = segment.has_deletes().then_some(SegmentComponent::Delete);
        let components = COMPONENTS.into_iter().chain(deleted);
        files.extend(components.map(|component| segment.relative_path(component)));
    }
    Ok(files)
}

/// Fails where a file of a committed segment is missing. What is open stays readable without it, but nothing that is
/// opened later is.
pub(super) fn missing_file(searcher: &Searcher) -> Result<(), IndexError> {
    let index = searcher.index();
    let missing = |file: &PathBuf| !index.directory().exists(file).unwrap_or(true);
    match committed_files(index)?.into_iter().find(missing) {
        // Merges remove files that were in the list; they are not in the next one.
        Some(file) if committed_files(index)?.contains(&file) => Err(IndexError::Damaged(format!(
            "its file {} is missing",
            file.display()
        ))),
        _ => Ok(()),
    }
}
