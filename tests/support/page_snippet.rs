//! Reads the snippets on the pages of agents.

/// Decodes the character references of markup, as a browser does.
fn unescape_markup(markup: &str) -> String {
    let mut text = String::new();
    let mut rest = markup;
    while let Some((before, after)) = rest.split_once("&#") {
        text.push_str(before);
        let (number, after) = after.split_once(';').unwrap();
        let character = number.parse().ok().and_then(char::from_u32).unwrap();
        text.push(character);
        rest = after;
    }
    text.push_str(rest);
    assert!(
        !rest.contains("&lt;"),
        "an unknown form of escaping: {rest}"
    );
    text
}

/// The snippet for that language on an agent's page, as a user copies it.
///
/// # Panics
///
/// If the page has no such snippet.
pub fn page_snippet(page: &str, language: &str) -> String {
    let (_, panel) = page
        .split_once(&format!("id=\"panel-{language}\""))
        .unwrap();
    let panel = panel.split("class=\"panel\"").next().unwrap();
    let panel = panel.split("<p class=\"fine\">").next().unwrap();
    // The command that installs the SDK comes before the code.
    let (_, code) = panel.rsplit_once("<code>").unwrap();
    let (code, _) = code.split_once("</code>").unwrap();
    unescape_markup(code)
}
