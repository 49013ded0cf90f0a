//! Text of a card or an agent, shortened to one line for a message.

pub(super) fn colon_prefixed(text: &str) -> String {
    let text = shorten_to_line(text);
    if text.is_empty() {
        text
    } else {
        format!(": {text}")
    }
}

/// Shortens foreign text to at most 200 characters on one line.
pub(super) fn shorten_to_line(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let mut words = String::new();
    // Only this much is read, so that a huge text costs nothing.
    for word in text.split_whitespace().take(MAX_CHARS) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(word.chars().take(MAX_CHARS + 1));
        if words.chars().nth(MAX_CHARS).is_some() {
            let mut cut: String = words.chars().take(MAX_CHARS).collect();
            cut.push('…');
            return cut;
        }
    }
    words
}
