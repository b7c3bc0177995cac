//! The exposition of metrics, the same for each of our programs: the text format 0.0.4 as kube-apiserver writes it, and
//! OpenMetrics for a scraper that prefers it.

use std::collections::HashSet;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The answer to a scrape with these headers. The counters of `bare_counters` have names that do not end in `_total`, which
/// OpenMetrics does not know: where there are any, every scraper gets the text format. 500 if a metric cannot be encoded.
pub fn expose(registry: &Registry, bare_counters: &[String], headers: &HeaderMap) -> Response<String> {
    let mut text = String::new();
    if encode(&mut text, registry).is_err() {
        let mut failed = Response::new("a metric cannot be encoded\n".to_owned());
        *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        return failed;
    }
    let (text, format) = match bare_counters.is_empty() && prefers_open_metrics(headers) {
        true => (text, OPEN_METRICS),
        false => (from_open_metrics(&text, bare_counters), TEXT_FORMAT),
    };
    let mut response = Response::new(text);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(format));
    response
}

/// Whether OpenMetrics has a greater weight than the text format (RFC 9110, 12.5.1).
fn prefers_open_metrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<_> = accepted.flat_map(|value| value.split(',')).map(range).collect();
    let weight = |is: fn(&str) -> bool| {
        let weights = ranges.iter().filter(|(name, _)| is(name)).map(|(_, weight)| *weight);
        weights.fold(0.0, f32::max)
    };
    weight(|name| name == "application/openmetrics-text") > weight(|name| name == "text/plain")
}

/// A media range without its parameters, and its weight.
fn range(text: &str) -> (String, f32) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
    (name, weight.unwrap_or(1.0))
}

/// Rewrites OpenMetrics as the older text format, in which a counter's name is written as it is: upstream's names are
/// fixed in that form, some with `_total` and some without. The counters named in `bare` lose the suffix that
/// OpenMetrics demands.
fn from_open_metrics(text: &str, bare: &[String]) -> String {
    let counters: HashSet<&str> =
        text.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut out = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF") {
        rewrite(line, &counters, bare, &mut out);
        out.push('\n');
    }
    out
}

fn rewrite(line: &str, counters: &HashSet<&str>, bare: &[String], out: &mut String) {
    let (prefix, rest) = match line.strip_prefix("# TYPE ").map(|r| ("# TYPE ", r)) {
        Some(split) => split,
        None => line.strip_prefix("# HELP ").map_or(("", line), |r| ("# HELP ", r)),
    };
    let end = rest.find([' ', '{']).unwrap_or(rest.len());
    let (name, tail) = rest.split_at(end);
    let base = name.strip_suffix("_total").filter(|base| prefix.is_empty() && counters.contains(base));
    let is_bare = |name: &str| bare.iter().any(|b| b == name);
    out.push_str(prefix);
    match base {
        Some(base) if is_bare(base) => out.push_str(base),
        None if !prefix.is_empty() && counters.contains(name) && !is_bare(name) => {
            out.push_str(name);
            out.push_str("_total");
        }
        _ => out.push_str(name),
    }
    out.push_str(tail);
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    fn exposed(accept: &'static str, bare_counters: &[String]) -> (String, String) {
        let mut registry = Registry::default();
        registry.register("requests", "Requests", Counter::<u64>::default());
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        let response = expose(&registry, bare_counters, &headers);
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        (kind.unwrap_or_default().to_owned(), response.into_body())
    }

    #[test]
    fn the_text_format_is_for_all_who_do_not_prefer_open_metrics() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.1";
        for (accept, open) in [
            ("", false),
            ("*/*", false),
            ("text/plain;version=0.0.4", false),
            ("application/openmetrics-text;q=0.3,text/plain;q=0.5", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text", true),
            (prometheus, true),
        ] {
            let (kind, text) = exposed(accept, &[]);
            assert_eq!(kind, if open { OPEN_METRICS } else { TEXT_FORMAT }, "{accept}");
            assert_eq!(text.contains("# EOF"), open, "{accept}");
            let (kind, text) = exposed(accept, &["requests".to_owned()]);
            assert!(kind == TEXT_FORMAT && text.contains("\nrequests 0\n"), "{accept}: {text}");
        }
    }

    #[test]
    fn counters_keep_total_in_every_line_unless_bare() {
        let text = "# HELP a Help.\n# TYPE a counter\na_total{x=\"1\"} 2\n# TYPE b counter\nb_total 3\n\
                    # TYPE c gauge\nc 1\n# EOF\n";
        let expected = "# HELP a_total Help.\n# TYPE a_total counter\na_total{x=\"1\"} 2\n# TYPE b counter\nb 3\n\
                        # TYPE c gauge\nc 1\n";
        assert_eq!(from_open_metrics(text, &["b".to_owned()]), expected);
    }
}
