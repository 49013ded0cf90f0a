//! A small tokenizer for Rust, without comments and the contents of strings: only as much of the language as the rules
//! need.

use std::iter::Peekable;
use std::str::Chars;

/// A word, `::`, or any other single character except white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its text.
    pub text: String,
    /// Its line number, from 1.
    pub line: usize,
}

impl Token {
    /// Whether the token is a name, a keyword or a number.
    pub fn is_word(&self) -> bool {
        self.text.starts_with(is_word_character)
    }
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The text with comments removed, and strings and character literals emptied; line breaks stay.
pub fn blank(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut before = ' ';
    while let Some(character) = rest.next() {
        match (character, rest.peek()) {
            ('/', Some('/')) => while rest.next_if(|&next| next != '\n').is_some() {},
            ('/', Some('*')) => skip_block_comment(&mut rest, &mut kept),
            ('"', _) => {
                skip_string(&mut rest, &mut kept);
                kept.push_str("\"\"");
            }
            ('r', Some('"' | '#'))
                if !is_word_character(before) || is_literal_prefix(before, &kept) =>
            {
                skip_raw_string(&mut rest, &mut kept);
            }
            ('\'', _) => skip_character(&mut rest, &mut kept),
            _ => kept.push(character),
        }
        before = character;
    }
    kept
}

/// Whether the word before an `r` is the `b` or `c` of `br"…"` and `cr"…"`.
fn is_literal_prefix(before: char, kept: &str) -> bool {
    let earlier = kept.chars().rev().nth(1);
    matches!(before, 'b' | 'c') && !earlier.is_some_and(is_word_character)
}

/// Keeps line breaks, so that line numbers stay correct.
fn keep_line_end(character: char, kept: &mut String) {
    if character == '\n' {
        kept.push('\n');
    }
}

fn skip_block_comment(rest: &mut Peekable<Chars<'_>>, kept: &mut String) {
    rest.next();
    let mut depth = 1;
    while depth > 0 {
        let Some(character) = rest.next() else { return };
        match character {
            '*' if rest.next_if_eq(&'/').is_some() => depth -= 1,
            '/' if rest.next_if_eq(&'*').is_some() => depth += 1,
            other => keep_line_end(other, kept),
        }
    }
    kept.push(' ');
}

fn skip_string(rest: &mut Peekable<Chars<'_>>, kept: &mut String) {
    while let Some(character) = rest.next() {
        match character {
            '"' => return,
            '\\' => {
                if let Some(escaped) = rest.next() {
                    keep_line_end(escaped, kept);
                }
            }
            other => keep_line_end(other, kept),
        }
    }
}

/// After an `r`: a raw string, or a raw name such as `r#type`.
fn skip_raw_string(rest: &mut Peekable<Chars<'_>>, kept: &mut String) {
    let mut hashes = 0;
    while rest.next_if_eq(&'#').is_some() {
        hashes += 1;
    }
    if rest.next_if_eq(&'"').is_none() {
        return;
    }
    while let Some(character) = rest.next() {
        if character == '"' {
            let mut closing = 0;
            while closing < hashes && rest.next_if_eq(&'#').is_some() {
                closing += 1;
            }
            if closing == hashes {
                kept.push_str("\"\"");
                return;
            }
        }
        keep_line_end(character, kept);
    }
}

/// After a `'`: a character literal, or the name of a lifetime, which stays.
fn skip_character(rest: &mut Peekable<Chars<'_>>, kept: &mut String) {
    let mut ahead = rest.clone();
    match (ahead.next(), ahead.next()) {
        (Some('\\'), _) => {
            rest.next();
            rest.next();
            while rest.next().is_some_and(|character| character != '\'') {}
            kept.push_str("''");
        }
        (Some(_), Some('\'')) => {
            rest.next();
            rest.next();
            kept.push_str("''");
        }
        _ => kept.push('\''),
    }
}

/// The tokens of blanked text.
pub fn tokens(code: &str) -> Vec<Token> {
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.chars().peekable();
        while let Some(character) = rest.next() {
            if character.is_whitespace() {
                continue;
            }
            let mut text = String::from(character);
            if is_word_character(character) {
                while let Some(next) = rest.next_if(|&next| is_word_character(next)) {
                    text.push(next);
                }
            } else if character == ':' && rest.next_if_eq(&':').is_some() {
                text.push(':');
            }
            found.push(Token {
                text,
                line: index + 1,
            });
        }
    }
    found
}

/// The lines on which the tokens of `pattern` occur in sequence.
pub fn lines_with(tokens: &[Token], pattern: &[&str]) -> Vec<usize> {
    let hits = tokens.windows(pattern.len()).filter(|window| {
        let mut pairs = window.iter().zip(pattern);
        pairs.all(|(token, wanted)| token.text == *wanted)
    });
    hits.map(|window| window[0].line).collect()
}

#[test]
fn comments_and_strings_are_no_code() {
    let text = concat!(
        "a // unwrap()\n",
        "/* b /* c */ d\n*/ e \"f \\\" // g\n\" h\n",
        "r#\"i \" j\"# k br\"l\" 'm' '\\'' '\\u{1F}' n::<'o>(r#type)\n",
    );
    let words: Vec<_> = tokens(&blank(text))
        .into_iter()
        .filter(Token::is_word)
        .collect();
    let texts: Vec<_> = words.iter().map(|token| token.text.as_str()).collect();
    assert_eq!(texts, ["a", "e", "h", "k", "b", "n", "o", "type"]);
    let lines: Vec<_> = words.iter().map(|token| token.line).collect();
    assert_eq!(lines, [1, 3, 4, 5, 5, 5, 5, 5]);
}

#[test]
fn patterns_are_found_across_spaces_and_lines() {
    let code = tokens("x\n    . unwrap( );\nunwrap()");
    assert_eq!(lines_with(&code, &[".", "unwrap", "("]), [2]);
    assert!(lines_with(&code, &["::", "unwrap"]).is_empty());
}
