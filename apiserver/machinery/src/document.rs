//! A document that is made once and served many times.

use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha512};

/// JSON with the hash by which clients know it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Compact JSON.
    pub body: Bytes,
    /// SHA-512 of the body in upper-case hexadecimal.
    pub hash: String,
}

impl Document {
    /// Encodes and hashes.
    pub fn new(value: &Value) -> Self {
        let body = Bytes::from(value.to_string());
        let hash = Sha512::digest(&body).iter().map(|byte| format!("{byte:02X}")).collect();
        Self { body, hash }
    }

    /// The hash in double quotes: the value of an `ETag` header, to be compared with `If-None-Match` as it is.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }
}
