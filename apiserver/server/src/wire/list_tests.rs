//! Tests of how much of a list is made at once, in each format.

use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Instant;

use drydock_machinery::kind::Now;
use drydock_machinery::table::IncludeObject;
use drydock_serving::wire::negotiate::Transform;
use drydock_serving::wire::protobuf::{self, raw};
use futures::poll;
use http_body_util::BodyExt;

use super::*;
use crate::flow_control::PriorityLevel;
use crate::handlers::list_budget;
use crate::testing::{Counting, kind, objects};
use crate::wire::object::object_bytes;

/// Objects of a list: twelve steps.
const OBJECTS: usize = 48;

fn page(count: usize) -> ListPage {
    let (user, level) = (Arc::default(), PriorityLevel::Exempt);
    let room = Arc::new(list_budget(0).holding(&user, level, Instant::now()));
    ListPage { items: objects(count).into(), revision: 7, continue_: String::new(), remaining: None, room }
}

fn view(kind: &Arc<Counting>, output: Output) -> ObjectView {
    ObjectView { kind: kind.clone(), output, include: IncludeObject::None, now: Now::UNIX_EPOCH }
}

/// What was done between two yields: the most encodings, and the most bytes; how often it yielded; the body.
#[derive(Default)]
struct Made {
    encoded: usize,
    bytes: usize,
    yields: usize,
    body: Vec<u8>,
}

impl Made {
    /// After a yield; `before` is what there was after the last one.
    async fn look(&mut self, kind: &Counting, before: &mut (usize, usize)) {
        let now = (kind.encoded.load(Relaxed), self.body.len());
        self.encoded = self.encoded.max(now.0 - before.0);
        self.bytes = self.bytes.max(now.1 - before.1);
        self.yields += 1;
        *before = now;
        tokio::task::yield_now().await;
    }
}

async fn made(kind: &Arc<Counting>, output: Output, headers: &HeaderMap) -> Made {
    let (mut made, mut before) = (Made::default(), (0, 0));
    let mut list = pin!(list(page(OBJECTS), view(kind, output), headers));
    let mut body = loop {
        match poll!(list.as_mut()) {
            Poll::Ready(response) => break response.into_body(),
            Poll::Pending => made.look(kind, &mut before).await,
        }
    };
    loop {
        match poll!(pin!(body.frame())) {
            Poll::Ready(Some(frame)) => made.body.extend_from_slice(&frame.unwrap().into_data().unwrap()),
            Poll::Ready(None) => break,
            Poll::Pending => made.look(kind, &mut before).await,
        }
    }
    made.look(kind, &mut before).await;
    made.yields -= 1;
    made
}

fn output(format: WireFormat, pretty: bool, transform: Transform) -> Output {
    Output { format, pretty, transform }
}

/// Protobuf was encoded as a whole in one poll, and a table's rows until they filled a piece: whole lists of large
/// objects, while no other task had the thread.
#[tokio::test]
async fn other_tasks_run_between_the_steps_of_a_costly_list() {
    let none = HeaderMap::new();
    let gzip = HeaderMap::from_iter([(http::header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
    for (output, headers) in [
        (output(WireFormat::Protobuf, false, Transform::None), &none),
        (output(WireFormat::Protobuf, false, Transform::PartialList("v1")), &none),
        (output(WireFormat::Protobuf, false, Transform::None), &gzip),
        (output(WireFormat::Json, false, Transform::Table("v1")), &none),
        (output(WireFormat::Json, false, Transform::PartialList("v1")), &none),
        (output(WireFormat::Json, true, Transform::None), &none),
        (output(WireFormat::Json, false, Transform::None), &gzip),
        (output(WireFormat::Yaml, false, Transform::None), &none),
        (output(WireFormat::Yaml, false, Transform::Table("v1")), &none),
    ] {
        let made = made(&kind(), output, headers).await;
        let Made { encoded, bytes, yields, .. } = made;
        assert!(encoded <= 9 && bytes <= 4 * PIECE, "{output:?}: {encoded} objects, {bytes} bytes");
        assert!(yields >= OBJECTS / 4 - 4, "{output:?}: {yields} yields");
    }
}

/// Copying bytes takes no longer than sending them.
#[tokio::test]
async fn plain_json_is_made_without_a_yield() {
    let (kind, headers) = (kind(), HeaderMap::new());
    let made = made(&kind, output(WireFormat::Json, false, Transform::None), &headers).await;
    assert_eq!((made.yields, kind.encoded.load(Relaxed)), (0, 0));
    let list: serde_json::Value = serde_json::from_slice(&made.body).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), OBJECTS);
}

#[tokio::test]
async fn a_long_list_in_protobuf_is_as_long_as_it_says_and_keeps_little() {
    let (kind, headers) = (kind(), HeaderMap::new());
    let output = output(WireFormat::Protobuf, false, Transform::None);
    let body: Bytes = made(&kind, output, &headers).await.body.into();
    let items: usize = objects(OBJECTS)
        .iter()
        .map(|stored| {
            let item = raw(&object_bytes(stored, &view(&kind, output), false)).unwrap();
            assert!(body.windows(item.len()).any(|window| window == item), "{}", stored.key);
            item.len() + protobuf::item_head(item.len()).len()
        })
        .sum();
    let meta = protobuf::list_meta("7", "", None).len();
    assert_eq!(raw(&body).unwrap().len(), meta + items);
    let (_, held) = Protobuf::measured(&page(OBJECTS), view(&kind, output)).await;
    assert!(held <= 1 << 20 && held < items, "{held} of {items} bytes");
}
