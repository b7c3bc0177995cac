//! The steps of a call in addition to those of every request ([`crate::chain`]): what it reads, and whether the user
//! may open one more stream.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use drydock_serving::auth::Caller;
use drydock_serving::auth::authn::Credential;
use drydock_serving::auth::authz::AuthorizationAttributes;
use drydock_serving::auth::impersonation::ImpersonationMode;
use drydock_serving::clock;
use drydock_serving::request::info::RequestInfo;
use drydock_serving::request::user::User;
use futures::StreamExt;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Limited};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::body::Ending;
use super::call::GrpcCall;
use super::recheck::{HostRechecker, Recheck, RecheckResult, StreamCondition};
use super::routes::Route;
use super::streams::OpenStream;
use super::{CallRefusal, Grpc, message};
use crate::chain::Chain;
use crate::flow_control::Seats;

/// Bytes of a call whose message has not come yet.
const CALL: usize = 8 << 10;
/// Maximum bytes of the messages of a call that has many: no seat is held while they are answered.
const MESSAGES: usize = 256 << 10;

/// A call that may be answered.
pub(super) struct GrantedCall {
    pub(super) route: Route,
    pub(super) user: Arc<User>,
    pub(super) seats: Seats,
    pub(super) request: Request<Body>,
    pub(super) stream: Option<GrantedStream>,
}

/// What belongs to a stream that may be opened.
pub(super) struct GrantedStream {
    pub(super) ending: Arc<Ending>,
    pub(super) open: OpenStream,
    /// Bytes that its questions take.
    pub(super) bytes: usize,
    pub(super) certificate_end: Option<SystemTime>,
    /// Ends the client's messages with the answer.
    pub(super) messages: CancellationToken,
}

/// What a call asks for, once its message has been read.
pub(super) struct ReadCall {
    pub(super) route: Route,
    pub(super) infos: Vec<Arc<RequestInfo>>,
    pub(super) body: Body,
    /// Bytes of the message.
    pub(super) bytes: usize,
}

impl GrantedStream {
    /// Returns the client's messages until the answer has ended. A reader of them may not notice that the answer was
    /// dropped, and would wait for the next message for as long as the connection is open.
    pub(super) fn messages(&self, body: Body) -> Body {
        let messages = Limited::new(body, MESSAGES).into_data_stream();
        Body::from_stream(messages.take_until(self.messages.clone().cancelled_owned()))
    }
}

impl Chain {
    /// Reads the message, and from it what the call asks for.
    pub(super) async fn read_call(
        &self,
        grpc: &Grpc,
        headers: &mut HeaderMap,
        body: Body,
        call: &GrpcCall<'_>,
        caller: &Caller,
    ) -> Result<ReadCall, CallRefusal> {
        let route = call.route.ok_or_else(unknown_method)?;
        if !route.has_one_message() {
            return Ok(ReadCall { route, infos: Vec::new(), body, bytes: 0 });
        }
        // No call waits for room: a client that sends its message slowly would delay others.
        let level = self.flow_control.level_of(&caller.user);
        let mut holding = grpc.messages.holding(&caller.user, level, clock::now());
        holding.take(CALL).await?;
        let path = &call.parsed.path;
        let message = message::read(headers, body, Some(&mut holding), message::MAX_BYTES).await?;
        let reads = grpc.routes.reads(route, path, &message)?;
        let infos =
            reads.iter().map(|read| read.request_info(path).map(Arc::new)).collect::<Result<_, _>>()?;
        Ok(ReadCall { route, infos, bytes: message.len(), body: message::framed(&message) })
    }

    /// Counts the stream, and has its conditions reviewed again for as long as it is open.
    pub(super) fn grant_stream(
        &self,
        grpc: &Grpc,
        caller: &Caller,
        user: &Arc<User>,
        impersonated: Option<(ImpersonationMode, HeaderMap)>,
        credential: Credential,
        attributes: Vec<AuthorizationAttributes>,
    ) -> Result<GrantedStream, CallRefusal> {
        let mut questions = Vec::with_capacity(attributes.len() + 1);
        let (mut certificate_end, origin, sender) = (None, caller.origin, caller.user.clone());
        match credential {
            Credential::Token(token) => {
                questions.push(StreamCondition::Token { token, user: sender, origin })
            }
            Credential::Certificates { certificates, end } => {
                questions.push(StreamCondition::Certificates { certificates, user: sender });
                certificate_end = end;
            }
            Credential::None => {}
        }
        if let Some((mode, headers)) = impersonated {
            let about = |attributes: AuthorizationAttributes| StreamCondition::Impersonation {
                caller: caller.clone(),
                mode,
                headers: headers.clone(),
                attributes,
            };
            match attributes.is_empty() {
                true => questions.push(about(AuthorizationAttributes::default())),
                false => questions.extend(attributes.iter().cloned().map(about)),
            }
        }
        let access =
            |attributes| StreamCondition::Access { caller: caller.clone(), user: user.clone(), attributes };
        questions.extend(attributes.into_iter().map(access));
        let bytes = questions.iter().map(StreamCondition::bytes).sum();
        let (host, ending) = (self.host(), Arc::default());
        let questions = questions.into_iter().map(|it| {
            let until = host.known_until(&it);
            (it, until)
        });
        let open = grpc.streams.open(caller.user.flow(), questions.collect(), &ending)?;
        let messages = CancellationToken::new();
        Ok(GrantedStream { ending, open, bytes, certificate_end, messages })
    }

    fn host(&self) -> HostRechecker<'_> {
        HostRechecker {
            authenticator: &self.authenticator,
            impersonation: &self.impersonation,
            authorizer: &self.authorizer,
        }
    }
}

#[async_trait::async_trait]
impl Recheck for Arc<Chain> {
    async fn ask(&self, question: &StreamCondition) -> RecheckResult {
        self.host().answer(question).await
    }
}

pub(super) fn unknown_method() -> CallRefusal {
    let status =
        Status::unimplemented("this server has no such method; grpcurl's `list` shows what there is");
    status.into()
}

/// The headers that name whom the caller wants to act as.
pub(super) fn impersonation_headers(headers: &HeaderMap) -> HeaderMap {
    let named = headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-"));
    let mut found = HeaderMap::new();
    found.extend(named.map(|(name, value)| (name.clone(), value.clone())));
    found
}
