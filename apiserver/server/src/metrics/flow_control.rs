//! The figures of flow control, by kube-apiserver's names (k8s.io/apiserver pkg/util/flowcontrol/metrics/metrics.go).
//! Each level is its own flow schema here, and no label names a flow: its name is a tenant's choice.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::flow_control::{FlowControl, LevelFigures};

/// The priority levels, read at each scrape.
pub(super) struct Levels(pub(super) Arc<FlowControl>);

impl fmt::Debug for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Levels").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LevelLabel {
    priority_level: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Requests {
    priority_level: &'static str,
    flow_schema: &'static str,
}

impl Requests {
    fn of(level: &'static str) -> Self {
        Self { priority_level: level, flow_schema: level }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rejected {
    #[prometheus(flatten)]
    requests: Requests,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Waited {
    #[prometheus(flatten)]
    requests: Requests,
    execute: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestKindLabels {
    request_kind: &'static str,
}

/// A figure of a level.
type Figure = fn(&LevelFigures) -> u64;

/// The seats of a level: name, help text and value.
const LIMITS: [(&str, &str, Figure); 3] = [
    ("apiserver_flowcontrol_nominal_limit_seats", "Share of the seats", |of| of.share.nominal.into()),
    ("apiserver_flowcontrol_lower_limit_seats", "Seats of the share that are never lent", |of| {
        of.share.lower.into()
    }),
    ("apiserver_flowcontrol_upper_limit_seats", "Most seats, borrowed ones among them", |of| {
        of.share.upper.into()
    }),
];

/// The requests of a level: name, help text and value.
const REQUESTS: [(&str, &str, Figure); 3] = [
    ("apiserver_flowcontrol_current_inqueue_requests", "Requests that wait for seats", |of| of.waiting),
    ("apiserver_flowcontrol_current_executing_requests", "Requests that hold seats", |of| of.executing),
    ("apiserver_flowcontrol_current_executing_seats", "Seats that requests hold", |of| of.seats),
];

impl Collector for Levels {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let levels: Vec<_> = self.0.figures().into_iter().map(|(of, figures)| (of.name(), figures)).collect();
        self.requests(&mut encoder)?;
        for (name, what, figure) in LIMITS {
            let mut metric = encoder.encode_descriptor(name, what, None, MetricType::Gauge)?;
            for (priority_level, figures) in &levels {
                let gauge = ConstGauge::new(number(figure(figures)));
                gauge.encode(metric.encode_family(&LevelLabel { priority_level })?)?;
            }
        }
        for (name, what, figure) in REQUESTS {
            let mut metric = encoder.encode_descriptor(name, what, None, MetricType::Gauge)?;
            for (level, figures) in &levels {
                let gauge = ConstGauge::new(number(figure(figures)));
                gauge.encode(metric.encode_family(&Requests::of(level))?)?;
            }
        }
        outcomes(&levels, &mut encoder)?;
        waits(&levels, &mut encoder)
    }
}

impl Levels {
    fn requests(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let name = "apiserver_current_inflight_requests";
        let mut metric =
            encoder.encode_descriptor(name, "Requests that are being answered", None, MetricType::Gauge)?;
        let [reading, mutating] = self.0.in_flight().now();
        for (request_kind, requests) in [("readOnly", reading), ("mutating", mutating)] {
            ConstGauge::new(number(requests))
                .encode(metric.encode_family(&RequestKindLabels { request_kind })?)?;
        }
        Ok(())
    }
}

/// What became of requests; the encoder appends `_total`.
fn outcomes(
    levels: &[(&'static str, LevelFigures)],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let (name, what) = ("apiserver_flowcontrol_dispatched_requests", "Requests that got their seats");
    let mut metric = encoder.encode_descriptor(name, what, None, MetricType::Counter)?;
    for (level, figures) in levels {
        ConstCounter::new(figures.dispatched).encode(metric.encode_family(&Requests::of(level))?)?;
    }
    let what =
        "Requests that got no seats: too many waited already, or they waited too long, or were given up";
    let name = "apiserver_flowcontrol_rejected_requests";
    let mut metric = encoder.encode_descriptor(name, what, None, MetricType::Counter)?;
    for (level, figures) in levels {
        for (reason, rejected) in figures.rejected {
            let of = Rejected { requests: Requests::of(level), reason };
            ConstCounter::new(rejected).encode(metric.encode_family(&of)?)?;
        }
    }
    Ok(())
}

fn waits(
    levels: &[(&'static str, LevelFigures)],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let (name, what) = ("apiserver_flowcontrol_request_wait_duration_seconds", "Time that requests waited");
    let mut metric = encoder.encode_descriptor(name, what, None, MetricType::Histogram)?;
    for (level, figures) in levels {
        for (execute, waits) in [("true", &figures.waits.served), ("false", &figures.waits.rejected)] {
            let of = Waited { requests: Requests::of(level), execute };
            waits.encode(metric.encode_family(&of)?)?;
        }
    }
    Ok(())
}

fn number(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}
