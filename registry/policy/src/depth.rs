//! How deep a policy is nested: Cedar reads, rewrites and drops conditions by recursion, and a stack has an end.

/// Brackets within brackets.
pub(crate) const MAX_BRACKETS: usize = 100;
/// Signs of operators, each of which can make a condition one level deeper.
pub(crate) const MAX_OPERATORS: usize = 500;
/// The stack on which policies are read. Only what is used of it takes memory.
const STACK: usize = 256 * 1024 * 1024;

/// Whether a text is nested deeper than policies are read.
pub(crate) fn is_too_deep(text: &str) -> bool {
    let (mut brackets, mut operators) = (0_usize, 0_usize);
    let mut rest = text.chars().peekable();
    let mut word = String::new();
    while let Some(character) = rest.next() {
        if character.is_alphanumeric() || character == '_' {
            // No word that nests is longer.
            if word.len() < 8 {
                word.push(character);
            }
            continue;
        }
        if matches!(word.as_str(), "if" | "in" | "is" | "has" | "like") {
            operators += 1;
        }
        word.clear();
        match character {
            '"' => {
                // To the end of the text literal.
                while let Some(inside) = rest.next() {
                    match inside {
                        '\\' => drop(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '/' if rest.peek() == Some(&'/') => drop(rest.find(|inside| *inside == '\n')),
            '(' | '[' | '{' => brackets += 1,
            ')' | ']' | '}' => brackets = brackets.saturating_sub(1),
            '!' | '-' | '+' | '*' | '.' | '<' | '>' | '=' | '&' | '|' => operators += 1,
            _ => {}
        }
        if brackets > MAX_BRACKETS || operators > MAX_OPERATORS {
            return true;
        }
    }
    false
}

/// The result of what reads policies, on a thread with enough stack; `None` where there is no room for one.
pub(crate) fn with_room<T: Send>(read: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn_scoped(scope, read).ok()?.join().ok()
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
            assert!(is_too_deep(&deep));
            assert!(!is_too_deep(&format!("\"\\\"{deep}\" // \"{deep}\n true")));
            assert!(is_too_deep(&format!("// \"\n{deep}")));
        }
        assert!(!is_too_deep(&"(".repeat(MAX_BRACKETS)));
        assert!(!is_too_deep(&"[]".repeat(many)));
        assert!(!is_too_deep(&"+".repeat(MAX_OPERATORS)));
    }
}
