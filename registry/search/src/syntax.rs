//! Parser of the optional query syntax: `"a phrase"`, `-not`, `both AND needed`, `one OR another`, `prefix*`,
//! `tag:travel`, `skill:translate`, `provider:acme`.
//!
//! `AND` and `OR` join the operands beside them (words, phrases, prefixes and conditions alike) into one demand; `AND`
//! binds tighter, and there are no parentheses. No query is ever an error: text that is not valid syntax is read as
//! plain words, and a hint reports that. In a sentence, recognized by stop words outside the quotes, an unjoined
//! quotation is plain text: it demands nothing, and a hint reports that too.

use a2a_registry_domain::facet::Facet;

use super::analysis::has_word;
use super::asking::without_asking;
use super::folding::fold;
use super::languages::is_stop_word;

/// The most phrases, exclusions, conditions, prefixes and joined words of a query; later ones are read as plain words.
const MAX_PARTS: usize = 16;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ParsedQuery {
    /// Words to search for, optional and required ones.
    pub words: String,
    /// All of them must be met.
    pub demands: Vec<AnyOf>,
    /// Demands that consist of conditions only; at least one condition of each must hold.
    pub conditions: Vec<Vec<(Facet, String)>>,
    /// What matches must not contain.
    pub excluded: Vec<QueryPart>,
    /// Distinct prefixes to search for, optional and required ones.
    pub prefixes: Vec<String>,
    /// Whether some text looked like syntax but was not valid.
    pub misread: bool,
    /// The first quotation that demands nothing, because it is part of a sentence.
    pub said: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QueryPart {
    /// Words that follow each other, in any of their forms.
    Words(String),
    /// Words that follow each other exactly as written.
    Phrase(String),
    Beginning(String),
    Condition(Facet, String),
}

/// A demand in disjunctive form: all operands of at least one of these groups must match.
pub(super) type AnyOf = Vec<Vec<QueryPart>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token<'a> {
    negated: bool,
    field: Option<&'a str>,
    text: &'a str,
    quoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    And,
    Or,
}

/// Joined tokens, grouped like the operands of [`AnyOf`]; usually a single token.
type Chain<'t, 'a> = Vec<Vec<&'t Token<'a>>>;

pub(super) fn read(text: &str) -> ParsedQuery {
    let (tokens, torn) = tokens(text);
    let (chains, dangling) = chains(&tokens);
    let joined = |chain: &Chain<'_, '_>| chain.iter().flatten().nth(1).is_some();
    let bracketed = chains.iter().any(joined) && tokens.iter().any(Token::is_bracketed);
    let mut outside = tokens
        .iter()
        .filter(|token| token.is_plain() && token.joint().is_none());
    let mut reader = Reader {
        sentence: outside.any(|token| is_stop_word(&fold(token.text))),
        ..Reader::default()
    };
    reader.written.misread = torn || dangling;
    for chain in &chains {
        if joined(chain) && bracketed {
            reader.misread(chain);
        } else {
            reader.take(chain);
        }
    }
    reader.written
}

/// The searched words of a query, without those that only ask for an agent; `None` if there are none.
pub fn asked_text(query: &str) -> Option<String> {
    let words = read(query).words;
    has_word(&words).then(|| without_asking(words.trim()).to_owned())
}

#[derive(Default)]
struct Reader {
    written: ParsedQuery,
    sentence: bool,
    parts: usize,
}

impl Reader {
    fn take(&mut self, chain: &Chain<'_, '_>) {
        match chain.as_slice() {
            [all] => {
                for token in all {
                    self.take_token(token, all.len() > 1);
                }
            }
            groups => self.take_any(chain, groups),
        }
    }

    /// Adds groups joined by `OR`. An invalid operand, such as an exclusion, makes all of them plain words.
    fn take_any(&mut self, chain: &Chain<'_, '_>, groups: &[Vec<&Token<'_>>]) {
        let parts = |group: &Vec<&Token<'_>>| -> Option<Vec<QueryPart>> {
            let tokens = group.iter();
            tokens
                .map(|token| token.part().filter(|_| !token.negated))
                .collect()
        };
        let any: Option<AnyOf> = groups.iter().map(parts).collect();
        let count = groups.iter().flatten().count();
        let Some(any) = any.filter(|_| self.parts + count <= MAX_PARTS) else {
            self.misread(chain);
            return;
        };
        self.parts += count;
        self.written.misread |= chain.iter().flatten().any(|token| token.is_torn());
        any.iter().flatten().for_each(|part| self.look_for(part));
        let condition = |group: &Vec<QueryPart>| match group.as_slice() {
            [QueryPart::Condition(facet, value)] => Some((*facet, value.clone())),
            _ => None,
        };
        match any.iter().map(condition).collect() {
            Some(conditions) => self.written.conditions.push(conditions),
            None => self.written.demands.push(any),
        }
    }

    /// Adds a single token, or one of several joined by `AND`.
    fn take_token(&mut self, token: &Token<'_>, joined: bool) {
        let part = token.part();
        let special = matches!(
            part,
            Some(QueryPart::Beginning(_) | QueryPart::Condition(..))
        );
        self.written.misread |= token.is_torn();
        if !(special || joined || token.negated || token.quoted) {
            self.add_words(&token.words());
            return;
        }
        let part =
            part.filter(|_| self.parts < MAX_PARTS && !(token.negated && token.field.is_some()));
        let Some(part) = part else {
            self.written.misread = true;
            self.add_words(&token.words());
            return;
        };
        if token.negated {
            self.parts += 1;
            self.written.excluded.push(match part {
                // Too many words may have a prefix to exclude them all, so only the word itself is excluded.
                QueryPart::Beginning(word) => {
                    self.written.misread = true;
                    QueryPart::Words(word)
                }
                part => part,
            });
            return;
        }
        if matches!(part, QueryPart::Phrase(_)) && self.sentence && !joined {
            self.written
                .said
                .get_or_insert_with(|| token.text.to_owned());
            self.add_words(token.text);
            return;
        }
        self.parts += 1;
        self.look_for(&part);
        match part {
            QueryPart::Condition(facet, value) => {
                self.written.conditions.push(vec![(facet, value)])
            }
            QueryPart::Beginning(_) if !joined => {}
            part => self.written.demands.push(vec![vec![part]]),
        }
    }

    fn misread(&mut self, chain: &Chain<'_, '_>) {
        self.written.misread = true;
        for token in chain.iter().flatten() {
            self.add_words(&token.words());
        }
    }

    /// Adds a demanded operand to the searched words and prefixes too, so that it is scored and highlighted.
    fn look_for(&mut self, part: &QueryPart) {
        match part {
            QueryPart::Words(text) | QueryPart::Phrase(text) => self.add_words(text),
            QueryPart::Beginning(prefix) if !self.written.prefixes.contains(prefix) => {
                self.written.prefixes.push(prefix.clone());
            }
            QueryPart::Beginning(_) | QueryPart::Condition(..) => {}
        }
    }

    fn add_words(&mut self, text: &str) {
        let words = &mut self.written.words;
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(text);
    }
}

impl ParsedQuery {
    /// Whether the query concerns the texts of agents, and not only their fields.
    pub fn asks_text(&self) -> bool {
        let parts = self.prefixes.len() + self.demands.len() + self.excluded.len();
        parts > 0 || has_word(&self.words)
    }
}

impl Token<'_> {
    fn is_plain(&self) -> bool {
        !self.negated && !self.quoted && self.field.is_none()
    }

    fn joint(&self) -> Option<Operator> {
        match self.text {
            "AND" if self.is_plain() => Some(Operator::And),
            "OR" if self.is_plain() => Some(Operator::Or),
            _ => None,
        }
    }

    fn is_bracketed(&self) -> bool {
        !self.quoted && (self.text.starts_with('(') || self.text.ends_with(')'))
    }

    fn is_torn(&self) -> bool {
        let starred = self.field.is_none() && !self.quoted && self.text.ends_with('*');
        let empty = self.field.and_then(condition).is_some() && self.text.is_empty();
        empty || (starred && !matches!(self.part(), Some(QueryPart::Beginning(_))))
    }

    fn words(&self) -> String {
        match self.field {
            // Not one of the condition fields: two words with a colon between them, as in a URL or a time.
            Some(field) => format!("{field} {}", self.text),
            None => self.text.to_owned(),
        }
    }

    /// `None` if the token contains no word.
    fn part(&self) -> Option<QueryPart> {
        if let Some(facet) = self.field.and_then(condition) {
            let value = self.text.trim();
            return (!value.is_empty()).then(|| QueryPart::Condition(facet, value.to_owned()));
        }
        let words = self.words();
        let prefix = words.strip_suffix('*').filter(|_| self.field.is_none());
        if let Some(prefix) = prefix.filter(|_| !self.quoted)
            && prefix.chars().count() > 1
            && prefix.chars().all(char::is_alphanumeric)
        {
            return Some(QueryPart::Beginning(prefix.to_owned()));
        }
        has_word(&words).then_some(match self.quoted {
            true => QueryPart::Phrase(words),
            false => QueryPart::Words(words),
        })
    }
}

fn condition(field: &str) -> Option<Facet> {
    match field {
        "tag" => Some(Facet::Tag),
        "skill" => Some(Facet::Skill),
        "provider" => Some(Facet::Provider),
        _ => None,
    }
}

/// Groups the tokens by the operators between them; also returns whether an operator lacks an operand.
fn chains<'t, 'a>(tokens: &'t [Token<'a>]) -> (Vec<Chain<'t, 'a>>, bool) {
    let mut chains: Vec<Chain<'t, 'a>> = Vec::new();
    let mut dangling = false;
    let mut joint = None;
    let is_operand = |token: &Token<'_>| token.joint().is_none();
    for (place, token) in tokens.iter().enumerate() {
        if let Some(found) = token.joint() {
            let before = place.checked_sub(1).and_then(|before| tokens.get(before));
            let joins =
                before.is_some_and(is_operand) && tokens.get(place + 1).is_some_and(is_operand);
            joint = joins.then_some(found);
            dangling |= !joins;
            continue;
        }
        match (joint.take(), chains.last_mut()) {
            (Some(Operator::Or), Some(chain)) => chain.push(vec![token]),
            (Some(Operator::And), Some(chain)) => match chain.last_mut() {
                Some(group) => group.push(token),
                None => chain.push(vec![token]),
            },
            _ => chains.push(vec![vec![token]]),
        }
    }
    (chains, dangling)
}

/// Also returns whether a quote was left open.
fn tokens(text: &str) -> (Vec<Token<'_>>, bool) {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    let mut torn = false;
    while !rest.is_empty() {
        let mut negated = false;
        // A hyphen directly before a word excludes it; within a word, alone or before a number it is plain text.
        if let Some(after) = rest.strip_prefix('-')
            && after.starts_with(|letter: char| letter.is_alphabetic() || letter == '"')
        {
            negated = true;
            rest = after;
        }
        let mut field = None;
        let name = rest.len()
            - rest
                .trim_start_matches(|letter: char| letter.is_ascii_lowercase())
                .len();
        if name > 0 && rest[name..].starts_with(':') {
            field = Some(&rest[..name]);
            rest = &rest[name + 1..];
        }
        let (text, quoted, after) = match rest.strip_prefix('"') {
            Some(inner) => match inner.split_once('"') {
                Some((inner, after)) => (inner, true, after),
                None => {
                    torn = true;
                    (inner, false, "")
                }
            },
            None => {
                // Quotes within a word, as in a piece of JSON, are not a quotation.
                let end = rest.find(char::is_whitespace);
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                (word, false, after)
            }
        };
        tokens.push(Token {
            negated,
            field,
            text,
            quoted,
        });
        rest = after.trim_start();
    }
    (tokens, torn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(text: &str) -> QueryPart {
        QueryPart::Phrase(text.into())
    }

    fn word(text: &str) -> QueryPart {
        QueryPart::Words(text.into())
    }

    fn tag(value: &str) -> (Facet, String) {
        (Facet::Tag, value.into())
    }

    #[test]
    fn plain_words_are_plain_words() {
        for text in [
            "find me an agent that can book a flight",
            "well-known e-mail",
            "a - b",
            "what's up?",
            "",
            "12:30 http://a.example/x",
            "and or not",
            "what is at 40.7128, -74.0060?",
            "{\"prompt\":\"call out\"}",
            "trains (and buses) to Rome",
        ] {
            let read = read(text);
            let words = ParsedQuery {
                words: read.words.clone(),
                ..ParsedQuery::default()
            };
            assert_eq!(read, words, "{text}");
        }
        assert_eq!(read("well-known e-mail").words, "well-known e-mail");
    }

    #[test]
    fn a_quotation_in_a_sentence_demands_nothing_and_is_told_of() {
        let said = read("translate \"good morning\" to French");
        assert_eq!(said.words, "translate good morning to French");
        assert_eq!(said.said.as_deref(), Some("good morning"));
        assert!(said.demands.is_empty() && !said.misread);
        // Joined operands are demanded in a sentence too.
        let joined = read("the weather in \"new york\" AND forecast");
        assert_eq!(
            joined.demands,
            [[[phrase("new york")]], [[word("forecast")]]]
        );
        assert_eq!(joined.said, None);
        assert_eq!(read("\"new york\" hotels").said, None);
    }

    #[test]
    fn every_part_of_the_syntax_is_read() {
        let read = read(
            "trips \"to tokyo\" -cheap -\"last minute\" tag:travel skill:\"book it\" visa AND hotel ho* book* OR rail",
        );
        assert_eq!(read.words, "trips to tokyo visa hotel rail");
        assert_eq!(
            read.demands,
            [
                vec![vec![phrase("to tokyo")]],
                vec![vec![word("visa")]],
                vec![vec![word("hotel")]],
                vec![
                    vec![QueryPart::Beginning("book".into())],
                    vec![word("rail")]
                ],
            ]
        );
        assert_eq!(read.excluded, [word("cheap"), phrase("last minute")]);
        assert_eq!(read.prefixes, ["ho", "book"]);
        let conditions = [[tag("travel")], [(Facet::Skill, "book it".into())]];
        assert_eq!(read.conditions, conditions);
        assert!(!read.misread);
    }

    #[test]
    fn what_or_joins_is_one_demand_and_and_binds_tighter() {
        let cities = read("\"new york\" OR \"los angeles\"");
        assert_eq!(
            cities.demands,
            [[[phrase("new york")], [phrase("los angeles")]]]
        );
        let tags = read("tag:a OR tag:b provider:c");
        assert!(tags.demands.is_empty());
        let provider = (Facet::Provider, "c".to_owned());
        assert_eq!(tags.conditions, [vec![tag("a"), tag("b")], vec![provider]]);
        let mixed = read("a OR b AND tag:c");
        let condition = QueryPart::Condition(Facet::Tag, "c".into());
        assert_eq!(
            mixed.demands,
            [[vec![word("a")], vec![word("b"), condition]]]
        );
        assert!(!cities.misread && !tags.misread && !mixed.misread);
        // Words without an operator between them are not joined.
        assert_eq!(read("cheap a OR b").demands, [[[word("a")], [word("b")]]]);
    }

    #[test]
    fn a_joined_beginning_is_demanded() {
        let read = read("book* AND rail");
        let book = QueryPart::Beginning("book".into());
        assert_eq!(read.demands, [[[book]], [[word("rail")]]]);
        assert_eq!(
            (read.prefixes, read.words.as_str()),
            (vec!["book".into()], "rail")
        );
    }

    #[test]
    fn what_is_no_syntax_is_words() {
        for (text, words) in [
            ("book \"a flight", "book a flight"),
            ("AND flight", "flight"),
            ("flight OR", "flight"),
            ("flight AND OR hotel", "flight hotel"),
            ("-tag:travel", "tag travel"),
            ("x*", "x*"),
            ("tag:", "tag "),
            ("(a OR b) AND c", "(a b) c"),
            ("(\"a b\" OR tag:c) AND d", "(\"a b\" tag c) d"),
            ("a (b OR c d)", "a (b c d)"),
            ("a OR -b", "a b"),
            ("a OR \"!\"", "a !"),
            ("\"\"", ""),
        ] {
            let read = read(text);
            assert_eq!(read.words.trim(), words.trim(), "{text}");
            assert!(read.misread, "{text}");
            assert!(
                read.demands.is_empty() && read.conditions.is_empty(),
                "{text}"
            );
            assert!(read.excluded.is_empty(), "{text}");
        }
        let read = read("a AND \"!\" -book*");
        assert_eq!(read.demands, [[[word("a")]]]);
        assert_eq!(read.excluded, [word("book")]);
        assert!(read.misread);
    }

    #[test]
    fn parts_are_bounded() {
        for text in [
            "\"a b\" -c tag:d ",
            "a AND b AND c ",
            "a OR b AND tag:c ",
            "x1* yy* ",
        ] {
            let read = read(&text.repeat(20));
            let demanded = read.demands.iter().flatten().flatten().count();
            let parts = demanded + read.excluded.len() + read.conditions.len();
            assert!(
                parts <= MAX_PARTS && read.prefixes.len() <= MAX_PARTS,
                "{text}"
            );
            assert!(read.misread || parts == 0, "{text}");
        }
        let read = read(&"\"a b\" -c tag:d ".repeat(20));
        let parts = read.demands.len() + read.excluded.len() + read.conditions.len();
        assert_eq!(parts, MAX_PARTS);
    }
}
