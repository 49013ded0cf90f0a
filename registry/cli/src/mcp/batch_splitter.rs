//! Batches of messages, as in revision 2025-03-26 of the Model Context Protocol: a line with a list becomes one line
//! for each message in it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Input whose batches are read as single messages. Bytes are replaced in place, so no line is buffered.
pub(super) struct BatchSplitter<R> {
    input: R,
    state: LineState,
}

/// Parser state within a line.
#[derive(Debug, Clone, Copy)]
enum LineState {
    /// Only blanks so far.
    Start,
    /// In a line without a batch, or after one.
    Message,
    /// In a list, outside of strings, at this nesting depth.
    Batch(usize),
    /// In a string at this nesting depth, and whether the byte before escapes this one.
    Text(usize, bool),
}

impl<R> BatchSplitter<R> {
    /// Splits the batches of an input.
    pub(super) const fn new(input: R) -> Self {
        let state = LineState::Start;
        Self { input, state }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BatchSplitter<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.input).poll_read(context, buffer))?;
        for byte in buffer.filled_mut().iter_mut().skip(before) {
            (self.state, *byte) = rewrite_byte(self.state, *byte);
        }
        Poll::Ready(Ok(()))
    }
}

/// State after a byte, and the byte's replacement.
const fn rewrite_byte(state: LineState, byte: u8) -> (LineState, u8) {
    let next_state = match (state, byte) {
        (_, b'\n') => LineState::Start,
        (LineState::Start, b' ' | b'\t' | b'\r') => LineState::Start,
        (LineState::Start, b'[') => return (LineState::Batch(0), b' '),
        (LineState::Start | LineState::Message, _) => LineState::Message,
        (LineState::Batch(0), b',') => return (LineState::Batch(0), b'\n'),
        (LineState::Batch(0), b']') => return (LineState::Message, b' '),
        (LineState::Batch(depth), b'"') => LineState::Text(depth, false),
        (LineState::Batch(depth), b'{' | b'[') => LineState::Batch(depth.saturating_add(1)),
        (LineState::Batch(depth), b'}' | b']') => LineState::Batch(depth.saturating_sub(1)),
        (LineState::Batch(depth), _) => LineState::Batch(depth),
        (LineState::Text(depth, false), b'"') => LineState::Batch(depth),
        (LineState::Text(depth, false), b'\\') => LineState::Text(depth, true),
        (LineState::Text(depth, _), _) => LineState::Text(depth, false),
    };
    (next_state, byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_becomes_one_line_for_each_message() {
        for (lines, expected) in [
            ("{\"a\":[1,2]}\n", "{\"a\":[1,2]}\n"),
            (
                "[{\"a\":[1,{}],\"b\":\"],\\\"[,\"},{\"c\":1}]\n{\"d\":[1]}\n",
                " {\"a\":[1,{}],\"b\":\"],\\\"[,\"}\n{\"c\":1} \n{\"d\":[1]}\n",
            ),
            (" [1, \"\\\\\",2]\r\n[]\n", "  1\n \"\\\\\"\n2 \r\n  \n"),
            // A list without an end ends with its line.
            ("[{\"a\": \"x\n[1,2]\n", " {\"a\": \"x\n 1\n2 \n"),
            ("nonsense, [1,2]\n", "nonsense, [1,2]\n"),
        ] {
            let mut state = LineState::Start;
            let bytes = lines.bytes().map(|byte| {
                let (after, byte) = rewrite_byte(state, byte);
                state = after;
                char::from(byte)
            });
            assert_eq!(bytes.collect::<String>(), expected);
        }
    }
}
