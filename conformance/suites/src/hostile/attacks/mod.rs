//! The attacks, by the resource that they use up. Tenants have the rights of an editor in one namespace.

mod answers;
mod bodies;
mod caches;
mod calls;
mod connections;
mod controllers;
mod eviction_requests;
mod frames;
mod host;
mod nodes;
mod patches;
mod queries;
mod reviews;
mod shares;
mod statuses;
mod store;
mod streams;
mod traces;
mod turns;
mod vetoes;
mod writes;

use crate::attack::Attack;

/// All, in the order in which they run.
pub fn all() -> Vec<Attack> {
    let all = [
        bodies::all(),
        patches::all(),
        answers::all(),
        queries::all(),
        writes::all(),
        connections::all(),
        frames::all(),
        streams::all(),
        calls::all(),
        reviews::all(),
        host::all(),
        controllers::all(),
        caches::all(),
        vetoes::all(),
        turns::all(),
        nodes::all(),
        traces::all(),
        statuses::all(),
        shares::all(),
        store::all(),
    ];
    all.into_iter().flatten().collect()
}
