//! Rescoring of the best candidates by the positions of words. It adds scores for the best skill, for words that
//! follow each other as in the query or are near each other, and for stop words, which the first scoring ignores.

use std::collections::HashSet;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, Searcher, SegmentReader, Term};

use super::analysis::AnalyzedQuery;
use super::error::IndexError;
use super::page_entry::PageEntry;
use super::request::SortValue;
use super::rescore_bonus::RescoreBonus;
use super::schema::IndexFields;
use super::statistics::CorpusStatistics;
use super::text_layout::{is_other_texts_part, part_at_position};
use super::word_proximity::AdjacentWordPairs;

pub(super) const RESCORED_COUNT: usize = 64;

const SKILL_WEIGHT: Score = 0.4;
/// Weight of two words that follow each other in the query's order.
const PHRASE_WEIGHT: Score = 0.2;
/// Weight of two adjacent words of the query that are near each other in another way; decreases with their distance.
const NEARNESS_WEIGHT: Score = 0.1;
/// Weight of a word that occurs exactly as written, not only with the same stem.
const EXACT_FORM_WEIGHT: Score = 0.1;
/// Weight of a stop word, relative to any other word.
const STOP_WORD_WEIGHT: Score = 0.5;
/// Maximum number of distinct scored stop words of a query.
const MAX_STOP_WORDS: usize = 8;

const BM25_K1: Score = 1.2;
const BM25_B: Score = 0.75;

#[derive(Debug, Clone, Default)]
pub(super) struct Rescorer {
    words: Vec<RescoredWord>,
    pairs: AdjacentWordPairs,
    mean_length: Score,
}

#[derive(Debug, Clone)]
struct RescoredWord {
    /// The word's own forms, then other forms that count for it, each with its weight times its idf.
    forms: Vec<(Term, Score)>,
    /// The number of the word's own forms.
    own_form_count: usize,
    kind: WordKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordKind {
    Content,
    Stop,
    /// The exact form of a word, if its stem differs.
    ExactForm,
}

impl Rescorer {
    pub fn new(
        statistics: &CorpusStatistics,
        fields: &IndexFields,
        query: &AnalyzedQuery,
    ) -> Result<Option<Self>, IndexError> {
        if query.words.is_empty() {
            return Ok(None);
        }
        let mut rescorer = Self {
            mean_length: statistics.mean_length(),
            ..Self::default()
        };
        let mut word_forms: Vec<&str> = Vec::new();
        for word in &query.words {
            let forms = word.weighted_forms();
            let own = 1 + word.language_stems.len();
            rescorer.add_word(statistics, fields, forms, own, WordKind::Content)?;
            word_forms.push(word.base_form());
        }
        let known_forms: HashSet<&str> = word_forms.iter().copied().collect();
        let mut stop_words: Vec<&str> = Vec::new();
        for (form, _) in &query.sequence {
            let new = !known_forms.contains(form.as_str()) && !stop_words.contains(&form.as_str());
            if new && stop_words.len() < MAX_STOP_WORDS {
                stop_words.push(form);
                let forms = std::iter::once((form.as_str(), STOP_WORD_WEIGHT));
                rescorer.add_word(statistics, fields, forms, 1, WordKind::Stop)?;
            }
        }
        word_forms.extend(stop_words);
        for word in query.words.iter().filter(|word| word.stem.is_some()) {
            let written = std::iter::once((word.exact.as_str(), EXACT_FORM_WEIGHT));
            rescorer.add_word(statistics, fields, written, 1, WordKind::ExactForm)?;
        }
        let place_of = |form: &str| word_forms.iter().position(|known| *known == form);
        rescorer.pairs = AdjacentWordPairs::new(query, place_of);
        Ok(Some(rescorer))
    }

    fn add_word<'a>(
        &mut self,
        statistics: &CorpusStatistics,
        fields: &IndexFields,
        forms: impl Iterator<Item = (&'a str, Score)>,
        own_form_count: usize,
        kind: WordKind,
    ) -> Result<(), IndexError> {
        let mut weighted_forms = Vec::new();
        for (form, weight) in forms {
            let term = Term::from_field_text(fields.text, form);
            let idf = statistics.idf(&term)?;
            weighted_forms.push((term, weight * idf));
        }
        self.words.push(RescoredWord {
            forms: weighted_forms,
            own_form_count,
            kind,
        });
        Ok(())
    }

    /// The maximum full-text score of the query: the limit of BM25 for an agent that contains every word very often.
    /// The most frequent form of each word counts, because a form that no agent contains cannot be reached.
    pub fn max_text_score(&self) -> Score {
        let words = self
            .words
            .iter()
            .filter(|word| word.kind != WordKind::ExactForm);
        let worths = words.filter_map(|word| {
            let own = word.forms.iter().take(word.own_form_count);
            own.map(|(_, worth)| *worth).min_by(Score::total_cmp)
        });
        (BM25_K1 + 1.0) * worths.sum::<Score>()
    }

    /// Adds the rescoring bonus to these matches. No score decreases.
    pub fn rescore(
        &self,
        searcher: &Searcher,
        entries: &mut [PageEntry],
    ) -> Result<(), IndexError> {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_unstable_by_key(|place| entries[*place].address);
        let mut current_segment: Option<(u32, RescoredSegment<'_>)> = None;
        for place in order {
            let entry = &mut entries[place];
            let address = entry.address;
            let segment = match &mut current_segment {
                Some((ordinal, segment)) if *ordinal == address.segment_ord => segment,
                _ => {
                    let reader = searcher.segment_reader(address.segment_ord);
                    let segment = RescoredSegment::open(self, reader)?;
                    &mut current_segment.insert((address.segment_ord, segment)).1
                }
            };
            let added = segment.score_document(address.doc_id);
            entry.rescore_bonus = added;
            if let SortValue::Score(score) = &mut entry.position.value {
                *score += added.sum();
            }
        }
        Ok(())
    }
}

/// Term-frequency part of BM25: each further occurrence adds less of the word's idf.
#[expect(clippy::cast_precision_loss, reason = "a score is rough")]
fn term_saturation(count: usize, length: Score) -> Score {
    let times = count as Score;
    times * (BM25_K1 + 1.0) / (times + BM25_K1 * length)
}

type FormPostings = (SegmentPostings, Score);

struct RescoredSegment<'a> {
    rescorer: &'a Rescorer,
    /// For each word, the forms that the segment contains, with their weights.
    postings: Vec<Vec<FormPostings>>,
    lengths: FieldNormReader,
    /// The positions in the current document, by word and form.
    positions: Vec<Vec<Vec<u32>>>,
}

impl<'a> RescoredSegment<'a> {
    fn open(rescorer: &'a Rescorer, reader: &SegmentReader) -> Result<Self, IndexError> {
        let mut postings = Vec::with_capacity(rescorer.words.len());
        let mut field = None;
        for word in &rescorer.words {
            let mut forms = Vec::new();
            for (term, weight) in &word.forms {
                field = Some(term.field());
                let index = reader.inverted_index(term.field())?;
                let read = match word.kind {
                    WordKind::ExactForm => IndexRecordOption::Basic,
                    WordKind::Content | WordKind::Stop => IndexRecordOption::WithFreqsAndPositions,
                };
                if let Some(one) = index.read_postings(term, read)? {
                    forms.push((one, *weight));
                }
            }
            postings.push(forms);
        }
        let lengths = match field {
            Some(field) => reader.get_fieldnorms_reader(field)?,
            None => FieldNormReader::constant(reader.max_doc(), 1),
        };
        let positions = postings
            .iter()
            .map(|forms: &Vec<_>| vec![Vec::new(); forms.len()])
            .collect();
        Ok(Self {
            rescorer,
            postings,
            lengths,
            positions,
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "a score is rough")]
    fn score_document(&mut self, document: DocId) -> RescoreBonus {
        let words = self.rescorer.words.iter().zip(&mut self.postings);
        for ((word, forms), word_positions) in words.zip(&mut self.positions) {
            for ((postings, _), form_positions) in forms.iter_mut().zip(word_positions) {
                form_positions.clear();
                if postings.doc() < document {
                    postings.seek(document);
                }
                if postings.doc() == document {
                    match word.kind {
                        // Only the presence counts, so no positions are read.
                        WordKind::ExactForm => form_positions.push(0),
                        WordKind::Content | WordKind::Stop => {
                            postings.positions(form_positions);
                            // Words outside the card's model come last and get no bonus.
                            let other = |place: &u32| is_other_texts_part(part_at_position(*place));
                            form_positions
                                .truncate(form_positions.partition_point(|place| !other(place)));
                        }
                    }
                }
            }
        }
        let length = self.lengths.fieldnorm(document) as Score / self.rescorer.mean_length;
        let proximity = self.rescorer.pairs.compute_proximity_scores(|word| {
            let forms = self.postings[word].iter().zip(&self.positions[word]);
            forms.map(|((_, worth), places)| (places.as_slice(), *worth))
        });
        let (part, best) = self.best_part();
        RescoreBonus {
            skill: SKILL_WEIGHT * best,
            part,
            phrases: PHRASE_WEIGHT * proximity.phrases,
            nearness: NEARNESS_WEIGHT * proximity.nearness,
            stop_words: self.stop_word_score(1.0 - BM25_B + BM25_B * length),
            exact_form: self.exact_form_score(),
        }
    }

    /// The skill, or the agent's own texts, with the highest score, and the score.
    fn best_part(&self) -> (u32, Score) {
        let mut parts: Vec<(u32, Score)> = Vec::new();
        for (_, forms, places) in self
            .word_postings()
            .filter(|(kind, ..)| *kind != WordKind::ExactForm)
        {
            // Only the best form of a word counts within a part.
            let mut best: Vec<(u32, Score)> = Vec::new();
            for ((_, worth), places) in forms.iter().zip(places) {
                for run in places
                    .chunk_by(|left, right| part_at_position(*left) == part_at_position(*right))
                {
                    let score = worth * term_saturation(run.len(), 1.0);
                    record_best_part_score(&mut best, part_at_position(run[0]), score);
                }
            }
            for (part, score) in best {
                match parts.iter_mut().find(|(known, _)| *known == part) {
                    Some((_, sum)) => *sum += score,
                    None => parts.push((part, score)),
                }
            }
        }
        let best = parts
            .into_iter()
            .reduce(|best, next| match next.1 > best.1 {
                true => next,
                false => best,
            });
        best.unwrap_or_default()
    }

    fn stop_word_score(&self, length: Score) -> Score {
        self.word_postings()
            .filter(|(kind, ..)| *kind == WordKind::Stop)
            .flat_map(|(_, forms, places)| forms.iter().zip(places))
            .filter(|(_, places)| !places.is_empty())
            .map(|((_, worth), places)| worth * term_saturation(places.len(), length))
            .sum()
    }

    fn exact_form_score(&self) -> Score {
        self.word_postings()
            .filter(|(kind, ..)| *kind == WordKind::ExactForm)
            .flat_map(|(_, forms, places)| forms.iter().zip(places))
            .filter(|(_, places)| !places.is_empty())
            .map(|((_, worth), _)| *worth)
            .sum()
    }

    fn word_postings(&self) -> impl Iterator<Item = (WordKind, &[FormPostings], &[Vec<u32>])> {
        let words = self.rescorer.words.iter();
        words
            .zip(&self.postings)
            .zip(&self.positions)
            .map(|((word, forms), places)| (word.kind, forms.as_slice(), places.as_slice()))
    }
}

fn record_best_part_score(parts: &mut Vec<(u32, Score)>, part: u32, score: Score) {
    match parts.iter_mut().find(|(known, _)| *known == part) {
        Some((_, best)) => *best = best.max(score),
        None => parts.push((part, score)),
    }
}
