//! The differential suite: the same requests to a live kube-apiserver and to us, and the same answers.
//!
//! ```text
//! sequences ──> run ──> Record ──> normal ──> compare ──> report
//!               │ three ways: the host's kind; ours at its port; ours through the aggregator
//!               setup: etcd, kube-apiserver, reference kinds
//! ```
//!
//! `conformance/test differential` runs it; `cargo run -p drydock-differential --bin differential -- TEXT`
//! runs the sequences whose area or name has TEXT in it (`cargo build -p drydock-differential --bins` first:
//! the reference kinds are a program too).
//!
//! # To add a sequence
//! There is a file for each area in `sequences`. A sequence is a few lines in the list that the file returns:
//!
//! ```
//! # use drydock_differential::{area::Area, sequence::{Sequence, object}, target::BUDGET};
//! # use serde_json::json;
//! Sequence::new(Area::Update, BUDGET, "an update of an old version is a conflict")
//!     .post(object("x", json!({"spec": {"minAvailable": 1}})))
//!     .put("x", object("x", json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}})))
//!     .put("x", object("x", json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}})));
//! ```
//!
//! - The target is a kind of the host and our reference kind for it. [`target::BUDGET`] is used most; add
//!   another one in `target` and `reference_kinds` if it lacks what you need.
//! - [`sequence::object`] fills in the name; kind and API version are filled in when it is sent. `.query(...)`,
//!   `.header(...)` and `.with(|request| ...)` change the request before them.
//! - `$(...)` in paths, queries, headers and bodies stands for the target's names and for fields of earlier answers:
//!   see [`template`]. Answers are counted from 0; `.later()` has none.
//! - Times are compared by the second, and all times between two `.later()` count as equal. If a time must be later
//!   than another, put `.later()` between them.
//! - A sequence has a namespace of its own in each server, so that lists and watches see nothing else. Objects
//!   without a namespace need names of their own: `$(namespace)-x`.
//! - A sequence states no expected answers: what the host answers is right. Where we must differ, an entry in
//!   [`differences`] names the field of the answer, and the reason.

pub mod area;
pub mod reference_kinds;
pub mod request;
pub mod sequence;
pub mod sequences;
pub mod target;
pub mod template;

pub mod setup;
// The modules below are in the order in which a record passes them.
pub mod compare;
pub mod normal;
pub mod run;

pub mod differences;
pub mod injected;
pub mod report;
pub mod suite;
