//! One subscriber: a stream of WatchEvictions, read frame by frame.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::{BufMut, Bytes, BytesMut};
use drydock_proto::prost_types;
use drydock_proto::status::v1alpha1::{WatchEvictionsRequest, WatchOptions};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message;

use super::frames::{StreamEvent, StreamFrames};
use super::objects::NODE;
use super::seen::{Ledger, SubscribersSeen};
use crate::client::HttpClient;
use crate::object::NAMESPACE;

const METHOD: &str = "/drydock.status.v1alpha1.StatusService/WatchEvictions";

/// A stream whose snapshot has come.
pub struct StreamSubscriber {
    body: Incoming,
    frames: StreamFrames,
    /// What has come.
    pub ledger: Rc<Ledger>,
}

impl StreamSubscriber {
    /// Subscribes, and reads until the snapshot of so many objects is complete.
    pub async fn open(client: &HttpClient, lane: usize, request: Bytes, objects: usize) -> Result<Self> {
        let body = client.call(lane, METHOD, request).await?;
        let mut subscriber =
            Self { body, frames: StreamFrames::default(), ledger: Rc::new(Ledger::new(objects)) };
        let mut is_complete = false;
        while !is_complete {
            let Some(data) = subscriber.read().await else {
                bail!("a stream ended in its snapshot: {:?}", subscriber.ledger.ended.borrow())
            };
            let ledger = &subscriber.ledger;
            subscriber.frames.take(&data, |event| {
                is_complete |= event == StreamEvent::SnapshotComplete;
                if let StreamEvent::Updated { object, beat } = event {
                    ledger.note(object, beat)?;
                }
                Ok(())
            })?;
        }
        Ok(subscriber)
    }

    /// Reads until all objects have come in their last state, or the stream ends.
    pub async fn follow(mut self, seen: Rc<SubscribersSeen>) -> Result<()> {
        while self.ledger.behind() > 0 {
            let Some(data) = self.read().await else { break };
            let ledger = &self.ledger;
            self.frames.take(&data, |event| match event {
                StreamEvent::Updated { object, beat } => seen.came(ledger, object, beat),
                StreamEvent::SnapshotComplete | StreamEvent::Other => Ok(()),
            })?;
        }
        Ok(())
    }

    /// The next bytes; `None` at the end, which the ledger then has.
    async fn read(&mut self) -> Option<Bytes> {
        let end = match self.body.frame().await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => return Some(data),
                Err(frame) => format!("{:?}", frame.into_trailers()),
            },
            Some(Err(error)) => error.to_string(),
            None => "without trailers".to_owned(),
        };
        *self.ledger.ended.borrow_mut() = Some(end);
        None
    }
}

/// The request of a subscriber, in its frame.
pub fn request(min_update_interval: Duration) -> Result<Bytes> {
    let interval =
        prost_types::Duration::try_from(min_update_interval).ok().context("too long an interval")?;
    let message = WatchEvictionsRequest {
        options: Some(WatchOptions { min_update_interval: Some(interval), ..Default::default() }),
        namespace: NAMESPACE.to_owned(),
        node: NODE.to_owned(),
        ..Default::default()
    };
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.encoded_len())?);
    message.encode(&mut frame)?;
    Ok(frame.freeze())
}
