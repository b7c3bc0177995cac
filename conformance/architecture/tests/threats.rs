//! Each threat that apiserver/README.md lists has a test that exists.

use drydock_architecture::{none, repository, source};

/// Rows that the table has at least.
const ROWS: usize = 30;
const ACTORS: [&str; 7] = ["tenant", "interceptor", "maintainer", "stranger", "webhook", "node", "host"];
const AIMS: [&str; 3] = ["stop", "fill", "deceive"];

#[test]
fn every_threat_names_a_test_that_exists() {
    let (attacks, tests) = (attacks(), source::tests());
    let mut missing = Vec::new();
    for row in rows() {
        let named = names(&row[4]);
        let found = |name: &String| match name.strip_prefix("hostile ") {
            Some(attack) => attacks.iter().any(|known| known == attack),
            None => tests.contains(name),
        };
        missing.extend(named.iter().filter(|name| !found(name)).map(|name| format!("{}: {name}", row[2])));
        missing.extend(named.is_empty().then(|| format!("{}: no test at all", row[2])));
    }
    none(
        &missing,
        "apiserver/README.md names a test that is not there; `conformance/test hostile` has attacks by name",
    );
}

#[test]
fn every_threat_has_an_actor_and_an_aim() {
    let rows = rows();
    assert!(rows.len() >= ROWS, "{} rows, at least {ROWS}", rows.len());
    let strange =
        rows.iter().filter(|row| !ACTORS.contains(&row[0].as_str()) || !AIMS.contains(&row[1].as_str()));
    let strange: Vec<String> = strange.map(|row| row.join(" | ")).collect();
    none(&strange, &format!("the actors are {ACTORS:?}, and what they want {AIMS:?}"));
}

#[test]
fn every_attack_is_in_the_table() {
    let named: Vec<String> = rows().iter().flat_map(|row| names(&row[4])).collect();
    let is_named = |attack: &String| named.iter().any(|name| name.strip_prefix("hostile ") == Some(attack));
    let missing: Vec<String> = attacks().into_iter().filter(|attack| !is_named(attack)).collect();
    none(&missing, "say in apiserver/README.md what the attack threatens, and what keeps it off");
}

/// The cells of each row: actor, aim, threat, defence, test.
fn rows() -> Vec<[String; 5]> {
    let page = repository::read("apiserver/README.md");
    let cells = |line: &str| -> Option<[String; 5]> {
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().ok()
    };
    let table = page.lines().filter(|line| line.starts_with('|')).filter_map(cells);
    table.filter(|row| row[0] != "actor" && !row[0].starts_with("--")).collect()
}

/// What stands between backticks.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Names of attacks.
fn attacks() -> Vec<String> {
    let files =
        repository::files(".rs").into_iter().filter(|file| file.path.contains("suites/src/hostile/attacks/"));
    let texts: Vec<String> =
        files.map(|file| file.text.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let after = |text: &String| -> Vec<String> {
        let calls = text.split("Attack::new(").skip(1);
        calls.filter_map(|call| call.split('"').nth(1)).map(str::to_owned).collect()
    };
    texts.iter().flat_map(after).collect()
}
