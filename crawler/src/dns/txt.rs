//! What a look-up of TXT records can bring.

/// Most records of one answer that are looked at.
pub const MAX_TXT_RECORDS: usize = 50;
/// Most bytes of one record that is looked at, its strings put together.
pub const MAX_TXT_BYTES: usize = 2048;

/// The answer to a look-up of TXT records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TxtAnswer {
    /// There are records.
    Records(TxtRecords),
    /// There are none: NXDOMAIN, or a name without TXT records. This is an answer.
    Absent,
    /// No answer for now: SERVFAIL, REFUSED, a timeout, an answer cut short. This is not absence.
    Failed(String),
    /// There is an answer and it is forged or broken, by the word of a resolver that checks DNSSEC.
    ///
    /// A name server that checks by itself, as the system's often does, says SERVFAIL to such a name. So
    /// this one comes from name servers that give the reason with it (RFC 8914), and from scripted
    /// resolvers; from all others a forged answer is a [`Failed`](Self::Failed) one.
    Bogus(String),
}

/// TXT records, in no order that means anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TxtRecords {
    /// Each record's strings put together without anything between (RFC 7208 section 3.3 reads them so
    /// too); at most [`MAX_TXT_RECORDS`] of at most [`MAX_TXT_BYTES`] each. What is no UTF-8 holds
    /// U+FFFD instead, which no record of ours does.
    pub records: Vec<String>,
    /// Records that are not looked at, because they are too many or too long.
    pub left_out: usize,
    /// Whether a CNAME led here, so that the records are kept in somebody's other zone.
    pub aliased: bool,
}

impl TxtRecords {
    /// Adds a record, given as its strings, within the bounds.
    pub fn push<S: AsRef<[u8]>>(&mut self, strings: impl IntoIterator<Item = S>) {
        let mut bytes = Vec::new();
        for string in strings {
            bytes.extend_from_slice(string.as_ref());
            if bytes.len() > MAX_TXT_BYTES {
                self.left_out += 1;
                return;
            }
        }
        if self.records.len() == MAX_TXT_RECORDS {
            self.left_out += 1;
        } else {
            self.records
                .push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_joined_and_bounds_hold_to_the_record_and_the_byte() {
        let mut records = TxtRecords::default();
        records.push(["token=", "a b"]);
        records.push([b"\xff\x1b"]);
        records.push([vec![b'x'; MAX_TXT_BYTES]]);
        records.push([vec![b'x'; MAX_TXT_BYTES], vec![b'x'; 1]]);
        assert_eq!(records.records[..2], ["token=a b", "\u{fffd}\u{1b}"]);
        assert_eq!((records.records.len(), records.left_out), (3, 1));
        for _ in 3..=MAX_TXT_RECORDS {
            records.push(["x"]);
        }
        assert_eq!(
            (records.records.len(), records.left_out),
            (MAX_TXT_RECORDS, 2)
        );
    }
}
