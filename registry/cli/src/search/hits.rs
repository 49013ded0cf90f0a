//! Hits as a person reads them: each agent with what of it matched, and how its score came about.

use a2a_registry_api::{Fragment, Hit};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::super::console::Console;
use super::super::failure::Failure;
use super::super::terminal;
use super::{speaks, trust};

/// Columns of a name, and of another piece of text, on a terminal. Elsewhere nothing is cut.
const NAME: usize = 80;
const SNIPPET: usize = 160;
/// Columns of a reason for a score.
const SENTENCE: usize = 300;
/// Columns of an id.
const ID: usize = 36;

/// Levels of a score's parts that are shown on a terminal, and lines of them.
const LEVELS: usize = 8;
const PARTS: usize = 200;

/// What begins and ends bold writing on a terminal.
const BOLD: (&str, &str) = ("\u{1b}[1m", "\u{1b}[22m");

/// What stands before the first hit that fits the search badly.
const WEAK: &str = "These fit less well:";

/// How hits are written.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Whether the text around what matched is shown.
    pub snippets: bool,
    /// Whether what matched is bold.
    pub bold: bool,
    /// The columns that a line has; as many as it takes where there are none.
    pub columns: Option<usize>,
}

impl Style {
    /// The style for a console: snippets are for who looks at a terminal, bold where `NO_COLOR` is not set.
    pub fn of(console: &Console) -> Self {
        Self {
            snippets: console.interactive,
            bold: console.interactive && std::env::var_os("NO_COLOR").is_none(),
            columns: console
                .interactive
                .then(|| console.columns().unwrap_or(SNIPPET)),
        }
    }

    /// At most so many columns of a text on a terminal, and all of it elsewhere.
    fn cut(self, text: &str, columns: usize) -> String {
        match self.columns {
            Some(_) => terminal::short(text, columns),
            None => terminal::line(text),
        }
    }
}

/// Writes hits below each other.
pub fn print(console: &Console, hits: &[Hit]) -> Result<(), Failure> {
    let style = Style::of(console);
    let first_weak = hits.iter().find(|hit| hit.matched.weak);
    for hit in hits {
        if first_weak.is_some_and(|weak| weak.summary.id == hit.summary.id) {
            console.line(WEAK)?;
        }
        // The lines are safe already, and what is bold would be escaped.
        let lines: String = lines(hit, style)
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        console.write(lines.as_bytes())?;
    }
    Ok(())
}

/// What is said of a hit, every foreign text made safe.
fn lines(hit: &Hit, style: Style) -> Vec<String> {
    let summary = &hit.summary;
    let name = match fragments(hit, &["name"], None) {
        Some(fragments) => marked(fragments, NAME, style),
        None => style.cut(&summary.name, NAME),
    };
    // A name that would be broken by the end of the window stands alone.
    let together = summary.name.width() + 2 + ID;
    let mut lines = match style.columns {
        Some(columns) if together > columns => vec![name, format!("  {}", summary.id)],
        _ => vec![format!("{name}  {}", summary.id)],
    };
    lines.push(format!(
        "  trust {}, {}, speaks {}",
        style.cut(&trust(summary), NAME),
        summary.liveness.state,
        style.cut(&speaks(summary), NAME),
    ));
    if let Some(deprecation) = &summary.deprecation {
        let told = style.cut(&deprecation.sentence(), SNIPPET);
        lines.push(format!("  deprecated: {told}"));
    }
    let own = fragments(hit, &["description"], None).filter(|_| style.snippets);
    let description = summary.description.as_deref().unwrap_or_default();
    match own {
        Some(fragments) => lines.push(format!("  {}", marked(fragments, SNIPPET, style))),
        None if description.trim().is_empty() => {}
        None => {
            let flat = description.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!("  {}", style.cut(&flat, SNIPPET)));
        }
    }
    let beyond = fragments(hit, &["provider", "protocol", "other"], None);
    if let Some(fragments) = beyond.filter(|_| style.snippets) {
        lines.push(format!("  {}", marked(fragments, SNIPPET, style)));
    }
    for id in &hit.matched.matched_skills {
        add_skill(hit, id, style, &mut lines);
    }
    if let Some(duplicates) = &hit.matched.duplicates {
        lines.push(format!("  and {} more:", duplicates.count));
        let ids = duplicates.agents.iter();
        lines.extend(ids.map(|id| format!("    {id}")));
    }
    add_explanation(hit, style, &mut lines);
    lines
}

/// Adds the score and its reasons, if the hit is explained.
fn add_explanation(hit: &Hit, style: Style, lines: &mut Vec<String>) {
    if let Some(explanation) = &hit.matched.explain {
        let score = hit.matched.score.unwrap_or_default();
        lines.push(format!("  score {score:.3}"));
        let first = lines.len();
        match explanation["summary"].as_array() {
            Some(sentences) => {
                let sentences = sentences.iter().filter_map(Value::as_str);
                let sentences = sentences.map(|one| format!("    {}", style.cut(one, SENTENCE)));
                lines.extend(sentences);
            }
            // A registry of an earlier version explains in figures only.
            None => add_parts(explanation, 1, style, lines),
        }
        if style.columns.is_some() && lines.len() > first + PARTS {
            lines.truncate(first + PARTS);
            lines.push("    and more; --json shows all".to_owned());
        }
    }
}

/// Says which skill matches, and by which words.
fn add_skill(hit: &Hit, id: &str, style: Style, lines: &mut Vec<String>) {
    let name = match fragments(hit, &["skill.name"], Some(id)) {
        Some(fragments) => marked(fragments, NAME, style),
        None => {
            let mut skills = hit.summary.skills.iter();
            let name = skills
                .find(|skill| skill.id == *id)
                .map(|skill| skill.name.as_str());
            style.cut(name.unwrap_or(id), NAME)
        }
    };
    lines.push(format!("  matches skill {name}"));
    let beyond = ["skill.description", "skill.example", "skill.tag"];
    let beyond = fragments(hit, &beyond, Some(id)).filter(|_| style.snippets);
    if let Some(fragments) = beyond {
        lines.push(format!("    {}", marked(fragments, SNIPPET, style)));
    }
}

/// The first highlight of one of these fields, in their order.
fn fragments<'a>(hit: &'a Hit, fields: &[&str], skill: Option<&str>) -> Option<&'a [Fragment]> {
    let highlights = &hit.matched.highlights;
    fields.iter().find_map(|field| {
        let mut found = highlights.iter();
        let found = found.find(|one| one.field == *field && one.skill.as_deref() == skill);
        found.map(|highlight| highlight.fragments.as_slice())
    })
}

/// Pieces of text in one line of so many columns, what matched bold.
fn marked(fragments: &[Fragment], columns: usize, style: Style) -> String {
    let mut line = String::new();
    let mut left = style.columns.map_or(usize::MAX, |_| columns);
    for fragment in fragments {
        if left == 0 {
            break;
        }
        // A snippet goes on over the ends of a text's lines.
        let text = fragment.text.replace(['\n', '\r', '\t'], " ");
        let text = terminal::short(&text, left);
        left = left.saturating_sub(text.width());
        match style.bold && fragment.matched {
            true => line.extend([BOLD.0, &text, BOLD.1]),
            false => line.push_str(&text),
        }
    }
    line
}

/// Adds a part of a score and what it is made of, one line each.
fn add_parts(part: &Value, level: usize, style: Style, lines: &mut Vec<String>) {
    if style.columns.is_some() && (level > LEVELS || lines.len() > 2 * PARTS) {
        return;
    }
    let value = part["value"].as_f64().unwrap_or_default();
    let what = part["description"].as_str().unwrap_or_default();
    let context = part["context"].as_array().into_iter().flatten();
    let context: String = context
        .filter_map(Value::as_str)
        .map(|context| format!(" {context}"))
        .collect();
    let what = style.cut(&format!("{what}{context}"), SNIPPET);
    lines.push(format!(
        "{:indent$}{value:.3}  {what}",
        "",
        indent = 2 + 2 * level
    ));
    for detail in part["details"].as_array().into_iter().flatten() {
        add_parts(detail, level + 1, style, lines);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// A hit whose texts try to steer the terminal.
    fn hit() -> Hit {
        serde_json::from_value(json!({
            "id": "00000000-0000-0000-0000-000000000007",
            "name": "Trip\u{1b}[2J",
            "domain": "travel.example",
            "interfaces": [{"url": "https://travel.example", "binding": "JSONRPC", "protocol_version": "1.0"}],
            "capabilities": {
                "streaming": false, "push_notifications": false, "extended_agent_card": false, "extensions": [],
            },
            "skills": [
                {"id": "book", "name": "Book flights", "tags": []},
                {"id": "other", "name": "Other", "tags": []},
                {"id": "pay", "name": "Pay\u{1b}[31m", "tags": []},
            ],
            "tags": [],
            "auth": [],
            "labels": {},
            "trust": {"level": "L1", "domain": "verified", "signature": "unsigned"},
            "lifecycle": "approved",
            "visibility": "public",
            "liveness": {"state": "fresh"},
            "card_digest": "sha256:0",
            "links": {"self": "", "card": "", "page": "", "resolver": ""},
            "score": 2.5,
            "highlights": [
                {"field": "skill.name", "skill": "book", "fragments": [
                    {"text": "Book ", "matched": false}, {"text": "flights", "matched": true},
                ]},
                {"field": "skill.description", "skill": "book", "fragments": [
                    {"text": "Finds\n\u{1b}]0;x\u{7}", "matched": false}, {"text": "flights\u{1b}", "matched": true},
                ]},
            ],
            "matched_skills": ["book", "pay"],
            "explain": {
                "value": 2.5, "description": "sum of:", "details": [
                    {"value": 2.0, "description": "TermQuery", "context": ["Term=\"flight\u{1b}\""]},
                    {"value": 0.5, "description": "the best skill"},
                ],
            },
        }))
        .unwrap()
    }

    #[test]
    fn matched_skills_stand_below_their_agent() {
        let plain = Style {
            snippets: false,
            bold: false,
            columns: None,
        };
        let all = [
            "Trip\\u{1b}[2J  00000000-0000-0000-0000-000000000007",
            "  trust L1, fresh, speaks JSONRPC 1.0",
            "  matches skill Book flights",
            "  matches skill Pay\\u{1b}[31m",
            "  score 2.500",
            "    2.500  sum of:",
            "      2.000  TermQuery Term=\"flight\\u{1b}\"",
            "      0.500  the best skill",
        ];
        assert_eq!(lines(&hit(), plain), all);
    }

    #[test]
    fn a_score_is_explained_in_sentences() {
        let mut hit = hit();
        let explanation = hit.matched.explain.as_mut().unwrap();
        explanation["summary"] = json!([
            "name contains \"trip\u{1b}[2J\" (2.00 of 2.50)",
            "words are near each other (0.50 of 2.50)",
        ]);
        let style = Style {
            snippets: false,
            bold: false,
            columns: Some(100),
        };
        let lines = lines(&hit, style);
        let end = &lines[lines.len() - 3..];
        let expected = [
            "  score 2.500",
            "    name contains \"trip\\u{1b}[2J\" (2.00 of 2.50)",
            "    words are near each other (0.50 of 2.50)",
        ];
        assert_eq!(end, expected);
    }

    #[test]
    fn a_terminal_shows_what_matched_in_bold_and_nothing_else_steers_it() {
        let terminal = Style {
            snippets: true,
            bold: true,
            columns: Some(100),
        };
        let lines = lines(&hit(), terminal);
        assert_eq!(lines[2], "  matches skill Book \u{1b}[1mflights\u{1b}[22m");
        assert_eq!(
            lines[3],
            "    Finds \\u{1b}]0;x\\u{7}\u{1b}[1mflights\\u{1b}\u{1b}[22m"
        );
        let own = lines.join("\n").replace(BOLD.0, "").replace(BOLD.1, "");
        assert!(!own.contains('\u{1b}'), "{own:?}");
    }

    #[test]
    fn a_long_snippet_is_cut_over_all_its_pieces() {
        let long = |matched| Fragment {
            text: "word ".repeat(30),
            matched,
        };
        let plain = Style {
            snippets: true,
            bold: false,
            columns: Some(200),
        };
        let line = marked(&[long(false), long(true)], SNIPPET, plain);
        assert!(line.ends_with('…') && line.width() <= SNIPPET, "{line}");
        let piped = Style {
            columns: None,
            ..plain
        };
        let line = marked(&[long(false), long(true)], SNIPPET, piped);
        assert_eq!(line.width(), 300, "{line}");
    }

    #[test]
    fn a_hit_has_a_line_of_its_description_and_its_name_in_one_piece() {
        let mut hit = hit();
        hit.summary.name = "A name of some length".into();
        hit.summary.description = Some(format!("Says\n\nthis.{}", " And more.".repeat(40)));
        hit.summary.deprecation = Some(a2a_registry_api::Deprecation {
            message: "Use the new one.".into(),
            since: a2a_registry_domain::timestamp::Timestamp(0),
            replacement: None,
            sunset: None,
        });
        let lines_at = |columns| {
            let style = Style {
                snippets: false,
                bold: false,
                columns,
            };
            lines(&hit, style)
        };
        let piped = lines_at(None);
        assert_eq!(piped[2], "  deprecated: Use the new one");
        assert!(
            piped[3].starts_with("  Says this. And") && piped[3].len() > 400,
            "{piped:?}"
        );
        assert!(lines_at(Some(100))[3].ends_with('…'));
        let narrow = lines_at(Some(40));
        assert_eq!(narrow[0], "A name of some length");
        assert_eq!(narrow[1], "  00000000-0000-0000-0000-000000000007");
    }
}
