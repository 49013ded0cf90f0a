//! Index folders: each holds one build of the index.

use std::fs;
use std::path::{Path, PathBuf};

use tantivy::directory::MmapDirectory;
use tantivy::index::IndexSettings;
use tantivy::indexer::IndexWriterOptions;
use tantivy::query::TermSetQuery;
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, Searcher};
use uuid::Uuid;

use super::document::AgentDocument;
use super::error::IndexError;
use super::merge_policy::LevelMergePolicy;
use super::schema::{IndexFields, agent_text_analyzer};
use super::small_commit::{self, MAX_SMALL_COMMIT};

/// Block size in bytes of the compressed hits: small, because a page reads single hits from the whole segment.
const STORE_BLOCK_BYTES: usize = 4_096;

/// Decompressed blocks of hits that a segment caches: those of one page. Hits are read from the whole segment, so more
/// blocks would rarely be reused.
const STORE_CACHE_BLOCKS: usize = 16;

/// Number of deletions from which they are combined into one query: it scans the ids of a segment once, while each
/// single deletion looks up its id in every segment.
const BULK_DELETE_COUNT: usize = 1_000;

/// Minimum memory of a writing thread, in bytes.
const MIN_THREAD_MEMORY: usize = 16 * 1024 * 1024;

/// A folder with an index.
pub(super) struct IndexFolder {
    pub name: String,
    path: PathBuf,
    index: tantivy::Index,
    reader: IndexReader,
}

impl IndexFolder {
    pub fn create(dir: &Path, name: String) -> Result<Self, IndexError> {
        let path = dir.join(&name);
        fs::create_dir_all(&path).map_err(|source| IndexError::Io {
            path: path.clone(),
            source,
        })?;
        let directory = MmapDirectory::open(&path).map_err(tantivy::TantivyError::from)?;
        let settings = IndexSettings {
            docstore_blocksize: STORE_BLOCK_BYTES,
            // A rebuild already has as many writing threads as cores; another thread for each would mostly cost
            // context switches.
            docstore_compress_dedicated_thread: false,
            ..IndexSettings::default()
        };
        let index = tantivy::Index::create(directory, IndexFields::build_schema().0, settings)?;
        Self::with_reader(name, path, index)
    }

    /// Opens an existing index; returns it with the last applied event.
    pub fn open(dir: &Path, name: String) -> Result<(Self, i64), IndexError> {
        let path = dir.join(&name);
        let index = tantivy::Index::open_in_dir(&path)?;
        if index.schema() != IndexFields::build_schema().0 {
            return Err(IndexError::Damaged(
                "its fields do not match its manifest".to_owned(),
            ));
        }
        let applied_seq = index
            .load_metas()?
            .payload
            .and_then(|payload| payload.parse().ok())
            .ok_or_else(|| IndexError::Damaged("its last applied event is missing".to_owned()))?;
        Ok((Self::with_reader(name, path, index)?, applied_seq))
    }

    fn with_reader(name: String, path: PathBuf, index: tantivy::Index) -> Result<Self, IndexError> {
        let (layout, analyzer) = agent_text_analyzer();
        index.tokenizers().register(layout, analyzer);
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(STORE_CACHE_BLOCKS)
            .try_into()?;
        Ok(Self {
            name,
            path,
            index,
            reader,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn exists(&self) -> bool {
        self.path.join("meta.json").exists()
    }

    /// Creates the writer; there is at most one per folder.
    pub fn new_writer(&self, threads: usize, memory: usize) -> Result<IndexWriter, IndexError> {
        let threads = threads.clamp(1, 8);
        let options = IndexWriterOptions::builder()
            .num_worker_threads(threads)
            .memory_budget_per_thread((memory / threads).max(MIN_THREAD_MEMORY))
            .num_merge_threads(2)
            .build();
        let writer = self.index.writer_with_options(options)?;
        writer.set_merge_policy(Box::new(LevelMergePolicy));
        Ok(writer)
    }

    /// A searcher of the newest committed state.
    pub fn reload_searcher(&self) -> Result<Searcher, IndexError> {
        self.reader.reload()?;
        Ok(self.reader.searcher())
    }

    /// Removes the folder; searches that still read it continue.
    pub fn remove(&self) {
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove an old index folder until a restart");
        }
    }
}

/// Adds agents without removing their earlier documents.
pub(super) fn add_agents(
    writer: &IndexWriter,
    fields: &IndexFields,
    agents: Vec<AgentDocument>,
) -> Result<(), IndexError> {
    for agent in agents {
        writer.add_document(fields.to_document(agent))?;
    }
    Ok(())
}

/// Replaces the documents of agents and deletes those of others.
pub(super) fn replace_agents(
    writer: &IndexWriter,
    fields: &IndexFields,
    upserts: Vec<AgentDocument>,
    deletes: &[Uuid],
) -> Result<(), IndexError> {
    if upserts.is_empty() && writer.index().searchable_segment_ids()?.is_empty() {
        // Without segments these deletions would stay in the writer's queue and delete documents of the next small
        // commit.
        return Ok(());
    }
    let are_few_deleted = deletes.len() < BULK_DELETE_COUNT;
    if are_few_deleted && (1..=MAX_SMALL_COMMIT).contains(&upserts.len()) {
        return small_commit::replace_agent_documents(writer, fields, upserts, deletes);
    }
    if are_few_deleted {
        for id in deletes {
            writer.delete_term(fields.id_term(*id));
        }
    } else {
        let terms = deletes.iter().map(|id| fields.id_term(*id));
        writer.delete_query(Box::new(TermSetQuery::new(terms)))?;
    }
    for agent in upserts {
        // One at a time, so that the later of two documents for one agent remains.
        writer.delete_term(fields.id_term(agent.id));
        add_agents(writer, fields, vec![agent])?;
    }
    Ok(())
}

/// Commits all written documents, together with the last event that they reflect.
pub(super) fn commit_with_seq(writer: &mut IndexWriter, seq: i64) -> Result<(), IndexError> {
    let mut prepared = writer.prepare_commit()?;
    prepared.set_payload(&seq.to_string());
    prepared.commit()?;
    Ok(())
}
