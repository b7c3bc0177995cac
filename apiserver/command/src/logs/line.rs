//! One line of the log: its content cannot end the line or control the terminal, and its length is limited.

use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

/// Maximum bytes of a line. A URL, a header or a name of a request is much shorter; an error that repeats a body may be
/// longer.
const MAX_LINE_BYTES: usize = 8 << 10;

/// Makes a writer for each line: `fmt` writes each event with one call.
pub(super) struct LogLines<M>(M);

impl<M> LogLines<M> {
    pub(super) fn new(to: M) -> Self {
        Self(to)
    }
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for LogLines<M> {
    type Writer = LogLine<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        LogLine(self.0.make_writer())
    }
}

/// Writes one line.
pub(super) struct LogLine<W>(W);

impl<W: Write> Write for LogLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        match is_plain(&text) {
            true => self.0.write_all(event)?,
            false => self.0.write_all(mended(&text).as_bytes())?,
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether the text is one short line without control characters.
fn is_plain(text: &str) -> bool {
    let line = text.strip_suffix('\n').unwrap_or(text);
    line.len() <= MAX_LINE_BYTES && !line.chars().any(char::is_control)
}

/// Returns the line with control characters escaped, cut if it is too long.
fn mended(text: &str) -> String {
    let line = text.strip_suffix('\n').unwrap_or(text);
    let mut out = String::with_capacity(line.len().min(MAX_LINE_BYTES) + 64);
    for (at, c) in line.char_indices() {
        if out.len() >= MAX_LINE_BYTES {
            out.push_str(&format!("... ({} bytes more)", line.len() - at));
            break;
        }
        match c.is_control() {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut line = LogLine(Vec::new());
        line.write_all(text.as_bytes()).unwrap();
        String::from_utf8(line.0).unwrap()
    }

    /// Regression: a webhook's response, an expression's error or a header could end the line and forge another one.
    #[test]
    fn what_is_logged_cannot_begin_a_line() {
        let forged = "error=no\n2026-01-01T00:00:00Z  INFO drydock: all is well\r\u{1b}[2J\u{9b}\n";
        assert_eq!(
            written(forged),
            "error=no\\n2026-01-01T00:00:00Z  INFO drydock: all is well\\r\\u{1b}[2J\\u{9b}\n"
        );
        assert_eq!(written("plain text, é and 日本\n"), "plain text, é and 日本\n");
    }

    #[test]
    fn a_line_is_bounded() {
        let line = written(&format!("{}\n", "x".repeat(1 << 20)));
        assert!(
            line.len() < MAX_LINE_BYTES + 64 && line.ends_with("... (1040384 bytes more)\n"),
            "{}",
            line.len()
        );
        assert!(written(&"\n".repeat(1 << 20)).len() < MAX_LINE_BYTES + 64);
        assert!(written(&"日".repeat(1 << 20)).len() < MAX_LINE_BYTES + 64);
    }
}
