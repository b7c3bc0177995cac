//! What a client reads of lists whose objects are large.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::convert::Infallible;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::{Pod, Store, reflect};
use super::*;

/// A server that has pods of these sizes, and remembers how many objects it was asked for.
#[derive(Default)]
struct Server {
    sizes: Vec<usize>,
    asked: Mutex<Vec<usize>>,
}

impl Server {
    fn client(self: &Arc<Self>) -> Client {
        let server = self.clone();
        let answer = move |request: Request<Body>| {
            let is_list = limit_of(request.uri()).is_some();
            let page = if is_list { server.page(request.uri()).to_string() } else { String::new() };
            async move { Ok::<_, Infallible>(Response::new(Body::from(page.into_bytes()))) }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    fn page(&self, uri: &Uri) -> Value {
        let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let pairs: BTreeMap<&str, &str> = pairs.collect();
        let limit: usize = pairs["limit"].parse().unwrap();
        let first: usize = pairs.get("continue").map_or(0, |token| token.parse().unwrap());
        let end = (first + limit).min(self.sizes.len());
        self.asked.lock().push(limit);
        let pod = |at: usize| {
            let annotations = json!({"example.com/filler": "x".repeat(self.sizes[at])});
            json!({"metadata": {"name": format!("{at:05}"), "annotations": annotations}})
        };
        let items: Vec<Value> = (first..end).map(pod).collect();
        let more = if end < self.sizes.len() { end.to_string() } else { String::new() };
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1", "continue": more}, "items": items})
    }
}

/// Follows the pages of a list with a limit of 500, and returns the bytes and the number of objects of each.
async fn pages(client: &Client) -> Vec<(usize, usize)> {
    let (mut pages, mut token) = (Vec::new(), String::new());
    loop {
        let query = if token.is_empty() { String::new() } else { format!("&continue={token}") };
        let request = Request::get(format!("/api/v1/pods?&limit=500{query}")).body(Vec::new()).unwrap();
        let text = client.request_text(request).await.unwrap();
        let page: Value = serde_json::from_str(&text).unwrap();
        pages.push((text.len(), page["items"].as_array().unwrap().len()));
        token = page["metadata"]["continue"].as_str().unwrap().to_owned();
        if token.is_empty() {
            return pages;
        }
    }
}

/// A page of 500 objects of 1.5 MiB, which one tenant can make, is three quarters of a gigabyte, and it was in memory two to
/// three times: the program was killed at each start.
#[tokio::test]
async fn no_page_is_longer_than_the_bound_and_no_object_is_left_out() {
    let sizes = [vec![1000; 700], vec![3 << 19; 40], vec![1000; 3000]].concat();
    let server = Arc::new(Server { sizes: sizes.clone(), ..Server::default() });
    let pages = pages(&bounded(server.client())).await;
    assert!(pages.iter().all(|(bytes, _)| *bytes <= MAX_PAGE_BYTES), "{pages:?}");
    assert_eq!(pages.iter().map(|(_, objects)| objects).sum::<usize>(), sizes.len());
    let (first, last) = (pages[0].1, pages.iter().map(|(_, objects)| *objects).rev().take(4).max());
    assert_eq!((first, last), (500, Some(500)), "it grows again: {pages:?}");
    // Forty large objects cost no more than as many pages, and a few that were given up.
    assert!(server.asked.lock().len() < 70, "{:?}", server.asked.lock());
}

#[tokio::test]
async fn an_object_that_is_longer_than_the_bound_is_read_alone() {
    let server = Arc::new(Server { sizes: vec![10, MAX_PAGE_BYTES + 1, 10], ..Server::default() });
    let pages = pages(&bounded(server.client())).await;
    assert_eq!(pages.iter().map(|(_, objects)| objects).sum::<usize>(), 3);
    assert!(pages.iter().all(|(bytes, objects)| *bytes <= MAX_PAGE_BYTES || *objects == 1), "{pages:?}");
}

#[tokio::test]
async fn a_reflector_lists_all_objects_through_shorter_pages() {
    let server = Arc::new(Server { sizes: vec![1 << 20; 30], ..Server::default() });
    let (store, stop) = (Store::<Pod>::default(), CancellationToken::new());
    let reflecting = tokio::spawn(reflect(server.client(), store.clone(), stop.clone()));
    store.wait_until_synced().await;
    stop.cancel();
    reflecting.await.unwrap();
    let names: Vec<_> = store.all().iter().map(|pod| pod.name.clone()).collect();
    assert_eq!(names, (0..30).map(|at| format!("{at:05}")).collect::<Vec<_>>());
    assert!(server.asked.lock().contains(&500) && server.asked.lock().iter().any(|asked| *asked < 8));
}

#[tokio::test]
async fn what_is_no_list_is_passed_on() {
    for path in ["/api/v1/pods/p", "/api/v1/pods?watch=true&resourceVersion=1"] {
        let passed = Arc::new(Mutex::new(None));
        let seen = passed.clone();
        let answer = move |request: Request<Body>| {
            *seen.lock() = Some(request.uri().to_string());
            async { Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec()))) }
        };
        let client = bounded(Client::new(tower::service_fn(answer), "default"));
        client.request_text(Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
        assert_eq!(passed.lock().as_deref(), Some(path));
    }
}

/// The watch begins its list anew on 410, and says what it may not do on 403.
#[tokio::test]
async fn an_error_is_passed_on_as_it_came() {
    for code in [403_u16, 410] {
        let answer = move |_: Request<Body>| async move {
            let status =
                json!({"kind": "Status", "status": "Failure", "reason": "R", "message": "m", "code": code});
            let answer = Response::builder().status(code).body(Body::from(status.to_string().into_bytes()));
            Ok::<_, Infallible>(answer.unwrap())
        };
        let client = bounded(Client::new(tower::service_fn(answer), "default"));
        let list = Request::get("/api/v1/pods?&limit=500").body(Vec::new()).unwrap();
        let error = client.request_text(list).await.unwrap_err();
        assert!(matches!(&error, kube::Error::Api(status) if status.code == code), "{error}");
    }
}

/// A server need not heed the limit: its list is taken at last as it is, and asked for a few times only.
#[tokio::test]
async fn a_server_that_gives_more_than_was_asked_for_is_believed() {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let answer = move |_: Request<Body>| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Infallible>(Response::new(Body::from(vec![b' '; MAX_PAGE_BYTES + 1]))) }
    };
    let client = bounded(Client::new(tower::service_fn(answer), "default"));
    let list = Request::get("/api/v1/pods?&limit=500").body(Vec::new()).unwrap();
    assert_eq!(client.request_text(list).await.unwrap().len(), MAX_PAGE_BYTES + 1);
    assert!(asked.load(Ordering::Relaxed) <= 6, "{asked:?}");
}

/// A host sends the whole of each object, of up to 1.5 MiB, if it is not asked for the metadata alone.
#[tokio::test]
async fn of_metadata_alone_the_host_is_asked_by_the_media_type() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let host = Client::new(
        tower::service_fn(move |request: Request<Body>| {
            let accepts = request.headers()[ACCEPT].to_str().unwrap().to_owned();
            log.lock().push((request.uri().to_string(), accepts));
            async { Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec()))) }
        }),
        "default",
    );
    let client = bounded(metadata_alone(host));
    for path in ["/a?limit=500", "/a?watch=true", "/a/b"] {
        client
            .request_text(Request::get(path).header(ACCEPT, "application/json").body(Vec::new()).unwrap())
            .await
            .unwrap();
    }
    let accepts: Vec<String> = asked.lock().iter().map(|(_, accepts)| accepts.clone()).collect();
    assert_eq!(accepts, [METADATA_LIST, METADATA, METADATA]);
}
