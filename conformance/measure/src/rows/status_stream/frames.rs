//! Responses of WatchEvictions, read as little as the load needs: which object, which write.

use anyhow::{Result, ensure};

use crate::object;

/// Tag of the field `resume_token`.
const TOKEN: u8 = 1 << 3 | 2;
/// Tags of the events that are distinguished.
const UPDATED: u8 = 2 << 3 | 2;
const SNAPSHOT_COMPLETE: u8 = 5 << 3 | 2;

/// What a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The state of an object.
    Updated {
        /// The number in its name.
        object: u64,
        /// The write that made it; 0 before the first.
        beat: u64,
    },
    /// All that there was has come.
    SnapshotComplete,
    /// Something else.
    Other,
}

/// The bytes of a stream, cut into responses.
#[derive(Default)]
pub struct StreamFrames {
    /// The beginning of a response whose end has not come.
    rest: Vec<u8>,
}

impl StreamFrames {
    /// Calls `each` with the responses that are whole with these bytes.
    pub fn take(&mut self, data: &[u8], mut each: impl FnMut(StreamEvent) -> Result<()>) -> Result<()> {
        if self.rest.is_empty() {
            let used = whole(data, &mut each)?;
            self.rest.extend_from_slice(&data[used..]);
            return Ok(());
        }
        self.rest.extend_from_slice(data);
        let used = whole(&self.rest, &mut each)?;
        self.rest.drain(..used);
        Ok(())
    }
}

/// Reads all whole responses (a byte that says whether it is compressed, its length, the message); how many
/// bytes they had.
fn whole(bytes: &[u8], each: &mut impl FnMut(StreamEvent) -> Result<()>) -> Result<usize> {
    let mut rest = bytes;
    while let Some(([compressed, length @ ..], behind)) = rest.split_first_chunk::<5>() {
        ensure!(*compressed == 0, "a response is compressed, and nobody asked for that");
        let Some((message, next)) = behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length))?)
        else {
            break;
        };
        each(event(message))?;
        rest = next;
    }
    Ok(bytes.len() - rest.len())
}

fn event(message: &[u8]) -> StreamEvent {
    let event = match message {
        [TOKEN, length, rest @ ..] => rest.get(usize::from(*length)..).unwrap_or_default(),
        all => all,
    };
    match event.first() {
        Some(&SNAPSHOT_COMPLETE) => StreamEvent::SnapshotComplete,
        Some(&UPDATED) => {
            let object = object::number(event);
            object.map_or(StreamEvent::Other, |object| StreamEvent::Updated {
                object,
                beat: beat(event).unwrap_or_default(),
            })
        }
        _ => StreamEvent::Other,
    }
}

/// What an interceptor says of a write.
pub fn message(beat: u64) -> String {
    format!("beat {beat:012x}")
}

fn beat(bytes: &[u8]) -> Option<u64> {
    const BEFORE: &[u8] = b"beat ";
    let at = bytes.windows(BEFORE.len()).position(|at| at == BEFORE)? + BEFORE.len();
    u64::from_str_radix(std::str::from_utf8(bytes.get(at..at + 12)?).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_proto::status::v1alpha1::watch_evictions_response::Event as ProtoEvent;
    use drydock_proto::status::v1alpha1::{
        ActiveInterceptor, Eviction, Heartbeat, SnapshotComplete, WatchEvictionsResponse,
    };
    use prost::Message;

    use super::*;

    fn response(event: ProtoEvent) -> Vec<u8> {
        let message = WatchEvictionsResponse { resume_token: vec![7; 41].into(), event: Some(event) };
        let length = u32::try_from(message.encoded_len()).unwrap();
        [&[0], &length.to_be_bytes()[..], &message.encode_to_vec()].concat()
    }

    fn updated(number: u64, said: String) -> ProtoEvent {
        let active_interceptor = Some(ActiveInterceptor { message: said, ..Default::default() });
        ProtoEvent::Updated(Eviction { name: object::name(number), active_interceptor, ..Default::default() })
    }

    #[test]
    fn responses_are_read_however_their_bytes_are_cut() {
        let responses = [
            updated(7, message(70_000)),
            ProtoEvent::SnapshotComplete(SnapshotComplete {}),
            updated(8, String::new()),
            ProtoEvent::Heartbeat(Heartbeat {}),
        ];
        let bytes: Vec<u8> = responses.into_iter().flat_map(response).collect();
        let expected = [
            StreamEvent::Updated { object: 7, beat: 70_000 },
            StreamEvent::SnapshotComplete,
            StreamEvent::Updated { object: 8, beat: 0 },
            StreamEvent::Other,
        ];
        for size in [1, 2, 7, 100, bytes.len()] {
            let (mut frames, mut read) = (StreamFrames::default(), Vec::new());
            for chunk in bytes.chunks(size) {
                frames
                    .take(chunk, |event| {
                        read.push(event);
                        Ok(())
                    })
                    .unwrap();
            }
            assert_eq!(read, expected, "in pieces of {size} bytes");
        }
    }

    #[test]
    fn a_compressed_response_is_refused() {
        assert!(StreamFrames::default().take(&[1, 0, 0, 0, 0], |_| Ok(())).is_err());
    }
}
