//! Commits of few agents, whose segment is written here instead of by a thread of the writer.
//!
//! A thread of the writer begins each segment with a hash table of 4 MB, and reads all of it in the end, which costs more than
//! one agent does. The table of a segment that is written here is as small as the segment.

use std::collections::BTreeMap;

use tantivy::index::{Segment, SegmentId};
use tantivy::indexer::{AddOperation, SegmentWriter};
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, TermQuery, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, IndexWriter, Score, SegmentReader, Term};
use uuid::Uuid;

use super::document::Document;
use super::error::IndexError;
use super::schema::Fields;

/// The most agents of a small commit.
pub(super) const FEW_AGENTS: usize = 32;

/// Memory in bytes by which the hash table is sized: it becomes 256 KiB, and grows beyond 16,384 terms.
const MEMORY: usize = 1_000_000;

/// Replaces the documents of agents, at least one, and deletes those of others.
pub(super) fn replace(
    writer: &IndexWriter,
    fields: &Fields,
    upserts: Vec<Document>,
    deletes: &[Uuid],
) -> Result<(), IndexError> {
    let mut agents: BTreeMap<Uuid, Document> = BTreeMap::new();
    for agent in upserts {
        // Of two documents for one agent the later remains.
        agents.insert(agent.id, agent);
    }
    let replaced: Vec<Uuid> = agents.keys().chain(deletes).copied().collect();
    let segment = written(writer.new_segment(), fields, agents)?;
    for id in replaced {
        writer.delete_query(Box::new(OlderDocuments {
            id: fields.id_term(id),
            newest: segment.id(),
        }))?;
    }
    writer.add_segment(segment.meta().clone())?;
    Ok(())
}

/// The segment with the documents of these agents.
fn written(
    segment: Segment,
    fields: &Fields,
    agents: BTreeMap<Uuid, Document>,
) -> tantivy::Result<Segment> {
    let mut writer = SegmentWriter::for_segment(MEMORY, segment.clone())?;
    for agent in agents.into_values() {
        // A stamp would tell which deletions are newer than the document, and none is of this segment.
        writer.add_document(AddOperation {
            opstamp: 0,
            document: fields.document(agent),
        })?;
    }
    let documents = writer.max_doc();
    writer.finalize()?;
    let segment = segment.with_max_doc(documents);
    segment.meta().untrack_temp_docstore();
    Ok(segment)
}

/// The documents of an agent in all segments but the newest one. The writer applies a deletion to every segment that it is told
/// of before the commit.
#[derive(Debug, Clone)]
struct OlderDocuments {
    id: Term,
    newest: SegmentId,
}

impl Query for OlderDocuments {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let all = TermQuery::new(self.id.clone(), IndexRecordOption::Basic);
        Ok(Box::new(OlderWeight {
            all: all.weight(scoring)?,
            newest: self.newest,
        }))
    }
}

struct OlderWeight {
    all: Box<dyn Weight>,
    newest: SegmentId,
}

impl Weight for OlderWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        match reader.segment_id() == self.newest {
            true => Ok(Box::new(EmptyScorer)),
            false => self.all.scorer(reader, boost),
        }
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        self.all.explain(reader, document)
    }
}
