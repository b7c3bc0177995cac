//! The machinery of a Kubernetes API, without I/O: everything that depends only on bytes and objects.
//!
//! Nothing here knows which kinds are served. A kind is a [`kind::Kind`], a schema and a strategy; the schema drives
//! everything else (decoding, pruning, defaults, OpenAPI, tables, patches, managed fields, protobuf).

// The derive macro names this crate, also where it is used inside.
extern crate self as drydock_machinery;

pub mod cells;
pub mod decode;
pub mod discovery;
pub mod document;
pub mod error;
pub mod fencing;
pub mod field;
pub mod field_mask;
pub mod generate;
pub mod go_format;
pub mod go_json;
mod go_time;
pub mod go_yaml;
pub mod kind;
pub mod managed_fields;
mod memory;
pub mod meta;
pub mod metav1;
pub mod names;
pub mod object;
pub mod openapi;
pub mod patch;
pub mod protobuf;
pub mod quote;
pub mod schema;
pub mod selector;
pub mod strategy;
pub mod table;
#[cfg(test)]
mod testing;
pub mod text;
pub mod versions;

pub use error::ApiError;
pub use fencing::{FENCING_TOKEN_HEADER, REFUSED_TOKEN_REASON, RefusedToken};
pub use object::Object;
