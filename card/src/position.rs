//! Positions of members in a document's text: from pointers to lines and columns.
//!
//! This is a second walk over the bytes, besides [`crate::scan`] and the parser that builds the tree. The parser
//! reports no positions, and keeping them for every member would make every reading slower. Sharing a lexer with the
//! scan makes both a third slower: the scan must handle bytes that are not JSON, while this walk follows the grammar.

use std::collections::HashMap;

use crate::Finding;
use crate::member::is_spelling;
use crate::refusal::MAX_CARD_BYTES;
use crate::scan::{MAX_DEPTH, scan};

/// A place in a card's text: line and column from 1, the column in Unicode code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1.
    pub column: usize,
}

/// The position of each finding's member in the card's bytes; of its nearest ancestor where the card lacks the member,
/// `None` if the bytes cannot be read. One walk over the bytes serves all findings.
///
/// ```
/// let bytes = b"{\"name\": \"Echo\",\n \"url\": \"http://localhost:9000\"}";
/// let findings = a2a_card::all_findings(&a2a_card::parse(bytes)?, bytes);
/// let private = findings.iter().position(|finding| finding.rule == "endpoint.private");
/// let positions = a2a_card::positions(bytes, &findings);
/// assert_eq!(positions[private.unwrap()].map(|at| (at.line, at.column)), Some((2, 9)));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn positions(bytes: &[u8], findings: &[Finding]) -> Vec<Option<Position>> {
    let pointers: Vec<&str> = findings
        .iter()
        .map(|finding| finding.pointer.as_str())
        .collect();
    let regions = regions(bytes, &pointers).into_iter();
    let start = |region: Region| Position {
        line: region.start_line,
        column: region.start_column,
    };
    regions.map(|region| region.map(start)).collect()
}

/// A range of text: lines and columns from 1, columns in Unicode code points, the end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start_line: usize,
    pub(crate) start_column: usize,
    pub(crate) end_line: usize,
    pub(crate) end_column: usize,
}

/// The region of each pointer's value, in the order of the pointers; of the nearest ancestor if the document does not
/// have the value, `None` if the bytes cannot be read.
pub(crate) fn regions(bytes: &[u8], pointers: &[&str]) -> Vec<Option<Region>> {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mended = match scan(body) {
        Ok(seen) if bytes.len() <= MAX_CARD_BYTES => seen.bytes,
        _ => return vec![None; pointers.len()],
    };
    let mut wanted = Wanted::default();
    let leaves: Vec<usize> = pointers.iter().map(|text| wanted.add(text)).collect();
    SpanWalk {
        bytes: &mended,
        at: 0,
        wanted: &mut wanted,
    }
    .value(Some(0), 0);
    let spans: Vec<Option<(usize, usize)>> = leaves.iter().map(|leaf| wanted.span(*leaf)).collect();
    located(&mended, &spans)
}

/// Most names of one object that are also looked for in another spelling; cards have fewer members.
const MAX_SPELT: usize = 64;

struct Wanted {
    nodes: Vec<Segment>,
}

/// A wanted position, or an ancestor of one.
#[derive(Default)]
struct Segment {
    parent: usize,
    children: HashMap<String, usize>,
    /// Range of the value, once it has been found.
    span: Option<(usize, usize)>,
}

impl Default for Wanted {
    fn default() -> Self {
        Wanted {
            nodes: vec![Segment::default()],
        }
    }
}

impl Wanted {
    fn add(&mut self, pointer: &str) -> usize {
        let mut node = 0;
        for segment in pointer.split('/').skip(1) {
            let name = segment.replace("~1", "/").replace("~0", "~");
            let next = self.nodes.len();
            let Some(here) = self.nodes.get_mut(node) else {
                return 0;
            };
            let child = *here.children.entry(name).or_insert(next);
            if child == next {
                self.nodes.push(Segment {
                    parent: node,
                    ..Segment::default()
                });
            }
            node = child;
        }
        node
    }

    /// The index below `node` of a member's name, of which the `snake_case` spelling matches as well.
    fn child(&self, node: Option<usize>, name: &str) -> Option<usize> {
        let children = &self.nodes.get(node?)?.children;
        let exact = children.get(name).copied();
        if exact.is_some() || !name.contains('_') || children.len() > MAX_SPELT {
            return exact;
        }
        let spelt = children
            .iter()
            .find(|(wanted, _)| is_spelling(name, wanted));
        spelt.map(|(_, child)| *child)
    }

    fn leads_on(&self, node: Option<usize>) -> bool {
        let node = node.and_then(|node| self.nodes.get(node));
        node.is_some_and(|node| !node.children.is_empty())
    }

    /// The range of a node, or of its nearest ancestor that has one.
    fn span(&self, mut node: usize) -> Option<(usize, usize)> {
        loop {
            let here = self.nodes.get(node)?;
            if here.span.is_some() || node == 0 {
                return here.span;
            }
            node = here.parent;
        }
    }
}

/// A walk over JSON text. Invalid JSON ends it early; it never goes back.
struct SpanWalk<'b, 'w> {
    bytes: &'b [u8],
    at: usize,
    wanted: &'w mut Wanted,
}

impl SpanWalk<'_, '_> {
    /// Walks over a value, and notes its range if it is wanted.
    fn value(&mut self, node: Option<usize>, depth: usize) {
        self.space();
        let start = self.at;
        match self.peek() {
            Some(b'{') if depth <= MAX_DEPTH => self.members(node, depth),
            Some(b'[') if depth <= MAX_DEPTH => self.elements(node, depth),
            Some(b'"') => self.string(),
            _ => self.word(),
        }
        let end = self.at;
        // Of members with one name the last one counts, as in reading.
        if let Some(node) = node.and_then(|node| self.wanted.nodes.get_mut(node)) {
            node.span = Some((start, end));
        }
    }

    fn members(&mut self, node: Option<usize>, depth: usize) {
        let wanted = self.wanted.leads_on(node);
        self.at += 1;
        loop {
            self.space();
            match self.peek() {
                Some(b'"') => {}
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                Some(b'}') => {
                    self.at += 1;
                    return;
                }
                _ => return,
            }
            let start = self.at;
            self.string();
            let name = self.bytes.get(start..self.at).filter(|_| wanted);
            let name = name.and_then(|name| serde_json::from_slice::<String>(name).ok());
            let child = name.and_then(|name| self.wanted.child(node, &name));
            self.space();
            if self.peek() != Some(b':') {
                return;
            }
            self.at += 1;
            self.value(child, depth + 1);
        }
    }

    fn elements(&mut self, node: Option<usize>, depth: usize) {
        let wanted = self.wanted.leads_on(node);
        self.at += 1;
        let mut index = 0_usize;
        loop {
            self.space();
            match self.peek() {
                None | Some(b'}' | b':') => return,
                Some(b']') => {
                    self.at += 1;
                    return;
                }
                Some(b',') => {
                    self.at += 1;
                    index += 1;
                    continue;
                }
                Some(_) => {}
            }
            let before = self.at;
            let child = wanted.then(|| self.wanted.child(node, &index.to_string()));
            self.value(child.flatten(), depth + 1);
            if self.at == before {
                return;
            }
        }
    }

    /// Walks over a string, from its opening quote to the byte after its closing one.
    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += match byte {
                b'\\' => 2,
                _ => 1,
            };
            if byte == b'"' {
                return;
            }
        }
        self.at = self.at.min(self.bytes.len());
    }

    fn word(&mut self) {
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            self.at += 1;
        }
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

fn located(bytes: &[u8], spans: &[Option<(usize, usize)>]) -> Vec<Option<Region>> {
    let ends = spans
        .iter()
        .flatten()
        .flat_map(|(start, end)| [*start, *end]);
    let mut places: Vec<usize> = ends.collect();
    places.sort_unstable();
    places.dedup();
    let mut known: HashMap<usize, (usize, usize)> = HashMap::new();
    let (mut line, mut column, mut passed) = (1, 1, 0);
    for place in places {
        for byte in bytes.get(passed..place).unwrap_or_default() {
            match byte {
                b'\n' => (line, column) = (line + 1, 1),
                // Only the first byte of a character is counted.
                0x80..=0xbf => {}
                _ => column += 1,
            }
        }
        passed = place;
        known.insert(place, (line, column));
    }
    let located = |(start, end): (usize, usize)| {
        let ((start_line, start_column), (end_line, end_column)) =
            (*known.get(&start)?, *known.get(&end)?);
        Some(Region {
            start_line,
            start_column,
            end_line,
            end_column,
        })
    };
    spans.iter().map(|span| located((*span)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(document: &str, pointers: &[&str]) -> Vec<String> {
        let lines: Vec<Vec<char>> = document.split('\n').map(|l| l.chars().collect()).collect();
        let shown = |region: Region| {
            let (from, to) = (region.start_line - 1, region.end_line - 1);
            let mut text = String::new();
            for (number, line) in lines.iter().enumerate().take(to + 1).skip(from) {
                let start = if number == from {
                    region.start_column - 1
                } else {
                    0
                };
                let end = if number == to {
                    region.end_column - 1
                } else {
                    line.len()
                };
                text.extend(&line[start..end]);
            }
            text
        };
        regions(document.as_bytes(), pointers)
            .into_iter()
            .map(|region| region.map_or_else(|| "-".to_owned(), shown))
            .collect()
    }

    #[test]
    fn values_are_found_by_their_pointers() {
        let document = "{\"é\": \"東京\", \"a/b\": [1, {\"x~y\": tru\u{65}}],\n  \"n\\u0061me\" : \"A\\\"B\", \"o\": {}}";
        let found = texts(
            document,
            &[
                "/é",
                "/a~1b/1/x~0y",
                "/a~1b/0",
                "/name",
                "/o",
                "/o/gone/deep",
                "/gone",
            ],
        );
        assert_eq!(found[..5], ["\"東京\"", "true", "1", "\"A\\\"B\"", "{}"]);
        assert_eq!(found[5], "{}", "the nearest ancestor");
        assert!(found[6].starts_with("{\"é\"") && found[6].ends_with("{}}"));
    }

    #[test]
    fn the_last_of_two_and_other_spellings_are_found() {
        assert_eq!(texts("{\"a\":1,\"a\":[2]}", &["/a", "/a/0"]), ["[2]", "2"]);
        let snake = "{\"preferred_transport\":\"x\"}";
        assert_eq!(texts(snake, &["/preferredTransport"]), ["\"x\""]);
        assert_eq!(texts("{\"a\\ud800\":7}", &["/a\u{fffd}"]), ["7"]);
    }

    #[test]
    fn lines_and_columns_count_from_one_behind_a_mark() {
        let found = regions("\u{feff}{\n \"a\": 1}".as_bytes(), &["/a", ""]);
        let region = |(start_line, start_column), (end_line, end_column)| {
            Some(Region {
                start_line,
                start_column,
                end_line,
                end_column,
            })
        };
        assert_eq!(found, [region((2, 7), (2, 8)), region((1, 1), (2, 9))]);
    }

    #[test]
    fn what_is_no_document_ends_the_walk() {
        for text in [
            "",
            "[",
            "{\"a\"",
            "{\"a\":",
            "[1 2",
            "}{",
            "{a:1}",
            "[}",
            "\"\\",
            "{\"a\" 1}",
            "[:]",
        ] {
            assert_eq!(regions(text.as_bytes(), &["/a", "/0"]).len(), 2, "{text}");
        }
        assert_eq!(regions("[".repeat(100).as_bytes(), &[""]), [None]);
    }
}
