//! Files for clients and readers, generated from the schemas of kinds: the .proto file, the reference of all fields, and
//! the list of protobuf tags, which keeps a tag from being changed or used again.
//!
//! A project commits these files, with a test that compares them with what is generated.

mod proto;
mod reference;
mod tags;

pub use proto::proto_file;
pub use reference::field_reference;
pub use tags::Tags;
