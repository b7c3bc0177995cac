//! Shows the verdict: a line for each fact that was checked, failures first, and how many hold.

use drydock_api::text::{counted, cut};
use drydock_testkit::finding::Finding;

use super::screen::{Screen, Span, Tone};

/// Writes the verdict and returns whether every fact holds.
pub fn show(screen: &Screen, findings: &[Finding]) -> bool {
    screen.say("what the host's own objects and audit log say");
    lines(findings, &screen.mark(), screen.width()).iter().for_each(|line| screen.line(line));
    findings.iter().all(|finding| finding.good)
}

/// The lines of the verdict. A fact that holds is cut to the width, and a failure is told in full.
fn lines(findings: &[Finding], mark: &Span, width: usize) -> Vec<Vec<Span>> {
    let (good, bad): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| finding.good);
    let fail = Span::new(Tone::Bad, "    FAIL ");
    let marked = |mark: &Span, what: String| vec![mark.clone(), Span::new(Tone::Plain, what)];
    let mut lines: Vec<_> = bad.iter().map(|failure| marked(&fail, failure.what.clone())).collect();
    let room = width.saturating_sub(mark.text.chars().count());
    lines.extend(good.iter().map(|fact| marked(mark, cut(&fact.what, room))));
    lines.push(vec![match bad.len() {
        0 => Span::new(Tone::Good, format!("    {} checked, and all hold", facts(good.len()))),
        failed => Span::new(Tone::Bad, format!("    {failed} of {} failed", facts(findings.len()))),
    }]);
    lines
}

fn facts(count: usize) -> String {
    counted(count as u64, "fact", "facts")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(findings: &[Finding], width: usize) -> Vec<String> {
        let joined = |line: &Vec<Span>| line.iter().map(|span| span.text.as_str()).collect();
        lines(findings, &Span::new(Tone::Good, "    ok "), width).iter().map(joined).collect()
    }

    #[test]
    fn failures_come_first_and_are_told_in_full() {
        let findings =
            [Finding::new(true, "a fact that holds"), Finding::new(false, "a long failure, told in full")];
        let expected =
            ["    FAIL a long failure, told in full", "    ok a fact \u{2026}", "    1 of 2 facts failed"];
        assert_eq!(text(&findings, 15), expected);
    }

    #[test]
    fn one_fact_is_singular_and_a_pipe_gets_it_in_full() {
        let findings = [Finding::new(true, "a fact that holds")];
        assert_eq!(
            text(&findings, usize::MAX),
            ["    ok a fact that holds", "    1 fact checked, and all hold"]
        );
    }
}
