//! Server reflection, in both versions that clients speak.

use tonic_reflection::server::{Builder, Error};

use super::routes::{Handler, handler};

/// Path of the method of version v1.
pub(super) const V1: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
/// Path of the method of version v1alpha, which older clients call.
pub(super) const V1ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
/// Longest request of a client, in bytes: a name.
const MAX_REQUEST: usize = 8 << 10;

/// Answers about the service with these descriptors, and about health.
pub(super) struct Reflection {
    pub(super) v1: Handler,
    pub(super) v1alpha: Handler,
}

impl Reflection {
    /// # Errors
    /// The descriptors cannot be decoded.
    pub(super) fn new(descriptors: &'static [u8]) -> Result<Self, Error> {
        let builder = || {
            Builder::configure()
                .register_encoded_file_descriptor_set(descriptors)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let v1 = builder().build_v1()?.max_decoding_message_size(MAX_REQUEST);
        let v1alpha = builder().build_v1alpha()?.max_decoding_message_size(MAX_REQUEST);
        Ok(Self { v1: handler(v1), v1alpha: handler(v1alpha) })
    }
}
