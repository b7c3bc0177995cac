//! What each Rust file says, does not say, and how long it may be.

use drydock_architecture::none;
use drydock_architecture::repository::SourceFile;
use drydock_architecture::source::{self, code, functions, is_test};

/// The crates that serve any kind. Someone with kinds of their own takes machinery, storage, a backend, serving and the
/// server, and writes one folder; admission is for who wants the host's policies and webhooks asked as well.
const GENERIC: [&str; 7] = [
    "apiserver/machinery/",
    "apiserver/storage/",
    "apiserver/storage-sqlite/",
    "apiserver/storage-etcd/",
    "apiserver/serving/",
    "apiserver/server/",
    "apiserver/admission/",
];
/// Words that name our kinds.
const OUR_KINDS: [&str; 6] = ["eviction", "maintenance", "interceptor", "evictor", "requester", "drainplan"];

/// What decides from its arguments alone: its time comes from them too.
const PURE: [&str; 5] = [
    "apiserver/machinery/src/",
    "apiserver/api/src/",
    "controllers/plan/src/",
    "controllers/eviction/src/machine",
    "controllers/maintenance/src/machine",
];
/// What reads a clock or touches the world.
const IMPURE: [&str; 7] =
    ["::now()", "SystemTime", "std::fs", "std::net", "std::env", "std::process", "std::thread"];

/// Lines of a file without its tests that nine in ten keep to, and that none may pass.
const FILE: (usize, usize) = (240, 400);
/// Lines of a file of tests that none may pass.
const TEST_FILE: usize = 500;
/// Lines of a file with the tests in it that none may pass.
const WHOLE_FILE: usize = 500;
/// Files of the product with fewer lines than this are crumbs: a reader turns the page before the concept has begun.
const CRUMB: usize = 60;
/// Crumbs that there may be, in apiserver and controllers: to be lowered whenever one is folded.
const CRUMBS: usize = 15;
/// Lines of a function that nine in ten keep to, and that none may pass.
const FUNCTION: (usize, usize) = (30, 64);

#[test]
fn every_module_says_what_it_is() {
    let silent = paths(source::all().iter().filter(|file| !file.text.starts_with("//!")));
    none(&silent, "begin with a //! line that says what the module owns");
}

#[test]
fn the_generic_crates_know_no_word_of_our_kinds() {
    let generic = |file: &&SourceFile| GENERIC.iter().any(|folder| file.path.starts_with(folder));
    let mut found = Vec::new();
    for file in source::all().iter().filter(generic) {
        let text = file.text.to_lowercase();
        found.extend(OUR_KINDS.iter().filter(|w| text.contains(**w)).map(|w| format!("{}: {w}", file.path)));
    }
    none(
        &found,
        "another API would have to take these along; they belong in apiserver/api or apiserver/daemon",
    );
}

#[test]
fn pure_code_reads_no_clock_and_touches_nothing() {
    let pure = |file: &&SourceFile| PURE.iter().any(|folder| file.path.starts_with(folder)) && !is_test(file);
    let mut found = Vec::new();
    for file in source::all().iter().filter(pure) {
        let code = code(file).join("\n");
        found.extend(IMPURE.iter().filter(|w| code.contains(**w)).map(|w| format!("{}: {w}", file.path)));
    }
    none(&found, "give it what it needs as an argument");
}

#[test]
fn files_can_be_read_in_one_sitting() {
    let all = source::all();
    let (tests, files): (Vec<&SourceFile>, Vec<&SourceFile>) = all.iter().partition(|file| is_test(file));
    let longer =
        |files: &[&SourceFile], limit| paths(files.iter().filter(|f| code(f).len() > limit).copied());
    none(&longer(&tests, TEST_FILE), &format!("more than {TEST_FILE} lines: split by subject"));
    none(&longer(&files, FILE.1), &format!("more than {} lines without tests: split by concept", FILE.1));
    let whole = |file: &&SourceFile| file.text.lines().count() > WHOLE_FILE;
    none(&paths(all.iter().filter(whole)), &format!("more than {WHOLE_FILE} lines: move the tests out"));
    let long = longer(&files, FILE.0);
    assert!(
        long.len() * 10 <= files.len(),
        "more than one in ten is longer than {} lines: {long:#?}",
        FILE.0
    );
}

/// Tests, examples, and files that only list modules are no crumbs.
#[test]
fn a_concept_is_not_cut_into_crumbs() {
    let is_crumb = |file: &&SourceFile| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let is_product = file.path.starts_with("apiserver/") || file.path.starts_with("controllers/");
        let is_left_out = is_test(file)
            || !file.path.contains("/src/")
            || ["lib.rs", "main.rs", "testing.rs"].contains(&name)
            || (name == "mod.rs" && source::only_lists_modules(&code(file)));
        is_product && !is_left_out && file.text.lines().count() < CRUMB
    };
    let crumbs = paths(source::all().iter().filter(is_crumb));
    let advice = "fold one into the file whose concept it belongs to, or lower the number";
    assert!(crumbs.len() <= CRUMBS, "{} crumbs, of at most {CRUMBS}; {advice}: {crumbs:#?}", crumbs.len());
}

#[test]
fn functions_are_short() {
    let files = source::all();
    let of = |file| functions(&code(file)).into_iter().map(|(name, n)| (n, format!("{}: {name}", file.path)));
    let all: Vec<(usize, String)> = files.iter().filter(|file| !is_test(file)).flat_map(of).collect();
    let longer = |limit| -> Vec<String> {
        all.iter().filter(|(length, _)| *length > limit).map(|(_, name)| name.clone()).collect()
    };
    none(&longer(FUNCTION.1), &format!("more than {} lines", FUNCTION.1));
    let long = longer(FUNCTION.0);
    assert!(
        long.len() * 10 <= all.len(),
        "more than one in ten is longer than {} lines: {long:#?}",
        FUNCTION.0
    );
}

#[test]
fn no_test_sleeps_to_wait_for_a_state() {
    let call = ["sleep", "("].concat();
    let found = paths(source::all().iter().filter(|file| is_test(file) && file.text.contains(&call)));
    none(&found, "wait for the state itself");
}

fn paths<'f>(files: impl Iterator<Item = &'f SourceFile>) -> Vec<String> {
    files.map(|file| file.path.clone()).collect()
}
