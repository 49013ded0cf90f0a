//! Style as a test: permitted dependencies, rules on the content of files, and documents that name only existing
//! items. Checks that a general tool can make are left to the tool: `tests/run` calls clippy, cargo-deny and
//! cargo-shear.
//!
//! Each rule is a function from the text of a file to its violations, so that it is tested on a bad example as well as
//! on the tree. The tables at the top of the modules are meant to be extended: a new folder or an agreed exception is
//! one more line.

mod code_map;
mod count;
mod documents;
mod files;
mod forms;
mod imports;
mod layers;
mod manifests;
mod manual;
mod released_migrations;
mod request_bodies;
mod routes;
mod tokenizer;
mod tree;

/// Fails with one line for each violation.
#[track_caller]
fn assert_tidy(problems: &[String]) {
    assert!(
        problems.is_empty(),
        "{} violations:\n\n{}\n",
        problems.len(),
        problems.join("\n")
    );
}
