//! Maximum length of functions.

use super::assert_tidy;
use super::code::Token;
use super::imports::lies_in;
use super::tree::{Source, sources};

/// Maximum number of lines of a production function, from its `fn` to its closing brace.
const LIMIT: usize = 60;

/// An exception: a file or folder, a function in it (`*`: all), and why it is longer than [`LIMIT`].
type Table = (&'static str, &'static str, &'static str);

/// Long functions that would not be clearer in parts.
const TABLES: [Table; 2] = [
    (
        "migrations/src",
        "*",
        "a migration lists its tables, and is never changed once it was released",
    ),
    (
        "registry/server/src/metrics.rs",
        "registered",
        "the table of all metrics",
    ),
];

/// A function with a body.
#[derive(Debug, PartialEq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// All functions with a body, nested ones included.
fn functions(tokens: &[Token]) -> Vec<Function> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let [word, name] = pair else { continue };
        // `fn(…)` is a function pointer type.
        if word.text != "fn" || !name.is_word() {
            continue;
        }
        let mut depth = 0_usize;
        let begins = (at..tokens.len()).find(|&at| {
            match text(at) {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(text(at), "{" | ";")
        });
        let Some(begins) = begins.filter(|&at| text(at) == "{") else {
            continue;
        };
        let mut depth = 0_usize;
        let ends = (begins..tokens.len()).find(|&at| {
            match text(at) {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        if let Some(last) = ends.and_then(|at| tokens.get(at)) {
            found.push(Function {
                name: name.text.clone(),
                line: word.line,
                lines: last.line - word.line + 1,
            });
        }
    }
    found
}

/// The violations in a file.
fn check(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    for Function { name, line, lines } in functions(&source.production_tokens()) {
        let is_table = TABLES.iter().any(|(place, table, _)| {
            lies_in(&source.path, place) && (*table == "*" || *table == name)
        });
        if lines > LIMIT && !is_table {
            problems.push(format!(
                "{}:{line}: `{name}` has {lines} lines, {LIMIT} are allowed: move a step into a function whose name says \
                 what the step does",
                source.path
            ));
        }
    }
    problems
}

#[test]
fn functions_are_short() {
    let problems: Vec<_> = sources().iter().flat_map(check).collect();
    assert_tidy(&problems);
}

#[test]
fn long_functions_are_found() {
    let problems = |path: &str, text: &str| check(&Source::new(path, text)).len();
    let function = |lines: usize| {
        format!(
            "fn f<T>(a: [u8; 2]) -> [T; 3]\nwhere\n T: X,\n{{\n{}}}\n",
            " g();\n".repeat(lines - 5)
        )
    };
    assert_eq!(problems("card/src/a.rs", &function(60)), 0);
    assert_eq!(problems("card/src/a.rs", &function(61)), 1);
    assert_eq!(problems("tests/a.rs", &function(61)), 0);
    assert_eq!(problems("migrations/src/m0001_a.rs", &function(200)), 0);

    let method = format!("impl A {{\n {}\n}}\n", function(61));
    assert_eq!(problems("card/src/a.rs", &method), 1);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(61));
    assert_eq!(problems("card/src/a.rs", &tests), 0);
}

#[test]
fn functions_are_distinguished_from_types_and_declarations() {
    let text = "trait A { fn a(&self); fn b(f: fn(u8) -> u8) { // }\n  \"}\"; fn c() {}\n } }";
    let names: Vec<_> = functions(&Source::new("card/src/a.rs", text).tokens());
    let names: Vec<_> = names
        .iter()
        .map(|one| (one.name.as_str(), one.line, one.lines))
        .collect();
    assert_eq!(names, [("b", 1, 3), ("c", 2, 1)]);
}
