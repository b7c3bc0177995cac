//! Indented JSON as Go's json.Indent writes it: two spaces, order kept.

use bytes::{BufMut, Bytes, BytesMut};

/// Indents compact JSON.
pub fn indent(json: &[u8]) -> Bytes {
    Indent::default().push(json)
}

/// Indents compact JSON that comes in pieces. No piece ends within a string, or between a bracket and the one that
/// closes it.
#[derive(Default)]
pub struct Indent {
    depth: usize,
}

impl Indent {
    /// The next piece.
    pub fn push(&mut self, json: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(json.len() + json.len() / 2);
        self.depth = indent_from(self.depth, json, &mut out);
        out.freeze()
    }
}

/// Appends JSON that begins at `depth`, indented. Returns the depth at its end.
fn indent_from(mut depth: usize, json: &[u8], out: &mut BytesMut) -> usize {
    let mut rest = json;
    while let Some((&byte, after)) = rest.split_first() {
        let closes = matches!(after.first(), Some(b'}' | b']'));
        rest = after;
        match byte {
            b'{' | b'[' if closes => {
                out.put_slice(&[byte, after[0]]);
                rest = &after[1..];
            }
            b'{' | b'[' => {
                depth += 1;
                out.put_u8(byte);
                new_line(out, depth);
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(out, depth);
                out.put_u8(byte);
            }
            b',' => {
                out.put_u8(byte);
                new_line(out, depth);
            }
            b':' => out.put_slice(b": "),
            b'"' => {
                let end = string_end(after);
                out.put_u8(byte);
                out.put_slice(&after[..end]);
                rest = &after[end..];
            }
            _ => out.put_u8(byte),
        }
    }
    depth
}

/// Length of a string's rest, with its closing quote.
fn string_end(rest: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn new_line(out: &mut BytesMut, depth: usize) {
    out.put_u8(b'\n');
    out.put_bytes(b' ', depth * 2);
}

#[cfg(test)]
mod tests {
    use super::indent;

    #[test]
    fn order_and_strings_are_kept() {
        let json = br#"{"b":[1,{"x":"a,\"{b\\"}],"a":{},"c":[]}"#;
        let pretty = "{\n  \"b\": [\n    1,\n    {\n      \"x\": \"a,\\\"{b\\\\\"\n    }\n  ],\n  \"a\": {},\n  \"c\": []\n}";
        assert_eq!(indent(json), pretty);
    }

    #[test]
    fn broken_json_does_not_hang() {
        for json in [&b"\"abc"[..], b"}}}]", b"{", b""] {
            indent(json);
        }
    }
}
