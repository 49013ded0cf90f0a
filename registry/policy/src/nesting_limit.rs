//! Limits of a policy's nesting depth and size: Cedar parses, rewrites and drops conditions recursively, which could
//! overflow the stack.

/// Maximum nesting depth of brackets.
pub(crate) const MAX_BRACKETS: usize = 100;
/// Maximum number of operator characters: each can nest a condition one level deeper.
pub(crate) const MAX_OPERATORS: usize = 500;
/// Stack size of the thread that parses policies. Only the used part takes memory.
const PARSER_STACK_BYTES: usize = 256 * 1024 * 1024;

/// The size of a policy's text, which bounds the work of parsing and evaluating it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PolicyTextSize {
    depth: usize,
    operators: usize,
    /// Words, numbers and strings: each is a value or a name in a condition.
    pub(crate) terms: usize,
    /// Characters of the `like` patterns.
    pub(crate) pattern_chars: usize,
}

impl PolicyTextSize {
    /// Measures a text, ignoring comments.
    pub(crate) fn measure(text: &str) -> Self {
        let mut size = Self::default();
        let mut brackets = 0_usize;
        let mut rest = text.chars().peekable();
        let mut word = String::new();
        // Whether the next string is the pattern of a `like`.
        let mut is_pattern = false;
        while let Some(character) = rest.next() {
            if character.is_alphanumeric() || character == '_' {
                // The word is only compared with short keywords, so its further characters do not matter.
                if word.len() < 8 {
                    word.push(character);
                }
                continue;
            }
            if !word.is_empty() {
                size.terms += 1;
                size.operators +=
                    usize::from(matches!(word.as_str(), "if" | "in" | "is" | "has" | "like"));
                is_pattern = word == "like";
                word.clear();
            }
            if character.is_whitespace() {
                continue;
            }
            if character == '/' && rest.peek() == Some(&'/') {
                let _ = rest.find(|inside| *inside == '\n');
                continue;
            }
            match character {
                '"' => {
                    size.terms += 1;
                    let length = skip_string_literal(&mut rest);
                    size.pattern_chars += if is_pattern { length } else { 0 };
                }
                '(' | '[' | '{' => {
                    brackets += 1;
                    size.depth = size.depth.max(brackets);
                }
                ')' | ']' | '}' => brackets = brackets.saturating_sub(1),
                '!' | '-' | '+' | '*' | '.' | '<' | '>' | '=' | '&' | '|' => size.operators += 1,
                _ => {}
            }
            is_pattern = false;
        }
        size
    }
}

/// Skips the rest of a string literal; returns the number of its characters, counting an escaped one once.
fn skip_string_literal(rest: &mut impl Iterator<Item = char>) -> usize {
    let mut length = 0;
    while let Some(inside) = rest.next() {
        match inside {
            '\\' => drop(rest.next()),
            '"' => break,
            _ => {}
        }
        length += 1;
    }
    length
}

/// Whether a text is nested too deeply to be parsed.
pub(crate) fn is_nested_too_deeply(text: &str) -> bool {
    let size = PolicyTextSize::measure(text);
    size.depth > MAX_BRACKETS || size.operators > MAX_OPERATORS
}

/// Runs a task on a thread with a large stack; `None` if there is not enough memory for the thread.
pub(crate) fn run_with_large_stack<T: Send>(task: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PARSER_STACK_BYTES);
        thread.spawn_scoped(scope, task).ok()?.join().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_do_not_nest() {
        let many = MAX_OPERATORS + 1;
        for deep in [
            "(".repeat(MAX_BRACKETS + 1),
            "!".repeat(many),
            "if ".repeat(many),
        ] {
            assert!(is_nested_too_deeply(&deep));
            assert!(!is_nested_too_deeply(&format!(
                "\"\\\"{deep}\" // \"{deep}\n true"
            )));
            assert!(is_nested_too_deeply(&format!("// \"\n{deep}")));
        }
        assert!(!is_nested_too_deeply(&"(".repeat(MAX_BRACKETS)));
        assert!(!is_nested_too_deeply(&"[]".repeat(many)));
        assert!(!is_nested_too_deeply(&"+".repeat(MAX_OPERATORS)));
    }

    #[test]
    fn values_and_patterns_are_counted_where_they_are_evaluated() {
        for (text, terms, pattern_chars) in [
            ("[\"a\", \"b\", 3]", 3, 0),
            ("// a \"b\" like \"c\"\n x ", 1, 0),
            ("a like \"*b\\*\"", 3, 3),
            ("a like // \"x\"\n \"*b\" ", 3, 2),
            ("alike \"*b\" ", 2, 0),
            ("a.like(\"*b\")", 3, 0),
            ("\"like\" \"*b\"", 2, 0),
        ] {
            let size = PolicyTextSize::measure(text);
            assert_eq!(
                (size.terms, size.pattern_chars),
                (terms, pattern_chars),
                "{text}"
            );
        }
    }
}
