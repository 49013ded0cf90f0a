//! Small commits: the segment of a few agents is written here instead of by a thread of the writer.
//!
//! A thread of the writer starts each segment with a hash table of 4 MB and finally reads all of it, which costs more
//! than one agent does. The table of a segment written here is as small as the segment.

use std::collections::BTreeMap;

use tantivy::index::{Segment, SegmentId};
use tantivy::indexer::{AddOperation, SegmentWriter};
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, TermQuery, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, IndexWriter, Score, SegmentReader, Term};
use uuid::Uuid;

use super::document::AgentDocument;
use super::error::IndexError;
use super::schema::IndexFields;

/// Maximum number of agents in a small commit.
pub(super) const MAX_SMALL_COMMIT: usize = 32;

/// Memory in bytes from which the size of the hash table is computed: 256 KiB, which grows beyond 16,384 terms.
const HASH_TABLE_MEMORY: usize = 1_000_000;

/// Replaces the documents of agents, at least one, and deletes those of others.
pub(super) fn replace_agent_documents(
    writer: &IndexWriter,
    fields: &IndexFields,
    upserts: Vec<AgentDocument>,
    deletes: &[Uuid],
) -> Result<(), IndexError> {
    let mut agents: BTreeMap<Uuid, AgentDocument> = BTreeMap::new();
    for agent in upserts {
        // The later of two documents for one agent remains.
        agents.insert(agent.id, agent);
    }
    let replaced: Vec<Uuid> = agents.keys().chain(deletes).copied().collect();
    let segment = write_segment(writer.new_segment(), fields, agents)?;
    for id in replaced {
        writer.delete_query(Box::new(OlderDocumentsQuery {
            id: fields.id_term(id),
            newest_segment: segment.id(),
        }))?;
    }
    writer.add_segment(segment.meta().clone())?;
    Ok(())
}

/// Writes the segment with the documents of these agents.
fn write_segment(
    segment: Segment,
    fields: &IndexFields,
    agents: BTreeMap<Uuid, AgentDocument>,
) -> tantivy::Result<Segment> {
    let mut writer = SegmentWriter::for_segment(HASH_TABLE_MEMORY, segment.clone())?;
    for agent in agents.into_values() {
        // The stamp decides which deletions are newer than the document; none applies to this segment.
        writer.add_document(AddOperation {
            opstamp: 0,
            document: fields.to_document(agent),
        })?;
    }
    let documents = writer.max_doc();
    writer.finalize()?;
    let segment = segment.with_max_doc(documents);
    segment.meta().untrack_temp_docstore();
    Ok(segment)
}

/// Query for an agent's documents in all segments but the newest one. The writer applies a deletion to every segment
/// that it knows before the commit.
#[derive(Debug, Clone)]
struct OlderDocumentsQuery {
    id: Term,
    newest_segment: SegmentId,
}

impl Query for OlderDocumentsQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let all = TermQuery::new(self.id.clone(), IndexRecordOption::Basic);
        Ok(Box::new(OlderDocumentsWeight {
            inner: all.weight(scoring)?,
            newest_segment: self.newest_segment,
        }))
    }
}

struct OlderDocumentsWeight {
    inner: Box<dyn Weight>,
    newest_segment: SegmentId,
}

impl Weight for OlderDocumentsWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        match reader.segment_id() == self.newest_segment {
            true => Ok(Box::new(EmptyScorer)),
            false => self.inner.scorer(reader, boost),
        }
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        self.inner.explain(reader, document)
    }
}
