//! Parses rendered pages like a browser: tags, attributes, text.

/// A start tag.
#[derive(Debug)]
pub struct Tag {
    pub name: String,
    pub attributes: Vec<(String, String)>,
}

impl Tag {
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A parsed page.
#[derive(Debug, Default)]
pub struct Page {
    pub tags: Vec<Tag>,
    /// All text between tags, with its escapes resolved.
    pub text: String,
    /// The text of each `code` inside a `pre`.
    pub code: Vec<String>,
    /// Text of each `textarea`, as typed by a visitor; not part of `text`.
    pub typed: String,
}

/// Parses a page. Fails on markup that the templates never write: an unquoted attribute value, or a tag
/// without an end.
pub fn split(html: &str) -> Page {
    let mut page = Page::default();
    let mut rest = html;
    let mut in_code = false;
    let mut in_form = false;
    while let Some(start) = rest.find('<') {
        let text = unescape(&rest[..start]);
        if in_code && !text.is_empty() {
            page.code.push(text.clone());
        }
        if page.tags.last().is_some_and(|tag| tag.name == "textarea") && in_form {
            page.typed
                .push_str(text.strip_prefix('\n').unwrap_or(&text));
        } else {
            page.text.push_str(&text);
        }
        rest = &rest[start + 1..];
        let name: String = rest
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "!/".contains(*c))
            .collect();
        assert!(
            !name.is_empty(),
            "a bare < before {:?}",
            rest.chars().take(40).collect::<String>()
        );
        rest = &rest[name.len()..];
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            let end = rest.find(['=', '>', ' ', '\n']).expect("a tag ends");
            let attribute = rest[..end].to_owned();
            rest = &rest[end..];
            let mut value = String::new();
            if let Some(after) = rest.strip_prefix('=') {
                let after = after.strip_prefix('"').expect("values are quoted");
                let close = after.find('"').expect("a value ends");
                value = unescape(&after[..close]);
                rest = &after[close + 1..];
            }
            attributes.push((attribute, value));
        }
        match name.as_str() {
            "code" => in_code = page.tags.last().is_some_and(|tag| tag.name == "pre"),
            "/code" => in_code = false,
            "textarea" => in_form = true,
            "/textarea" => in_form = false,
            _ => {}
        }
        if !name.starts_with(['/', '!']) {
            page.tags.push(Tag { name, attributes });
        }
    }
    page.text.push_str(&unescape(rest));
    page
}

/// Resolves the escapes that templates write.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        let end = rest[start..].find(';').expect("an escape ends") + start;
        match &rest[start + 1..end] {
            "#60" | "lt" => out.push('<'),
            "#62" | "gt" => out.push('>'),
            "#38" | "amp" => out.push('&'),
            "#34" | "quot" => out.push('"'),
            "#39" | "#x27" => out.push('\''),
            other => panic!("an escape nobody wrote: {other:?}"),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}
