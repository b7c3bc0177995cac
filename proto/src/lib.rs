//! The public protobuf API: messages of the status stream, its client (feature `client`), and their descriptors.
//!
//! The .proto files are the documentation. `accepted.txt` has one line for each message, field, method and enum value of
//! `drydock.*` that clients may rely on; a test compares it with the .proto files, so that nothing is removed or changed.
//! The messages of `k8s.io` are generated from the Rust definitions in `apiserver/api`.
//! (The generated client uses `tonic` and `tonic_prost`, the messages `bytes` and `prost_types`.)

pub use prost_types;

/// Messages of `drydock.status.v1alpha1`, and its client.
pub mod status {
    /// Version v1alpha1.
    pub mod v1alpha1 {
        // Generated: the documentation is that of the .proto file.
        #![allow(missing_docs, clippy::all, clippy::unwrap_used, clippy::expect_used)]
        include!(concat!(env!("OUT_DIR"), "/drydock.status.v1alpha1.rs"));
    }
}

/// The encoded `FileDescriptorSet` of the status service and everything that it imports.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
