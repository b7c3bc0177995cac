//! The controllers by name, what they read, and how they are started.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use drydock_api::eviction_request::interceptors::{AllowedNames, DAEMON_SET};
use drydock_eviction::{Config, Options, PastTurns};
use drydock_interceptors::{daemonset, imperative};
use drydock_runtime::ControllerContext;

use crate::flags::Flags;

type RunningController = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One controller.
struct ControllerSpec {
    name: &'static str,
    start: fn(ControllerContext, &ControllerInputs) -> RunningController,
}

/// What the controllers get beside their context.
pub struct ControllerInputs {
    /// The flags of the program.
    pub flags: Flags,
    /// Followed since the program began.
    pub past_turns: PastTurns,
}

const ALL: &[ControllerSpec] = &[
    ControllerSpec {
        name: "evictionrequest",
        start: |context, inputs| {
            let options = eviction_options(&inputs.flags);
            Box::pin(drydock_eviction::run(context, options, inputs.past_turns.clone()))
        },
    },
    ControllerSpec {
        name: "nodemaintenance",
        start: |context, inputs| {
            Box::pin(drydock_maintenance::run(context, maintenance_options(&inputs.flags)))
        },
    },
    ControllerSpec { name: "imperative-eviction", start: |context, _| Box::pin(imperative::run(context)) },
    ControllerSpec { name: DAEMON_SET_EVICTION, start: |context, _| Box::pin(daemonset::run(context)) },
];

/// The controller that serves the interceptor [`DAEMON_SET`].
const DAEMON_SET_EVICTION: &str = "daemonset-eviction";

/// Names that `--controllers` knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|controller| controller.name)
}

/// Starts the controllers that the flags ask for, each as a task of the context; returns their names.
pub fn start(context: &ControllerContext, inputs: &ControllerInputs) -> Vec<&'static str> {
    let asked = ALL.iter().filter(|controller| is_asked_for(controller.name, &inputs.flags.controllers));
    asked
        .map(|controller| {
            context.tasks.spawn(controller.name, (controller.start)(context.clone(), inputs));
            controller.name
        })
        .collect()
}

/// Reads `--controllers` as kube-controller-manager does: a controller that is named runs, one that is named
/// with `-` does not, and `*` stands for all others.
fn is_asked_for(name: &str, asked: &[String]) -> bool {
    if asked.iter().any(|a| a == name) {
        return true;
    }
    let excluded = asked.iter().any(|a| a.strip_prefix('-') == Some(name));
    !excluded && asked.iter().any(|a| a == "*")
}

fn eviction_options(flags: &Flags) -> Options {
    let bound = |flag: Duration| (!flag.is_zero()).then_some(flag);
    let config = Config {
        heartbeat_deadline: flags.heartbeat_deadline,
        retention: bound(flags.eviction_request_retention),
        allowed: allowed_names(flags),
        max_interception: bound(flags.max_interception),
        ..Config::default()
    };
    Options { config, aggregate_metrics: flags.aggregate_request_metrics, ..Options::default() }
}

/// The names that interceptors may have, and which of the built-in ones are served: by our controllers that run, and by the
/// programs that the flags name.
fn allowed_names(flags: &Flags) -> AllowedNames {
    let ours = is_asked_for(DAEMON_SET_EVICTION, &flags.controllers).then_some(DAEMON_SET);
    let named = flags.served_interceptor_names.iter().chain(&flags.allowed_interceptor_names);
    let served = ours.into_iter().chain(named.map(String::as_str));
    AllowedNames::default().with(flags.allowed_interceptor_names.iter().cloned()).served_by(served)
}

fn maintenance_options(flags: &Flags) -> drydock_maintenance::Options {
    let mut options = drydock_maintenance::Options::default();
    options.config.advertise_planned = flags.advertise_planned;
    options.config.heartbeat_deadline = flags.heartbeat_deadline;
    options.config.request_retention = flags.blocked_request_retention;
    options.config.namespace.clone_from(&flags.lease.leader_elect_resource_namespace);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_allowed_reach_the_eviction_controller() {
        let flags = ["m", "--allowed-interceptor-names=node-doctor.k8s.io"].map(Into::into);
        let config = eviction_options(&Flags::read(flags).unwrap_or_else(|_| panic!("flags"))).config;
        assert!(config.allowed.allows("node-doctor.k8s.io") && !config.allowed.allows("other.k8s.io"));
    }

    #[test]
    fn built_in_names_are_served_by_our_controllers_and_by_those_that_flags_name() {
        let unserved = |more: &[&str]| {
            let flags = ["m"].iter().chain(more).map(Into::into);
            let config = eviction_options(&Flags::read(flags).unwrap_or_else(|_| panic!("flags"))).config;
            let names = [DAEMON_SET, "surge.coordination.k8s.io", "deployment.apps.k8s.io", "a.example.com"];
            names.map(|name| config.allowed.is_unserved(name))
        };
        assert_eq!(unserved(&[]), [false, true, true, false]);
        assert_eq!(
            unserved(&["--served-interceptor-names=surge.coordination.k8s.io"]),
            [false, false, true, false]
        );
        assert_eq!(unserved(&["--controllers=*,-daemonset-eviction"]), [true, true, true, false]);
    }

    #[test]
    fn names_count_before_the_star() {
        let asked = |list: &[&str]| {
            let list: Vec<String> = list.iter().map(|s| (*s).to_owned()).collect();
            names().filter(|name| is_asked_for(name, &list)).count()
        };
        assert_eq!(asked(&["*"]), ALL.len());
        assert_eq!(asked(&["*", "-daemonset-eviction"]), ALL.len() - 1);
        assert_eq!(asked(&["daemonset-eviction"]), 1);
        assert_eq!(asked(&["-daemonset-eviction"]), 0);
    }
}
