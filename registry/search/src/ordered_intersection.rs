//! Intersection query whose scores are summed in the written order of its parts.
//!
//! tantivy sums the scores in the order of the parts' costs in a segment, and floating-point sums depend on their
//! order: the same agent would get slightly different scores in two processes.

use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

#[derive(Debug)]
pub(super) struct OrderedIntersection(pub Vec<Box<dyn Query>>);

impl Clone for OrderedIntersection {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|query| query.box_clone()).collect())
    }
}

impl Query for OrderedIntersection {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let weights = self.0.iter().map(|query| query.weight(scoring));
        let weights = weights.collect::<tantivy::Result<_>>()?;
        Ok(Box::new(OrderedIntersectionWeight(weights)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        for query in &self.0 {
            query.query_terms(visitor);
        }
    }
}

struct OrderedIntersectionWeight(Vec<Box<dyn Weight>>);

impl Weight for OrderedIntersectionWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut scorers = Vec::with_capacity(self.0.len());
        for weight in &self.0 {
            let scorer = weight.scorer(reader, boost)?;
            if scorer.doc() == TERMINATED {
                return Ok(Box::new(EmptyScorer));
            }
            scorers.push(scorer);
        }
        // The cheapest scorer leads, so the others skip the most documents.
        let costs = scorers.iter().map(|scorer| scorer.cost());
        let lead = costs.enumerate().min_by_key(|(_, cost)| *cost);
        let mut intersection = OrderedIntersectionScorer {
            lead_index: lead.map_or(0, |(place, _)| place),
            scorers,
            document: 0,
        };
        intersection.advance_to_match(0);
        Ok(Box::new(intersection))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > document || scorer.seek(document) != document {
            let message = format!("document #{document} does not match");
            return Err(TantivyError::InvalidArgument(message));
        }
        let mut explanation = Explanation::new("sum of required parts:", scorer.score());
        for weight in &self.0 {
            explanation.add_detail(weight.explain(reader, document)?);
        }
        Ok(explanation)
    }
}

/// Scorer whose parts are all on the same document.
struct OrderedIntersectionScorer {
    scorers: Vec<Box<dyn Scorer>>,
    lead_index: usize,
    document: DocId,
}

impl OrderedIntersectionScorer {
    /// Advances to the first document at or after `from` that all parts match.
    fn advance_to_match(&mut self, from: DocId) -> DocId {
        let mut target = from;
        loop {
            target = advance_scorer_to(&mut self.scorers[self.lead_index], target);
            if target == TERMINATED {
                break;
            }
            let mut others = self.scorers.iter_mut();
            let missed = others.find_map(|scorer| {
                let here = advance_scorer_to(scorer, target);
                (here != target).then_some(here)
            });
            match missed {
                Some(further) => target = further,
                None => break,
            }
        }
        self.document = target;
        target
    }
}

/// Moves a scorer to a document, or to its first match after it; never back.
fn advance_scorer_to(scorer: &mut Box<dyn Scorer>, target: DocId) -> DocId {
    match scorer.doc() {
        here if here < target => scorer.seek(target),
        here => here,
    }
}

impl DocSet for OrderedIntersectionScorer {
    fn advance(&mut self) -> DocId {
        if self.document == TERMINATED {
            return TERMINATED;
        }
        self.advance_to_match(self.document + 1)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target <= self.document {
            return self.document;
        }
        self.advance_to_match(target)
    }

    fn doc(&self) -> DocId {
        self.document
    }

    fn size_hint(&self) -> u32 {
        let hints = self.scorers.iter().map(|scorer| scorer.size_hint());
        hints.min().unwrap_or(0)
    }

    fn cost(&self) -> u64 {
        let costs = self.scorers.iter().map(|scorer| scorer.cost());
        costs.min().unwrap_or(0)
    }
}

impl Scorer for OrderedIntersectionScorer {
    fn score(&mut self) -> Score {
        let mut sum = 0.0;
        for scorer in &mut self.scorers {
            sum += scorer.score();
        }
        sum
    }
}
