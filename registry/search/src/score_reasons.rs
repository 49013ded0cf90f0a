//! Reasons for a score in sentences: one for each part of the score, whose numbers add up to it.

use std::collections::{HashMap, HashSet};

use tantivy::query::{Bm25StatisticsProvider as _, Explanation};
use tantivy::{DocAddress, DocSet as _, Score, Searcher, Term};

use super::analysis::{QueryWord, indexed_words};
use super::error::IndexError;
use super::highlight::Highlighter;
use super::hybrid_score::HybridScore;
use super::rescore_bonus::RescoreBonus;
use super::schema::IndexFields;
use super::statistics::QueryStatistics;
use super::text_layout::{AgentTextKind, split_agent_texts, stored_agent_languages};
use super::text_query::form_query;

/// Maximum number of card members named in one sentence.
const MAX_NAMED_MEMBERS: usize = 3;
const MAX_NAME_CHARS: usize = 60;
/// Maximum number of forms of a query's words whose scores are computed for each hit.
const MAX_SCORED_FORMS: usize = 32;
/// Maximum number of terms shown in a computation that does not show all of them.
const MAX_MAIN_TERMS: usize = 16;
/// Maximum number of bytes of an agent's texts that are searched for words of a query.
const MAX_SEARCHED_BYTES: usize = 128 * 1024;
/// Scores that differ by less are equal except for rounding.
const ROUNDING_TOLERANCE: Score = 1e-3;

pub(super) struct ScoreParts {
    /// Full-text score without the rescoring gain; `None` if full text does not count.
    pub text_score: Option<Score>,
    pub rescore_bonus: RescoreBonus,
    pub hybrid_score: Option<HybridScore>,
}

pub(super) struct ScoreReasonBuilder<'a> {
    pub fields: &'a IndexFields,
    pub searcher: &'a Searcher,
    pub statistics: &'a QueryStatistics,
    pub words: &'a [QueryWord],
    /// Finds the same words; excludes most texts without analyzing them.
    pub highlighter: &'a Highlighter,
    pub address: DocAddress,
    /// All texts of the agent, as the index stores them.
    pub joined_texts: &'a str,
}

#[derive(Default)]
pub(super) struct MatchedForm {
    /// The folded spelling of the word in the text where it occurs most often.
    surface: String,
    /// Members that contain the word, with its occurrences weighted as in the index.
    members: Vec<(MatchedCardMember, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchedCardMember {
    Text(AgentTextKind),
    Skill(usize),
}

pub(super) type MatchedForms = HashMap<String, MatchedForm>;

pub(super) struct ScoredWord<'a> {
    word: &'a QueryWord,
    form: &'a str,
    weight: Score,
    score: Score,
    matched_form: &'a MatchedForm,
}

impl<'r> ScoreReasonBuilder<'r> {
    /// The query's words that the agent contains, in order; only the rarest if they have over [`MAX_SCORED_FORMS`]
    /// forms.
    pub fn score_words<'a>(
        &self,
        matched_forms: &'a MatchedForms,
    ) -> Result<Vec<ScoredWord<'a>>, IndexError>
    where
        'r: 'a,
    {
        let mut candidates: Vec<(usize, &'r str, Score, &'a MatchedForm)> = Vec::new();
        for (number, word) in self.words.iter().enumerate() {
            let forms = word.weighted_forms();
            candidates.extend(forms.filter_map(|(form, weight)| {
                let places = matched_forms.get(form)?;
                Some((number, form, weight, places))
            }));
        }
        if candidates.len() > MAX_SCORED_FORMS {
            let mut weighted_candidates = Vec::with_capacity(candidates.len());
            for candidate in candidates {
                weighted_candidates.push((
                    self.estimate_form_weight(candidate.1, candidate.2)?,
                    candidate,
                ));
            }
            weighted_candidates.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            weighted_candidates.truncate(MAX_SCORED_FORMS);
            candidates = weighted_candidates
                .into_iter()
                .map(|(_, candidate)| candidate)
                .collect();
            candidates.sort_by_key(|(number, ..)| *number);
        }
        let mut scored: Vec<(usize, ScoredWord<'a>)> = Vec::new();
        for (number, form, weight, matched_form) in candidates {
            let Some(score) = self.form_score(form, weight)? else {
                continue;
            };
            let scored_word = ScoredWord {
                word: &self.words[number],
                form,
                weight,
                score,
                matched_form,
            };
            match scored.last_mut().filter(|(known, _)| *known == number) {
                Some((_, known)) if score > known.score => *known = scored_word,
                Some(_) => {}
                None => scored.push((number, scored_word)),
            }
        }
        Ok(scored.into_iter().map(|(_, word)| word).collect())
    }

    /// Estimates how much a form contributes to a score: rarer forms contribute more.
    fn estimate_form_weight(&self, form: &str, weight: Score) -> Result<Score, IndexError> {
        let term = Term::from_field_text(self.fields.text, form);
        let holders = self.statistics.doc_freq(&term)? as Score;
        let agents = self.statistics.total_num_docs()? as Score;
        Ok(weight * (1.0 + agents / (holders + 1.0)).ln())
    }

    /// Explains a full-text score by the terms that matter most, and the sum of all others if the score is known.
    pub fn explain_main_terms(
        &self,
        words: &[ScoredWord<'_>],
        score: Option<Score>,
    ) -> Result<Explanation, IndexError> {
        let mut main_words: Vec<&ScoredWord<'_>> = words.iter().collect();
        main_words.sort_by(|one, other| other.score.total_cmp(&one.score));
        main_words.truncate(MAX_MAIN_TERMS);
        let sum: Score = main_words.iter().map(|word| word.score).sum();
        let total_score = score.unwrap_or(sum);
        let mut explanation = Explanation::new("sum of the terms that matter most:", total_score);
        let reader = self.searcher.segment_reader(self.address.segment_ord);
        for word in main_words {
            let query = form_query(self.fields, word.form, word.weight);
            let weight = self
                .statistics
                .build_query_weight(query.as_ref(), self.searcher)?;
            explanation.add_detail(weight.explain(reader, self.address.doc_id)?);
        }
        let others = total_score - sum;
        if others.abs() > ROUNDING_TOLERANCE * (1.0 + total_score) {
            explanation.add_detail(Explanation::new("all other terms", others));
        }
        Ok(explanation)
    }

    /// Builds the sentences, those about words first. Each number is a part of the total score.
    pub fn build_sentences(&self, scored: &[ScoredWord<'_>], parts: &ScoreParts) -> Vec<String> {
        let text_score = parts.text_score.unwrap_or(0.0);
        let full_text = text_score + parts.rescore_bonus.sum();
        let (factor, total) = match &parts.hybrid_score {
            Some(blended) => (blended.text_factor(), blended.score()),
            None => (1.0, full_text),
        };
        let figure = |score: Score| format!("({:.2} of {total:.2})", score * factor);
        let skills = self.skill_names();
        let mut sentences = Vec::new();
        if parts.text_score.is_some() {
            let mut unexplained = text_score;
            for word in scored {
                unexplained -= word.score;
                let reason = word.describe(&skills);
                sentences.push(format!("{reason} {}", figure(word.score)));
            }
            if unexplained.abs() > ROUNDING_TOLERANCE * (1.0 + text_score) {
                let figure = figure(unexplained);
                // Prefixes, phrases, required parts, and words beyond the scored forms.
                sentences.push(format!("other parts of the query match {figure}"));
            }
            let skill = |part: u32| Some(quote_shortened(skills.get(part as usize)?));
            for (reason, score) in parts.rescore_bonus.reasons(skill) {
                sentences.push(format!("{reason} {}", figure(score)));
            }
        }
        if let Some(blended) = &parts.hybrid_score {
            let skill = |number: usize| skills.get(number).map(|name| quote_shortened(name));
            for (reason, score, detail) in blended.reasons(skill) {
                sentences.push(format!("{reason} ({score:.2} of {total:.2}){detail}"));
            }
        }
        sentences
    }

    fn form_score(&self, form: &str, weight: Score) -> Result<Option<Score>, IndexError> {
        let query = form_query(self.fields, form, weight);
        let weight = self
            .statistics
            .build_query_weight(query.as_ref(), self.searcher)?;
        let reader = self.searcher.segment_reader(self.address.segment_ord);
        let mut scorer = weight.scorer(reader, 1.0)?;
        let document = self.address.doc_id;
        if scorer.doc() < document {
            scorer.seek(document);
        }
        Ok((scorer.doc() == document).then(|| scorer.score()))
    }

    /// Finds the forms of the query's words in the first [`MAX_SEARCHED_BYTES`] of the agent's texts.
    pub fn find_matched_forms(&self) -> MatchedForms {
        let forms = self.words.iter().flat_map(QueryWord::weighted_forms);
        let wanted: HashSet<&str> = forms.map(|(form, _)| form).collect();
        let mut matched_forms = MatchedForms::new();
        let mut skills = 0;
        let mut left = MAX_SEARCHED_BYTES;
        let languages = stored_agent_languages(self.joined_texts);
        for (kind, text) in split_agent_texts(self.joined_texts) {
            skills += usize::from(kind == AgentTextKind::SkillId);
            let member = match kind.is_skill_text() {
                true => MatchedCardMember::Skill(skills - 1),
                false => MatchedCardMember::Text(kind),
            };
            if kind == AgentTextKind::Languages {
                continue;
            }
            let text = &text[..text.floor_char_boundary(left)];
            left -= text.len();
            if !self.highlighter.may_contain_word(text) {
                continue;
            }
            for piece in indexed_words(text, languages) {
                let surface = piece.exact.clone();
                for form in piece.forms() {
                    if wanted.contains(form.as_str()) {
                        let places = matched_forms.entry(form).or_default();
                        places.add_occurrences(member, kind.repetitions(), &surface);
                    }
                }
            }
        }
        matched_forms
    }

    fn skill_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (kind, text) in split_agent_texts(self.joined_texts) {
            match kind {
                AgentTextKind::SkillId => names.push(text.to_owned()),
                AgentTextKind::SkillName if !text.trim().is_empty() => {
                    names.pop();
                    names.push(text.to_owned());
                }
                _ => {}
            }
        }
        names
    }
}

impl ScoredWord<'_> {
    fn describe(&self, skills: &[String]) -> String {
        let (members, verb) = self.matched_form.describe_members(skills);
        let surface = quote_shortened(&self.matched_form.surface);
        let exact = &self.word.exact;
        let counts = match self.word.own_forms().any(|(own, _)| own == self.form) {
            true if self.matched_form.surface == *exact => String::new(),
            true => format!(" for {}", quote_shortened(exact)),
            false => format!(
                ", which counts for {} at half weight",
                quote_shortened(exact)
            ),
        };
        format!("{members} {verb} {surface}{counts}")
    }
}

impl MatchedForm {
    fn add_occurrences(&mut self, member: MatchedCardMember, occurrences: usize, surface: &str) {
        match self.members.iter_mut().find(|(known, _)| *known == member) {
            Some((_, count)) => *count += occurrences,
            None => self.members.push((member, occurrences)),
        }
        if self.surface.is_empty() {
            surface.clone_into(&mut self.surface);
        }
    }

    /// The members with most occurrences, and the verb that agrees with their number.
    fn describe_members(&self, skills: &[String]) -> (String, &'static str) {
        let mut members: Vec<&(MatchedCardMember, usize)> = self.members.iter().collect();
        members.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let further = members.len().saturating_sub(MAX_NAMED_MEMBERS);
        let mut named: Vec<String> = members
            .iter()
            .take(MAX_NAMED_MEMBERS)
            .map(|(member, _)| member.name(skills))
            .collect();
        match further {
            0 => {}
            1 => named.push("1 other text".to_owned()),
            _ => named.push(format!("{further} other texts")),
        }
        let verb = if named.len() == 1 {
            "contains"
        } else {
            "contain"
        };
        let last = named.pop().unwrap_or_default();
        match named.is_empty() {
            true => (last, verb),
            false => (format!("{} and {last}", named.join(", ")), verb),
        }
    }
}

impl MatchedCardMember {
    fn name(self, skills: &[String]) -> String {
        match self {
            Self::Skill(number) => {
                let name = skills.get(number).map_or("", String::as_str);
                format!("skill {}", quote_shortened(name))
            }
            Self::Text(AgentTextKind::Name) => "name".to_owned(),
            Self::Text(AgentTextKind::Description) => "description".to_owned(),
            Self::Text(AgentTextKind::Provider) => "provider or domain".to_owned(),
            Self::Text(AgentTextKind::Protocol) => "protocol features".to_owned(),
            Self::Text(AgentTextKind::Other) => "text outside the model".to_owned(),
            Self::Text(_) => "another text".to_owned(),
        }
    }
}

/// Quotes a text, in one line and cut to a bounded length.
pub(super) fn quote_shortened(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => format!("\"{}…\"", &line[..end]),
        None => format!("\"{line}\""),
    }
}
