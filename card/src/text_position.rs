//! Positions of members in a document's text: from pointers to lines and columns.
//!
//! This is a second walk over the bytes, besides [`crate::json_scan`] and the parser that builds the tree. The parser
//! reports no positions, and recording them for every member would slow down every read. Sharing a lexer with the scan
//! makes both a third slower: the scan must handle bytes that are not JSON, while this walk follows the grammar.

use std::collections::HashMap;

use crate::Finding;
use crate::json_scan::{MAX_DEPTH, scan_json};
use crate::member_reader::is_spelling_of;
use crate::parse_error::MAX_CARD_BYTES;

/// Position in a card's text: line and column from 1, the column in Unicode code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1.
    pub column: usize,
}

/// The position of each finding's member in the card's bytes, or of its nearest ancestor if the card lacks the member;
/// `None` if the bytes cannot be read. One walk over the bytes serves all findings.
///
/// ```
/// let bytes = b"{\"name\": \"Echo\",\n \"url\": \"http://localhost:9000\"}";
/// let findings = a2a_card::all_findings(&a2a_card::parse_card(bytes)?, bytes);
/// let private = findings.iter().position(|finding| finding.rule == "endpoint.private");
/// let positions = a2a_card::finding_positions(bytes, &findings);
/// assert_eq!(positions[private.unwrap()].map(|at| (at.line, at.column)), Some((2, 9)));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn finding_positions(bytes: &[u8], findings: &[Finding]) -> Vec<Option<TextPosition>> {
    let pointers: Vec<&str> = findings
        .iter()
        .map(|finding| finding.pointer.as_str())
        .collect();
    let regions = value_regions(bytes, &pointers).into_iter();
    let start = |region: TextRegion| TextPosition {
        line: region.start_line,
        column: region.start_column,
    };
    regions.map(|region| region.map(start)).collect()
}

/// A range of text: lines and columns from 1, columns in Unicode code points, the end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextRegion {
    pub(crate) start_line: usize,
    pub(crate) start_column: usize,
    pub(crate) end_line: usize,
    pub(crate) end_column: usize,
}

/// The region of each pointer's value, in the order of the pointers, or of the nearest ancestor if the document does
/// not have the value; `None` if the bytes cannot be read.
pub(crate) fn value_regions(bytes: &[u8], pointers: &[&str]) -> Vec<Option<TextRegion>> {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let parsable_bytes = match scan_json(body) {
        Ok(scan_result) if bytes.len() <= MAX_CARD_BYTES => scan_result.bytes,
        _ => return vec![None; pointers.len()],
    };
    let mut pointer_tree = PointerTree::default();
    let leaf_indices: Vec<usize> = pointers
        .iter()
        .map(|text| pointer_tree.insert_pointer(text))
        .collect();
    JsonSpanWalker {
        bytes: &parsable_bytes,
        position: 0,
        pointer_tree: &mut pointer_tree,
    }
    .walk_value(Some(0), 0);
    let spans: Vec<Option<(usize, usize)>> = leaf_indices
        .iter()
        .map(|leaf| pointer_tree.nearest_span(*leaf))
        .collect();
    spans_to_text_regions(&parsable_bytes, &spans)
}

/// Maximum number of names in one object that are also looked up in another spelling; cards have fewer members.
const MAX_SPELLING_CANDIDATES: usize = 64;

struct PointerTree {
    nodes: Vec<PointerNode>,
}

/// Node for a requested position, or for an ancestor of one.
#[derive(Default)]
struct PointerNode {
    parent: usize,
    children: HashMap<String, usize>,
    /// Range of the value, once found.
    span: Option<(usize, usize)>,
}

impl Default for PointerTree {
    fn default() -> Self {
        PointerTree {
            nodes: vec![PointerNode::default()],
        }
    }
}

impl PointerTree {
    fn insert_pointer(&mut self, pointer: &str) -> usize {
        let mut node_index = 0;
        for segment in pointer.split('/').skip(1) {
            let name = segment.replace("~1", "/").replace("~0", "~");
            let next_index = self.nodes.len();
            let Some(current_node) = self.nodes.get_mut(node_index) else {
                return 0;
            };
            let child_index = *current_node.children.entry(name).or_insert(next_index);
            if child_index == next_index {
                self.nodes.push(PointerNode {
                    parent: node_index,
                    ..PointerNode::default()
                });
            }
            node_index = child_index;
        }
        node_index
    }

    /// The index below a node of a member's name, whose `snake_case` spelling also matches.
    fn child_index(&self, node_index: Option<usize>, name: &str) -> Option<usize> {
        let children = &self.nodes.get(node_index?)?.children;
        let exact = children.get(name).copied();
        if exact.is_some() || !name.contains('_') || children.len() > MAX_SPELLING_CANDIDATES {
            return exact;
        }
        let respelled_child = children
            .iter()
            .find(|(wanted, _)| is_spelling_of(name, wanted));
        respelled_child.map(|(_, child)| *child)
    }

    fn has_children(&self, node_index: Option<usize>) -> bool {
        let node = node_index.and_then(|node| self.nodes.get(node));
        node.is_some_and(|node| !node.children.is_empty())
    }

    /// The range of a node, or of its nearest ancestor that has one.
    fn nearest_span(&self, mut node_index: usize) -> Option<(usize, usize)> {
        loop {
            let current_node = self.nodes.get(node_index)?;
            if current_node.span.is_some() || node_index == 0 {
                return current_node.span;
            }
            node_index = current_node.parent;
        }
    }
}

/// A walk over JSON text. Invalid JSON ends the walk early; it never goes back.
struct JsonSpanWalker<'b, 'w> {
    bytes: &'b [u8],
    position: usize,
    pointer_tree: &'w mut PointerTree,
}

impl JsonSpanWalker<'_, '_> {
    /// Walks over a value, and records its range if it is requested.
    fn walk_value(&mut self, node_index: Option<usize>, depth: usize) {
        self.skip_whitespace();
        let start = self.position;
        match self.peek_byte() {
            Some(b'{') if depth <= MAX_DEPTH => self.walk_members(node_index, depth),
            Some(b'[') if depth <= MAX_DEPTH => self.walk_elements(node_index, depth),
            Some(b'"') => self.walk_string(),
            _ => self.walk_literal(),
        }
        let end = self.position;
        // Of members with one name the last one counts, as in the reader.
        if let Some(node) = node_index.and_then(|node| self.pointer_tree.nodes.get_mut(node)) {
            node.span = Some((start, end));
        }
    }

    fn walk_members(&mut self, node_index: Option<usize>, depth: usize) {
        let has_wanted_children = self.pointer_tree.has_children(node_index);
        self.position += 1;
        loop {
            self.skip_whitespace();
            match self.peek_byte() {
                Some(b'"') => {}
                Some(b',') => {
                    self.position += 1;
                    continue;
                }
                Some(b'}') => {
                    self.position += 1;
                    return;
                }
                _ => return,
            }
            let start = self.position;
            self.walk_string();
            let name = self
                .bytes
                .get(start..self.position)
                .filter(|_| has_wanted_children);
            let name = name.and_then(|name| serde_json::from_slice::<String>(name).ok());
            let child = name.and_then(|name| self.pointer_tree.child_index(node_index, &name));
            self.skip_whitespace();
            if self.peek_byte() != Some(b':') {
                return;
            }
            self.position += 1;
            self.walk_value(child, depth + 1);
        }
    }

    fn walk_elements(&mut self, node_index: Option<usize>, depth: usize) {
        let has_wanted_children = self.pointer_tree.has_children(node_index);
        self.position += 1;
        let mut index = 0_usize;
        loop {
            self.skip_whitespace();
            match self.peek_byte() {
                None | Some(b'}' | b':') => return,
                Some(b']') => {
                    self.position += 1;
                    return;
                }
                Some(b',') => {
                    self.position += 1;
                    index += 1;
                    continue;
                }
                Some(_) => {}
            }
            let position_before = self.position;
            let child = has_wanted_children.then(|| {
                self.pointer_tree
                    .child_index(node_index, &index.to_string())
            });
            self.walk_value(child.flatten(), depth + 1);
            if self.position == position_before {
                return;
            }
        }
    }

    /// Walks over a string, from its opening quote to the byte after its closing one.
    fn walk_string(&mut self) {
        self.position += 1;
        while let Some(byte) = self.peek_byte() {
            self.position += match byte {
                b'\\' => 2,
                _ => 1,
            };
            if byte == b'"' {
                return;
            }
        }
        self.position = self.position.min(self.bytes.len());
    }

    fn walk_literal(&mut self) {
        while self
            .peek_byte()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            self.position += 1;
        }
    }

    fn skip_whitespace(&mut self) {
        while self
            .peek_byte()
            .is_some_and(|byte| byte.is_ascii_whitespace())
        {
            self.position += 1;
        }
    }

    fn peek_byte(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }
}

fn spans_to_text_regions(
    bytes: &[u8],
    spans: &[Option<(usize, usize)>],
) -> Vec<Option<TextRegion>> {
    let span_bounds = spans
        .iter()
        .flatten()
        .flat_map(|(start, end)| [*start, *end]);
    let mut offsets: Vec<usize> = span_bounds.collect();
    offsets.sort_unstable();
    offsets.dedup();
    let mut line_columns: HashMap<usize, (usize, usize)> = HashMap::new();
    let (mut line, mut column, mut passed) = (1, 1, 0);
    for offset in offsets {
        for byte in bytes.get(passed..offset).unwrap_or_default() {
            match byte {
                b'\n' => (line, column) = (line + 1, 1),
                // Only the first byte of a character is counted.
                0x80..=0xbf => {}
                _ => column += 1,
            }
        }
        passed = offset;
        line_columns.insert(offset, (line, column));
    }
    let locate = |(start, end): (usize, usize)| {
        let ((start_line, start_column), (end_line, end_column)) =
            (*line_columns.get(&start)?, *line_columns.get(&end)?);
        Some(TextRegion {
            start_line,
            start_column,
            end_line,
            end_column,
        })
    };
    spans.iter().map(|span| locate((*span)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(document: &str, pointers: &[&str]) -> Vec<String> {
        let lines: Vec<Vec<char>> = document.split('\n').map(|l| l.chars().collect()).collect();
        let shown = |region: TextRegion| {
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
        value_regions(document.as_bytes(), pointers)
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
        let found = value_regions("\u{feff}{\n \"a\": 1}".as_bytes(), &["/a", ""]);
        let region = |(start_line, start_column), (end_line, end_column)| {
            Some(TextRegion {
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
            assert_eq!(
                value_regions(text.as_bytes(), &["/a", "/0"]).len(),
                2,
                "{text}"
            );
        }
        assert_eq!(value_regions("[".repeat(100).as_bytes(), &[""]), [None]);
    }
}
