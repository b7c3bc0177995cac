//! JSON as Go's encoding/json writes it, and its error messages for invalid JSON (scanner.go), which kube-apiserver's
//! responses repeat.

use serde_json::error::Category;

use crate::quote::go_quote;

/// Returns Go's message for a syntax error; for any other error, ours without the position.
pub fn message(body: &[u8], error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Syntax | Category::Eof => {
            Scanner::new(body).whole().err().unwrap_or_else(|| error.to_string())
        }
        // Go's message does not contain the position.
        Category::Data | Category::Io => {
            let text = error.to_string();
            text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
        }
    }
}

/// Returns a struct of strings and numbers as Go's json.Marshal writes it: fields in the order of the struct, and HTML
/// characters escaped.
pub fn to_html_escaped(value: &impl serde::Serialize) -> String {
    // A struct of strings and numbers always serializes.
    let text = serde_json::to_string(value).unwrap_or_default();
    text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// Returns the name of a value's type in error messages.
pub fn kind_of(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

const END: &str = "unexpected end of JSON input";
const VALUE: &str = "looking for beginning of value";
const KEY: &str = "looking for beginning of object key string";

type Scanned = Result<(), String>;

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// For each open container, whether it is an object.
    open: Vec<bool>,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, open: Vec::new() }
    }

    fn whole(mut self) -> Scanned {
        self.value()?;
        while let Some(object) = self.open.last().copied() {
            self.more(object)?;
        }
        self.spaces();
        if self.at < self.bytes.len() { Err(self.invalid("after top-level value")) } else { Ok(()) }
    }

    /// Scans a scalar, or the start of a container with its first value.
    fn value(&mut self) -> Scanned {
        loop {
            self.spaces();
            match self.peek()? {
                b'{' => {
                    self.at += 1;
                    if self.ends(b'}')? {
                        return Ok(());
                    }
                    self.open.push(true);
                    self.key()?;
                }
                b'[' => {
                    self.at += 1;
                    if self.ends(b']')? {
                        return Ok(());
                    }
                    self.open.push(false);
                }
                _ => return self.scalar(),
            }
        }
    }

    /// Scans what follows a value in a container: its end, or the next value.
    fn more(&mut self, object: bool) -> Scanned {
        self.spaces();
        let (end, context) =
            if object { (b'}', "after object key:value pair") } else { (b']', "after array element") };
        match self.peek()? {
            b',' => {
                self.at += 1;
                if object {
                    self.spaces();
                    self.key()?;
                }
                self.value()
            }
            byte if byte == end => {
                self.at += 1;
                self.open.pop();
                Ok(())
            }
            _ => Err(self.invalid(context)),
        }
    }

    fn ends(&mut self, end: u8) -> Result<bool, String> {
        self.spaces();
        let ends = self.peek()? == end;
        self.at += usize::from(ends);
        Ok(ends)
    }

    fn key(&mut self) -> Scanned {
        if self.peek()? != b'"' {
            return Err(self.invalid(KEY));
        }
        self.string()?;
        self.spaces();
        if self.peek()? != b':' {
            return Err(self.invalid("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self) -> Scanned {
        match self.peek()? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => Err(self.invalid(VALUE)),
        }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        self.at += 1;
        for expected in word.bytes().skip(1) {
            if self.peek()? != expected {
                return Err(
                    self.invalid(&format!("in literal {word} (expecting '{}')", char::from(expected)))
                );
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    self.at += 1;
                    self.escape()?;
                }
                0..0x20 => return Err(self.invalid("in string literal")),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Scanned {
        match self.peek()? {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek()?.is_ascii_hexdigit() {
                        return Err(self.invalid("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.invalid("in string escape code")),
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        self.at += usize::from(self.peek()? == b'-');
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits("in numeric literal")?,
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek()?, b'+' | b'-'));
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Scanned {
        if !self.peek()?.is_ascii_digit() {
            return Err(self.invalid(context));
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }

    fn spaces(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, String> {
        self.bytes.get(self.at).copied().ok_or_else(|| END.to_owned())
    }

    fn invalid(&self, context: &str) -> String {
        let shown = match self.bytes.get(self.at) {
            None => return END.to_owned(),
            Some(b'\'') => "'\\''".to_owned(),
            Some(b'"') => "'\"'".to_owned(),
            Some(byte) => {
                let quoted = go_quote(&char::from(*byte).to_string());
                format!("'{}'", quoted.trim_matches('"'))
            }
        };
        format!("invalid character {shown} {context}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages of `json.Unmarshal` in Go 1.26.
    #[test]
    fn the_words_are_those_of_go() {
        for (text, words) in [
            ("", END),
            ("{", END),
            (r#"{"a":"#, END),
            ("hello", "invalid character 'h' looking for beginning of value"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            (r#"{"a":1 "b"}"#, "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
            ("tru ", "invalid character ' ' in literal true (expecting 'e')"),
            ("[01]", "invalid character '1' after array element"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            (r#""\x""#, "invalid character 'x' in string escape code"),
            (r#""\u00g0""#, "invalid character 'g' in \\u hexadecimal character escape"),
        ] {
            let found = Scanner::new(text.as_bytes()).whole();
            assert_eq!(found, Err(words.to_owned()), "{text}");
        }
    }

    #[test]
    fn json_is_no_error() {
        for text in [" null ", r#"{"a":[1,-0.5e+3,{"b":"\u00e4\n"}],"c":{}}"#, "[]", "[[],{}]", "true"] {
            assert_eq!(Scanner::new(text.as_bytes()).whole(), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_html_reads_is_escaped() {
        assert_eq!(to_html_escaped(&"a < b && c > d"), r#""a \u003c b \u0026\u0026 c \u003e d""#);
    }
}
