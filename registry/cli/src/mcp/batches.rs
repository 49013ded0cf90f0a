//! Batches of messages, as revision 2025-03-26 of the Model Context Protocol has them: a line that holds a list becomes one
//! line for each message in it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// An input whose batches are read as single messages. Bytes are replaced where they are, so nothing is kept of a line.
pub(super) struct Batches<R> {
    input: R,
    place: Place,
}

/// Where in a line the next byte stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Nothing but blanks came so far.
    Start,
    /// In a line that holds no batch, or behind one.
    Message,
    /// In a list, outside of its texts, in so many objects and lists.
    Batch(usize),
    /// In a text that stands in so many of them, and whether the byte before escapes this one.
    Text(usize, bool),
}

impl<R> Batches<R> {
    /// The messages of an input.
    pub(super) const fn new(input: R) -> Self {
        let place = Place::Start;
        Self { input, place }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Batches<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.input).poll_read(context, buffer))?;
        for byte in buffer.filled_mut().iter_mut().skip(before) {
            (self.place, *byte) = split_byte(self.place, *byte);
        }
        Poll::Ready(Ok(()))
    }
}

/// The place after a byte, and what the byte becomes.
const fn split_byte(place: Place, byte: u8) -> (Place, u8) {
    let after = match (place, byte) {
        (_, b'\n') => Place::Start,
        (Place::Start, b' ' | b'\t' | b'\r') => Place::Start,
        (Place::Start, b'[') => return (Place::Batch(0), b' '),
        (Place::Start | Place::Message, _) => Place::Message,
        (Place::Batch(0), b',') => return (Place::Batch(0), b'\n'),
        (Place::Batch(0), b']') => return (Place::Message, b' '),
        (Place::Batch(depth), b'"') => Place::Text(depth, false),
        (Place::Batch(depth), b'{' | b'[') => Place::Batch(depth.saturating_add(1)),
        (Place::Batch(depth), b'}' | b']') => Place::Batch(depth.saturating_sub(1)),
        (Place::Batch(depth), _) => Place::Batch(depth),
        (Place::Text(depth, false), b'"') => Place::Batch(depth),
        (Place::Text(depth, false), b'\\') => Place::Text(depth, true),
        (Place::Text(depth, _), _) => Place::Text(depth, false),
    };
    (after, byte)
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
            // A list that does not end is over with its line.
            ("[{\"a\": \"x\n[1,2]\n", " {\"a\": \"x\n 1\n2 \n"),
            ("nonsense, [1,2]\n", "nonsense, [1,2]\n"),
        ] {
            let mut place = Place::Start;
            let bytes = lines.bytes().map(|byte| {
                let (after, byte) = split_byte(place, byte);
                place = after;
                char::from(byte)
            });
            assert_eq!(bytes.collect::<String>(), expected);
        }
    }
}
