//! As much of a Rust file as the rules ask for, by its lines. rustfmt makes that reliable: what opens at an
//! indentation closes at the same.

use crate::repository::{self, SourceFile};

/// Every Rust file.
pub fn all() -> Vec<SourceFile> {
    repository::files(".rs")
}

/// Whether the whole file is tests.
pub fn is_test(file: &SourceFile) -> bool {
    let path = &file.path;
    path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("_tests/")
}

/// The lines before the tests at the file's end.
pub fn code(file: &SourceFile) -> Vec<&str> {
    let lines: Vec<&str> = file.text.lines().collect();
    let tests = lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{'));
    lines[..tests.unwrap_or(lines.len())].to_vec()
}

/// Name and number of lines of each function of a file.
pub fn functions(lines: &[&str]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indentation = &line[..line.len() - line.trim_start().len()];
        if line.ends_with('}') || line.ends_with(';') {
            found.push((name, 1));
            continue;
        }
        let end = format!("{indentation}}}");
        let length = lines[at..].iter().position(|line| **line == end).map_or(1, |n| n + 1);
        found.push((name, length));
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.trim_start();
    for prefix in ["pub ", "pub(crate) ", "pub(super) ", "const ", "async ", "unsafe "] {
        words = words.strip_prefix(prefix).unwrap_or(words);
    }
    let name = words.strip_prefix("fn ")?;
    Some(name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_measured_to_its_closing_brace() {
        let text =
            ["impl A {", "    pub async fn long(", "        a: u8,", "    ) {", "        a();", "    }"];
        let more = ["    fn short() {}", "    fn declared(&self);", "}"];
        let lines: Vec<&str> = text.into_iter().chain(more).collect();
        let expected = [("long", 5), ("short", 1), ("declared", 1)].map(|(n, l)| (n.to_owned(), l));
        assert_eq!(functions(&lines), expected);
    }

    #[test]
    fn tests_at_the_end_are_not_code() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n".to_owned();
        assert_eq!(code(&SourceFile { path: "a.rs".into(), text }), ["fn a() {}", ""]);
    }
}
