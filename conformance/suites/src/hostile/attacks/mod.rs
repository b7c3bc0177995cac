//! The attacks, by the resource that they use up. Tenants have the rights of an editor in one namespace.

mod answers;
mod bodies;
mod caches;
mod calls;
mod connections;
mod controllers;
mod deployments;
mod eviction_requests;
mod frames;
mod handshakes;
mod host;
mod large_objects;
mod nodes;
mod patches;
mod queries;
mod reviews;
mod shares;
mod statuses;
mod store;
mod streams;
mod surges;
mod traces;
mod turns;
mod users;
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
        handshakes::all(),
        frames::all(),
        streams::all(),
        calls::all(),
        reviews::all(),
        host::all(),
        controllers::all(),
        surges::all(),
        caches::all(),
        vetoes::all(),
        turns::all(),
        nodes::all(),
        traces::all(),
        users::all(),
        statuses::all(),
        shares::all(),
        store::all(),
    ];
    all.into_iter().flatten().collect()
}
