//! The sequences, a file for each area.

mod apply;
mod auth;
mod cluster;
mod create;
mod delete;
mod errors;
mod formats;
mod generated;
mod generator;
mod json_patch;
mod list;
mod merge_patch;
mod own;
mod strategic;
mod update;
mod watch;

use serde_json::{Value, json};

use crate::sequence::{Sequence, merge, object};

/// Every sequence; the generated ones are those of a seed.
pub fn all(seed: u64) -> Vec<Sequence> {
    let areas = [
        create::all(),
        update::all(),
        json_patch::all(),
        merge_patch::all(),
        strategic::all(seed),
        apply::all(),
        delete::all(),
        list::all(),
        watch::all(),
        formats::all(),
        errors::all(),
        auth::all(),
        cluster::all(),
        own::all(),
        generated::all(seed),
    ];
    areas.into_iter().flatten().collect()
}

/// A budget of this name that is valid.
fn budget(name: &str) -> Value {
    object(name, json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}}))
}

/// A budget with something else.
fn budget_with(name: &str, rest: Value) -> Value {
    let mut budget = budget(name);
    merge(&mut budget, rest);
    budget
}

/// A map with these texts.
fn map(name: &str, data: Value) -> Value {
    object(name, json!({"data": data}))
}
