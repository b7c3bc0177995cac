//! Writes texts: plain if they are read back as text, otherwise quoted or as a block (go-yaml encode.go,
//! emitterc.go).

use std::fmt::Write;

/// Words that YAML 1.1 does not read as text.
const WORDS: [&str; 36] = [
    "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE",
    "n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE", ".nan", ".NaN", ".NAN",
    ".inf", ".Inf", ".INF", "+.inf", "-.inf", "<<",
];

/// Column after which a text continues on the next line.
const WIDTH: usize = 80;

/// Writes a key, which stays on one line.
pub(super) fn write_key(out: &mut String, text: &str) {
    let shape = TextStyles::of(text);
    if shape.plain && !is_something_else(text) {
        out.push_str(text);
    } else if shape.single && !text.contains('\n') && !is_something_else(text) {
        out.push_str(&format!("'{}'", text.replace('\'', "''")));
    } else {
        double_quoted(out, text, None);
    }
}

/// Writes a text; the lines of a block are indented by `indent`.
pub(super) fn write(out: &mut String, text: &str, indent: usize) {
    let shape = TextStyles::of(text);
    if text.contains('\n') {
        return if shape.block { block(out, text, indent) } else { double_quoted(out, text, Some(indent)) };
    }
    if is_something_else(text) {
        return double_quoted(out, text, Some(indent));
    }
    match (shape.plain, shape.single) {
        (true, _) => folded(out, text, indent),
        (false, true) => {
            out.push('\'');
            folded(out, &text.replace('\'', "''"), indent);
            out.push('\'');
        }
        (false, false) => double_quoted(out, text, Some(indent)),
    }
}

/// The styles that a text allows.
struct TextStyles {
    plain: bool,
    single: bool,
    block: bool,
}

impl TextStyles {
    fn of(text: &str) -> Self {
        let lines: Vec<&str> = text.split('\n').collect();
        let special = !text.chars().all(|c| c == '\n' || is_printable(c));
        let space_break = lines.iter().rev().skip(1).any(|line| line.ends_with(' '));
        let break_space = lines.iter().skip(1).any(|line| line.starts_with(' '));
        let edges = text.starts_with([' ', '\n']) || text.ends_with([' ', '\n']);
        let bad = space_break || special;
        Self {
            plain: !(edges || break_space || bad || text.contains('\n') || has_indicators(text)),
            single: !(break_space || bad),
            block: !(text.ends_with(' ') || bad),
        }
    }
}

fn has_indicators(text: &str) -> bool {
    let blank_after = |at: usize| text[at..].chars().nth(1).is_none_or(|c| matches!(c, ' ' | '\t' | '\n'));
    let first = match text.chars().next() {
        Some(c) if "#,[]{}&*!|>'\"%@`".contains(c) => true,
        Some('?' | ':' | '-') => blank_after(0),
        _ => false,
    };
    let inner = text.char_indices().skip(1).any(|(at, c)| match c {
        ':' => blank_after(at),
        '#' => text[..at].ends_with([' ', '\t']),
        _ => false,
    });
    first || inner || text.starts_with("---") || text.starts_with("...")
}

/// go-yaml's is_printable, for characters.
fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
        && !matches!(c, '\u{feff}' | '\t' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_something_else(text: &str) -> bool {
    WORDS.contains(&text) || is_number(text) || is_date(text) || is_base_60(text)
}

fn is_number(text: &str) -> bool {
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return false;
    }
    let plain = text.replace('_', "");
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let radix = |prefixes: [&str; 2], radix| {
        let digits = prefixes.iter().find_map(|prefix| unsigned.strip_prefix(prefix));
        digits.is_some_and(|digits| i128::from_str_radix(digits, radix).is_ok())
    };
    let octal = unsigned.len() > 1
        && unsigned.starts_with('0')
        && unsigned.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let based = radix(["0x", "0X"], 16) || radix(["0o", "0O"], 8) || radix(["0b", "0B"], 2);
    octal || based || is_float(unsigned)
}

/// `[0-9]*\.?[0-9]+([eE][-+][0-9]+)?`, and what Go's ParseFloat also accepts after a point.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or(("", mantissa));
    let good = digits(fraction) && (whole.is_empty() || digits(whole));
    let signed = |text: &str| text.strip_prefix(['+', '-']).is_some_and(digits);
    good && exponent.is_none_or(|e| signed(e) || (mantissa.starts_with('.') && digits(e)))
}

/// `2006-1-2`, with a time or without.
fn is_date(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']).or(Some((text, ""))) else { return false };
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let within = |text: &str, limit: u32| {
        text.len() <= 2 && text.parse::<u32>().is_ok_and(|number| (1..=limit).contains(&number))
    };
    let dated =
        year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit()) && within(month, 12) && within(day, 31);
    let zoned = text.contains(['T', 't']);
    dated && (time.is_empty() && !zoned || is_time(time, zoned))
}

/// `15:4:5.999`, with a zone or without.
fn is_time(text: &str, zoned: bool) -> bool {
    let end = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(end);
    let parts: Vec<&str> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else { return false };
    let below = |text: &str, limit: u32| {
        let whole = text.split('.').next().unwrap_or_default();
        (1..=2).contains(&whole.len()) && whole.parse::<u32>().is_ok_and(|number| number < limit)
    };
    below(hours, 24) && below(minutes, 60) && below(seconds, 60) && zone.is_empty() != zoned
}

/// `190:20:30.15`: a sexagesimal float of YAML 1.1.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some((first, rest)) = unsigned.split_once(':') else { return false };
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let sixties = rest.split(':').all(|part| part.len() <= 2 && part.parse::<u8>().is_ok_and(|n| n < 60));
    first.starts_with(|c: char| c.is_ascii_digit()) && digits(first) && sixties && digits(fraction)
}

/// Writes a text that breaks at a space once a line is long.
fn folded(out: &mut String, text: &str, indent: usize) {
    let mut column = column(out);
    let mut before = '\0';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let single =
            c == ' ' && before != ' ' && before != '\0' && rest.peek().is_some_and(|next| *next != ' ');
        if single && column > WIDTH {
            new_line(out, indent);
            column = indent;
        } else {
            out.push(c);
            column += 1;
        }
        before = c;
    }
}

fn column(out: &str) -> usize {
    out.rsplit('\n').next().unwrap_or_default().chars().count()
}

fn new_line(out: &mut String, indent: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Writes a text in double quotes, with escapes; long lines break at a space if there is an indent.
fn double_quoted(out: &mut String, text: &str, indent: Option<usize>) {
    out.push('"');
    let mut spaces = true;
    let length = text.chars().count();
    for (at, c) in text.chars().enumerate() {
        let breaks = c == ' ' && !spaces && at + 1 < length;
        spaces = c == ' ';
        if let Some(indent) = indent.filter(|_| breaks && column(out) > WIDTH) {
            new_line(out, indent);
            if text.chars().nth(at + 1) == Some(' ') {
                out.push('\\');
            }
            continue;
        }
        let escaped = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\t' => "\\t",
            '\r' => "\\r",
            '\0' => "\\0",
            '\u{7}' => "\\a",
            '\u{8}' => "\\b",
            '\u{b}' => "\\v",
            '\u{c}' => "\\f",
            '\u{1b}' => "\\e",
            '\u{85}' => "\\N",
            '\u{a0}' => "\\_",
            '\u{2028}' => "\\L",
            '\u{2029}' => "\\P",
            c if is_printable(c) => {
                out.push(c);
                continue;
            }
            _ => "",
        };
        if escaped.is_empty() {
            let code = u32::from(c);
            // Writing to a String cannot fail.
            let _ = if code <= 0xff { write!(out, "\\x{code:02X}") } else { write!(out, "\\u{code:04X}") };
        } else {
            out.push_str(escaped);
        }
    }
    out.push('"');
}

/// Writes a block with `|` and the indicator for the line breaks at its end.
fn block(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    let body = match text.strip_suffix('\n') {
        None => {
            out.push('-');
            text
        }
        Some(body) if body.is_empty() || body.ends_with('\n') => {
            out.push('+');
            body
        }
        Some(body) => body,
    };
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent.max(2)));
            out.push_str(line);
        }
    }
}
