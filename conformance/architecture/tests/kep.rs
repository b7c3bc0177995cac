//! The table of KEP-4563's rules, apiserver/api/kep-4563.md, names tests that exist, and is whole.

use std::collections::BTreeSet;

use drydock_architecture::{none, repository, source};

const PAGE: &str = "apiserver/api/kep-4563.md";
/// The file with the text of the KEP, for the last test.
const KEP: &str = "DRYDOCK_KEP_4563";
/// Maximum number of the KEP's characters that one rule stands for.
const LONGEST: usize = 1500;

/// A row of the table.
struct Row {
    section: String,
    number: usize,
    begins: String,
    rule: String,
    tests: Vec<String>,
}

impl Row {
    fn is_no_rule(&self) -> bool {
        self.rule.starts_with("no rule")
    }
}

#[test]
fn every_rule_names_tests_that_exist() {
    let tests: BTreeSet<String> = source::tests().into_iter().collect();
    let mut found = Vec::new();
    for row in rows() {
        let missing = row.tests.iter().filter(|test| !tests.contains(*test));
        found.extend(missing.map(|test| format!("{} {}: {test}", row.section, row.number)));
        if row.tests.is_empty() != row.is_no_rule() {
            found.push(format!("{} {}: a rule has tests, and no rule has none", row.section, row.number));
        }
    }
    none(&found, &format!("mend the table in {PAGE}"));
}

#[test]
fn rows_are_numbered_and_counted() {
    let rows = rows();
    let mut last: (&str, usize) = ("", 0);
    for row in &rows {
        let expected = if row.section == last.0 { last.1 + 1 } else { 1 };
        assert_eq!(row.number, expected, "{} in {PAGE}", row.section);
        last = (&row.section, row.number);
    }
    let tests: BTreeSet<&String> = rows.iter().flat_map(|row| &row.tests).collect();
    let no_rule = rows.iter().filter(|row| row.is_no_rule()).count();
    let differs = rows.iter().filter(|row| row.rule.contains("differs:")).count();
    let counts = format!(
        "In {no_rule} of the {} rows there is no rule, in {differs} Drydock differs in something; {} tests show what it \
         does.",
        rows.len(),
        tests.len()
    );
    assert!(repository::read(PAGE).contains(&counts), "{PAGE} should say: {counts}");
}

/// Does nothing without the text.
#[test]
fn rows_stand_in_the_order_of_the_kep_and_leave_nothing_out() {
    let Ok(file) = std::env::var(KEP) else { return };
    let kep = plain(&std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}")));
    let (mut at, mut found) = (0, Vec::new());
    let mut before: Option<Row> = None;
    for row in rows() {
        let Some(next) = kep[at..].find(&plain(&row.begins)) else {
            found.push(format!("{} {}: not there after the row before", row.section, row.number));
            continue;
        };
        if let Some(before) = before.filter(|before| next > LONGEST && !before.is_no_rule()) {
            found.push(format!("{} {}: {next} characters, at most {LONGEST}", before.section, before.number));
        }
        at += next;
        before = Some(row);
    }
    none(&found, &format!("mend the table in {PAGE}"));
}

/// Without the marks of code, in one line.
fn plain(text: &str) -> String {
    text.replace('`', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn rows() -> Vec<Row> {
    let page = repository::read(PAGE);
    let (mut section, mut rows) = (String::new(), Vec::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.clone_into(&mut section);
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, begins, rule, tests, _] = cells[..] else { continue };
        let Ok(number) = number.parse() else { continue };
        rows.push(Row {
            section: section.clone(),
            number,
            begins: begins.to_owned(),
            rule: rule.to_owned(),
            tests: tests.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
        });
    }
    assert!(!rows.is_empty(), "{PAGE} has no table");
    rows
}
