//! The script `tests/count`: which lines it counts as code, comments and blank lines, and which as tests.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::tree::root;

/// What the script counts in a package with these files, as code, comments and blank lines of production, then of tests.
fn counted(files: &[(&str, &str)]) -> [usize; 6] {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("a/src/tests")).unwrap();
    fs::write(folder.path().join("a/Cargo.toml"), "").unwrap();
    for (path, text) in files {
        fs::write(folder.path().join("a").join(path), text).unwrap();
    }
    let mut command = Command::new("python3");
    command.arg(root().join("tests/count")).arg("--root");
    let output = command.arg(folder.path()).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let row = table.lines().find(|line| line.starts_with("a "));
    let row = row.unwrap_or_else(|| panic!("{table}{}", String::from_utf8_lossy(&output.stderr)));
    let figures = row.split_whitespace().skip(1);
    let figures: Vec<usize> = figures.map(|figure| figure.parse().unwrap()).collect();
    // The fourth and the eighth are sums.
    [0, 1, 2, 4, 5, 6].map(|column| figures[column])
}

fn counted_file(text: &str) -> [usize; 6] {
    counted(&[("src/lib.rs", text)])
}

#[test]
fn lines_of_code_are_told_from_comments_and_blank_lines() {
    let text = concat!(
        "//! Doc.\n\nfn a() {} // code\n/* b\n\n /* c */ */\n/* d */ fn e() {}\n",
        "const F: &str = \"// g\n\n\";\nconst H: &str = r#\"\" /* \"#; // i\n",
        "const J: char = '\"'; // \"\nfn k<'l>(_: &'l str) {}\n",
    );
    assert_eq!(counted_file(text), [8, 3, 2, 0, 0, 0]);
}

#[test]
fn tests_are_told_from_production() {
    for (text, expected) in [
        (
            "#[cfg(test)]\nmod tests {\n    // a\n\n}\n",
            [0, 0, 0, 3, 1, 1],
        ),
        (
            "/// Doc.\n#[cfg(test)]\n#[allow(x)]\nfn a(b: [u8; 2]) {\n}\nfn c() {}\n",
            [1, 0, 0, 4, 1, 0],
        ),
        (
            "#[cfg(test)]\nuse a::{\n    b,\n};\nuse c;\n",
            [1, 0, 0, 4, 0, 0],
        ),
        (
            "struct A {\n    #[cfg(test)]\n    b: u8,\n    c: u8,\n}\n",
            [3, 0, 0, 2, 0, 0],
        ),
        ("#[cfg(not(test))]\nfn a() {}\n", [2, 0, 0, 0, 0, 0]),
        ("#![cfg(test)]\nfn a() {}\n", [0, 0, 0, 2, 0, 0]),
    ] {
        assert_eq!(counted_file(text), expected, "{text}");
    }
}

#[test]
fn files_of_tests_are_told_from_those_of_production() {
    let declaring = "#[cfg(test)]\nmod b;\n#[cfg(test)]\n#[path = \"d.rs\"]\nmod c;\nmod e;\n";
    let files = [
        ("src/lib.rs", declaring),
        ("src/b.rs", "fn a() {}\n"),
        ("src/d.rs", "fn a() {}\n"),
        ("src/e.rs", "fn a() {}\n"),
        ("src/tests/f.rs", "fn a() {}\n"),
    ];
    assert_eq!(counted(&files), [2, 0, 0, 8, 0, 0]);
}
