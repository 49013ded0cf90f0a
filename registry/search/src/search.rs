//! Runs a search: filter, text, page, hits.

use std::sync::Arc;

use a2a_registry_domain::trust::TrustLevel;
use tantivy::collector::Count;
use tantivy::query::{EnableScoring, Query};
use tantivy::schema::Value;
use tantivy::{Searcher, TantivyDocument};

use super::analysis::{QueryText, query_text};
use super::answer::{BoundedHits, HitRow, SearchAnswer};
use super::blend::{Balance, Blend};
use super::collect::{CollectedPage, Order, PageCollector, PageEntry};
use super::error::IndexError;
use super::expansion::{beginning, expand};
use super::explained::Explainer;
use super::facets::Facets;
use super::filter::{Clause, Filter, any_condition, clauses, keyed, listed, trusted, unlisted};
use super::filtered::FilteredQuery;
use super::highlight::Highlighter;
use super::meaning::NearAgents;
use super::query::TextQuery;
use super::ranking::ranked;
use super::rendered::{rendered_entry, rendered_hit, with_skills};
use super::request::{
    Filters, HitParts, MAX_EXPLAINED, MAX_LIMIT, Meaning, SearchRequest, Sort, SortPosition,
    SortValue,
};
use super::rescore::Rescorer;
use super::seen::VisibleAgents;
use super::statistics::{QueryStatistics, Statistics};
use super::syntax::{self, ParsedQuery};
use super::visibility::MAX_LABELS;
use super::{Index, IndexView, Inner};

/// Queries of up to this many words are keywords, which rank full-text matches first.
const SHORT_QUERY: usize = 2;

const MAX_LOOKUP: usize = 100;

/// A request compiled for one state of the index.
pub(super) struct PreparedQuery {
    pub view: IndexView,
    pub query: QueryText,
    pub filter: Filter,
    pub text: Option<Box<dyn Query>>,
    pub statistics: Arc<QueryStatistics>,
    pub rescorer: Option<Rescorer>,
    pub written: ParsedQuery,
    /// Nearest neighbors to combine with the full-text matches, if requested.
    pub blend: Option<Blend>,
    /// Prefixes with more words than count.
    pub cut_prefixes: Vec<String>,
}

impl PreparedQuery {
    pub fn filtered(&self) -> FilteredQuery {
        let Some(blend) = &self.blend else {
            return self.words();
        };
        let words = self.text.as_ref().filter(|_| blend.counts_words());
        let query = FilteredQuery::or_near(
            words.map(|words| words.box_clone()),
            Arc::clone(&blend.meant),
            self.filter.clone(),
        );
        query.scored_by(Arc::clone(&self.statistics))
    }

    /// Explains a hit's full-text score in this order; `None` if full text does not count in it.
    fn explained_words(&self, query: &FilteredQuery, order: Order) -> Option<FilteredQuery> {
        match &self.blend {
            // Only the order by relevance combines both scores.
            Some(blend) if order == Order::Score => blend.counts_words().then(|| self.words()),
            _ => Some(query.clone()),
        }
    }

    fn words(&self) -> FilteredQuery {
        let words = self.text.as_ref().map(|words| words.box_clone());
        FilteredQuery::new(words, self.filter.clone()).scored_by(Arc::clone(&self.statistics))
    }
}

impl Inner {
    /// The filter of these conditions for a caller with these labels.
    pub(super) fn filter(
        &self,
        view: &IndexView,
        clauses: Vec<Clause>,
        labels: &[String],
    ) -> Filter {
        let excluded = Arc::clone(&view.excluded);
        Filter::new(&self.fields, clauses, excluded, labels, self.shared.clone())
    }

    /// The agents that a search without filters finds for a caller with these labels.
    pub(super) fn visible_agents(
        &self,
        view: &IndexView,
        labels: &[String],
    ) -> Result<VisibleAgents, IndexError> {
        let everyone = clauses(&self.fields, &Filters::default())?;
        Ok(VisibleAgents::new(self.filter(view, everyone, labels)))
    }

    pub(super) fn prepare(&self, request: &SearchRequest) -> Result<PreparedQuery, IndexError> {
        let written = request
            .text
            .as_deref()
            .map(syntax::read)
            .unwrap_or_default();
        let asked = self.conditions(&request.filters, &written)?;
        let mut query = query_text(&written.words);
        let view = self.view()?;
        let statistics = self.statistics(&view, &request.class)?;
        let visible_to = &request.visible_to;
        let cut_prefixes = self.expand(&mut query, &written, visible_to, &view, &statistics)?;
        // Only the order by relevance is rescored.
        let rescorer = match request.sort {
            Sort::Relevance => Rescorer::new(&statistics, &self.fields, &query, &written)?,
            _ => None,
        };
        let asked_text = TextQuery {
            fields: &self.fields,
            written: &written,
            query: &query,
        };
        let filter = self.filter(&view, asked, &request.visible_to);
        let text = asked_text.text(&written);
        let scored = text
            .as_deref()
            .filter(|_| request.sort == Sort::Relevance || request.explain);
        let scored_by = Arc::new(statistics.of_query(scored)?);
        // Without a text every agent matches, so neighbors add nothing.
        let blend = match request.meaning.as_ref().filter(|_| text.is_some()) {
            Some(meaning) => Some(self.blend(meaning, &asked_text, &view.searcher, &filter)?),
            None => None,
        };
        Ok(PreparedQuery {
            filter,
            text,
            statistics: scored_by,
            rescorer: rescorer.filter(|_| blend.as_ref().is_none_or(Blend::counts_words)),
            blend,
            written,
            cut_prefixes,
            view,
            query,
        })
    }

    /// Expands the words of a query and adds those of its prefixes. Returns the prefixes with more words than count.
    fn expand(
        &self,
        query: &mut QueryText,
        written: &ParsedQuery,
        visible_to: &[String],
        view: &IndexView,
        statistics: &Statistics,
    ) -> Result<Vec<String>, IndexError> {
        let mut cut_prefixes = Vec::new();
        if query.words.is_empty() && written.prefixes.is_empty() {
            return Ok(cut_prefixes);
        }
        expand(&self.fields, query, statistics)?;
        if written.prefixes.is_empty() {
            return Ok(cut_prefixes);
        }
        let mut seen = self.visible_agents(view, visible_to)?;
        for prefix in &written.prefixes {
            let begun = beginning(&view.searcher, &self.fields, prefix, &mut seen, statistics)?;
            if begun.cut {
                cut_prefixes.push(prefix.clone());
            }
            query.words.push(begun.word);
        }
        Ok(cut_prefixes)
    }

    /// The nearest neighbors of a query, and how they are combined with its full-text matches.
    fn blend(
        &self,
        meaning: &Meaning,
        asked: &TextQuery<'_>,
        searcher: &Searcher,
        filter: &Filter,
    ) -> Result<Blend, IndexError> {
        let demands = asked.demands();
        let balance = match meaning.alone {
            true => Balance::MeaningAlone,
            false if demands.is_some() || !asked.written.conditions.is_empty() => {
                Balance::WordsFirst
            }
            false if asked.query.words.len() <= SHORT_QUERY => Balance::WordsFirst,
            false => Balance::Weighed,
        };
        let tables = &self.slot_tables;
        let meant = NearAgents::find(searcher, filter, demands.as_deref(), meaning, tables)?;
        Ok(Blend {
            meant: Arc::new(meant),
            balance,
        })
    }

    /// The conditions of the filters and of the query syntax.
    pub(super) fn conditions(
        &self,
        filters: &Filters,
        written: &ParsedQuery,
    ) -> Result<Vec<Clause>, IndexError> {
        let mut asked = clauses(&self.fields, filters)?;
        let written = written.conditions.iter();
        asked.extend(written.map(|any| any_condition(&self.fields, any)));
        Ok(asked)
    }

    /// The hits of a page that fit into the request's bytes. `explained` is set if explanations are requested; inside
    /// it is the text query, if full text counts.
    fn hits(
        &self,
        entries: Vec<PageEntry>,
        prepared: &PreparedQuery,
        explained: Option<Option<FilteredQuery>>,
        request: &SearchRequest,
    ) -> Result<Vec<HitRow>, IndexError> {
        let searcher = &prepared.view.searcher;
        let words = Highlighter::new(&prepared.query.words);
        let explaining = explained.is_some();
        let scoring = EnableScoring::enabled_from_searcher(searcher);
        let weight = explained.flatten().map(|words| words.weight(scoring));
        let weight = weight.transpose()?;
        let (weight, parts) = (weight.as_deref(), request.parts);
        let (fields, computes) = (&self.fields, parts.computation);
        let explainer = || Explainer::new(prepared, fields, weight, &words, computes);
        let explain = explaining.then(explainer);
        let mut page = BoundedHits::new(request.max_bytes);
        for (place, entry) in entries.into_iter().enumerate() {
            let explain = explain.filter(|_| place < MAX_EXPLAINED);
            if !page.push(self.hit(searcher, entry, &words, explain, parts)?) {
                break;
            }
        }
        Ok(page.hits)
    }

    /// `explain` is set if explanations are requested.
    pub(super) fn hit(
        &self,
        searcher: &Searcher,
        entry: PageEntry,
        words: &Highlighter,
        explain: Option<Explainer<'_>>,
        parts: HitParts,
    ) -> Result<HitRow, IndexError> {
        let PageEntry {
            position,
            address,
            added,
            blended,
            duplicates,
        } = entry;
        let stored: TantivyDocument = searcher.doc(address)?;
        let text = |field| stored.get_first(field).and_then(|value| value.as_str());
        let written = text(self.fields.text).unwrap_or_default();
        let (highlights, matched) = match !words.is_empty() && (parts.hit || parts.highlights) {
            true => words.find(written, parts.highlights),
            false => Default::default(),
        };
        let hit = match parts.hit {
            true => {
                let shown = text(self.fields.shown_skills).unwrap_or_default();
                let numbers = matched.iter().map(|skill| skill.number);
                with_skills(rendered_hit(&stored, &self.fields), shown, numbers)
            }
            false => Vec::new(),
        };
        let entry = match parts.entry {
            true => rendered_entry(&stored, &self.fields).to_vec(),
            false => Vec::new(),
        };
        let explain = explain
            .map(|explainer| explainer.explain(address, &position.value, added, blended, written))
            .transpose()?;
        let matched_skills = matched.into_iter().map(|skill| skill.id).collect();
        Ok(HitRow {
            id: position.id,
            weak: position.weak,
            hit,
            entry,
            score: match position.value {
                SortValue::Score(score) => Some(score),
                _ => None,
            },
            position,
            highlights,
            matched_skills,
            explain,
            duplicates,
        })
    }
}

fn collector(
    request: &SearchRequest,
    view: &IndexView,
    order: Order,
) -> Result<PageCollector, IndexError> {
    Ok(PageCollector {
        order,
        // One hit more than the page holds shows whether another page follows; without a page only counts are needed.
        top: match request.limit {
            0 => 0,
            limit => limit + 1,
        },
        after: request.after.clone(),
        facets: Facets::new(request.facets.clone(), Arc::clone(&view.frequent)),
        apart: None,
        groups: match request.grouped && request.limit > 0 {
            true => Some(view.groups.get(&view.searcher)?),
            false => None,
        },
    })
}

impl Index {
    /// Searches the index. Text is parsed tolerantly and is never an error. Fails with [`IndexError::Behind`] if more
    /// agents changed than can be hidden, with [`IndexError::TooMany`] beyond a limit, and with
    /// [`IndexError::Position`] if [`after`](SearchRequest::after) belongs to another sort order.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, IndexError> {
        check_bounds(request)?;
        let inner = &*self.0;
        let prepared = inner.prepare(request)?;
        let order = order(request.sort, prepared.text.is_some());
        if request
            .after
            .as_ref()
            .is_some_and(|position| !fits(order, position))
        {
            return Err(IndexError::Position);
        }
        let page = collector(request, &prepared.view, order)?;
        let searcher = &prepared.view.searcher;
        let query = prepared.filtered();
        let CollectedPage {
            total,
            groups,
            mut entries,
            matches,
            ..
        } = ranked(
            searcher,
            &query,
            &page,
            prepared.rescorer.as_ref(),
            prepared.blend.as_ref(),
        )?;

        let beyond = entries.len() > request.limit;
        entries.truncate(request.limit);
        let explained = request.explain && prepared.text.is_some();
        let explained = explained.then(|| prepared.explained_words(&query, order));
        let found = entries.len();
        let hits = inner.hits(entries, &prepared, explained, request)?;
        let more = beyond || hits.len() < found;
        let facets = page.facets.counts(searcher, &inner.fields, matches)?;
        let hints = inner.hints(request, &prepared, total, hits.first())?;
        Ok(SearchAnswer {
            hits,
            more,
            total,
            groups: page.groups.as_ref().map(|_| groups),
            facets,
            hints,
            applied_seq: prepared.view.applied,
            generation: prepared.view.generation,
            overlay_version: prepared.view.overlay_version,
        })
    }

    /// Counts all matches; page and facets of the request are ignored.
    pub fn count(&self, request: &SearchRequest) -> Result<u64, IndexError> {
        check_bounds(request)?;
        let prepared = self.0.prepare(request)?;
        let count = prepared
            .view
            .searcher
            .search(&prepared.filtered(), &Count)?;
        Ok(count as u64)
    }

    /// Finds the agents with this exact key: listed ones first, of these the most trusted, then the last changed.
    /// Unreachable agents (`gone`) are included, because a caller that looks up an address needs to know; so are
    /// unlisted ones, for the few who may see them.
    pub fn lookup(
        &self,
        key: &str,
        visible_to: &[String],
        limit: usize,
    ) -> Result<Vec<HitRow>, IndexError> {
        if limit > MAX_LOOKUP {
            return Err(IndexError::TooMany {
                what: "hits",
                limit: MAX_LOOKUP,
            });
        }
        let inner = &*self.0;
        let fields = &inner.fields;
        let view = inner.view()?;
        let mut hits = Vec::new();
        // From the highest trust level down; agents without a level come last.
        let levels = TrustLevel::ALL.iter().rev().map(|level| level.as_str());
        let levels = levels.chain(["none"]);
        let by_trust = levels.map(|level| vec![listed(fields), trusted(fields, level)]);
        for mut clauses in by_trust.chain([vec![unlisted(fields)]]) {
            if hits.len() == limit {
                break;
            }
            clauses.push(keyed(fields, key));
            let page = PageCollector {
                order: Order::Updated,
                top: limit - hits.len(),
                after: None,
                facets: Facets::default(),
                apart: None,
                groups: None,
            };
            let query = FilteredQuery::new(None, inner.filter(&view, clauses, visible_to));
            for entry in view.searcher.search(&query, &page)?.entries {
                let none = Highlighter::new(&[]);
                hits.push(inner.hit(&view.searcher, entry, &none, None, HitParts::default())?);
            }
        }
        Ok(hits)
    }
}

pub(super) fn check_bounds(request: &SearchRequest) -> Result<(), IndexError> {
    let labels = request.visible_to.len().max(request.class.len());
    for (asked, limit, what) in [
        (request.limit, MAX_LIMIT, "hits"),
        (labels, MAX_LABELS, "visibility labels"),
    ] {
        if asked > limit {
            return Err(IndexError::TooMany { what, limit });
        }
    }
    Ok(())
}

fn order(sort: Sort, text: bool) -> Order {
    match sort {
        Sort::Relevance if text => Order::Score,
        Sort::Relevance | Sort::Updated => Order::Updated,
        Sort::Name => Order::Name,
        Sort::Newest => Order::Created,
    }
}

fn fits(order: Order, position: &SortPosition) -> bool {
    matches!(
        (order, &position.value),
        (Order::Score, SortValue::Score(_))
            | (Order::Name, SortValue::Name(_))
            | (Order::Updated | Order::Created, SortValue::Time(_))
    )
}
