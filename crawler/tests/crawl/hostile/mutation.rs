//! Seeded mutations: the same number gives the same bytes on every machine.

/// Pieces of text that are known to break parsers.
const PIECES: [&[u8]; 24] = [
    b"@",
    b"#",
    b"?",
    b"\\",
    b"//",
    b":",
    b"%00",
    b"%2e",
    b"%",
    b".",
    b"[",
    b"]",
    b"::",
    b"0x",
    b"\r\n",
    b"\0",
    b"\t",
    b" ",
    b"\xff\xfe",
    b"\xc2\xad",
    b"\xe2\x80\xae",
    b"\xef\xbc\x91",
    b"127.0.0.1",
    b"localhost",
];

/// A seeded stream of numbers (splitmix64).
pub struct Seed(u64);

impl Seed {
    /// The stream for an input and a round.
    pub fn new(number: u8, round: usize) -> Self {
        Self((u64::from(number) << 32) ^ (round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// One to four changes of bytes at or after `from`.
    pub fn mutate(&mut self, bytes: &[u8], from: usize) -> Vec<u8> {
        let mut out = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let at = (from + self.below(out.len().saturating_sub(from) + 1)).min(out.len());
            let end = (at + 1 + self.below(8)).min(out.len());
            match self.below(6) {
                0 if at < out.len() => out[at] ^= 1 << self.below(8),
                1 if at < out.len() => out[at] = self.next() as u8,
                2 => drop(out.drain(at..end)),
                3 => {
                    let copy = out[at..end].to_vec();
                    out.splice(at..at, copy);
                }
                4 if at < out.len() => out[at] ^= 0x20,
                _ => {
                    let piece = PIECES[self.below(PIECES.len())];
                    out.splice(at..at, piece.iter().copied());
                }
            }
        }
        out
    }

    pub fn mutate_text(&mut self, text: &str) -> String {
        String::from_utf8_lossy(&self.mutate(text.as_bytes(), 0)).into_owned()
    }
}
