//! What surrounds a body: the URL and its options, continue tokens, the Accept header.

use drydock_server::audit::policy_file;
use drydock_server::request::continue_token::Continue;
use drydock_server::request::list_options::ListOptions;
use drydock_server::request::write_options::{WriteKind, write_options};
use drydock_serving::request::info::RequestInfo;
use drydock_serving::request::user::User;
use drydock_serving::wire::negotiate;
use drydock_storage::backend::Revision;
use http::{HeaderMap, HeaderValue, Method, header};

/// `continue=`, as it is sent and as what it encodes.
pub fn continue_token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let wrapped = Continue { revision: Some(1), start: text.to_owned() }.encode();
    for token in [text, &wrapped] {
        let Ok(read) = Continue::decode(token) else { continue };
        assert_eq!(Continue::decode(&read.encode()).as_ref(), Ok(&read));
        let climbs = read.start.split('/').any(|segment| matches!(segment, "" | "." | ".."));
        assert!(!climbs, "{:?}", read.start);
    }
}

/// An Accept header: of objects, of documents, of watches.
pub fn accept(data: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(data) else { return };
    let headers = HeaderMap::from_iter([(header::ACCEPT, value)]);
    let query = drydock_serving::request::query::Query::parse("");
    let _ = negotiate::document(&headers, &query, false);
    let _ = negotiate::plain(&headers, &query);
    let _ = negotiate::stream(&headers, &query);
    let _ = negotiate::routed(&headers, &query);
    let _ = negotiate::aggregated_discovery(&headers, &query);
    let _ = negotiate::only_json(&headers);
    let _ = negotiate::subtype(&headers, &["json"]);
    let error = negotiate::error(&headers, &query);
    assert_eq!(error.transform, negotiate::Transform::None, "errors are never transformed");
}

/// A path and query: what it asks for, percent-encoding, each option.
pub fn url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(uri) = text.parse::<http::Uri>() else { return };
    for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let info = RequestInfo::parse(&method, &uri);
        for watch in [false, true] {
            if let Ok(options) = ListOptions::parse(&info.query, watch) {
                let _ = options.read();
                let _ = options.watch_from(Revision(7));
            }
        }
        for kind in [WriteKind::Create, WriteKind::Update, WriteKind::Patch, WriteKind::Apply] {
            let _ = write_options(&info.query, &HeaderMap::new(), kind);
        }
    }
}

/// A policy file of the audit log: what it says of a request, if it is one.
pub fn audit_policy(data: &[u8]) {
    let Ok(policy) = policy_file::read(data) else { return };
    for uri in ["/apis/g/v1/namespaces/n/things/x/status", "/metrics", "/apis/g/v1/things?watch=1"] {
        let uri = http::Uri::from_static(uri);
        let info = RequestInfo::parse(&Method::GET, &uri);
        let _ = policy.config(Some(&User::default()), &info);
        let _ = policy.config(None, &info);
    }
}
