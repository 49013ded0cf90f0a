//! Hits for people: each agent with its matches, and how its score was computed.

use a2a_registry_api::{Fragment, Hit};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::super::command_error::CommandError;
use super::super::console::Console;
use super::super::terminal;
use super::{format_interfaces, trust_level_text};

/// Columns of a name on a terminal. Elsewhere nothing is cut.
const NAME_COLUMNS: usize = 80;
const SNIPPET_COLUMNS: usize = 160;
/// Columns of a reason for a score.
const REASON_COLUMNS: usize = 300;
/// Columns of an id.
const ID_COLUMNS: usize = 36;

/// Depth of a score explanation on a terminal, and number of its lines.
const MAX_EXPLAIN_LEVELS: usize = 8;
const MAX_EXPLAIN_LINES: usize = 200;

/// Start and end of bold text on a terminal.
const BOLD: (&str, &str) = ("\u{1b}[1m", "\u{1b}[22m");

/// Heading above the first weak match.
const WEAK_MATCHES_HEADING: &str = "Weak matches:";

/// Style of hits.
#[derive(Debug, Clone, Copy)]
pub struct HitStyle {
    /// Whether snippets around matches are shown.
    pub snippets: bool,
    /// Whether matches are bold.
    pub bold: bool,
    /// Width of a line in columns; `None` for no limit.
    pub columns: Option<usize>,
}

impl HitStyle {
    /// Style for a console: snippets on a terminal only, bold unless `NO_COLOR` is set.
    pub fn for_console(console: &Console) -> Self {
        Self {
            snippets: console.interactive,
            bold: console.interactive && std::env::var_os("NO_COLOR").is_none(),
            columns: console
                .interactive
                .then(|| console.terminal_width().unwrap_or(SNIPPET_COLUMNS)),
        }
    }

    /// Cuts a text to this many columns on a terminal; elsewhere it stays complete.
    fn shorten(self, text: &str, columns: usize) -> String {
        match self.columns {
            Some(_) => terminal::escape_and_truncate(text, columns),
            None => terminal::escape_line(text),
        }
    }
}

/// Prints hits one below the other.
pub fn print_hits(console: &Console, hits: &[Hit]) -> Result<(), CommandError> {
    let style = HitStyle::for_console(console);
    let first_weak = hits.iter().find(|hit| hit.matched.weak);
    for hit in hits {
        if first_weak.is_some_and(|weak| weak.summary.id == hit.summary.id) {
            console.print_line(WEAK_MATCHES_HEADING)?;
        }
        // The lines are already escaped, and escaping again would break bold text.
        let lines: String = format_hit(hit, style)
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        console.write_bytes(lines.as_bytes())?;
    }
    Ok(())
}

/// Lines of a hit, with every foreign text escaped.
fn format_hit(hit: &Hit, style: HitStyle) -> Vec<String> {
    let summary = &hit.summary;
    let name = match find_highlight(hit, &["name"], None) {
        Some(fragments) => render_highlight(fragments, NAME_COLUMNS, style),
        None => style.shorten(&summary.name, NAME_COLUMNS),
    };
    // A name that does not fit on the line has a line of its own.
    let together = summary.name.width() + 2 + ID_COLUMNS;
    let mut lines = match style.columns {
        Some(columns) if together > columns => vec![name, format!("  {}", summary.id)],
        _ => vec![format!("{name}  {}", summary.id)],
    };
    lines.push(format!(
        "  trust {}, {}, speaks {}",
        style.shorten(&trust_level_text(summary), NAME_COLUMNS),
        summary.liveness.state,
        style.shorten(&format_interfaces(summary), NAME_COLUMNS),
    ));
    if let Some(deprecation) = &summary.deprecation {
        let deprecation_text = style.shorten(&deprecation.sentence(), SNIPPET_COLUMNS);
        lines.push(format!("  deprecated: {deprecation_text}"));
    }
    let own = find_highlight(hit, &["description"], None).filter(|_| style.snippets);
    let description = summary.description.as_deref().unwrap_or_default();
    match own {
        Some(fragments) => lines.push(format!(
            "  {}",
            render_highlight(fragments, SNIPPET_COLUMNS, style)
        )),
        None if description.trim().is_empty() => {}
        None => {
            let flat = description.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!("  {}", style.shorten(&flat, SNIPPET_COLUMNS)));
        }
    }
    let beyond = find_highlight(hit, &["provider", "protocol", "other"], None);
    if let Some(fragments) = beyond.filter(|_| style.snippets) {
        lines.push(format!(
            "  {}",
            render_highlight(fragments, SNIPPET_COLUMNS, style)
        ));
    }
    for id in &hit.matched.matched_skills {
        add_matched_skill(hit, id, style, &mut lines);
    }
    if let Some(duplicates) = &hit.matched.duplicates {
        lines.push(format!("  and {} more:", duplicates.count));
        let ids = duplicates.agents.iter();
        lines.extend(ids.map(|id| format!("    {id}")));
    }
    add_score_explanation(hit, style, &mut lines);
    lines
}

/// Adds the score and its reasons, if the hit has an explanation.
fn add_score_explanation(hit: &Hit, style: HitStyle, lines: &mut Vec<String>) {
    if let Some(explanation) = &hit.matched.explain {
        let score = hit.matched.score.unwrap_or_default();
        lines.push(format!("  score {score:.3}"));
        let explanation_start = lines.len();
        match explanation["summary"].as_array() {
            Some(sentences) => {
                let sentences = sentences.iter().filter_map(Value::as_str);
                let sentences =
                    sentences.map(|one| format!("    {}", style.shorten(one, REASON_COLUMNS)));
                lines.extend(sentences);
            }
            // A registry of an earlier version explains in figures only.
            None => add_score_parts(explanation, 1, style, lines),
        }
        if style.columns.is_some() && lines.len() > explanation_start + MAX_EXPLAIN_LINES {
            lines.truncate(explanation_start + MAX_EXPLAIN_LINES);
            lines.push("    and more; --json shows all".to_owned());
        }
    }
}

/// Adds which skill matches, and by which words.
fn add_matched_skill(hit: &Hit, id: &str, style: HitStyle, lines: &mut Vec<String>) {
    let name = match find_highlight(hit, &["skill.name"], Some(id)) {
        Some(fragments) => render_highlight(fragments, NAME_COLUMNS, style),
        None => {
            let mut skills = hit.summary.skills.iter();
            let name = skills
                .find(|skill| skill.id == *id)
                .map(|skill| skill.name.as_str());
            style.shorten(name.unwrap_or(id), NAME_COLUMNS)
        }
    };
    lines.push(format!("  matches skill {name}"));
    let beyond = ["skill.description", "skill.example", "skill.tag"];
    let beyond = find_highlight(hit, &beyond, Some(id)).filter(|_| style.snippets);
    if let Some(fragments) = beyond {
        lines.push(format!(
            "    {}",
            render_highlight(fragments, SNIPPET_COLUMNS, style)
        ));
    }
}

/// First highlight of one of these fields, in their order.
fn find_highlight<'a>(
    hit: &'a Hit,
    fields: &[&str],
    skill: Option<&str>,
) -> Option<&'a [Fragment]> {
    let highlights = &hit.matched.highlights;
    fields.iter().find_map(|field| {
        let mut found = highlights.iter();
        let found = found.find(|one| one.field == *field && one.skill.as_deref() == skill);
        found.map(|highlight| highlight.fragments.as_slice())
    })
}

/// Fragments in one line of at most this many columns, with matches in bold.
fn render_highlight(fragments: &[Fragment], columns: usize, style: HitStyle) -> String {
    let mut line = String::new();
    let mut remaining = style.columns.map_or(usize::MAX, |_| columns);
    for fragment in fragments {
        if remaining == 0 {
            break;
        }
        // A snippet can contain line breaks of the text.
        let text = fragment.text.replace(['\n', '\r', '\t'], " ");
        let text = terminal::escape_and_truncate(&text, remaining);
        remaining = remaining.saturating_sub(text.width());
        match style.bold && fragment.matched {
            true => line.extend([BOLD.0, &text, BOLD.1]),
            false => line.push_str(&text),
        }
    }
    line
}

/// Adds a part of a score and its subparts, one line each.
fn add_score_parts(part: &Value, level: usize, style: HitStyle, lines: &mut Vec<String>) {
    if style.columns.is_some()
        && (level > MAX_EXPLAIN_LEVELS || lines.len() > 2 * MAX_EXPLAIN_LINES)
    {
        return;
    }
    let value = part["value"].as_f64().unwrap_or_default();
    let description = part["description"].as_str().unwrap_or_default();
    let context = part["context"].as_array().into_iter().flatten();
    let context: String = context
        .filter_map(Value::as_str)
        .map(|context| format!(" {context}"))
        .collect();
    let what = style.shorten(&format!("{description}{context}"), SNIPPET_COLUMNS);
    lines.push(format!(
        "{:indent$}{value:.3}  {what}",
        "",
        indent = 2 + 2 * level
    ));
    for detail in part["details"].as_array().into_iter().flatten() {
        add_score_parts(detail, level + 1, style, lines);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// Hit whose texts contain terminal control characters.
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
        let plain = HitStyle {
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
        assert_eq!(format_hit(&hit(), plain), all);
    }

    #[test]
    fn a_score_is_explained_in_sentences() {
        let mut hit = hit();
        let explanation = hit.matched.explain.as_mut().unwrap();
        explanation["summary"] = json!([
            "name contains \"trip\u{1b}[2J\" (2.00 of 2.50)",
            "words are near each other (0.50 of 2.50)",
        ]);
        let style = HitStyle {
            snippets: false,
            bold: false,
            columns: Some(100),
        };
        let lines = format_hit(&hit, style);
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
        let terminal = HitStyle {
            snippets: true,
            bold: true,
            columns: Some(100),
        };
        let lines = format_hit(&hit(), terminal);
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
        let plain = HitStyle {
            snippets: true,
            bold: false,
            columns: Some(200),
        };
        let line = render_highlight(&[long(false), long(true)], SNIPPET_COLUMNS, plain);
        assert!(
            line.ends_with('…') && line.width() <= SNIPPET_COLUMNS,
            "{line}"
        );
        let piped = HitStyle {
            columns: None,
            ..plain
        };
        let line = render_highlight(&[long(false), long(true)], SNIPPET_COLUMNS, piped);
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
            let style = HitStyle {
                snippets: false,
                bold: false,
                columns,
            };
            format_hit(&hit, style)
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
