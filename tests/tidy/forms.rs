//! Forms of pages: what Enter in a field does, and what one click does.
//!
//! Enter in a field presses the first submit button of the form. With several buttons the user has not chosen one, so
//! the first must change nothing: it shows something, or has an empty value, which the registry answers with 204. A
//! disabled button does not help: Enter in a checkbox presses the next one.

use std::fs;

use super::assert_tidy;
use super::tree::root;

/// Buttons that change nothing: they show something about what was typed.
const HARMLESS: [(&str, &str); 4] = [
    ("collections.html", "preview"),
    ("collection.html", "preview"),
    ("policy_edit.html", "check"),
    ("policy_edit.html", "go-on "),
];

/// Forms that are sent by one click and destroy nothing, by their address.
const DESTROY_NOTHING: [&str; 9] = [
    // Both are the confirmation of what a command or a link asks for.
    "/login",
    "/sign-in-link",
    "/sign-out",
    "/sign-in/provider.0",
    "/waiting",
    "/account/watches",
    "/domains/text::path_segment(view.domain)/verify",
    // The reader of mails begins or ends them. An account can ask for them again.
    "link",
    "link/confirm",
];

/// Forms that are sent by one click and show first what will be lost, by their address, each with a test of its own in the
/// server (`confirmations`) or in `work_pages`.
const ASK_FIRST: [&str; 9] = [
    "/domains/text::path_segment(view.domain)/withdraw",
    "/account/tokens/revoke",
    "/account/sessions/revoke",
    "/account/feed",
    "/account/feed/end",
    "/account/searches/delete",
    "/waivers/end",
    // Disabling asks; enabling is sent by one click.
    "/admin/accounts/account.id",
    "/collections/text::path_segment(collection.name)",
];

/// The page that asks. Its button is the second click.
const CONFIRMATION: &str = "confirm.html";

/// Types of `input` that nobody fills in or presses.
const HIDDEN: &str = "hidden";

/// A tag with its attributes, as a template has them.
#[derive(Debug)]
struct Tag<'a> {
    name: &'a str,
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// The value of an attribute; templates quote every value.
    fn get(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.attributes.split_once(&format!(" {name}=\""))?;
        value.split_once('"').map(|(value, _)| value)
    }

    /// Whether a person types or chooses something in it.
    fn is_field(&self) -> bool {
        match self.name {
            "input" => self.get("type") != Some(HIDDEN),
            "select" | "textarea" => true,
            _ => false,
        }
    }

    fn is_submit(&self) -> bool {
        self.name == "button" && self.get("type") == Some("submit")
    }
}

/// The tags of a text in which no value holds `>`.
fn tags(html: &str) -> Vec<Tag<'_>> {
    let parts = html.split('<').skip(1);
    let read = |part: &'_ str| -> Option<(usize, usize)> {
        let name = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '/')?;
        Some((name, part.find('>')?))
    };
    parts
        .filter_map(|part| {
            let (name, end) = read(part)?;
            Some(Tag {
                name: &part[..name],
                attributes: &part[name..end],
            })
        })
        .collect()
}

/// A template as the markup that it writes, with every branch of it: directives are left out, expressions are their names.
fn markup(template: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(start) = rest.find("{%") {
        out.push_str(&rest[..start]);
        let end = rest[start..].find("%}").expect("a directive ends") + start;
        let directive = rest[start + 2..end].trim();
        if let Some(file) = directive.strip_prefix("include ") {
            out.push_str(&markup(&template_text(file.trim_matches('"'))));
        }
        if directive.starts_with("call m::no_default(") {
            out.push_str("<button type=\"submit\" value=\"\" hidden>");
        }
        rest = &rest[end + 2..];
    }
    out.push_str(rest);
    out.replace("{{ ", "").replace(" }}", "").replace("->", "")
}

fn template_text(file: &str) -> String {
    fs::read_to_string(root().join("web/templates").join(file)).unwrap()
}

/// What is wrong with the forms of a template.
fn faults(file: &str, template: &str) -> Vec<String> {
    let html = markup(template);
    let all = tags(&html);
    let mut faults = Vec::new();
    let mut begin = None;
    for (at, tag) in all.iter().enumerate() {
        match tag.name {
            "form" => begin = Some(at),
            "/form" => {
                if let Some(begin) = begin.take() {
                    faults.extend(fault(file, &all, begin, at));
                }
            }
            _ => {}
        }
    }
    faults
}

/// What is wrong with the form between these two tags.
fn fault(file: &str, all: &[Tag<'_>], begin: usize, end: usize) -> Option<String> {
    let (form, inside) = (&all[begin], &all[begin..end]);
    let action = form.get("action").unwrap_or_default();
    // What is asked for with GET changes nothing; the console's form has a script for its address.
    if form.get("method") != Some("post") || file == CONFIRMATION {
        return None;
    }
    let outside = |tag: &&Tag<'_>| form.get("id").is_some() && tag.get("form") == form.get("id");
    let elsewhere = all.iter().filter(outside).filter(|tag| tag.is_submit());
    let own: Vec<&Tag<'_>> = inside.iter().filter(|tag| tag.is_submit()).collect();
    let presses_nothing = |tag: &&Tag<'_>| {
        let value = tag.get("value");
        let is_harmless = |(of, begins): &(&str, &str)| {
            *of == file && value.is_some_and(|value| value.starts_with(begins))
        };
        value == Some("") || HARMLESS.iter().any(is_harmless)
    };
    if inside.iter().any(Tag::is_field) {
        let count = elsewhere.clone().count() + own.len();
        let mut firsts = elsewhere.chain(own.first().copied());
        return (count > 1 && !firsts.all(|tag| presses_nothing(&tag))).then(|| {
            format!("{file}: Enter in the form to {action} presses a button that changes something")
        });
    }
    let known = |list: &[&str]| list.contains(&action);
    (!known(&DESTROY_NOTHING) && !known(&ASK_FIRST))
        .then(|| format!("{file}: one click sends the form to {action}; it must ask first"))
}

#[test]
fn enter_presses_nothing_by_accident_and_no_click_destroys() {
    let mut problems = Vec::new();
    let mut forms = 0;
    for entry in fs::read_dir(root().join("web/templates")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let text = template_text(&file);
        forms += text.matches("<form ").count();
        problems.extend(faults(&file, &text));
    }
    assert!(forms > 30, "the templates have more than {forms} forms");
    assert_tidy(&problems);
}

/// Without a style of its own a field stays small, and gray in the dark.
#[test]
fn every_kind_of_field_has_a_style() {
    let sheet = fs::read_to_string(root().join("web/static/style.css")).unwrap();
    let mut problems = Vec::new();
    for entry in fs::read_dir(root().join("web/templates")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let html = markup(&template_text(&file));
        for tag in tags(&html).iter().filter(|tag| tag.name == "input") {
            let kind = tag.get("type").unwrap_or("text");
            let is_typed = !["hidden", "checkbox", "radio", "file"].contains(&kind);
            if is_typed && !sheet.contains(&format!("input[type=\"{kind}\"],")) {
                problems.push(format!(
                    "{file}: style.css has no style for a field of type {kind}"
                ));
            }
        }
    }
    assert_tidy(&problems);
}

#[test]
fn forms_that_act_by_accident_are_found() {
    let form = |inside: &str| {
        format!("<form class=\"card\" action=\"/x\" method=\"post\" id=\"f\">{inside}</form>")
    };
    let approve = "<button type=\"submit\" name=\"act\" value=\"approve\">A</button>";
    let reject = "<button type=\"submit\" name=\"act\" value=\"reject\">R</button>";
    let field = "<input id=\"reason\" name=\"reason\" type=\"text\" required>";
    let id = "<input type=\"hidden\" name=\"id\" value=\"{{ id }}\">";
    let guard = "{% call m::no_default(\"act\") %}{% endcall %}";
    let disabled = "<button type=\"submit\" disabled hidden>";
    for (inside, bad) in [
        (format!("{field}{approve}{reject}"), true),
        (format!("{guard}{field}{approve}{reject}"), false),
        (format!("{disabled}{field}{approve}{reject}"), true),
        (format!("{field}{approve}"), false),
        (format!("{id}{reject}"), true),
        // A branch counts like what is always there.
        (
            format!("{field}{{% if a %}}{approve}{{% else %}}{reject}{{% endif %}}"),
            true,
        ),
    ] {
        let found = faults("x.html", &form(&inside));
        assert_eq!(!found.is_empty(), bad, "{inside}: {found:?}");
    }
    // A button elsewhere on the page belongs to the form that it names.
    let other = "<button type=\"submit\" form=\"f\" value=\"reject\">R</button>";
    let found = faults(
        "x.html",
        &format!("{other}{}", form(&format!("{guard}{field}{approve}"))),
    );
    assert_eq!(found.len(), 1, "{found:?}");
}
