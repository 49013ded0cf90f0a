//! Hybrid order by relevance, which combines full-text and semantic scores.
//!
//! The full-text score is divided by the query's best one, so that it lies between 0 and 1 like the semantic score, and
//! both can be added. The weight of full text rises with the part of the query that the best match covers: a query in
//! words that hardly any agent uses is ranked mostly by meaning. All nearest neighbors are collected whatever their
//! full-text score; other matches are ordered by full-text score alone, so the top of the order consists of neighbors
//! and the best full-text matches.
//!
//! An entry is weak if it is no close neighbor and covers too little of the query. Weak entries come after all others,
//! each kind in the order of its scores.

use std::collections::HashSet;
use std::sync::Arc;

use tantivy::query::Explanation;
use tantivy::{DocAddress, Score, Searcher};
use uuid::Uuid;

use super::collect::{CollectedPage, Order, PageCollector, PageEntry, compare};
use super::error::IndexError;
use super::facets::Facets;
use super::filtered::FilteredQuery;
use super::meaning::NearAgents;
use super::ranking::{current_position, mark_weak};
use super::request::{SortPosition, SortValue};
use super::rescore::{RESCORED, Rescorer};
use crate::vectors::Similarity;

/// Weight of the full-text score if some agent covers the query; the rest of 1 is the semantic weight.
const WORDS_WEIGHT: Score = 0.7;
/// Share of the query's maximum full-text score at which the best match covers the query; below, full text weighs less.
const COVERED: Score = 0.5;

/// Relative rounding error of the division; the position among full-text scores is sought this much earlier.
const ROUNDING: Score = 1e-5;
/// Further matches that are read to compensate for it.
const AGAIN: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Balance {
    /// Weighted sum of both.
    Weighed,
    /// Full-text matches come first, by their full-text score.
    WordsFirst,
    MeaningAlone,
}

#[derive(Debug, Clone)]
pub(super) struct Blend {
    pub meant: Arc<NearAgents>,
    pub balance: Balance,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct WordScale {
    best: Score,
    /// Weight of full-text scores; the rest of 1 is the semantic weight.
    weight: Score,
}

impl WordScale {
    fn new(best: Score, promise: Option<Score>) -> Self {
        let covered = promise.map_or(1.0, |promise| best / (COVERED * promise));
        Self {
            best,
            weight: WORDS_WEIGHT * covered.min(1.0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Blended {
    balance: Balance,
    /// `None` if it is no full-text match.
    words: Option<Score>,
    scale: WordScale,
    /// Similarity and semantic score, if it is a nearest neighbor.
    meaning: Option<(Similarity, Score)>,
    /// The number of nearer neighbors, if it is one.
    nearer: usize,
}

impl Blended {
    pub fn score(self) -> Score {
        let words = self.words.map(|words| words / self.scale.best);
        let meaning = self.meaning.map_or(0.0, |(_, worth)| worth);
        match self.balance {
            Balance::Weighed => {
                let weight = self.scale.weight;
                weight * words.unwrap_or(0.0) + (1.0 - weight) * meaning
            }
            Balance::WordsFirst => {
                words.map_or((1.0 - WORDS_WEIGHT) * meaning, |words| 1.0 + words)
            }
            Balance::MeaningAlone => meaning,
        }
    }

    pub fn words(self) -> Option<Score> {
        self.words
    }

    pub fn matches_words(self) -> bool {
        self.words.is_some()
    }

    /// The lowest full-text score that gives at least this combined score without a semantic score.
    fn words_of(self, score: Score) -> Score {
        let share = match self.balance {
            Balance::Weighed => score / self.scale.weight.max(Score::MIN_POSITIVE),
            Balance::WordsFirst | Balance::MeaningAlone => score - 1.0,
        };
        share.max(0.0) * self.scale.best
    }

    pub fn words_factor(self) -> Score {
        match self.balance {
            Balance::Weighed => self.scale.weight / self.scale.best,
            Balance::WordsFirst => 1.0 / self.scale.best,
            Balance::MeaningAlone => 0.0,
        }
    }

    /// The parts of the combined score besides full text: each with a reason in words, its share and the details behind
    /// it. `skill` names the skill with a number.
    pub fn reasons(
        self,
        skill: impl Fn(usize) -> Option<String>,
    ) -> Vec<(&'static str, Score, String)> {
        let mut reasons = Vec::new();
        let matches_words = self.words.is_some();
        if self.balance == Balance::WordsFirst && matches_words {
            let reason = "agents with words of a short or exact query come first";
            reasons.push((reason, 1.0, String::new()));
        }
        let weight = match self.balance {
            Balance::Weighed => 1.0 - self.scale.weight,
            Balance::WordsFirst if matches_words => return reasons,
            Balance::WordsFirst => 1.0 - WORDS_WEIGHT,
            Balance::MeaningAlone => 1.0,
        };
        if let Some((similarity, worth)) = self.meaning {
            let mut detail = format!(": similarity {:.2} of the card", similarity.card);
            if let Some((place, value)) = similarity.part {
                // The first part is the name and description, the others are the skills.
                let part = match place.checked_sub(1) {
                    None => "name and description".to_owned(),
                    Some(number) => {
                        let name = skill(number).unwrap_or_else(|| place.to_string());
                        format!("skill {name}")
                    }
                };
                detail.push_str(&format!(", {value:.2} of {part}"));
            }
            match self.nearer {
                0 => detail.push_str(", the nearest"),
                nearer => detail.push_str(&format!(", nearest but {nearer}")),
            }
            reasons.push(("meaning adds", weight * worth, detail));
        }
        reasons
    }

    pub fn explanation(self, words: Option<Explanation>) -> Explanation {
        let what = match self.balance {
            Balance::Weighed => "weighed sum of words and meaning:",
            Balance::WordsFirst => "words before meaning, as the query is short or asks for words:",
            Balance::MeaningAlone => "meaning alone:",
        };
        let mut whole = Explanation::new(what, self.score());
        if let Some((score, words)) = self.words.zip(words) {
            let mut part = Explanation::new(
                "words, divided by the best of the query:",
                score / self.scale.best,
            );
            if self.balance == Balance::Weighed {
                part.add_detail(Explanation::new(
                    "weight of words, less where no agent covers the query",
                    self.scale.weight,
                ));
            }
            part.add_detail(Explanation::new("best score of words", self.scale.best));
            part.add_detail(words);
            whole.add_detail(part);
        }
        if let Some((similarity, worth)) = self.meaning {
            let mut part = Explanation::new("meaning, from nothing to 1 for the nearest:", worth);
            if self.balance == Balance::Weighed {
                part.add_detail(Explanation::new(
                    "weight of meaning",
                    1.0 - self.scale.weight,
                ));
            }
            part.add_detail(Explanation::new("similarity of the card", similarity.card));
            if let Some((place, value)) = similarity.part {
                // The first part is the name and description, the others are the skills.
                part.add_detail(Explanation::new_with_string(
                    match place {
                        0 => "similarity of name and description".to_owned(),
                        skill => format!("similarity of skill {skill}"),
                    },
                    value,
                ));
            }
            whole.add_detail(part);
        }
        whole
    }
}

/// The first `page.top` matches after `page.after`, the total and the facets; `query` matches text and neighbors.
pub(super) fn blended(
    searcher: &Searcher,
    query: &FilteredQuery,
    page: &PageCollector,
    rescorer: Option<&Rescorer>,
    blend: &Blend,
) -> Result<CollectedPage, IndexError> {
    let first = PageCollector {
        order: Order::Score,
        top: page.top.max(RESCORED),
        after: None,
        facets: page.facets.clone(),
        apart: Some(Arc::clone(&blend.meant)),
        groups: page.groups.clone(),
    };
    let mut collected = searcher.search(query, &first)?;
    let deepest = collected.entries.last().map(PageEntry::full_text_score);
    let entries = &mut collected.entries;
    entries.append(&mut collected.apart);
    let read = entries.len();
    entries.sort_by(|left, right| compare(&left.position, &right.position));
    let by_words_alone = entries
        .iter()
        .take(RESCORED)
        .take_while(|entry| entry.full_text_score() > 0.0)
        .count();
    let mut enough = 0.0;
    if let Some(rescorer) = rescorer {
        rescorer.rescore(searcher, &mut entries[..by_words_alone])?;
        enough = rescorer.enough_behind(&entries[..by_words_alone]);
        mark_weak(&mut entries[by_words_alone..], enough);
    }
    let scores = entries.iter().map(PageEntry::full_text_score);
    let best = scores.fold(0.0, Score::max);
    let scale = WordScale::new(best, rescorer.map(Rescorer::promise));
    for entry in entries.iter_mut() {
        blend.put_together(searcher, entry, scale);
    }
    entries.sort_by(|left, right| compare(&left.position, &right.position));
    if let Some(after) = &page.after {
        let after = &current_position(after, entries);
        let known: HashSet<DocAddress> = entries.iter().map(|entry| entry.address).collect();
        entries.retain(|entry| compare(after, &entry.position).is_lt());
        if collected.groups > read as u64 {
            let deepest = deepest.unwrap_or(Score::MAX);
            let further = further(
                searcher,
                query,
                blend,
                (after, page),
                (scale, deepest, enough),
                &known,
            )?;
            entries.extend(further);
            entries.sort_by(|left, right| compare(&left.position, &right.position));
        }
    }
    entries.truncate(page.top);
    Ok(collected)
}

/// As many matches after a position as the page has room for, ordered by full-text score alone, without neighbors and
/// those in `known`. Reads twice as many each time equal scores leave too few.
fn further(
    searcher: &Searcher,
    query: &FilteredQuery,
    blend: &Blend,
    (after, page): (&SortPosition, &PageCollector),
    (scale, deepest, enough): (WordScale, Score, Score),
    known: &HashSet<DocAddress>,
) -> Result<Vec<PageEntry>, IndexError> {
    let nothing = Blended {
        balance: blend.balance,
        words: None,
        scale,
        meaning: None,
        nearer: 0,
    };
    let from = match after.value {
        // The weak matches follow the last one that is not weak, from the best of them on.
        SortValue::Score(score) if !after.weak => nothing.words_of(score).max(enough),
        SortValue::Score(score) => nothing.words_of(score),
        _ => deepest,
    };
    let from = from.min(deepest) * (1.0 + ROUNDING);
    let mut read = page.top + AGAIN;
    loop {
        let next = PageCollector {
            order: Order::Score,
            top: read,
            after: Some(SortPosition {
                weak: false,
                value: SortValue::Score(from),
                id: Uuid::nil(),
            }),
            facets: Facets::default(),
            // Leaves out the neighbors, which are all known already.
            apart: Some(Arc::clone(&blend.meant)),
            groups: page.groups.clone(),
        };
        let mut entries = searcher.search(query, &next)?.entries;
        let was_all = entries.len() < read;
        entries.retain(|entry| !known.contains(&entry.address));
        mark_weak(&mut entries, enough);
        entries
            .iter_mut()
            .for_each(|entry| blend.put_together(searcher, entry, scale));
        entries.retain(|entry| compare(after, &entry.position).is_lt());
        if was_all || entries.len() >= page.top {
            return Ok(entries);
        }
        read = read.saturating_mul(2);
    }
}

impl Blend {
    pub fn counts_words(&self) -> bool {
        self.balance != Balance::MeaningAlone
    }

    /// `None` if the entry is no neighbor.
    fn near(&self, searcher: &Searcher, entry: &PageEntry) -> Option<Similarity> {
        let segment = searcher
            .segment_reader(entry.address.segment_ord)
            .segment_id();
        self.meant.get(segment, entry.address.doc_id)
    }

    /// Combines the full-text score of an entry, which is marked if that is weak, with its semantic score.
    fn put_together(&self, searcher: &Searcher, entry: &mut PageEntry, scale: WordScale) {
        let words =
            Some(entry.full_text_score()).filter(|score| *score > 0.0 && self.counts_words());
        let near = self.near(searcher, entry);
        let is_close = near.is_some_and(|near| self.meant.is_close(near));
        entry.position.weak = !is_close && (words.is_none() || entry.position.weak);
        let blended = Blended {
            balance: self.balance,
            words,
            scale,
            meaning: near.map(|near| (near, self.meant.worth(near.mean()))),
            nearer: near.map_or(0, |near| self.meant.rank(near.mean())),
        };
        entry.position.value = SortValue::Score(blended.score());
        entry.blended = Some(blended);
    }
}
