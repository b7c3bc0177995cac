//! EvictionRequest (KEP-4563): a request that should end in the graceful eviction of one pod.

mod conditions;
mod types;

pub mod believed_block;
pub mod interceptor_annotations;
pub mod interceptors;
pub mod transitions;

mod interceptor_status_validation;
pub mod status_validation;
pub mod validation;

pub mod permissions;

pub mod limits;

pub mod maintenances;
pub mod pod_labels;
pub mod requester_users;
pub mod retention;

pub mod columns;
mod strategy;

pub use conditions::{
    CANCELED, EVICTED, REASON_DELETED, REASON_NO_REQUESTERS, REASON_POD_DELETED, REASON_POD_TERMINATED,
    REASON_VALIDATION_FAILED,
};
pub use interceptor_status_validation::MAX_MESSAGE;
pub use strategy::{EvictionRequestKind, EvictionRequestStrategy, NAMES};
pub use types::RESOURCE;
pub use types::{
    Blocked, EarlierTurns, EvictionRequest, EvictionRequestSpec, EvictionRequestStatus, EvictionTarget,
    Interceptor, InterceptorStatus, LocalPodReference, PodInfo, Requester, RequesterUser,
};
