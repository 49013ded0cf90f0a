//! Request phrases at the start of a query, such as "find me an agent that can".
//!
//! They do not describe the agent, but with them every text about agents in general is close to the query in meaning.

use super::analysis::word_spans;
use super::languages::is_universal_stop_word;
use super::text_folding::fold_text;

/// Words for an agent, which say nothing about the one that is looked for.
pub(super) const AGENT_WORDS: [&str; 2] = ["agent", "agents"];
/// Words between the agent and the task.
const TASK_CONNECTORS: [&str; 7] = ["can", "could", "for", "that", "to", "which", "who"];

/// The text after such a phrase; the whole text if it has none, or if nothing would remain.
pub(super) fn strip_request_phrase(text: &str) -> &str {
    let words: Vec<_> = word_spans(text)
        .map(|run| (run.start, fold_text(&text[run])))
        .collect();
    let stop_words = |from: usize| {
        let words = words.iter().skip(from);
        words
            .take_while(|(_, word)| is_universal_stop_word(word))
            .count()
    };
    let is = |index: usize, words_allowed: &[&str]| {
        let word = words.get(index);
        word.is_some_and(|(_, word)| words_allowed.contains(&&**word))
    };
    let agent = stop_words(0);
    if agent == 0 || !is(agent, &AGENT_WORDS) || !is(agent + 1, &TASK_CONNECTORS) {
        return text;
    }
    let rest = words.get(agent + 1 + stop_words(agent + 1));
    rest.map_or(text, |(start, _)| &text[*start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_an_agent_is_left_out_and_what_it_is_to_do_stays() {
        for (asked, left) in [
            ("find me an agent that can book a flight", "book a flight"),
            (
                "Is there an agent which answers letters?",
                "answers letters?",
            ),
            ("I need agents for the taxes of Peru", "taxes of Peru"),
            ("agent for taxes", "agent for taxes"),
            ("find an agent marketplace", "find an agent marketplace"),
            ("find me an agent that can", "find me an agent that can"),
            ("find me an agent", "find me an agent"),
            (
                "who evaluates an agent that can fail",
                "who evaluates an agent that can fail",
            ),
            ("", ""),
        ] {
            assert_eq!(strip_request_phrase(asked), left);
        }
    }
}
