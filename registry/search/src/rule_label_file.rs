//! The file of the rule labels, so that a restart evaluates no rule again.
//!
//! It belongs to one build of the index and lies in its folder. A file that is missing or damaged means that no agent
//! has a rule label; searches then show less, never more, until the rules are evaluated.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::rule_labels::{CHUNK_WORDS, LabelColumn, RuleLabels};

pub(super) const RULE_LABEL_FILE: &str = "rule-labels";

/// Identifies the format; another format has another mark.
const FORMAT_MARK: &[u8; 8] = b"a2arule1";
const CHUNK_BYTES: usize = CHUNK_WORDS * size_of::<u64>();

/// Replaces the file atomically. `seq` is the event up to which the labels are current.
pub(super) fn write_rule_labels(folder: &Path, labels: &RuleLabels, seq: i64) -> io::Result<()> {
    let temp_path = folder.join(format!("{RULE_LABEL_FILE}.new"));
    let mut file = File::create(&temp_path)?;
    file.write_all(&encode_rule_labels(labels, seq))?;
    file.sync_all()?;
    fs::rename(&temp_path, folder.join(RULE_LABEL_FILE))
}

/// Reads the file: the labels, and the event up to which they are current; `None` if there is no usable file.
pub(super) fn read_rule_labels(folder: &Path) -> Option<(RuleLabels, i64)> {
    let path = folder.join(RULE_LABEL_FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the rule labels; all rules are evaluated again");
            return None;
        }
    };
    let decoded = decode_rule_labels(&bytes);
    if decoded.is_none() {
        tracing::warn!(path = %path.display(), "the file of the rule labels is damaged; all rules are evaluated again");
    }
    decoded
}

fn encode_rule_labels(labels: &RuleLabels, seq: i64) -> Vec<u8> {
    let mut bytes = FORMAT_MARK.to_vec();
    bytes.extend(seq.to_le_bytes());
    let ids = labels.numbers().ids_in_order();
    push_length(&mut bytes, ids.len());
    bytes.extend(ids.iter().flat_map(|id| *id.as_bytes()));
    push_length(&mut bytes, labels.columns().len());
    for (label, column) in labels.columns() {
        push_length(&mut bytes, label.len());
        bytes.extend(label.as_bytes());
        push_length(&mut bytes, column.chunks().len());
        for chunk in column.chunks() {
            bytes.push(u8::from(chunk.is_some()));
            for word in chunk.iter().flat_map(|chunk| chunk.iter()) {
                bytes.extend(word.to_le_bytes());
            }
        }
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

fn push_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn decode_rule_labels(bytes: &[u8]) -> Option<(RuleLabels, i64)> {
    let (content, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(content) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut rest = content.strip_prefix(FORMAT_MARK)?;
    let seq = i64::from_le_bytes(take_bytes(&mut rest)?);
    let agents = take_length(&mut rest)?;
    let mut ids = Vec::with_capacity(agents.min(rest.len() / size_of::<Uuid>()));
    for _ in 0..agents {
        ids.push(Uuid::from_bytes(take_bytes(&mut rest)?));
    }
    let mut columns = BTreeMap::new();
    for _ in 0..take_length(&mut rest)? {
        let length = take_length(&mut rest)?;
        let label = std::str::from_utf8(rest.split_off(..length)?).ok()?;
        let mut chunks = Vec::new();
        for _ in 0..take_length(&mut rest)? {
            chunks.push(match take_bytes::<1>(&mut rest)? {
                [0] => None,
                _ => Some(Arc::new(decode_chunk(rest.split_off(..CHUNK_BYTES)?)?)),
            });
        }
        columns.insert(Arc::from(label), LabelColumn::from_chunks(chunks));
    }
    rest.is_empty()
        .then(|| (renumber_labelled_agents(&ids, columns), seq))
}

/// Leaves out the agents without any label, which may no longer exist.
fn renumber_labelled_agents(ids: &[Uuid], columns: BTreeMap<Arc<str>, LabelColumn>) -> RuleLabels {
    let is_labelled = |number: u32| columns.values().any(|column| column.contains(number));
    let labelled: Vec<(u32, Uuid)> = (0..)
        .zip(ids.iter().copied())
        .filter(|(number, _)| is_labelled(*number))
        .collect();
    let numbers: HashMap<Uuid, u32> = labelled
        .iter()
        .zip(0..)
        .map(|((_, id), number)| (*id, number))
        .collect();
    if labelled.len() == ids.len() {
        let columns = columns.into_iter();
        let shared = columns.map(|(label, column)| (label, Arc::new(column)));
        return RuleLabels::from_parts(numbers, shared.collect());
    }
    let renumbered = columns.into_iter().map(|(label, old)| {
        let mut column = LabelColumn::default();
        for ((before, _), number) in labelled.iter().zip(0..) {
            if old.contains(*before) {
                column.set(number, true);
            }
        }
        (label, Arc::new(column))
    });
    RuleLabels::from_parts(numbers, renumbered.collect())
}

fn take_bytes<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*taken)
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(take_bytes(rest)?)).ok()
}

fn decode_chunk(bytes: &[u8]) -> Option<[u64; CHUNK_WORDS]> {
    let mut words = [0; CHUNK_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(size_of::<u64>())) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}
