//! The manual: the Markdown files below `docs`, embedded in the program and shown as pages of the registry.

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd, html};
use rust_embed::Embed;
use url::Url;

use crate::answers::response::HandlerResult;
use crate::pages::assets::embedded_file_response;
use crate::pages::frame::Frame;
use crate::pages::render_page;
use crate::requests::visitor::Visitor;

#[derive(Embed)]
#[folder = "$CARGO_MANIFEST_DIR/../../docs"]
struct ManualFiles;

/// Where relative links of the manual are resolved; only the paths of the results are used.
const BASE_URL: &str = "http://manual.invalid/manual/";

#[derive(Template)]
#[template(path = "manual.html")]
struct ManualPage {
    frame: Frame,
    title: String,
    parts: Vec<ManualPart>,
    /// Path of this page.
    here: String,
    /// The page as HTML; the manual is part of the program.
    text: String,
}

/// A part of the table of contents, with the names and the paths of its pages.
struct ManualPart {
    title: String,
    pages: Vec<(String, String)>,
}

/// Redirects to the address with a trailing slash, at which relative links work.
pub(crate) async fn redirect_to_manual() -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, "manual/"))
        .finish()
}

/// Shows a page of the manual, or a file that its pages link to, such as a picture.
pub(crate) async fn show_manual(
    request: HttpRequest,
    context: web::Data<AppContext>,
    visitor: Visitor,
    path: web::Path<String>,
) -> HandlerResult {
    if let Some(file) = ManualFiles::get(&path) {
        return Ok(embedded_file_response(&request, &path, file));
    }
    let name = match path.is_empty() || path.ends_with('/') {
        true => format!("{path}README"),
        false => path.into_inner(),
    };
    let markdown = read_page(&name)?;
    let first_line = markdown.lines().next().unwrap_or_default();
    let base = Url::parse(BASE_URL).map_err(|error| AppError::internal(error.to_string()))?;
    let here = link_address(&base, &format!("{name}.md"));
    let page = ManualPage {
        frame: Frame::for_visitor(&context.config(), "manual", &visitor),
        title: first_line.trim_start_matches("# ").to_owned(),
        parts: read_manual_parts(&read_page("SUMMARY")?, &base),
        text: render_markdown(&markdown, &base.join(&here).unwrap_or(base)),
        here,
    };
    Ok(render_page(StatusCode::OK, &page))
}

/// Reads the Markdown file of this name, without its extension.
fn read_page(name: &str) -> Result<String, AppError> {
    let file = ManualFiles::get(&format!("{name}.md")).ok_or_else(AppError::no_resource)?;
    Ok(String::from_utf8_lossy(&file.data).into_owned())
}

/// Reads the table of contents in mdBook's form: headings are parts, links are pages.
fn read_manual_parts(summary: &str, base: &Url) -> Vec<ManualPart> {
    let mut parts = Vec::<ManualPart>::new();
    for line in summary.lines() {
        let link = line.trim_start_matches([' ', '-']).strip_prefix('[');
        let link = link.and_then(|link| link.strip_suffix(')')?.split_once("]("));
        if let Some(title) = line.strip_prefix("# ") {
            parts.push(ManualPart {
                title: title.to_owned(),
                pages: Vec::new(),
            });
        } else if let (Some((name, target)), Some(part)) = (link, parts.last_mut()) {
            let address = link_address(base, target);
            part.pages.push((name.to_owned(), address));
        }
    }
    parts
}

/// Renders a page of the manual at this URL. Headings get anchors, links to Markdown files lead to their pages, and
/// raw HTML is shown as text.
fn render_markdown(markdown: &str, url: &Url) -> String {
    let events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
    let adapted = (0..events.len()).flat_map(|index| adapt_event(&events[index..], url));
    let mut text = String::new();
    html::push_html(&mut text, adapted);
    text
}

/// The events that are rendered for the first one of these.
fn adapt_event<'a>(events: &[Event<'a>], url: &Url) -> Vec<Event<'a>> {
    let Some(mut event) = events.first().cloned() else {
        return Vec::new();
    };
    match &mut event {
        Event::Html(text) | Event::InlineHtml(text) => event = Event::Text(text.clone()),
        Event::Start(Tag::Heading { id, .. }) => *id = Some(heading_anchor(events).into()),
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            *dest_url = link_address(url, dest_url).into();
        }
        // Alignment is an inline style, which the content security policy forbids.
        Event::Start(Tag::Table(alignments)) => alignments.fill(Alignment::None),
        // Only blocks with this class have a button to copy them.
        Event::Start(Tag::CodeBlock(_)) => {
            return vec![Event::Html("<div class=\"code\">".into()), event];
        }
        Event::End(TagEnd::CodeBlock) => return vec![event, Event::Html("</div>".into())],
        _ => {}
    }
    vec![event]
}

/// The anchor of the heading that begins these events, as GitHub and mdBook derive it from the heading's text.
fn heading_anchor(events: &[Event<'_>]) -> String {
    let inside = events
        .iter()
        .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let title: String = inside
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(&**text),
            _ => None,
        })
        .collect();
    let title = title.to_lowercase().replace(' ', "-");
    let is_kept = |letter: &char| letter.is_alphanumeric() || "-_".contains(*letter);
    title.chars().filter(is_kept).collect()
}

/// The path of a link's target within the manual, without the extension of a Markdown file; other URLs as they are.
fn link_address(from: &Url, target: &str) -> String {
    let Some(url) = from
        .join(target)
        .ok()
        .filter(|url| url.host() == from.host())
    else {
        return target.to_owned();
    };
    let path = url.path();
    let page = path
        .strip_suffix("README.md")
        .or_else(|| path.strip_suffix(".md"));
    let anchor = url.fragment().map(|anchor| format!("#{anchor}"));
    format!("{}{}", page.unwrap_or(path), anchor.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn base() -> Url {
        Url::parse(BASE_URL).unwrap()
    }

    /// The page `publish/prove` with this text, in which `{}` is the extension of a file.
    fn rendered(markdown: &str) -> String {
        let url = base().join("publish/prove").unwrap();
        render_markdown(&markdown.replace("{}", ".md"), &url)
    }

    #[test]
    fn links_lead_to_pages_and_headings_have_anchors() {
        for (markdown, expected) in [
            ("[a](sign{})", "href=\"/manual/publish/sign\""),
            (
                "[a](../find/search{}#a-word)",
                "href=\"/manual/find/search#a-word\"",
            ),
            ("[a](../README{})", "href=\"/manual/\""),
            (
                "[a](../concepts/README{}#agent)",
                "href=\"/manual/concepts/#agent\"",
            ),
            ("[a](#below)", "href=\"/manual/publish/prove#below\""),
            ("[a](https://a.example/x)", "href=\"https://a.example/x\""),
            ("[a](mailto:a@a.example)", "href=\"mailto:a@a.example\""),
            ("![a](way.svg)", "src=\"/manual/publish/way.svg\""),
            (
                "## The `check` of *a* proof, daily",
                "<h2 id=\"the-check-of-a-proof-daily\">",
            ),
        ] {
            let html = rendered(markdown);
            assert!(html.contains(expected), "{markdown}: {html}");
        }
    }

    #[test]
    fn markup_is_text_and_nothing_has_a_style() {
        let html =
            rendered("<script>a</script>\n\nx <b onclick=y>z</b>\n\n| a |\n|--:|\n| <i> |\n");
        for forbidden in ["<script", "<b", "<i>", "style"] {
            assert!(!html.contains(forbidden), "{forbidden}: {html}");
        }
        assert!(html.contains("&lt;script&gt;"), "{html}");
        let code = rendered("```sh\na <b>\n```\n");
        assert!(code.contains("<div class=\"code\">"), "{code}");
        assert!(code.contains("a &lt;b&gt;"), "{code}");
    }

    #[test]
    fn every_page_is_in_the_table_of_contents_and_every_entry_a_page() {
        let parts = read_manual_parts(&read_page("SUMMARY").unwrap(), &base());
        let listed = parts.iter().flat_map(|part| &part.pages);
        let mut listed: Vec<String> = listed.map(|(_, address)| address.clone()).collect();
        let pages = ManualFiles::iter().filter(|name| name.ends_with(".md"));
        let mut pages: Vec<String> = pages.map(|name| link_address(&base(), &name)).collect();
        pages.retain(|page| page != "/manual/SUMMARY");
        listed.sort_unstable();
        pages.sort_unstable();
        assert_eq!(listed, pages);
    }
}
