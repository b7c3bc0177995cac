//! The events of a watch, as they come.

use anyhow::{Context, Result, bail};
use bytes::{Buf, BytesMut};
use drydock_testkit::wait::LIMIT;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use super::wire;

/// A watch that is open.
pub struct WatchFrames {
    body: Body,
    read: BytesMut,
    protobuf: bool,
}

impl WatchFrames {
    /// The frames of a body.
    pub fn new(body: Body, type_: &str) -> Self {
        Self { body, read: BytesMut::new(), protobuf: type_.contains("protobuf") }
    }

    /// The next event; None at the end.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(event) = self.whole()? {
                return Ok(Some(event));
            }
            let frame = tokio::time::timeout(LIMIT, self.body.frame()).await;
            match frame.context("no event came in time")? {
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                None if self.read.iter().all(u8::is_ascii_whitespace) => return Ok(None),
                None => bail!("the stream ended within an event: {:?}", self.read),
            }
        }
    }

    fn whole(&mut self) -> Result<Option<Value>> {
        if self.protobuf {
            return Ok(self.message());
        }
        let mut values = serde_json::Deserializer::from_slice(&self.read).into_iter::<Value>();
        let value = match values.next() {
            None => return Ok(None),
            Some(Err(error)) if error.is_eof() => return Ok(None),
            Some(value) => value?,
        };
        let length = values.byte_offset();
        self.read.advance(length);
        Ok(Some(value))
    }

    fn message(&mut self) -> Option<Value> {
        let length = u32::from_be_bytes(self.read.get(..4)?.try_into().ok()?) as usize;
        let value = wire::protobuf(self.read.get(4..4 + length)?);
        self.read.advance(4 + length);
        Some(value)
    }
}
