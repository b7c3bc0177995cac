//! How long a server may take to answer a client of ours.
//!
//! A server that takes requests and answers none answers the pings of its connection all the same: without a limit a request
//! would be waited for as long as the process runs. A server whose storage hangs says so after a time of its own, with 504.
//! Behind the address there may be several servers, of which another one answers: the connection is used for no other request.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use drydock_logging::NoAnswer;
use http::{Request, Response, StatusCode, Uri};
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use kube::client::Body;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep};
use tower::timeout::TimeoutLayer;
use tower::timeout::error::Elapsed;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

/// Longest time until an answer begins, and longest silence within one that is no watch.
///
/// The servers, the host's kube-apiserver and drydock-apiserver, end a request that is no watch after their `--request-timeout`,
/// 60 s by default, and say so in their answer: that answer has time to come. Where the flag is longer than this, a request
/// that a server still works on fails here.
const ANSWERED_WITHIN: Duration = Duration::from_secs(75);
/// Longest silence of a watch. The server ends it before that (kube-runtime's watcher asks for 290 s).
pub(super) const SILENT_WATCH: Duration = Duration::from_secs(300);
/// A request that its caller gives up after this time, or later, counts as one without an answer. The time is shorter than the
/// callers' limits, of which many are 10 s: their clocks start before this one.
const GIVEN_UP_LATE: Duration = Duration::from_secs(8);

/// A client's service whose requests fail with [`NoAnswer`] where `ANSWERED_WITHIN` and `SILENT_WATCH` are exceeded.
pub(super) type Limited<B> = BoxCloneService<Request<Body>, Response<LimitedBody<B>>, BoxError>;

/// Sends requests by `http`. No request follows on a connection after one that was not answered, be it given up here or by its
/// caller, or was answered with one of `left_after`.
pub(super) fn limited<S, B>(http: S, left_after: &'static [StatusCode]) -> Limited<B>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: 'static,
{
    let http = TimeoutLayer::new(ANSWERED_WITHIN).layer(http);
    BoxCloneService::new(service_fn(move |mut request: Request<Body>| {
        let mut sent = SentRequest::of(&mut request);
        let answer = http.clone().oneshot(request);
        async move {
            let answer = answer.await;
            sent.unanswered_since = None;
            match answer {
                Ok(answer) => {
                    if left_after.contains(&answer.status()) {
                        sent.leave();
                    }
                    Ok(answer.map(|body| sent.limit(body)))
                }
                Err(error) if error.is::<Elapsed>() => Err(sent.in_vain(ANSWERED_WITHIN, false).into()),
                Err(error) => Err(error),
            }
        }
    }))
}

/// A request that was sent.
struct SentRequest {
    /// Method and path.
    request: String,
    silence: Duration,
    /// None once an answer has begun, or an error has come.
    unanswered_since: Option<Instant>,
    connection: CaptureConnection,
}

impl SentRequest {
    fn of(request: &mut Request<Body>) -> Self {
        let silence = if is_watch(request.uri()) { SILENT_WATCH } else { ANSWERED_WITHIN };
        let words = format!("{} {}", request.method(), request.uri().path());
        let connection = capture_connection(request);
        Self { request: words, silence, unanswered_since: Some(Instant::now()), connection }
    }

    /// Sees to it that no other request is sent over the connection. Those under way stay.
    fn leave(&self) {
        self.connection.connection_metadata().iter().for_each(|connection| connection.poison());
    }

    fn in_vain(&self, waited: Duration, has_begun: bool) -> NoAnswer {
        self.leave();
        NoAnswer { request: self.request.clone(), waited, has_begun }
    }

    fn limit<B>(self, body: B) -> LimitedBody<B> {
        LimitedBody { body, silent: None, sent: self }
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        if self.unanswered_since.is_some_and(|since| since.elapsed() >= GIVEN_UP_LATE) {
            self.leave();
        }
    }
}

fn is_watch(uri: &Uri) -> bool {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs.into_iter().any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

pin_project! {
    /// The body of an answer, which fails when nothing more of it comes.
    pub(super) struct LimitedBody<B> {
        #[pin]
        body: B,
        // Ends when nothing has come for too long. None while nobody waits.
        #[pin]
        silent: Option<Sleep>,
        sent: SentRequest,
    }
}

impl<B> HttpBody for LimitedBody<B>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(context) {
            this.silent.set(None);
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if this.silent.is_none() {
            this.silent.set(Some(sleep(this.sent.silence)));
        }
        if let Some(silent) = this.silent.as_pin_mut() {
            ready!(silent.poll(context));
        }
        Poll::Ready(Some(Err(this.sent.in_vain(this.sent.silence, true).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;
    use std::io;
    use std::net::SocketAddr;

    use futures::{StreamExt, stream};
    use http_body_util::{BodyExt, Full, StreamBody};
    use hyper::body::Incoming;
    use hyper_util::client::legacy::Client as HttpClient;
    use hyper_util::client::legacy::connect::HttpConnector;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use hyper_util::server::conn::auto;
    use kube::Config;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;
    use crate::clock::testing::StoppedClock;
    use crate::host::{KeepAlive, builder, client_by};

    /// The answer begins after this time, and its second part comes after as long again.
    async fn slowly(uri: &str, after: Duration) -> Result<Bytes, BoxError> {
        let server = service_fn(move |_: Request<Body>| async move {
            tokio::time::sleep(after).await;
            let parts = stream::iter(["first ", "second"]).then(move |part| async move {
                let pause = if part == "second" { after } else { Duration::ZERO };
                tokio::time::sleep(pause).await;
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(part.as_bytes())))
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(parts))))
        });
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let answer = limited(server, &[]).oneshot(request).await?;
        Ok(answer.into_body().collect().await?.to_bytes())
    }

    /// Lists, writes and new watches of the controllers were waited for as long as the process ran.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_takes_requests_and_answers_none_is_not_waited_for() {
        let silent =
            service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
        for uri in ["/api/v1/pods?limit=50", "/api/v1/pods?watch=true"] {
            let (request, began) = (Request::get(uri).body(Body::empty()).unwrap(), Instant::now());
            let error = limited(silent, &[]).oneshot(request).await.err().unwrap();
            assert_eq!(error.to_string(), "GET /api/v1/pods: no answer within 75 s");
            assert!(NoAnswer::of(&*error).is_some());
            assert_eq!(began.elapsed(), ANSWERED_WITHIN);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_stops_is_an_error_and_one_that_is_slow_comes_to_its_end() {
        let slow = Duration::from_secs(74);
        assert_eq!(slowly("/api/v1/pods?limit=50", slow).await.unwrap(), "first second");
        let stops = service_fn(|_: Request<Body>| async {
            let first =
                stream::once(async { Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"first"))) });
            Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(first.chain(stream::pending())))))
        });
        for (uri, silence) in [("/api/v1/pods?limit=50", 75), ("/api/v1/pods?watch=true", 300)] {
            let (request, began) = (Request::get(uri).body(Body::empty()).unwrap(), Instant::now());
            let answer = limited(stops, &[]).oneshot(request).await.unwrap();
            let error = answer.into_body().collect().await.err().unwrap();
            let words = format!("GET /api/v1/pods: nothing more of the answer within {silence} s");
            assert_eq!((error.to_string(), began.elapsed()), (words, Duration::from_secs(silence)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_a_watch_may_come_later() {
        let server = service_fn(|_: Request<Body>| async {
            let late = stream::once(async {
                tokio::time::sleep(Duration::from_secs(290)).await;
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"event")))
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(late))))
        });
        let request = Request::get("/api/v1/pods?allowWatchBookmarks=true&watch=true");
        let answer = limited(server, &[]).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "event");
    }

    #[tokio::test]
    async fn an_error_of_the_server_stays_what_it_is() {
        let broken =
            service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>(io::Error::other("broken")) });
        let error = limited(broken, &[]).oneshot(Request::new(Body::empty())).await.err().unwrap();
        assert!(error.is::<io::Error>());
    }

    /// Answers requests for /number and /504 with the number of the connection, and none for any other path, of which it tells.
    async fn numbered(listener: TcpListener, taken: mpsc::Sender<()>) {
        for number in 0_u8.. {
            let (stream, _) = listener.accept().await.unwrap();
            let taken = taken.clone();
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let taken = taken.clone();
                let code = match request.uri().path() {
                    "/number" => Some(StatusCode::OK),
                    "/504" => Some(StatusCode::GATEWAY_TIMEOUT),
                    _ => None,
                };
                async move {
                    let Some(code) = code else {
                        taken.send(()).await.unwrap();
                        return std::future::pending().await;
                    };
                    let mut answer = Response::new(Full::new(Bytes::from(number.to_string())));
                    *answer.status_mut() = code;
                    Ok::<_, Infallible>(answer)
                }
            });
            tokio::spawn(async move {
                auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await
            });
        }
    }

    /// A client of a `numbered` server, over HTTP/2.
    struct NumberedClient {
        client: Limited<Incoming>,
        address: SocketAddr,
    }

    impl NumberedClient {
        /// Also returns what tells of each request that the server leaves without an answer.
        async fn start() -> (Self, mpsc::Receiver<()>) {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (taken, all_taken) = mpsc::channel(1);
            tokio::spawn(numbered(listener, taken));
            let mut over_http2 = builder(KeepAlive::default());
            let http: HttpClient<_, Body> = over_http2.http2_only(true).build(HttpConnector::new());
            (Self { client: limited(http, &[]), address }, all_taken)
        }

        async fn get(&self, path: &str) -> Result<Response<LimitedBody<Incoming>>, BoxError> {
            let request = Request::get(format!("http://{}{path}", self.address)).body(Body::empty());
            self.client.clone().oneshot(request.unwrap()).await
        }

        /// The number of the connection over which the next request goes.
        async fn number(&self) -> Bytes {
            self.get("/number").await.unwrap().into_body().collect().await.unwrap().to_bytes()
        }
    }

    /// A request that was made again went over the same connection, to the same server, which answered none.
    #[tokio::test]
    async fn no_request_follows_on_a_connection_after_one_without_an_answer() {
        let (client, mut taken) = NumberedClient::start().await;
        assert_eq!([client.number().await, client.number().await], ["0", "0"]);
        let clock = StoppedClock::stop();
        let silence = async {
            taken.recv().await.unwrap();
            clock.advance(ANSWERED_WITHIN).await;
        };
        let (answer, ()) = tokio::join!(client.get("/"), silence);
        assert_eq!(answer.err().unwrap().to_string(), "GET /: no answer within 75 s");
        assert_eq!(client.number().await, "1");
    }

    /// Each request was given up after 45 s, and the next one went over the same connection, to the server that hung.
    #[tokio::test]
    async fn no_request_follows_on_a_connection_after_one_that_its_caller_gave_up_late() {
        let (client, mut taken) = NumberedClient::start().await;
        let clock = StoppedClock::stop();
        for (seconds, next) in [(5, "0"), (10, "1"), (45, "2")] {
            let limit = Duration::from_secs(seconds);
            let silence = async {
                taken.recv().await.unwrap();
                clock.advance(limit).await;
            };
            let (answer, ()) = tokio::join!(tokio::time::timeout(limit, client.get("/")), silence);
            assert!(answer.is_err(), "it is given up after {seconds} s");
            assert_eq!(client.number().await, next, "after {seconds} s");
        }
    }

    /// A server of the host that was cut off from its etcd kept its connections, and each request got 504 in the end.
    #[tokio::test]
    async fn no_request_follows_on_a_connection_to_the_host_after_a_504() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
        config.root_cert = Some(Vec::new());
        tokio::spawn(numbered(listener, mpsc::channel(1).0));
        let client = client_by(config, KeepAlive::default(), "--kubeconfig", "a test".to_owned()).unwrap();
        let number = async |path: &str| {
            let answer = client.send(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
            answer.into_body().collect_bytes().await.unwrap()
        };
        // Over HTTP/1 a connection may be found in use still, and another one be made.
        for _ in 0..5 {
            assert_ne!(number("/504").await, number("/number").await);
        }
    }
}
