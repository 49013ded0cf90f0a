//! Memory for reading and linting the largest card, whatever its shape.

use a2a_card::MAX_CARD_BYTES;
use tempfile::TempDir;

use crate::support::program::{Program, after_shell_commands, registry_command};

/// Kibibytes of data that the process may have, allocator, stacks and runtime included.
const MOST: u64 = 384 * 1024;

/// A card of the greatest size with a list of these elements.
fn card_of(element: &str) -> String {
    let frame = r#"{"name":"A","url":"https://a.agents-test.com/","x":[]}"#.len();
    let count = (MAX_CARD_BYTES - frame) / (element.len() + 1);
    let list = vec![element; count].join(",");
    format!(r#"{{"name":"A","url":"https://a.agents-test.com/","x":[{list}]}}"#)
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}0{}", open.repeat(depth), close.repeat(depth))
}

#[tokio::test]
async fn the_largest_card_of_any_shape_is_linted_in_little_memory() {
    let folder = TempDir::new().unwrap();
    for element in [
        nested("[", "]", 60).as_str(),
        &nested("{\"\":", "}", 60),
        &nested("[{\"a\":", "}]", 30),
        "[[]]",
        "[0]",
        "[]",
        "{}",
        "0",
        "{\"a\":0}",
        "\"\\u202e\"",
        "{\"id\":true}",
    ] {
        let file = folder.path().join("card.json");
        std::fs::write(&file, card_of(element)).unwrap();
        let command = registry_command(["lint", file.to_str().unwrap()]);
        let ended =
            Program::run(after_shell_commands(&format!("ulimit -d {MOST}"), &command)).await;
        let end = element.chars().take(20).collect::<String>();
        // 1 is the answer that a card has errors.
        assert!(
            matches!(ended.status.code(), Some(0 | 1)),
            "{end}: {ended:?}"
        );
    }
}
