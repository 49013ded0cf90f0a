//! Reasons for a score in words: one sentence for each part of it, whose figures add up to the score.

use std::collections::{HashMap, HashSet};

use tantivy::{DocAddress, DocSet as _, Score, Searcher};

use super::analysis::{QueryWord, pieces};
use super::blend::Blended;
use super::error::IndexError;
use super::layout::{TextKind, texts, written_languages};
use super::query::form_query;
use super::rescore::RescoreGain;
use super::schema::Fields;
use super::statistics::QueryStatistics;

/// The most members that a sentence names.
const MAX_MEMBERS: usize = 3;
/// The most characters of a skill's name in a sentence.
const MAX_NAME_CHARS: usize = 60;
/// Difference of two scores that is a rounding error.
const ROUNDING: Score = 1e-3;

/// What a score consists of.
pub(super) struct ScoreParts {
    /// Full-text score without what rescoring added; `None` if full text does not count.
    pub words: Option<Score>,
    pub added: RescoreGain,
    /// How it was combined with the semantic score.
    pub blended: Option<Blended>,
}

/// A document whose score is explained, and the query.
pub(super) struct Reasons<'a> {
    pub fields: &'a Fields,
    pub searcher: &'a Searcher,
    pub statistics: &'a QueryStatistics,
    pub words: &'a [QueryWord],
    pub address: DocAddress,
    /// All texts of the agent, as the index stores them.
    pub written: &'a str,
}

/// A form of a word in the texts of an agent.
#[derive(Default)]
struct FoundForm {
    /// The word of the query as it is written in the text that has most of it, folded.
    surface: String,
    /// Members that contain it, each with the number of its occurrences, weighed as in the index.
    members: Vec<(Member, usize)>,
}

/// Member of an agent that contains a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Text(TextKind),
    /// The skill with this number.
    Skill(usize),
}

impl Reasons<'_> {
    /// The sentences, the first ones about the words of the query. Each figure is a part of the whole score.
    pub fn sentences(&self, parts: &ScoreParts) -> Result<Vec<String>, IndexError> {
        let words = parts.words.unwrap_or(0.0);
        let full_text = words + parts.added.sum();
        let (factor, total) = match &parts.blended {
            Some(blended) => (blended.words_factor(), blended.score()),
            None => (1.0, full_text),
        };
        let figure = |score: Score| format!("({:.2} of {total:.2})", score * factor);
        let skills = self.skill_names();
        let mut sentences = Vec::new();
        if parts.words.is_some() {
            let mut left = words;
            let found = self.find();
            for word in self.words {
                if let Some((score, reason)) = self.word(word, &found, &skills)? {
                    left -= score;
                    sentences.push(format!("{reason} {}", figure(score)));
                }
            }
            if left.abs() > ROUNDING * (1.0 + words) {
                let figure = figure(left);
                sentences.push(format!(
                    "phrases and required parts of the query match {figure}"
                ));
            }
            let skill = |part: u32| Some(quoted(skills.get(part as usize)?));
            for (reason, score) in parts.added.reasons(skill) {
                sentences.push(format!("{reason} {}", figure(score)));
            }
        }
        if let Some(blended) = &parts.blended {
            let skill = |number: usize| skills.get(number).map(|name| quoted(name));
            for (reason, score, detail) in blended.reasons(skill) {
                sentences.push(format!("{reason} ({score:.2} of {total:.2}){detail}"));
            }
        }
        Ok(sentences)
    }

    /// Score of a word of the query, and where the agent has it; `None` if it does not.
    fn word(
        &self,
        word: &QueryWord,
        found: &HashMap<String, FoundForm>,
        skills: &[String],
    ) -> Result<Option<(Score, String)>, IndexError> {
        let mut best: Option<(Score, &str, &FoundForm)> = None;
        for (form, weight) in word.weighed_forms() {
            let Some(places) = found.get(form) else {
                continue;
            };
            let score = self.score(form, weight)?;
            if score.is_some_and(|score| best.as_ref().is_none_or(|(known, ..)| score > *known)) {
                best = score.map(|score| (score, form, places));
            }
        }
        Ok(best.map(|(score, form, places)| {
            let (members, verb) = places.named(skills);
            let surface = quoted(&places.surface);
            let counts = match word.own_forms().any(|(own, _)| own == form) {
                true if places.surface == word.exact => String::new(),
                true => format!(" for {}", quoted(&word.exact)),
                false => format!(", which counts for {} at half weight", quoted(&word.exact)),
            };
            (score, format!("{members} {verb} {surface}{counts}"))
        }))
    }

    /// Full-text score of a form in the document.
    fn score(&self, form: &str, weight: Score) -> Result<Option<Score>, IndexError> {
        let query = form_query(self.fields, form, weight);
        let weight = self.statistics.weight(query.as_ref(), self.searcher)?;
        let reader = self.searcher.segment_reader(self.address.segment_ord);
        let mut scorer = weight.scorer(reader, 1.0)?;
        let document = self.address.doc_id;
        if scorer.doc() < document {
            scorer.seek(document);
        }
        Ok((scorer.doc() == document).then(|| scorer.score()))
    }

    /// The forms of the query's words that the agent has.
    fn find(&self) -> HashMap<String, FoundForm> {
        let forms = self.words.iter().flat_map(QueryWord::weighed_forms);
        let wanted: HashSet<&str> = forms.map(|(form, _)| form).collect();
        let mut found: HashMap<String, FoundForm> = HashMap::new();
        let mut skills = 0;
        let languages = written_languages(self.written);
        for (kind, text) in texts(self.written) {
            skills += usize::from(kind == TextKind::SkillId);
            let member = match kind.is_of_skill() {
                true => Member::Skill(skills - 1),
                false => Member::Text(kind),
            };
            if kind == TextKind::Languages {
                continue;
            }
            for piece in pieces(text, languages) {
                let surface = piece.exact.clone();
                for form in piece.forms() {
                    if wanted.contains(form.as_str()) {
                        let places = found.entry(form).or_default();
                        places.add(member, kind.times(), &surface);
                    }
                }
            }
        }
        found
    }

    fn skill_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (kind, text) in texts(self.written) {
            match kind {
                TextKind::SkillId => names.push(text.to_owned()),
                TextKind::SkillName if !text.trim().is_empty() => {
                    names.pop();
                    names.push(text.to_owned());
                }
                _ => {}
            }
        }
        names
    }
}

impl FoundForm {
    fn add(&mut self, member: Member, times: usize, surface: &str) {
        match self.members.iter_mut().find(|(known, _)| *known == member) {
            Some((_, count)) => *count += times,
            None => self.members.push((member, times)),
        }
        if self.surface.is_empty() {
            surface.clone_into(&mut self.surface);
        }
    }

    /// The members with most occurrences, and the verb that goes with their number.
    fn named(&self, skills: &[String]) -> (String, &'static str) {
        let mut members: Vec<&(Member, usize)> = self.members.iter().collect();
        members.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let further = members.len().saturating_sub(MAX_MEMBERS);
        let mut named: Vec<String> = members
            .iter()
            .take(MAX_MEMBERS)
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

impl Member {
    fn name(self, skills: &[String]) -> String {
        match self {
            Self::Skill(number) => {
                let name = skills.get(number).map_or("", String::as_str);
                format!("skill {}", quoted(name))
            }
            Self::Text(TextKind::Name) => "name".to_owned(),
            Self::Text(TextKind::Description) => "description".to_owned(),
            Self::Text(TextKind::Provider) => "provider or domain".to_owned(),
            Self::Text(TextKind::Protocol) => "protocol features".to_owned(),
            Self::Text(TextKind::Other) => "text outside the model".to_owned(),
            Self::Text(_) => "another text".to_owned(),
        }
    }
}

/// A text in quotes, in one line and cut to a bounded length.
pub(super) fn quoted(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => format!("\"{}…\"", &line[..end]),
        None => format!("\"{line}\""),
    }
}
