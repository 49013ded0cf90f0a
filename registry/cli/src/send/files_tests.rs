//! Names from agents stay in the folder, and the size of sent files is bounded.

#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn named(name: &str) -> AgentFile {
    AgentFile {
        name: Some(name.to_owned()),
        media_type: None,
        content: FileContent::Bytes(Vec::new()),
    }
}

#[test]
fn a_name_is_one_plain_name() {
    for (own, expected) in [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("C:\\x.txt", "x.txt"),
        ("c:x.txt", "c_x.txt"),
        ("..", "file-7"),
        (".", "file-7"),
        ("", "file-7"),
        ("a/", "file-7"),
        (".bashrc", "bashrc"),
        ("--force", "force"),
        ("évil\u{202e}fdp.exe\u{1b}[2J", "évil_fdp.exe__2J"),
        ("a\0b\nc", "a_b_c"),
        ("trailing. . ", "trailing"),
        ("nul.txt", "file-7"),
        ("COM1", "file-7"),
        ("console", "console"),
        ("x y (1).tar.gz", "x y (1).tar.gz"),
    ] {
        assert_eq!(safe_file_name(&named(own), 7), expected, "{own:?}");
    }
    let long = safe_file_name(&named(&"東".repeat(1000)), 1);
    assert_eq!(long.len(), MAX_NAME_BYTES);
    let data = AgentFile {
        content: FileContent::Data(json!(1)),
        ..named("")
    };
    assert_eq!(safe_file_name(&data, 2), "data-2.json");
}

#[test]
fn nothing_is_overwritten_and_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside.txt");
    let inside = folder.path().join("in");
    fs::create_dir(&inside).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, inside.join("a.tar.gz")).unwrap();
    #[cfg(not(unix))]
    fs::write(inside.join("a.tar.gz"), b"").unwrap();
    let written = write_new_file(&inside, "a.tar.gz", b"new").unwrap();
    assert_eq!(written, inside.join("a.tar-2.gz"));
    assert_eq!(fs::read(written).unwrap(), b"new");
    assert!(!outside.exists());
    for _ in 3..=MAX_SAME_NAME_FILES {
        write_new_file(&inside, "a.tar.gz", b"").unwrap();
    }
    assert!(write_new_file(&inside, "a.tar.gz", b"").is_err());
}

#[test]
fn files_and_data_are_read_up_to_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.png"), b"png").unwrap();
    fs::write(path("b"), b"[1]").unwrap();
    let at = format!("@{}", path("b").display());
    let read = read_message_parts(&[path("a.png"), path("b")], &["{}".to_owned(), at]).unwrap();
    let file = |name: &str, media_type: &str, bytes: &[u8]| Part::File {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes: bytes.to_vec(),
    };
    assert_eq!(
        read,
        [
            file("a.png", "image/png", b"png"),
            file("b", "application/octet-stream", b"[1]"),
            Part::Data(json!({})),
            Part::Data(json!([1])),
        ]
    );
    for (files, data, words) in [
        (vec![path("missing")], vec![], "cannot be read"),
        (vec![folder.path().to_owned()], vec![], "cannot be read"),
        (vec![], vec!["{".to_owned()], "not JSON"),
        (vec![], vec!["@".to_owned()], "cannot be read"),
    ] {
        let failure = read_message_parts(&files, &data).unwrap_err();
        assert!(format!("{failure:?}").contains(words), "{failure:?}");
    }
    let half = File::create(path("half")).unwrap();
    half.set_len(MAX_SENT_BYTES / 2).unwrap();
    assert_eq!(
        read_message_parts(&[path("half"), path("half")], &[])
            .unwrap()
            .len(),
        2
    );
    assert!(read_message_parts(&[path("half"), path("half"), path("b")], &[]).is_err());
}
