//! The agents that changed last among those with a value: by them a value of a facet has its name.

use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::{DocAddress, TantivyDocument};
use uuid::Uuid;

use super::Index;
use super::collect::AgentIds;
use super::error::IndexError;
use super::filter::clauses;
use super::property::Property;
use super::rendered::{rendered_hit, with_skills};
use super::request::{FacetName, Filters};

/// The document that changed last, of those looked at so far.
struct Newest {
    updated_at: i64,
    id: Uuid,
    address: DocAddress,
}

impl Index {
    /// For each of these values of a facet the rendered hit of the agent with it that changed last, the first by id of several,
    /// among those that a search without filters finds; `None` where none of them has the value. It is what a search for each
    /// value would find first, with one look at the filter for all of them.
    ///
    /// # Errors
    /// The errors of [`search`](Self::search).
    pub fn newest_with(
        &self,
        facet: FacetName,
        values: &[String],
        visible_to: &[String],
    ) -> Result<Vec<Option<Vec<u8>>>, IndexError> {
        let inner = &*self.0;
        let view = inner.view()?;
        let everyone = clauses(&inner.fields, &Filters::default())?;
        let filter = inner.filter(&view, everyone, visible_to);
        let property = Property::Facet(facet);
        let mut found: Vec<Option<Newest>> = values.iter().map(|_| None).collect();
        for (ordinal, reader) in (0..).zip(view.searcher.segment_readers()) {
            let bits = filter.bits(reader)?;
            let terms = reader.inverted_index(inner.fields.exact(facet))?;
            let times = reader.fast_fields().i64("updated_at")?;
            let ids = AgentIds::open(reader)?;
            for (value, newest) in values.iter().zip(&mut found) {
                let term = property.term(&inner.fields, value);
                let Some(postings) = terms.read_postings(&term, IndexRecordOption::Basic)? else {
                    continue;
                };
                for document in bits.among(postings) {
                    let updated_at = times.first(document).unwrap_or_default();
                    let is_newer = newest.as_ref().is_none_or(|known| {
                        updated_at > known.updated_at
                            || updated_at == known.updated_at && ids.get(document) < known.id
                    });
                    if is_newer {
                        *newest = Some(Newest {
                            updated_at,
                            id: ids.get(document),
                            address: DocAddress::new(ordinal, document),
                        });
                    }
                }
            }
        }
        let hits = found.into_iter().map(|newest| {
            let Some(newest) = newest else {
                return Ok(None);
            };
            let stored: TantivyDocument = view.searcher.doc(newest.address)?;
            let skills = stored.get_first(inner.fields.shown_skills);
            let skills = skills
                .and_then(|skills| skills.as_str())
                .unwrap_or_default();
            let hit = rendered_hit(&stored, &inner.fields);
            Ok(Some(with_skills(hit, skills, std::iter::empty())))
        });
        hits.collect()
    }
}
