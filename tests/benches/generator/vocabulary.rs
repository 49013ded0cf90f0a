//! The vocabulary of the generated cards, by rank.

/// Number of different words.
pub const VOCABULARY: u64 = 30_000;

/// The most frequent words of agent descriptions. Rarer words are composed of syllables: only frequent words have to be
/// real ones, which an analyser stems as in real cards.
const FREQUENT: &str = "and the to of for a with in your from or by on data that can an agent is as \
    information user using provides based it this search content analysis text real time tasks \
    services code support market generate management customer research documents through queries \
    business financial image web create answers questions reports product project api available \
    translate weather travel booking flights hotels currency exchange payments invoices orders \
    schedule calendar email messages summarise recommend compare track monitor detect classify \
    extract convert validate plan review automate optimise workflow security compliance risk legal \
    medical health insurance education learning language speech audio video news social media \
    marketing sales inventory logistics shipping delivery supply energy climate maps location \
    restaurants recipes shopping prices stocks trading crypto tax accounting payroll hiring \
    candidates contracts policies tickets incidents deployment testing database spreadsheet \
    charts dashboards forecasting simulation robotics sensors devices networks cloud storage \
    identity privacy fraud verification signatures agents tools models prompts memory knowledge \
    retrieval embeddings reasoning conversation assistant companion tutor editor writer designer \
    developer analyst planner broker concierge guide coach translator interpreter navigator";

const ONSETS: [&str; 16] = [
    "b", "t", "k", "m", "s", "r", "l", "n", "p", "d", "f", "g", "v", "z", "br", "st",
];
const VOWELS: [&str; 5] = ["a", "e", "i", "o", "u"];
const CODAS: [&str; 4] = ["", "n", "r", "l"];

/// The word of that rank, from 1; the same rank is always the same word. Ranks start over after
/// [`VOCABULARY`].
pub fn word_of_rank(rank: u64) -> String {
    let index = rank.saturating_sub(1) % VOCABULARY;
    let frequent = usize::try_from(index)
        .ok()
        .and_then(|index| FREQUENT.split_ascii_whitespace().nth(index));
    if let Some(word) = frequent {
        return word.to_owned();
    }
    // Multiplying by a number without a common factor spreads neighbours over all syllables.
    let mut rest = index.wrapping_mul(7_919) % VOCABULARY;
    let mut text = String::new();
    for _ in 0..2 {
        text.push_str(take(&mut rest, &ONSETS));
        text.push_str(take(&mut rest, &VOWELS));
        text.push_str(take(&mut rest, &CODAS));
    }
    text
}

fn take<'a>(rest: &mut u64, from: &[&'a str]) -> &'a str {
    let count = from.len() as u64;
    let chosen = from[(*rest % count) as usize];
    *rest /= count;
    chosen
}
