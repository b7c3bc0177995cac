//! What every program needs that serves HTTPS for Kubernetes, whatever it answers: the secure port, and the host behind
//! it that says who may do what. A module uses those below it alone; `conformance/architecture` keeps that.
//!
//! ```text
//!   metrics_port        the port of a program that answers probes and scrapers alone
//!   serve               the port: connections, TLS handshakes, HTTP/1.1 and HTTP/2, orderly shutdown
//!   health              /livez, /readyz and /healthz
//!   auth                authn, authz, and the reviews by which the host decides
//!   wire                the form of an answer: what the client negotiated, Status, bytes
//!   clock               the monotonic clock
//!   connection          what can be ended from outside: a connection, or one of its streams
//!   guarded_body        a body that keeps something until it has been sent
//!   host                how the host is reached, and reflectors of its objects
//!   tls                 certificates: the port's own, and those of its clients
//!   request             what a request says of itself: info, user, query
//!   tasks               what runs until shutdown, and ends the program when it ends before
//! ```

pub mod metrics_port;
pub mod serve;

pub mod auth;
pub mod health;
pub mod wire;

pub mod clock;
pub mod connection;
pub mod guarded_body;
pub mod host;
pub mod request;
pub mod tasks;
pub mod tls;
