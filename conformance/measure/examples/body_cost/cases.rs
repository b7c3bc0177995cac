//! The cases that are measured.

use drydock_machinery::decode::Format;
use serde_json::json;

use crate::objects::{fields, free, managed, object};
use crate::texts::{STATUS, keys, list, wrap, yaml};
use crate::{MAX, Prepare, patches};

type Cases = Vec<(&'static str, Prepare)>;

pub fn all() -> Cases {
    lists().into_iter().chain(maps()).chain(marks()).chain(other_yaml()).chain(patched()).collect()
}

fn lists() -> Cases {
    let lists: [(&str, bool, &str, &str); 9] = [
        ("json: requesters [{},...]", true, "spec.requesters", "{}"),
        ("json: conditions [null,...]", true, "status.conditions", "null"),
        ("json: finalizers [\"\",...]", true, "metadata.finalizers", "\"\""),
        ("json: managedFields [{},...]", true, "metadata.managedFields", "{}"),
        ("json: ownerReferences [{},...]", true, "metadata.ownerReferences", "{}"),
        ("json: unknown [{},...]", true, "spec.x", "{}"),
        ("json: nodeStatuses", false, "status.nodeStatuses", STATUS),
        ("json: nodeStatuses [{},...]", false, "status.nodeStatuses", "{}"),
        ("json: drainPlan [{},...]", false, "spec.drainPlan", "{}"),
    ];
    let case = |(name, evictions, field, item)| -> (&'static str, Prepare) {
        (name, Box::new(move || object(evictions, wrap(field, &list(item)))))
    };
    lists.map(case).into()
}

fn maps() -> Cases {
    vec![
        ("json: annotations of a letter", Box::new(|| object(true, wrap("metadata.annotations", &keys(1))))),
        (
            "json: one annotation again and again",
            Box::new(|| object(true, wrap("metadata.annotations", &keys(0)))),
        ),
        ("json: unknown fields", Box::new(|| object(true, wrap("spec", &keys(1))))),
        ("json: fieldsV1 unordered", Box::new(|| fields("f:"))),
        ("json: fieldsV1 of keys", Box::new(|| fields("k:"))),
        ("json: managers", Box::new(|| managed(1000, 90))),
        ("json: managed fields", Box::new(|| managed(1, 150_000))),
        ("json: free form, maps of one", Box::new(|| free(&list("{\"\":0}"), Format::Json))),
        ("json: free form, numbers", Box::new(|| free(&list("0"), Format::Json))),
        (
            "json: keys twice below a long key",
            Box::new(|| {
                let (key, twice) = ("k".repeat(MAX / 2), vec!["\"a\":1"; MAX / 12].join(","));
                free(&format!("{{\"{key}\":{{{twice}}}}}"), Format::Json)
            }),
        ),
    ]
}

/// YAML that repeats one indicator or token.
fn marks() -> Cases {
    let marks = [
        ("yaml: [a,a,...]", "[a,"),
        ("yaml: [{},{},...]", "[{},"),
        ("yaml: - a", "- a\n"),
        ("yaml: -", "-\n"),
        ("yaml: a long word", "a"),
        ("yaml: folded lines", "a\n"),
        ("yaml: blank lines", "\n"),
        ("yaml: comments", "#\n"),
        ("yaml: ? ? ?", "? "),
        ("yaml: - - -", "- "),
        ("yaml: colons", ":"),
        ("yaml: words", "a "),
        ("yaml: quotes", "'"),
        ("yaml: quoted", "'' "),
        ("yaml: blanks", " "),
        ("yaml: tags", "! "),
        ("yaml: percents", "%a\n"),
        ("yaml: bars", "|\n"),
        ("yaml: dots", "...\n"),
    ];
    let case = |(name, mark)| -> (&'static str, Prepare) {
        (name, Box::new(move || free(&yaml(mark), Format::Yaml)))
    };
    marks.map(case).into()
}

fn other_yaml() -> Cases {
    let lines = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    vec![
        ("yaml: a map", Box::new(move || free(&lines(199_000, &|n| format!("{n:x}: \n")), Format::Yaml))),
        ("yaml: a list", Box::new(move || free(&lines(199_000, &|_| "- a\n".to_owned()), Format::Yaml))),
        ("yaml: a flow list", Box::new(move || free(&format!("[{}]", "a,".repeat(199_000)), Format::Yaml))),
        ("yaml: nested", Box::new(move || free(&"- ".repeat(199_000), Format::Yaml))),
        ("yaml: questions", Box::new(move || free(&"? ".repeat(199_000), Format::Yaml))),
        (
            "yaml: anchors",
            Box::new(move || free(&lines(99_000, &|n| format!("- &a{n:x} a\n")), Format::Yaml)),
        ),
        ("yaml: escapes", Box::new(|| free(&format!("\"{}\"", "\\n".repeat(MAX / 2 - 1)), Format::Yaml))),
    ]
}

fn patched() -> Cases {
    let flip = |n: usize| if n.is_multiple_of(2) { ("/a", "/b") } else { ("/b", "/a") };
    let op = patches::patch;
    vec![
        (
            "json patch: moves of a large value",
            Box::new(move || op(&|n| json!({"op": "move", "from": flip(n).0, "path": flip(n).1}), 9_000)),
        ),
        (
            "json patch: copies",
            Box::new(move || op(&|n| json!({"op": "copy", "from": "/s", "path": format!("/{n}")}), 9_999)),
        ),
        (
            "json patch: at the head of a list",
            Box::new(move || op(&|_| json!({"op": "add", "path": "/l/0", "value": 1}), 9_999)),
        ),
        (
            "json patch: long paths",
            Box::new(move || op(&|_| json!({"op": "add", "path": "/".repeat(300), "value": 1}), 9_000)),
        ),
        ("merge patch: small maps", Box::new(patches::merge)),
        ("strategic: finalizers", Box::new(|| patches::strategic(false))),
        ("strategic: owners in order", Box::new(|| patches::strategic(true))),
        ("apply: annotations of another", Box::new(patches::apply)),
    ]
}
