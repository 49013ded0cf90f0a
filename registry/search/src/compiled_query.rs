//! Compiled queries, for benchmarks without the rest of a search.

use tantivy::query::Query;
use tantivy::{Searcher, TantivyDocument};

use super::Index;
use super::error::IndexError;
use super::fitting::FitModel;
use super::page_collector::{CollectedPage, PageCollector, SortKey};
use super::rendered_hits::rendered_hit;
use super::request::SearchRequest;
use super::rescore::RESCORED_COUNT;
use super::schema::IndexFields;

pub struct CompiledQuery {
    pub searcher: Searcher,
    /// The query of text and filters, the same one that [`Index::search`] runs.
    pub query: Box<dyn Query>,
    /// The query of the text without filters; `None` if every agent matches.
    pub text: Option<Box<dyn Query>>,
    fields: IndexFields,
    pub(super) fit: Option<FitModel>,
}

impl CompiledQuery {
    /// Runs the query with the registry's own collector, which finds the candidates of a page by relevance; returns
    /// the exact total. Nothing is rescored, and no hit is read.
    pub fn run_page_collector(&self) -> Result<u64, IndexError> {
        Ok(self.collect_page()?.total)
    }

    /// Runs the query and also reads the rendered hits of the first `count` agents. Nothing is rescored or
    /// highlighted.
    pub fn collect_hits(&self, count: usize) -> Result<(u64, Vec<Vec<u8>>), IndexError> {
        let page = self.collect_page()?;
        let hits = page.entries.iter().take(count).map(|entry| {
            let stored: TantivyDocument = self.searcher.doc(entry.address)?;
            Ok(rendered_hit(&stored, &self.fields).to_vec())
        });
        Ok((page.total, hits.collect::<Result<_, IndexError>>()?))
    }

    fn collect_page(&self) -> Result<CollectedPage, IndexError> {
        let page = PageCollector {
            fit: self.fit,
            ..PageCollector::new(SortKey::Score, RESCORED_COUNT)
        };
        Ok(self.searcher.search(&*self.query, &page)?)
    }
}

impl Index {
    pub fn compile_query(&self, request: &SearchRequest) -> Result<CompiledQuery, IndexError> {
        let prepared = self.0.prepare_query(request)?;
        Ok(CompiledQuery {
            query: Box::new(prepared.filtered_query()),
            searcher: prepared.view.searcher,
            text: prepared.text,
            fit: prepared.fit,
            fields: self.0.fields.clone(),
        })
    }
}
