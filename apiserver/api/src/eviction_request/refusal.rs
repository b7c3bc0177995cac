//! The message with which imperative eviction says that the host refuses (KEP-4563, Eviction). It is for people: programs
//! read `blocked`.

/// What refuses to let a pod be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// One PodDisruptionBudget, or that there are several.
    Budget,
    /// An admission webhook or policy.
    Admission,
    /// The host for another reason: authorization, an invalid object.
    ApiServer,
}

/// The message of an eviction that was refused so often, the last time by this and for that reason.
pub fn message(retries: u32, by: RefusedBy, why: &str) -> String {
    let by = match by {
        RefusedBy::Budget => "",
        RefusedBy::Admission => "an admission webhook or policy refused: ",
        RefusedBy::ApiServer => "the API server refused: ",
    };
    format!("Could not evict a pod due to failing eviction requests, number of retries: {retries}: {by}{why}")
}
