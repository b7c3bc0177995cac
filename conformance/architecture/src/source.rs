//! Reads as much of a Rust file as the rules need, line by line. rustfmt makes that reliable: what opens at an
//! indentation closes at the same.

use crate::repository::{self, SourceFile};

/// Every Rust file.
pub fn all() -> Vec<SourceFile> {
    repository::files(".rs")
}

/// Whether the whole file is tests.
pub fn is_test(file: &SourceFile) -> bool {
    let path = &file.path;
    path.contains("/tests/")
        || path.contains("/testing/")
        || path.ends_with("tests.rs")
        || path.contains("_tests/")
}

/// The lines before the tests at the file's end.
pub fn code(file: &SourceFile) -> Vec<&str> {
    let lines: Vec<&str> = file.text.lines().collect();
    let tests = lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{'));
    lines[..tests.unwrap_or(lines.len())].to_vec()
}

/// Names of the functions that are tests.
pub fn tests() -> Vec<String> {
    let mut found = Vec::new();
    for file in all() {
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        let names = lines.iter().enumerate().filter(|(at, _)| {
            lines[at.saturating_sub(3)..*at]
                .iter()
                .any(|line| line.starts_with("#[test]") || line.contains("::test"))
        });
        let name = |line: &str| line.split("fn ").nth(1)?.split('(').next().map(str::to_owned);
        found.extend(names.filter_map(|(_, line)| name(line)));
    }
    found
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

/// Names of the types that a file declares: structs, enums, traits, and aliases that are not of an impl or a trait.
pub fn types(lines: &[&str]) -> Vec<String> {
    lines.iter().filter_map(|line| type_name(line)).collect()
}

fn type_name(line: &str) -> Option<String> {
    let is_nested = line.starts_with(' ');
    let declaration = without_visibility(line.trim_start());
    let declaration = declaration.strip_prefix("unsafe ").unwrap_or(declaration);
    let (keyword, rest) = declaration.split_once(' ')?;
    let declares = matches!(keyword, "struct" | "enum" | "trait") || (keyword == "type" && !is_nested);
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (declares && name.starts_with(|c: char| c.is_ascii_uppercase())).then_some(name)
}

fn without_visibility(declaration: &str) -> &str {
    let Some(rest) = declaration.strip_prefix("pub") else { return declaration };
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((_, rest)) => rest,
        None => rest.strip_prefix(' ').unwrap_or(declaration),
    }
}

/// Whether a file declares nothing of its own but modules, and what they export.
pub fn only_lists_modules(lines: &[&str]) -> bool {
    const ITEMS: [&str; 8] =
        ["fn ", "struct ", "enum ", "trait ", "impl", "const ", "static ", "macro_rules!"];
    let code = lines.iter().filter(|line| !line.trim_start().starts_with("//"));
    !code.into_iter().any(|line| ITEMS.iter().any(|item| without_visibility(line).starts_with(item)))
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
    fn a_type_is_found_by_its_declaration() {
        let text =
            ["pub(crate) struct A<T> {", "enum B {}", "    pub struct C;", "type D = u8;", "pub trait E {"];
        let others = ["    type Output = u8;", "/// struct F", "impl A {", "let x = struct_of(y);"];
        let lines: Vec<&str> = text.into_iter().chain(others).collect();
        assert_eq!(types(&lines), ["A", "B", "C", "D", "E"]);
    }

    #[test]
    fn a_table_of_contents_declares_modules_alone() {
        assert!(only_lists_modules(&["//! fn of modules", "pub mod a;", "pub use a::{", "    B,", "};"]));
        assert!(!only_lists_modules(&["mod a;", "pub(crate) const B: u8 = 1;"]));
    }

    #[test]
    fn tests_at_the_end_are_not_code() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n".to_owned();
        assert_eq!(code(&SourceFile { path: "a.rs".into(), text }), ["fn a() {}", ""]);
    }
}
