//! Translates RE2 patterns (Go's regexp/syntax) to the syntax of the crate `regex`, which interprets some of them
//! differently: its character classes are Unicode, RE2's are ASCII, and its sets nest.

use std::iter::Peekable;
use std::str::Chars;

/// Highest repetition count.
const MAX_REPETITIONS: u32 = 1000;

/// Returns the equivalent pattern for `regex`. Fails with Go's message.
pub fn translate(pattern: &str) -> Result<String, String> {
    let mut reader =
        PatternReader { rest: pattern.chars().peekable(), out: String::with_capacity(pattern.len()) };
    let mut repeated = false;
    while let Some(sign) = reader.rest.next() {
        let repeats = match sign {
            '\\' => reader.escape(false)?,
            '[' => reader.set()?,
            '(' => reader.group()?,
            '{' => reader.count()?,
            '*' | '+' | '?' => {
                reader.out.push(sign);
                true
            }
            other => {
                reader.out.push(other);
                false
            }
        };
        if repeats && repeated {
            return Err("invalid nested repetition operator".to_owned());
        }
        repeated = repeats;
        // Lazy repetition, which is not a repetition by itself.
        if repeats && let Some(lazy) = reader.rest.next_if_eq(&'?') {
            reader.out.push(lazy);
        }
    }
    Ok(reader.out)
}

struct PatternReader<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

impl PatternReader<'_> {
    /// Translates what follows a `\`. Returns `false`: it is never a repetition.
    fn escape(&mut self, in_set: bool) -> Result<bool, String> {
        let sign = self.rest.next().ok_or("trailing backslash at end of expression")?;
        match sign {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' => self.out.push_str(r"[\t\n\f\r ]"),
            'S' => self.out.push_str(r"[^\t\n\f\r ]"),
            'b' if !in_set => self.out.push_str(r"(?-u:\b)"),
            'B' if !in_set => self.out.push_str(r"(?-u:\B)"),
            'Q' if !in_set => self.quoted(),
            'A' | 'z' if !in_set => self.out.extend(['\\', sign]),
            'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' => self.out.extend(['\\', sign]),
            'p' | 'P' => {
                self.out.extend(['\\', sign]);
                if self.rest.peek() == Some(&'{') {
                    self.through('}');
                }
            }
            '0' => self.octal(0),
            '1'..='7' if self.rest.peek().is_some_and(|next| ('0'..='7').contains(next)) => {
                self.octal(u32::from(sign) - u32::from('0'));
            }
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => self.literal(other),
            other => return Err(format!("invalid escape sequence: `\\{other}`")),
        }
        if sign == 'x' && self.rest.peek() == Some(&'{') {
            self.through('}');
        }
        Ok(false)
    }

    /// Reads up to two more octal digits.
    fn octal(&mut self, first: u32) {
        let mut code = first;
        for _ in 0..2 {
            let Some(digit) = self.rest.next_if(|next| ('0'..='7').contains(next)) else { break };
            code = code * 8 + (u32::from(digit) - u32::from('0'));
        }
        self.out.push_str(&format!(r"\x{{{code:x}}}"));
    }

    /// Translates a literal between `\Q` and `\E`, or up to the end.
    fn quoted(&mut self) {
        while let Some(sign) = self.rest.next() {
            if sign == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.literal(sign);
        }
    }

    fn literal(&mut self, sign: char) {
        self.out.push_str(&regex::escape(sign.encode_utf8(&mut [0; 4])));
    }

    fn through(&mut self, end: char) {
        for sign in self.rest.by_ref() {
            self.out.push(sign);
            if sign == end {
                return;
            }
        }
    }

    /// Translates what follows a `[`.
    fn set(&mut self) -> Result<bool, String> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            match self.rest.next().ok_or("missing closing ]")? {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(false);
                }
                '\\' => {
                    self.escape(true)?;
                }
                '[' if self.rest.peek() == Some(&':') && self.is_named() => {
                    self.out.push('[');
                    self.through(']');
                }
                '-' if self.rest.peek() == Some(&'-') => {
                    return Err("this server reads no set in which - follows -: write \\-".to_owned());
                }
                '-' => self.out.push('-'),
                other => self.literal(other),
            }
            first = false;
        }
    }

    /// Whether a named class such as `[:alpha:]` follows.
    fn is_named(&self) -> bool {
        let mut ahead =
            self.rest.clone().skip(1).skip_while(|sign| sign.is_ascii_lowercase() || *sign == '^');
        ahead.next() == Some(':') && ahead.next() == Some(']')
    }

    /// Translates what follows a `(`; flags are those of RE2.
    fn group(&mut self) -> Result<bool, String> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(false);
        }
        self.out.push('?');
        if matches!(self.rest.peek(), Some('P' | '<')) {
            self.through('>');
            return Ok(false);
        }
        for sign in self.rest.by_ref() {
            self.out.push(sign);
            match sign {
                ')' | ':' => return Ok(false),
                'i' | 'm' | 's' | 'U' | '-' => {}
                _ => break,
            }
        }
        Err("invalid or unsupported Perl syntax".to_owned())
    }

    /// Translates what follows a `{`: a repetition count, or a literal brace.
    fn count(&mut self) -> Result<bool, String> {
        let inner: String = self.rest.clone().take_while(|sign| *sign != '}').take(32).collect();
        let (low, high) = inner.split_once(',').unwrap_or((&inner, ""));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let closed = self.rest.clone().nth(inner.chars().count()) == Some('}');
        if !closed || !is_number(low) || !(high.is_empty() || is_number(high)) {
            self.out.push_str(r"\{");
            return Ok(false);
        }
        let too_many = |text: &str| {
            !text.is_empty() && text.parse::<u32>().map_or(true, |count| count > MAX_REPETITIONS)
        };
        if too_many(low) || too_many(high) {
            return Err(format!("invalid repeat count: `{{{inner}}}`"));
        }
        self.out.push('{');
        self.through('}');
        Ok(true)
    }
}
