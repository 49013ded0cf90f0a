//! Batches of messages, as in revision 2025-03-26 of the Model Context Protocol: a line with a list becomes one line
//! for each message in it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Input whose batches are read as single messages. Bytes are replaced in place, so no line is buffered.
pub(super) struct McpBatchSplitter<R> {
    input: R,
    state: LineParserState,
}

/// Parser state within a line.
#[derive(Debug, Clone, Copy)]
enum LineParserState {
    /// Only blanks so far.
    Start,
    /// In a line without a batch, or after one.
    Message,
    /// In a list, outside of strings, at this nesting depth.
    Batch(usize),
    /// In a string at this nesting depth, and whether the byte before escapes this one.
    Text(usize, bool),
}

impl<R> McpBatchSplitter<R> {
    /// Splits the batches of an input.
    pub(super) const fn new(input: R) -> Self {
        let state = LineParserState::Start;
        Self { input, state }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for McpBatchSplitter<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.input).poll_read(context, buffer))?;
        for byte in buffer.filled_mut().iter_mut().skip(before) {
            (self.state, *byte) = step_line_parser(self.state, *byte);
        }
        Poll::Ready(Ok(()))
    }
}

/// State after a byte, and the byte's replacement.
const fn step_line_parser(state: LineParserState, byte: u8) -> (LineParserState, u8) {
    let next_state = match (state, byte) {
        (_, b'\n') => LineParserState::Start,
        (LineParserState::Start, b' ' | b'\t' | b'\r') => LineParserState::Start,
        (LineParserState::Start, b'[') => return (LineParserState::Batch(0), b' '),
        (LineParserState::Start | LineParserState::Message, _) => LineParserState::Message,
        (LineParserState::Batch(0), b',') => return (LineParserState::Batch(0), b'\n'),
        (LineParserState::Batch(0), b']') => return (LineParserState::Message, b' '),
        (LineParserState::Batch(depth), b'"') => LineParserState::Text(depth, false),
        (LineParserState::Batch(depth), b'{' | b'[') => {
            LineParserState::Batch(depth.saturating_add(1))
        }
        (LineParserState::Batch(depth), b'}' | b']') => {
            LineParserState::Batch(depth.saturating_sub(1))
        }
        (LineParserState::Batch(depth), _) => LineParserState::Batch(depth),
        (LineParserState::Text(depth, false), b'"') => LineParserState::Batch(depth),
        (LineParserState::Text(depth, false), b'\\') => LineParserState::Text(depth, true),
        (LineParserState::Text(depth, _), _) => LineParserState::Text(depth, false),
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
            let mut state = LineParserState::Start;
            let bytes = lines.bytes().map(|byte| {
                let (after, byte) = step_line_parser(state, byte);
                state = after;
                char::from(byte)
            });
            assert_eq!(bytes.collect::<String>(), expected);
        }
    }
}
