//! The calls of the status service: their paths, their messages, and the objects that they read.

use std::time::Duration;

use drydock_api::{eviction_request, node_maintenance};
use drydock_machinery::names::{dns1123_label, dns1123_subdomain};
use drydock_machinery::selector::LabelRequirements;
use drydock_proto::status::v1alpha1::{
    GetEvictionRequest, GetMaintenanceRequest, GetNodeRequest, WatchEvictionsRequest,
    WatchMaintenancesRequest, WatchNodesRequest, WatchOptions,
};
use prost::Message;
use tonic::Status;

use crate::error::{invalid, no_such_method, undecodable};
use crate::filter::{Entity, Filter};
use crate::token::Token;

/// Name of the service, also for health checks and reflection.
pub const SERVICE: &str = "drydock.status.v1alpha1.StatusService";
/// Maximum bytes of a label selector.
const SELECTOR_MAX: usize = 4096;
/// Upper limit of the minimum interval between updates.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// One kind of objects that a call reads, for authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAttributes {
    /// Whether it watches; otherwise it gets one object, or lists all.
    pub watch: bool,
    /// The resource, in the API group of both kinds.
    pub resource: &'static str,
    /// The namespace; empty for all, and for cluster-scoped resources.
    pub namespace: String,
    /// The object's name; empty for all.
    pub name: String,
}

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads one entity.
    Get(Entity),
    /// Watches many entities.
    Watch(Entity),
}

/// A call.
#[derive(Clone, Debug)]
pub enum StatusCall {
    /// Gets one entity, by its key.
    Get(Entity, String),
    /// Watches many entities.
    Watch(Watch),
}

/// The parameters of a Watch.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The entities.
    pub filter: Filter,
    /// The token to resume from; `None` to start with a snapshot.
    pub token: Option<Token>,
    /// Minimum time between two updates of an entity.
    pub interval: Duration,
}

/// Returns the method of a path such as `/drydock.status.v1alpha1.StatusService/WatchNodes`.
pub fn method(path: &str) -> Option<Method> {
    let name = path.strip_prefix('/')?.strip_prefix(SERVICE)?.strip_prefix('/')?;
    Some(match name {
        "GetMaintenance" => Method::Get(Entity::Maintenance),
        "WatchMaintenances" => Method::Watch(Entity::Maintenance),
        "GetNode" => Method::Get(Entity::Node),
        "WatchNodes" => Method::Watch(Entity::Node),
        "GetEviction" => Method::Get(Entity::Eviction),
        "WatchEvictions" => Method::Watch(Entity::Eviction),
        _ => return None,
    })
}

/// Decodes and checks a call.
///
/// # Errors
/// UNIMPLEMENTED for a path without a method, INVALID_ARGUMENT for a message that is malformed.
pub fn call(path: &str, message: &[u8]) -> Result<StatusCall, Status> {
    match method(path).ok_or_else(|| no_such_method(path))? {
        Method::Get(entity) => get(entity, message),
        Method::Watch(entity) => watch(entity, message).map(StatusCall::Watch),
    }
}

fn decode<T: Message + Default>(message: &[u8]) -> Result<T, Status> {
    T::decode(message).map_err(|error| undecodable(&error))
}

fn get(entity: Entity, message: &[u8]) -> Result<StatusCall, Status> {
    let key = match entity {
        Entity::Maintenance => decode::<GetMaintenanceRequest>(message)?.name,
        Entity::Node => decode::<GetNodeRequest>(message)?.name,
        Entity::Eviction => {
            let GetEvictionRequest { namespace, name } = decode(message)?;
            required("namespace", &namespace)?;
            is_label("namespace", &namespace)?;
            required("name", &name)?;
            is_name("name", &name)?;
            return Ok(StatusCall::Get(entity, format!("{namespace}/{name}")));
        }
    };
    required("name", &key)?;
    is_name("name", &key)?;
    Ok(StatusCall::Get(entity, key))
}

fn watch(entity: Entity, message: &[u8]) -> Result<Watch, Status> {
    let mut filter = Filter::all(entity);
    let (options, selector) = match entity {
        Entity::Maintenance => {
            let request: WatchMaintenancesRequest = decode(message)?;
            (filter.name, filter.node) = (request.maintenance, request.node);
            filter.only_blocked = request.only_blocked;
            is_name("maintenance", &filter.name)?;
            (request.options, request.label_selector)
        }
        Entity::Node => {
            let request: WatchNodesRequest = decode(message)?;
            (filter.maintenance, filter.name) = (request.maintenance, request.node);
            filter.only_blocked = request.only_blocked;
            is_name("node", &filter.name)?;
            (request.options, String::new())
        }
        Entity::Eviction => {
            let request: WatchEvictionsRequest = decode(message)?;
            (filter.namespace, filter.maintenance) = (request.namespace, request.maintenance);
            (filter.node, filter.only_blocked) = (request.node, request.only_blocked);
            is_label("namespace", &filter.namespace)?;
            (request.options, request.label_selector)
        }
    };
    is_name("node", &filter.node)?;
    is_name("maintenance", &filter.maintenance)?;
    filter.labels = labels(&selector)?;
    options_of(filter, options.unwrap_or_default())
}

fn options_of(filter: Filter, options: WatchOptions) -> Result<Watch, Status> {
    let interval = match options.min_update_interval {
        None => Duration::ZERO,
        Some(given) => interval(given)
            .ok_or_else(|| invalid("options.min_update_interval", "must be between 0 and 60 s"))?,
    };
    let token = match &options.resume_token[..] {
        [] => None,
        bytes => Some(token(bytes, &filter)?),
    };
    Ok(Watch { filter, token, interval })
}

/// Converts an interval; `None` if it is outside the limits. (The conversion of prost_types overflows for `i64::MIN`
/// seconds.)
fn interval(given: drydock_proto::prost_types::Duration) -> Option<Duration> {
    let nanos = u32::try_from(given.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    let seconds = u64::try_from(given.seconds).ok().filter(|seconds| *seconds <= INTERVAL_MAX.as_secs())?;
    Some(Duration::new(seconds, nanos)).filter(|interval| *interval <= INTERVAL_MAX)
}

fn token(bytes: &[u8], filter: &Filter) -> Result<Token, Status> {
    let field = "options.resume_token";
    let token = Token::decode(bytes).ok_or_else(|| invalid(field, "is not a token of this server"))?;
    if token.filter != filter.digest() {
        return Err(invalid(field, "belongs to another method or to another filter"));
    }
    Ok(token)
}

fn labels(selector: &str) -> Result<LabelRequirements, Status> {
    if selector.len() > SELECTOR_MAX {
        return Err(invalid("label_selector", format!("may have at most {SELECTOR_MAX} bytes")));
    }
    LabelRequirements::parse(selector).map_err(|error| invalid("label_selector", error.status.message))
}

fn required(field: &str, value: &str) -> Result<(), Status> {
    if value.is_empty() { Err(invalid(field, "is required")) } else { Ok(()) }
}

/// Refuses an invalid object name. An empty string stands for no name.
fn is_name(field: &str, value: &str) -> Result<(), Status> {
    checked(field, value, dns1123_subdomain)
}

fn is_label(field: &str, value: &str) -> Result<(), Status> {
    checked(field, value, dns1123_label)
}

fn checked(field: &str, value: &str, rule: fn(&str) -> Vec<String>) -> Result<(), Status> {
    let wrong = if value.is_empty() { Vec::new() } else { rule(value) };
    if wrong.is_empty() { Ok(()) } else { Err(invalid(field, wrong.join("; "))) }
}

impl StatusCall {
    /// Returns what the call reads.
    pub fn reads(&self) -> Vec<ReadAttributes> {
        let (watch, entity, namespace, name) = match self {
            Self::Get(Entity::Eviction, key) => {
                let (namespace, name) = key.split_once('/').unwrap_or_default();
                (false, Entity::Eviction, namespace, name)
            }
            Self::Get(entity, name) => (false, *entity, "", name.as_str()),
            Self::Watch(watch) => {
                (true, watch.filter.entity, watch.filter.namespace.as_str(), watch.filter.name.as_str())
            }
        };
        let read = |resource, namespace: &str, name: &str| ReadAttributes {
            watch,
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        match entity {
            Entity::Maintenance => vec![read(node_maintenance::RESOURCE, "", name)],
            // The name is that of a node, whose message needs all objects.
            Entity::Node => {
                vec![read(node_maintenance::RESOURCE, "", ""), read(eviction_request::RESOURCE, "", "")]
            }
            Entity::Eviction => vec![read(eviction_request::RESOURCE, namespace, name)],
        }
    }
}

#[cfg(test)]
mod tests;
