//! What a call reads, as the request for it would name it.

use std::sync::Arc;

use drydock_machinery::ApiError;
use drydock_serving::request::info::{RequestInfo, Verb};
use drydock_serving::request::query::Query;

/// Longest name or namespace, in bytes: no object has a longer one.
const MAX_NAME_BYTES: usize = 253;

/// Objects of one resource that a call reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRead {
    /// Whether it follows their changes: the verb is `watch`. Otherwise it is `get` of one object, and `list` of all.
    pub watch: bool,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Resource, lower-case plural.
    pub resource: String,
    /// Namespace; empty for all namespaces, and for a resource without namespaces.
    pub namespace: String,
    /// Object; empty for all.
    pub name: String,
}

impl ResourceRead {
    /// The request for the same objects, of a call of the method at `path`. A watch of one object is a watch with the
    /// field selector `metadata.name=NAME`.
    ///
    /// # Errors
    /// 400 if the namespace or the name cannot be one.
    pub(super) fn request_info(&self, path: &str) -> Result<RequestInfo, ApiError> {
        let Self { watch, group, version, resource, namespace, name } = self.clone();
        for text in [&namespace, &name] {
            let bad = |c: char| c.is_control() || matches!(c, '/' | '%' | '=' | ',' | '\\');
            if text.len() > MAX_NAME_BYTES || text.contains(bad) {
                let why =
                    format!("a namespace or name has at most {MAX_NAME_BYTES} bytes and none of / % = , \\");
                return Err(ApiError::bad_request(why));
            }
        }
        let field_selector = (watch && !name.is_empty()).then(|| format!("metadata.name={name}"));
        Ok(RequestInfo {
            is_resource: true,
            path: path.to_owned(),
            verb: match name.as_str() {
                _ if watch => Verb::Watch,
                "" => Verb::List,
                _ => Verb::Get,
            },
            query: Query::parse(if watch { "watch=true" } else { "" }),
            group,
            version,
            namespace,
            resource,
            name,
            field_selector,
            ..RequestInfo::default()
        })
    }
}

/// Several reads of a call in one line, for the audit log: a verb and a resource each.
pub(super) fn line(infos: &[Arc<RequestInfo>]) -> String {
    let one = |info: &Arc<RequestInfo>| format!("{} {}.{}", info.verb, info.resource, info.group);
    infos.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_serving::auth::authz::AuthorizationAttributes;
    use drydock_serving::request::info::RequestInfo;
    use http::Method;

    use super::*;

    #[test]
    fn a_read_is_authorized_like_the_rest_request_for_the_same_objects() {
        let all = ResourceRead {
            group: "g".into(),
            version: "v1".into(),
            resource: "things".into(),
            ..ResourceRead::default()
        };
        let in_ns = ResourceRead { namespace: "ns".into(), ..all.clone() };
        for (read, path) in [
            (all.clone(), "/apis/g/v1/things"),
            (ResourceRead { watch: true, ..all.clone() }, "/apis/g/v1/things?watch=true"),
            (ResourceRead { watch: true, ..in_ns.clone() }, "/apis/g/v1/namespaces/ns/things?watch=true"),
            (
                ResourceRead { watch: true, name: "a".into(), ..in_ns.clone() },
                "/apis/g/v1/namespaces/ns/things?watch=true&fieldSelector=metadata.name%3Da",
            ),
            (ResourceRead { name: "a".into(), ..in_ns }, "/apis/g/v1/namespaces/ns/things/a"),
        ] {
            let rest =
                AuthorizationAttributes::from(&RequestInfo::parse(&Method::GET, &path.parse().unwrap()));
            let grpc = AuthorizationAttributes::from(&read.request_info("/p.S/M").unwrap());
            assert_eq!(
                AuthorizationAttributes { path: String::new(), ..grpc },
                AuthorizationAttributes { path: String::new(), ..rest }
            );
        }
    }

    #[test]
    fn what_cannot_be_a_name_is_asked_of_nobody() {
        for name in ["x".repeat(254), "a/b".to_owned(), "a,b=c".to_owned(), "a\n".to_owned()] {
            let read = ResourceRead { name: name.clone(), ..ResourceRead::default() };
            assert_eq!(read.request_info("/p.S/M").unwrap_err().code(), 400, "{name}");
            let read = ResourceRead { namespace: name.clone(), ..ResourceRead::default() };
            assert_eq!(read.request_info("/p.S/M").unwrap_err().code(), 400, "{name}");
        }
    }
}
