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
pub use object::Object;

/// Header of a write with its fencing token, a number that grows with each term of the writer's lease. Tokens belong to
/// the user that writes: no user can make another one's outdated.
pub const FENCING_TOKEN_HEADER: &str = "drydock-lease-epoch";
/// Reason of the 409 to a write whose fencing token is outdated, or too far ahead: reading the object again does not help.
pub const REFUSED_TOKEN_REASON: &str = "FencingTokenRefused";
/// Reason of the cause in that error whose message is the newest token of the writer: a new one has to be above it.
pub const NEWEST_TOKEN_CAUSE: &str = "NewestFencingToken";
/// Reason of the cause in that error whose message is the highest token that the writer may begin with now.
pub const HIGHEST_TOKEN_CAUSE: &str = "HighestFencingToken";
