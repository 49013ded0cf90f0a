//! Archives are unpacked with nothing in them believed.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;
use crate::embed::archive::{unpack, unpack_bounded};

/// A header with a path that the library would refuse to write.
fn header(path: &str, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

/// An archive of these files.
fn archive<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, bytes) in files {
        let header = header(path, EntryType::Regular, bytes.len() as u64);
        builder.append(&header, bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// Where the model lies within the folder it was unpacked into, and which files there are.
fn unpacked(bytes: &[u8]) -> Result<(String, Vec<String>), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("archive");
    std::fs::write(&file, bytes).unwrap();
    let into = folder.path().join("into");
    std::fs::create_dir(&into).unwrap();
    let within = unpack(&file, &into).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    collect(&into, &into, &mut found);
    found.sort();
    let within = within.strip_prefix(&into).unwrap();
    Ok((within.to_str().unwrap().to_owned(), found))
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            let within = path.strip_prefix(root).unwrap();
            found.push(within.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn models_are_found_at_the_top_or_in_the_only_folder() {
    let empty: &[u8] = b"";
    for (files, within, kept) in [
        (
            vec!["config.json", "model.safetensors", "1_Pooling/config.json"],
            "",
            vec!["1_Pooling/config.json", "config.json", "model.safetensors"],
        ),
        (
            vec!["./modules.json", "./onnx/model.onnx", "./README.md"],
            "",
            vec!["modules.json"],
        ),
        (
            vec!["m/config.json", "m/pytorch_model.bin", "notes.txt"],
            "m",
            vec!["m/config.json"],
        ),
    ] {
        let bytes = archive(files.iter().map(|path| (*path, empty)));
        let expected = (
            within.to_owned(),
            kept.iter().map(|path| (*path).to_owned()).collect(),
        );
        assert_eq!(unpacked(&bytes), Ok(expected.clone()));
        assert_eq!(unpacked(&packed(&bytes)), Ok(expected));
    }
}

#[track_caller]
fn assert_refused(bytes: &[u8], word: &str) {
    let line = unpacked(bytes).unwrap_err();
    assert!(line.contains(word), "{word:?} is not in {line:?}");
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn paths_that_lead_out_are_refused() {
    for path in [
        "../config.json",
        "m/../../config.json",
        "/config.json",
        "m\\..\\x.json",
    ] {
        assert_refused(&archive([(path, &b"{}"[..])]), "leads out");
        let mut builder = Builder::new(Vec::new());
        let folder = header(path, EntryType::Directory, 0);
        builder.append(&folder, &b""[..]).unwrap();
        assert_refused(&builder.into_inner().unwrap(), "leads out");
    }
}

#[test]
fn links_and_devices_are_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Fifo,
        EntryType::Char,
    ] {
        let mut builder = Builder::new(Vec::new());
        let mut entry = header("config.json", kind, 0);
        entry.set_link_name("/etc/passwd").unwrap();
        entry.set_cksum();
        builder.append(&entry, &b""[..]).unwrap();
        assert_refused(&builder.into_inner().unwrap(), "link");
    }
}

#[test]
fn what_is_no_archive_of_a_model_is_refused() {
    let empty: &[u8] = b"";
    assert_refused(b"", "holds no config.json");
    assert_refused(&[b'x'; 4096], "cannot be read as an archive");
    assert_refused(b"PK\x03\x04 a zip", "cannot be read as an archive");
    assert_refused(&[0x1f, 0x8b, 0, 0], "cannot be read as an archive");
    assert_refused(&archive([("notes.txt", empty)]), "holds no config.json");
    assert_refused(
        &archive([("a/config.json", empty), ("b/modules.json", empty)]),
        "several models",
    );
    assert_refused(
        &archive([("config.json", empty), ("./config.json", empty)]),
        "twice",
    );
    let whole = archive([("config.json", &[b' '; 5000][..])]);
    assert_refused(&whole[..3000], "breaks off");
    let whole = packed(&whole);
    assert_refused(&whole[..whole.len() / 2], "read");
}

#[test]
fn archives_are_bounded() {
    let many: Vec<_> = (0..=MAX_ENTRIES).map(|index| format!("{index}")).collect();
    let many = archive(many.iter().map(|path| (path.as_str(), &b""[..])));
    assert_refused(&many, "entries");

    // A thousandth of it on the disk, whether what it holds is kept or passed over.
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "bomb.bin"] {
        let bomb = archive([(name, vec![b' '; 2_000_000].as_slice())]);
        let file = folder.path().join("bomb.tar.gz");
        std::fs::write(&file, packed(&bomb)).unwrap();
        assert!(std::fs::metadata(&file).unwrap().len() < 20_000);
        let into = folder.path().join(name);
        std::fs::create_dir(&into).unwrap();
        let error = unpack_bounded(&file, &into, 100_000).unwrap_err();
        assert!(error.to_string().contains("longer than 100000"), "{error}");
        let mut found = Vec::new();
        collect(&into, &into, &mut found);
        let written = found
            .iter()
            .map(|path| std::fs::metadata(into.join(path)).unwrap().len());
        assert!(written.sum::<u64>() <= 100_000);
    }
}
