//! The controllers by name, what they read, and how they are started.

use std::future::Future;
use std::pin::Pin;

use drydock_api::eviction_request::interceptors::AllowedNames;
use drydock_eviction::{Config, Options};
use drydock_interceptors::{daemonset, imperative};
use drydock_runtime::ControllerContext;

use crate::flags::Flags;

type RunningController = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One controller.
struct ControllerSpec {
    name: &'static str,
    start: fn(ControllerContext, &Flags) -> RunningController,
}

const ALL: &[ControllerSpec] = &[
    ControllerSpec {
        name: "evictionrequest",
        start: |context, flags| Box::pin(drydock_eviction::run(context, eviction_options(flags))),
    },
    ControllerSpec {
        name: "nodemaintenance",
        start: |context, flags| Box::pin(drydock_maintenance::run(context, maintenance_options(flags))),
    },
    ControllerSpec { name: "imperative-eviction", start: |context, _| Box::pin(imperative::run(context)) },
    ControllerSpec { name: "daemonset-eviction", start: |context, _| Box::pin(daemonset::run(context)) },
];

/// Names that `--controllers` knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|controller| controller.name)
}

/// Starts the controllers that the flags ask for, each as a task of the context; returns their names.
pub fn start(context: &ControllerContext, flags: &Flags) -> Vec<&'static str> {
    let asked = ALL.iter().filter(|controller| is_asked_for(controller.name, &flags.controllers));
    asked
        .map(|controller| {
            context.tasks.spawn(controller.name, (controller.start)(context.clone(), flags));
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
    let retention = flags.eviction_request_retention;
    let config = Config {
        heartbeat_deadline: flags.heartbeat_deadline,
        retention: (!retention.is_zero()).then_some(retention),
        allowed: AllowedNames::default().with(flags.allowed_interceptor_names.iter().cloned()),
        ..Config::default()
    };
    Options { config, aggregate_metrics: flags.aggregate_request_metrics, ..Options::default() }
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
