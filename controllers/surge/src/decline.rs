//! Causes for which a turn is declined: the interceptor never waits for something that a replica more cannot bring. Pure.

use jiff::SignedDuration;

use crate::deployment::{Deployment, OPT_IN};
use crate::scale::Scale;

/// Why no pod of the Deployment is surged, if so: what its number has of a surge is taken back as well.
pub fn workload_refusal(deployment: &Deployment, scale: &Scale<'_>) -> Option<String> {
    let (name, floor) = (&deployment.name, scale.floor());
    if deployment.is_deleting {
        return Some(format!("Deployment {name} is being deleted"));
    }
    if !deployment.is_opted_in {
        return Some(format!("Deployment {name} has no annotation {OPT_IN}: true"));
    }
    if deployment.replicas == 0 || scale.number == 0 {
        return Some(format!("Deployment {name} has 0 replicas, or may have"));
    }
    if deployment.max_surge.is_none() {
        return Some(format!("Deployment {name} has the strategy Recreate"));
    }
    if deployment.max_surge_of(floor) == 0 {
        return Some(format!("maxSurge of Deployment {name} is 0"));
    }
    if scale.most.is_some_and(|most| most <= floor) {
        return Some(format!("{} is at its maxReplicas", scale.holder));
    }
    let owner = scale.applied_by?;
    Some(format!("{owner} owns {} of {} by server-side apply", scale.field, scale.holder))
}

/// Why the turn of a pod that has waited this long is declined at present, if so.
pub fn turn_refusal(deployment: &Deployment, waited: SignedDuration) -> Option<String> {
    let name = &deployment.name;
    if deployment.is_rolling_out() {
        return Some(format!("a rollout of Deployment {name} runs"));
    }
    if let Some(failure) = &deployment.replica_failure {
        return Some(format!("Deployment {name} cannot create pods: {failure}"));
    }
    (waited >= deployment.progress_deadline).then(|| {
        let seconds = deployment.progress_deadline.as_secs();
        format!("no more replica was ready within {seconds} seconds, the Deployment's progress deadline")
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

    use super::*;

    #[test]
    fn a_deployment_without_a_cause_is_not_refused() {
        let max_surge = Some(IntOrString::Int(1));
        let fine = Deployment { is_opted_in: true, replicas: 1, max_surge, ..Deployment::default() };
        assert_eq!(workload_refusal(&fine, &fine.scale()), None);
        let paused_by_owner = Deployment { replicas: 0, ..fine };
        let why = workload_refusal(&paused_by_owner, &paused_by_owner.scale()).unwrap_or_default();
        assert!(why.contains("has 0 replicas"), "not maxSurge, which is 0 of 0: {why}");
    }

    #[test]
    fn a_turn_is_refused_from_the_deadline_on() {
        let deployment =
            Deployment { progress_deadline: SignedDuration::from_secs(60), ..Deployment::default() };
        let after = |seconds| turn_refusal(&deployment, SignedDuration::from_secs(seconds));
        assert_eq!((after(59), after(60).is_some()), (None, true));
    }
}
