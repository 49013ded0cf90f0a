//! Models as `.tar` and `.tar.gz`: nothing in them is believed, and everything is bounded.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::config::CONFIG;
use super::error::{ModelError, first_line};
use super::folder::{MAX_SETTINGS_BYTES, MAX_TOKENIZER_BYTES, MAX_WEIGHTS_BYTES, MODULES, WEIGHTS};

/// The most bytes of an archive once it is unpacked, whatever is left out: the longest weights and tokenizer, and
/// room for what models are published with besides.
pub const MAX_UNPACKED_BYTES: u64 =
    MAX_WEIGHTS_BYTES + MAX_TOKENIZER_BYTES + 64 * MAX_SETTINGS_BYTES;
/// The most entries of an archive.
pub const MAX_ENTRIES: usize = 1000;

/// What every gzip file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Unpacks what a model may consist of into an empty folder, and answers where in it the model lies: in the folder
/// itself, or in the only one within.
///
/// # Errors
/// Where the archive cannot be read, is no archive, is too long, or has a link, an absolute path or one with `..`.
pub(super) fn unpack(archive: &Path, into: &Path) -> Result<PathBuf, ModelError> {
    unpack_bounded(archive, into, MAX_UNPACKED_BYTES)
}

/// As [`unpack`], with another bound on the bytes.
pub(super) fn unpack_bounded(
    archive: &Path,
    into: &Path,
    most: u64,
) -> Result<PathBuf, ModelError> {
    let facts = std::fs::metadata(archive).map_err(ModelError::unreadable(archive))?;
    if !facts.is_file() {
        return Err(refused("it is neither a folder nor a file"));
    }
    let mut file = File::open(archive).map_err(ModelError::unreadable(archive))?;
    let mut begin = Vec::new();
    (&mut file)
        .take(GZIP.len() as u64)
        .read_to_end(&mut begin)
        .map_err(ModelError::unreadable(archive))?;
    let packed = begin == GZIP;
    let whole = io::Cursor::new(begin).chain(file);
    let plain: Box<dyn Read> = if packed {
        Box::new(MultiGzDecoder::new(io::BufReader::new(whole)))
    } else {
        Box::new(io::BufReader::new(whole))
    };
    let mut bounded = Bounded {
        inner: plain,
        left: most,
        exceeded: false,
    };
    let done = entries(&mut bounded, into);
    // The reader of archives cannot tell why it got no more.
    if bounded.exceeded {
        return Err(refused(format!("unpacked it is longer than {most} bytes")));
    }
    model_within(into, &done?)
}

fn entries(reader: &mut Bounded<impl Read>, into: &Path) -> Result<BTreeSet<PathBuf>, ModelError> {
    let broken = |error: io::Error| {
        refused(format!(
            "it cannot be read as an archive ({})",
            first_line(&error.to_string())
        ))
    };
    let mut archive = tar::Archive::new(reader);
    let mut kept = BTreeSet::new();
    for (index, entry) in archive.entries().map_err(broken)?.enumerate() {
        let mut entry = entry.map_err(broken)?;
        if index >= MAX_ENTRIES {
            return Err(refused(format!("it has more than {MAX_ENTRIES} entries")));
        }
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            continue;
        }
        let path = plain_path(&entry.path().map_err(broken)?)?;
        if kind.is_dir() {
            continue;
        }
        if !kind.is_file() {
            return Err(refused("it holds a link or something that is no file"));
        }
        if !may_belong(&path) {
            continue;
        }
        let target = into.join(&path);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(ModelError::unwritable(parent))?;
        }
        if !kept.insert(path) {
            return Err(refused("it holds a file twice"));
        }
        let mut file = File::create_new(&target).map_err(ModelError::unwritable(&target))?;
        let length = entry.size();
        copy(&mut entry, length, &mut file, &target)?;
    }
    Ok(kept)
}

/// Copies an entry of so many bytes; what fails on reading is the archive's fault, and on writing the disk's.
fn copy(
    entry: &mut impl Read,
    length: u64,
    file: &mut File,
    target: &Path,
) -> Result<(), ModelError> {
    let broken = |why: &str| refused(format!("it breaks off within a file ({why})"));
    let mut buffer = vec![0; 64 * 1024];
    let mut copied = 0;
    loop {
        let read = match entry.read(&mut buffer) {
            Ok(0) if copied < length => return Err(broken("there is no more of it")),
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(broken(&first_line(&error.to_string()))),
        };
        copied += read as u64;
        file.write_all(&buffer[..read])
            .map_err(ModelError::unwritable(target))?;
    }
}

/// A path that stays within the folder it is unpacked into, without `./`.
fn plain_path(path: &Path) -> Result<PathBuf, ModelError> {
    let outside = || refused("it holds a path that leads out of its folder");
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => {
                if name.to_string_lossy().contains('\\') {
                    return Err(outside());
                }
                plain.push(name);
            }
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(outside());
            }
        }
    }
    Ok(plain)
}

/// Whether a file may be one that a model is read from: others are passed over, among them weights in other formats.
fn may_belong(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| name == WEIGHTS || name.ends_with(".json"))
}

/// The model's folder: where its list of steps or its configuration lies.
fn model_within(into: &Path, kept: &BTreeSet<PathBuf>) -> Result<PathBuf, ModelError> {
    let holds = |folder: &Path| {
        [MODULES, CONFIG]
            .iter()
            .any(|name| kept.contains(&folder.join(name)))
    };
    if holds(Path::new("")) {
        return Ok(into.to_owned());
    }
    let tops: BTreeSet<_> = kept.iter().filter_map(|path| path.iter().next()).collect();
    let mut folders = tops.iter().map(Path::new).filter(|top| holds(top));
    match (folders.next(), folders.next()) {
        (Some(top), None) => Ok(into.join(top)),
        (Some(_), Some(_)) => Err(refused("it holds several models")),
        (None, _) => Err(refused(format!("it holds no {CONFIG}"))),
    }
}

fn refused(why: impl Into<String>) -> ModelError {
    ModelError::Archive(why.into())
}

/// A reader that fails after so many bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
    exceeded: bool,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        if room == 0 && !buffer.is_empty() {
            // The end may be exactly here.
            self.exceeded = self.inner.read(&mut [0])? > 0;
            return match self.exceeded {
                true => Err(io::Error::other("too long")),
                false => Ok(0),
            };
        }
        let end = buffer.len().min(room);
        let read = self.inner.read(&mut buffer[..end])?;
        self.left -= read as u64;
        Ok(read)
    }
}
