//! A document that is encoded once and served many times.

use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha512};

/// JSON, and a hash by which clients recognize it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Compact JSON.
    pub body: Bytes,
    /// SHA-512 of the body in upper-case hexadecimal.
    pub hash: String,
    /// The document in protobuf, where it is served so.
    pub protobuf: Option<Bytes>,
}

impl Document {
    /// Encodes and hashes JSON.
    pub fn new(value: &Value) -> Self {
        let body = Bytes::from(value.to_string());
        let hash = Sha512::digest(&body).iter().map(|byte| format!("{byte:02X}")).collect();
        Self { body, hash, protobuf: None }
    }

    /// The hash in double quotes: the value of the `ETag` header, which is compared unchanged with `If-None-Match`. It is
    /// the same in every format; `Vary` tells them apart.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }
}
