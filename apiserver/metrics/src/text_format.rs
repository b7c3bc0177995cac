//! From OpenMetrics to the older text format, in which a counter's name is written as it is: upstream's names are fixed
//! in that form, some with `_total` and some without.

use std::collections::HashSet;

/// Rewrites `text`; the counters named in `bare` lose the suffix that OpenMetrics demands.
pub(super) fn from_open_metrics(text: &str, bare: &[String]) -> String {
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
    use super::*;

    #[test]
    fn counters_keep_total_in_every_line_unless_bare() {
        let text = "# HELP a Help.\n# TYPE a counter\na_total{x=\"1\"} 2\n# TYPE b counter\nb_total 3\n\
                    # TYPE c gauge\nc 1\n# EOF\n";
        let expected = "# HELP a_total Help.\n# TYPE a_total counter\na_total{x=\"1\"} 2\n# TYPE b counter\nb 3\n\
                        # TYPE c gauge\nc 1\n";
        assert_eq!(from_open_metrics(text, &["b".to_owned()]), expected);
    }
}
