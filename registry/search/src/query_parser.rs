//! Parser of the optional query syntax: `"a phrase"`, `-not`, `both AND needed`, `one OR another`, `prefix*`,
//! `tag:travel`, `skill:translate`, `provider:acme`.
//!
//! `AND` and `OR` join the adjacent operands (words, phrases, prefixes and conditions) into one required part; `AND`
//! binds tighter, and there are no parentheses. No query is ever an error: invalid syntax is read as plain words, and
//! a hint reports it. In a sentence, recognized by stop words outside the quotes, an unjoined quotation is plain text
//! instead of a requirement, and so are unjoined quotations that nothing matches; a hint reports that too.

use a2a_registry_domain::facet::Facet;

use super::analysis::has_any_word;
use super::languages::is_universal_stop_word;
use super::request_phrases::strip_request_phrase;
use super::text_folding::fold_text;

/// Maximum number of phrases, exclusions, conditions, prefixes and joined words of a query, counted together; later
/// ones are read as plain words.
const MAX_QUERY_PARTS: usize = 16;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ParsedQuery {
    /// The words to search for, both optional and required.
    pub words: String,
    /// Required parts, all of which must match.
    pub required: Vec<Disjunction>,
    /// Required parts that consist of conditions only; at least one condition of each must hold.
    pub conditions: Vec<Vec<(Facet, String)>>,
    /// Parts that matches must not contain.
    pub excluded: Vec<QueryPart>,
    /// The distinct prefixes to search for, both optional and required.
    pub prefixes: Vec<String>,
    /// Whether some text looked like syntax but was not valid.
    pub has_invalid_syntax: bool,
    /// The first quotation that is not required, because it is part of a sentence.
    pub ignored_quotation: Option<String>,
    /// Whether the query has parts joined by operators.
    pub has_operators: bool,
    /// Whether quotations are not required, because nothing matches them.
    pub has_relaxed_quotations: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QueryPart {
    /// Consecutive words, in any of their forms.
    Words(String),
    /// Consecutive words, exactly as written.
    Phrase(String),
    Prefix(String),
    Condition(Facet, String),
}

/// A required part in disjunctive form: all operands of at least one of these groups must match.
pub(super) type Disjunction = Vec<Vec<QueryPart>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct QueryToken<'a> {
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

/// Joined tokens, grouped like the operands of a [`Disjunction`]; usually a single token.
type TokenGroups<'t, 'a> = Vec<Vec<&'t QueryToken<'a>>>;

pub(super) fn parse_query(text: &str) -> ParsedQuery {
    let (tokens, has_unclosed_quote) = tokenize_query(text);
    let (chains, has_dangling_operator) = group_tokens(&tokens);
    let joined = |chain: &TokenGroups<'_, '_>| chain.iter().flatten().nth(1).is_some();
    let has_parentheses =
        chains.iter().any(joined) && tokens.iter().any(QueryToken::has_parenthesis);
    let mut outside = tokens
        .iter()
        .filter(|token| token.is_plain() && token.operator().is_none());
    let mut parser = QueryParser {
        is_sentence: outside.any(|token| is_universal_stop_word(&fold_text(token.text))),
        ..QueryParser::default()
    };
    parser.parsed.has_invalid_syntax = has_unclosed_quote || has_dangling_operator;
    parser.parsed.has_operators = chains.iter().any(joined);
    for chain in &chains {
        if joined(chain) && has_parentheses {
            parser.add_tokens_as_words(chain);
        } else {
            parser.add_token_groups(chain);
        }
    }
    parser.parsed
}

/// The searched words of a query, without a request phrase; `None` if there are none.
pub fn query_words(query: &str) -> Option<String> {
    let words = parse_query(query).words;
    has_any_word(&words).then(|| strip_request_phrase(words.trim()).to_owned())
}

#[derive(Default)]
struct QueryParser {
    parsed: ParsedQuery,
    is_sentence: bool,
    part_count: usize,
}

impl QueryParser {
    fn add_token_groups(&mut self, chain: &TokenGroups<'_, '_>) {
        match chain.as_slice() {
            [all] => {
                for token in all {
                    self.add_token(token, all.len() > 1);
                }
            }
            groups => self.add_disjunction(chain, groups),
        }
    }

    /// Adds groups joined by `OR`. An invalid operand, such as an exclusion, makes all of them plain words.
    fn add_disjunction(&mut self, chain: &TokenGroups<'_, '_>, groups: &[Vec<&QueryToken<'_>>]) {
        let group_parts = |group: &Vec<&QueryToken<'_>>| -> Option<Vec<QueryPart>> {
            let tokens = group.iter();
            tokens
                .map(|token| token.to_part().filter(|_| !token.negated))
                .collect()
        };
        let disjunction: Option<Disjunction> = groups.iter().map(group_parts).collect();
        let count = groups.iter().flatten().count();
        let Some(disjunction) = disjunction.filter(|_| self.part_count + count <= MAX_QUERY_PARTS)
        else {
            self.add_tokens_as_words(chain);
            return;
        };
        self.part_count += count;
        self.parsed.has_invalid_syntax |= chain.iter().flatten().any(|token| token.is_malformed());
        disjunction
            .iter()
            .flatten()
            .for_each(|part| self.add_searched_part(part));
        let condition = |group: &Vec<QueryPart>| match group.as_slice() {
            [QueryPart::Condition(facet, value)] => Some((*facet, value.clone())),
            _ => None,
        };
        match disjunction.iter().map(condition).collect() {
            Some(conditions) => self.parsed.conditions.push(conditions),
            None => self.parsed.required.push(disjunction),
        }
    }

    /// Adds a single token, or one of several joined by `AND`.
    fn add_token(&mut self, token: &QueryToken<'_>, is_joined: bool) {
        let part = token.to_part();
        let special = matches!(part, Some(QueryPart::Prefix(_) | QueryPart::Condition(..)));
        self.parsed.has_invalid_syntax |= token.is_malformed();
        if !(special || is_joined || token.negated || token.quoted) {
            self.add_words(&token.plain_text());
            return;
        }
        let part = part.filter(|_| {
            self.part_count < MAX_QUERY_PARTS && !(token.negated && token.field.is_some())
        });
        let Some(part) = part else {
            self.parsed.has_invalid_syntax = true;
            self.add_words(&token.plain_text());
            return;
        };
        if token.negated {
            self.part_count += 1;
            self.parsed.excluded.push(match part {
                // Too many words may have the prefix to exclude them all, so only the word itself is excluded.
                QueryPart::Prefix(word) => {
                    self.parsed.has_invalid_syntax = true;
                    QueryPart::Words(word)
                }
                part => part,
            });
            return;
        }
        if matches!(part, QueryPart::Phrase(_)) && self.is_sentence && !is_joined {
            self.parsed
                .ignored_quotation
                .get_or_insert_with(|| token.text.to_owned());
            self.add_words(token.text);
            return;
        }
        self.part_count += 1;
        self.add_searched_part(&part);
        match part {
            QueryPart::Condition(facet, value) => self.parsed.conditions.push(vec![(facet, value)]),
            QueryPart::Prefix(_) if !is_joined => {}
            part => self.parsed.required.push(vec![vec![part]]),
        }
    }

    fn add_tokens_as_words(&mut self, chain: &TokenGroups<'_, '_>) {
        self.parsed.has_invalid_syntax = true;
        for token in chain.iter().flatten() {
            self.add_words(&token.plain_text());
        }
    }

    /// Adds a required operand to the searched words and prefixes, so that it is scored and highlighted.
    fn add_searched_part(&mut self, part: &QueryPart) {
        match part {
            QueryPart::Words(text) | QueryPart::Phrase(text) => self.add_words(text),
            QueryPart::Prefix(prefix) if !self.parsed.prefixes.contains(prefix) => {
                self.parsed.prefixes.push(prefix.clone());
            }
            QueryPart::Prefix(_) | QueryPart::Condition(..) => {}
        }
    }

    fn add_words(&mut self, text: &str) {
        let words = &mut self.parsed.words;
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(text);
    }
}

impl ParsedQuery {
    /// Whether the query searches the agents' texts, and not only their fields.
    pub fn has_text(&self) -> bool {
        let parts = self.prefixes.len() + self.required.len() + self.excluded.len();
        parts > 0 || has_any_word(&self.words)
    }

    /// The query with its quotations as plain words, for a search that they leave without matches. `None` if it
    /// requires none, or has operators: who uses these means what the query says.
    pub fn relax_quotations(&self) -> Option<Self> {
        // Without operators, only quotations are required.
        (!self.has_operators && !self.required.is_empty()).then(|| Self {
            required: Vec::new(),
            has_relaxed_quotations: true,
            ..self.clone()
        })
    }
}

impl QueryToken<'_> {
    fn is_plain(&self) -> bool {
        !self.negated && !self.quoted && self.field.is_none()
    }

    fn operator(&self) -> Option<Operator> {
        match self.text {
            "AND" if self.is_plain() => Some(Operator::And),
            "OR" if self.is_plain() => Some(Operator::Or),
            _ => None,
        }
    }

    fn has_parenthesis(&self) -> bool {
        !self.quoted && (self.text.starts_with('(') || self.text.ends_with(')'))
    }

    fn is_malformed(&self) -> bool {
        let starred = self.field.is_none() && !self.quoted && self.text.ends_with('*');
        let empty = self.field.and_then(query_field_facet).is_some() && self.text.is_empty();
        empty || (starred && !matches!(self.to_part(), Some(QueryPart::Prefix(_))))
    }

    fn plain_text(&self) -> String {
        match self.field {
            // An unknown field: two words with a colon between them, as in a URL or a time.
            Some(field) => format!("{field} {}", self.text),
            None => self.text.to_owned(),
        }
    }

    /// `None` if the token contains no word.
    fn to_part(&self) -> Option<QueryPart> {
        if let Some(facet) = self.field.and_then(query_field_facet) {
            let value = self.text.trim();
            return (!value.is_empty()).then(|| QueryPart::Condition(facet, value.to_owned()));
        }
        let words = self.plain_text();
        let prefix = words.strip_suffix('*').filter(|_| self.field.is_none());
        if let Some(prefix) = prefix.filter(|_| !self.quoted)
            && prefix.chars().count() > 1
            && prefix.chars().all(char::is_alphanumeric)
        {
            return Some(QueryPart::Prefix(prefix.to_owned()));
        }
        has_any_word(&words).then_some(match self.quoted {
            true => QueryPart::Phrase(words),
            false => QueryPart::Words(words),
        })
    }
}

fn query_field_facet(field: &str) -> Option<Facet> {
    match field {
        "tag" => Some(Facet::Tag),
        "skill" => Some(Facet::Skill),
        "provider" => Some(Facet::Provider),
        _ => None,
    }
}

/// Groups the tokens by the operators between them; also returns whether an operator lacks an operand.
fn group_tokens<'t, 'a>(tokens: &'t [QueryToken<'a>]) -> (Vec<TokenGroups<'t, 'a>>, bool) {
    let mut chains: Vec<TokenGroups<'t, 'a>> = Vec::new();
    let mut has_dangling_operator = false;
    let mut pending_operator = None;
    let is_operand = |token: &QueryToken<'_>| token.operator().is_none();
    for (place, token) in tokens.iter().enumerate() {
        if let Some(operator) = token.operator() {
            let before = place.checked_sub(1).and_then(|before| tokens.get(before));
            let joins =
                before.is_some_and(is_operand) && tokens.get(place + 1).is_some_and(is_operand);
            pending_operator = joins.then_some(operator);
            has_dangling_operator |= !joins;
            continue;
        }
        match (pending_operator.take(), chains.last_mut()) {
            (Some(Operator::Or), Some(chain)) => chain.push(vec![token]),
            (Some(Operator::And), Some(chain)) => match chain.last_mut() {
                Some(group) => group.push(token),
                None => chain.push(vec![token]),
            },
            _ => chains.push(vec![vec![token]]),
        }
    }
    (chains, has_dangling_operator)
}

/// Also returns whether a quote was left open.
fn tokenize_query(text: &str) -> (Vec<QueryToken<'_>>, bool) {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    let mut has_unclosed_quote = false;
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
        let name_len = rest.len()
            - rest
                .trim_start_matches(|letter: char| letter.is_ascii_lowercase())
                .len();
        if name_len > 0 && rest[name_len..].starts_with(':') {
            field = Some(&rest[..name_len]);
            rest = &rest[name_len + 1..];
        }
        let (text, quoted, after) = match rest.strip_prefix('"') {
            Some(inner) => match inner.split_once('"') {
                Some((inner, after)) => (inner, true, after),
                None => {
                    has_unclosed_quote = true;
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
        tokens.push(QueryToken {
            negated,
            field,
            text,
            quoted,
        });
        rest = after.trim_start();
    }
    (tokens, has_unclosed_quote)
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
            let read = parse_query(text);
            let words = ParsedQuery {
                words: read.words.clone(),
                ..ParsedQuery::default()
            };
            assert_eq!(read, words, "{text}");
        }
        assert_eq!(parse_query("well-known e-mail").words, "well-known e-mail");
    }

    #[test]
    fn a_quotation_in_a_sentence_demands_nothing_and_is_told_of() {
        let said = parse_query("translate \"good morning\" to French");
        assert_eq!(said.words, "translate good morning to French");
        assert_eq!(said.ignored_quotation.as_deref(), Some("good morning"));
        assert!(said.required.is_empty() && !said.has_invalid_syntax);
        // Joined operands are required in a sentence too.
        let joined = parse_query("the weather in \"new york\" AND forecast");
        assert_eq!(
            joined.required,
            [[[phrase("new york")]], [[word("forecast")]]]
        );
        assert_eq!(joined.ignored_quotation, None);
        assert_eq!(parse_query("\"new york\" hotels").ignored_quotation, None);
    }

    #[test]
    fn every_part_of_the_syntax_is_read() {
        let read = parse_query(
            "trips \"to tokyo\" -cheap -\"last minute\" tag:travel skill:\"book it\" visa AND hotel ho* book* OR rail",
        );
        assert_eq!(read.words, "trips to tokyo visa hotel rail");
        assert_eq!(
            read.required,
            [
                vec![vec![phrase("to tokyo")]],
                vec![vec![word("visa")]],
                vec![vec![word("hotel")]],
                vec![vec![QueryPart::Prefix("book".into())], vec![word("rail")]],
            ]
        );
        assert_eq!(read.excluded, [word("cheap"), phrase("last minute")]);
        assert_eq!(read.prefixes, ["ho", "book"]);
        let conditions = [[tag("travel")], [(Facet::Skill, "book it".into())]];
        assert_eq!(read.conditions, conditions);
        assert!(!read.has_invalid_syntax);
    }

    #[test]
    fn what_or_joins_is_one_demand_and_and_binds_tighter() {
        let cities = parse_query("\"new york\" OR \"los angeles\"");
        assert_eq!(
            cities.required,
            [[[phrase("new york")], [phrase("los angeles")]]]
        );
        let tags = parse_query("tag:a OR tag:b provider:c");
        assert!(tags.required.is_empty());
        let provider = (Facet::Provider, "c".to_owned());
        assert_eq!(tags.conditions, [vec![tag("a"), tag("b")], vec![provider]]);
        let mixed = parse_query("a OR b AND tag:c");
        let condition = QueryPart::Condition(Facet::Tag, "c".into());
        assert_eq!(
            mixed.required,
            [[vec![word("a")], vec![word("b"), condition]]]
        );
        assert!(
            !cities.has_invalid_syntax && !tags.has_invalid_syntax && !mixed.has_invalid_syntax
        );
        // Words without an operator between them are not joined.
        assert_eq!(
            parse_query("cheap a OR b").required,
            [[[word("a")], [word("b")]]]
        );
    }

    #[test]
    fn a_joined_beginning_is_demanded() {
        let read = parse_query("book* AND rail");
        let book = QueryPart::Prefix("book".into());
        assert_eq!(read.required, [[[book]], [[word("rail")]]]);
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
            let read = parse_query(text);
            assert_eq!(read.words.trim(), words.trim(), "{text}");
            assert!(read.has_invalid_syntax, "{text}");
            assert!(
                read.required.is_empty() && read.conditions.is_empty(),
                "{text}"
            );
            assert!(read.excluded.is_empty(), "{text}");
        }
        let read = parse_query("a AND \"!\" -book*");
        assert_eq!(read.required, [[[word("a")]]]);
        assert_eq!(read.excluded, [word("book")]);
        assert!(read.has_invalid_syntax);
    }

    #[test]
    fn parts_are_bounded() {
        for text in [
            "\"a b\" -c tag:d ",
            "a AND b AND c ",
            "a OR b AND tag:c ",
            "x1* yy* ",
        ] {
            let read = parse_query(&text.repeat(20));
            let demanded = read.required.iter().flatten().flatten().count();
            let parts = demanded + read.excluded.len() + read.conditions.len();
            assert!(
                parts <= MAX_QUERY_PARTS && read.prefixes.len() <= MAX_QUERY_PARTS,
                "{text}"
            );
            assert!(read.has_invalid_syntax || parts == 0, "{text}");
        }
        let read = parse_query(&"\"a b\" -c tag:d ".repeat(20));
        let parts = read.required.len() + read.excluded.len() + read.conditions.len();
        assert_eq!(parts, MAX_QUERY_PARTS);
    }
}
