//! Newest agents of a facet value: the last changed agents with the value, which give it its display name.

use std::cmp::Reverse;

use a2a_registry_domain::facet::Facet;
use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::{DocAddress, Searcher, TantivyDocument};
use uuid::Uuid;

use super::Index;
use super::agent_id_reader::AgentIdReader;
use super::agent_property::AgentProperty;
use super::error::IndexError;
use super::filter::build_filter_clauses;
use super::rendered_hits::{insert_rendered_skills, rendered_hit};
use super::request::Filters;
use super::schema::IndexFields;

/// A document with a value, ordered by the last change, newest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NewestAgent {
    updated_at: Reverse<i64>,
    id: Uuid,
    address: DocAddress,
}

impl Index {
    /// For each of these values of a facet, what `extract` returns for the value and the rendered hit of the last
    /// changed agent with it. If it returns `None`, the next agent is tried, up to `max_agents`; equal times are
    /// ordered by id. The agents and their order are those of a search for the value without filters, but the filter
    /// is evaluated once for all values.
    pub fn newest_agents_by_value<T>(
        &self,
        facet: Facet,
        values: &[String],
        visible_to: &[String],
        max_agents: usize,
        extract: impl Fn(&str, &[u8]) -> Option<T>,
    ) -> Result<Vec<Option<T>>, IndexError> {
        let inner = &*self.0;
        let view = inner.current_view()?;
        let everyone = build_filter_clauses(&inner.fields, &Filters::default())?;
        let filter = inner.document_filter(&view, everyone, visible_to);
        let property = AgentProperty::Facet(facet);
        let mut candidates_by_value: Vec<Vec<NewestAgent>> =
            values.iter().map(|_| Vec::new()).collect();
        for (ordinal, reader) in (0..).zip(view.searcher.segment_readers()) {
            let bits = filter.matching_docs(reader)?;
            let terms = inner.fields.keys.inverted_index(reader)?;
            let times = reader.fast_fields().i64("updated_at")?;
            let ids = AgentIdReader::open(reader)?;
            for (value, newest) in values.iter().zip(&mut candidates_by_value) {
                let term = property.term(inner.fields.keys, value);
                let Some(postings) = terms.read_postings(&term, IndexRecordOption::Basic)? else {
                    continue;
                };
                for document in bits.intersect_postings(postings) {
                    let updated_at = Reverse(times.first(document).unwrap_or_default());
                    let last = newest.last().filter(|_| newest.len() >= max_agents);
                    if last.is_some_and(|last| updated_at > last.updated_at) {
                        continue;
                    }
                    let candidate = NewestAgent {
                        updated_at,
                        id: ids.get(document),
                        address: DocAddress::new(ordinal, document),
                    };
                    let place = newest.partition_point(|known| *known < candidate);
                    newest.insert(place, candidate);
                    newest.truncate(max_agents);
                }
            }
        }
        let results = values
            .iter()
            .zip(candidates_by_value)
            .map(|(value, newest)| {
                for one in newest {
                    let hit = load_rendered_hit(&view.searcher, &inner.fields, one.address)?;
                    if let Some(made) = extract(value, &hit) {
                        return Ok(Some(made));
                    }
                }
                Ok(None)
            });
        results.collect()
    }
}

fn load_rendered_hit(
    searcher: &Searcher,
    fields: &IndexFields,
    address: DocAddress,
) -> Result<Vec<u8>, IndexError> {
    let stored: TantivyDocument = searcher.doc(address)?;
    let skills = stored.get_first(fields.rendered_skills);
    let skills = skills
        .and_then(|skills| skills.as_str())
        .unwrap_or_default();
    let hit = rendered_hit(&stored, fields);
    Ok(insert_rendered_skills(hit, skills, std::iter::empty()))
}
