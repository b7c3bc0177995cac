//! Finds the places where a script takes a text of the cluster apart. A tenant may write such a text: with line breaks, it is
//! several lines to the script; in arithmetic of the shell, it is a program that runs as whoever runs the script.
//!
//! What a client of the cluster prints may go to the terminal, to a file, or to another client. This reads as much of a script
//! as the rule needs, line by line, and rather finds too much.

/// Programs that print what the cluster holds.
const CLIENTS: [&str; 3] = ["kubectl", "helm", "etcdctl"];
/// Arguments with which they do.
const ASKS: [&str; 8] = ["get", "describe", "logs", "events", "exec", "list", "-o", "--output"];
/// Commands that take a text apart, or run it: none stands in a script that asks the cluster.
const TAKE_APART: [&str; 7] = ["read", "mapfile", "readarray", "eval", "xargs", "awk", "let"];
/// What does it without a command.
const WITHIN_THE_SHELL: [&str; 5] = ["((", "=~", "BASH_REMATCH", "IFS=", "$["];
/// Words before a command that are none.
const BEFORE_A_COMMAND: [&str; 12] =
    ["if", "elif", "while", "until", "then", "else", "do", "!", "{", "exec", "command", "run"];

/// Each place of a script that takes a text of the cluster apart, with the line.
pub fn dissections(script: &str) -> Vec<String> {
    let lines = logical_lines(script);
    let asks = lines.iter().any(|line| asks_the_cluster(line));
    let is_found = |line: &&String| is_captured(line) || is_piped(line) || (asks && takes_apart(line));
    lines.iter().filter(is_found).map(|line| line.trim().to_owned()).collect()
}

/// The lines without comments, each with those that continue it.
fn logical_lines(script: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in script.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let (text, goes_on) = match line.trim_end() {
            text if text.ends_with('\\') => (text.trim_end_matches('\\'), true),
            text => (text, text.ends_with('|')),
        };
        open.push_str(text);
        open.push(' ');
        if !goes_on {
            lines.push(std::mem::take(&mut open));
        }
    }
    lines.push(open);
    lines
}

fn asks_the_cluster(line: &str) -> bool {
    let words = || line.split_whitespace().map(|word| word.split('=').next().unwrap_or_default());
    has_client(line) && words().any(|word| ASKS.contains(&word))
}

/// Whether the shell takes what a client prints as words: `$(kubectl ...)`, backticks, `<(kubectl ...)`.
fn is_captured(line: &str) -> bool {
    let opened =
        ["$(", "<("].iter().flat_map(|open| line.match_indices(open).map(|(at, open)| at + open.len()));
    let captured = |from: usize| has_client(within_parentheses(&line[from..]));
    opened.into_iter().any(captured) || line.split('`').skip(1).step_by(2).any(has_client)
}

/// The text up to the parenthesis that closes it.
fn within_parentheses(text: &str) -> &str {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 {
            return &text[..at];
        }
    }
    text
}

/// Whether what a client prints goes to a program that is no client.
fn is_piped(line: &str) -> bool {
    let line = without_quotations(line).replace("||", ";");
    let parts: Vec<&str> = line.split('|').collect();
    let first_is_client = |part: &str| commands(part).next().is_some_and(is_client);
    parts.windows(2).any(|pair| commands(pair[0]).last().is_some_and(is_client) && !first_is_client(pair[1]))
}

fn takes_apart(line: &str) -> bool {
    let line = without_quotations(line);
    WITHIN_THE_SHELL.iter().any(|way| line.contains(way))
        || commands(&line.replace('|', ";")).any(|command| TAKE_APART.contains(&command))
}

/// The line without what stands in single quotes, if these are balanced.
fn without_quotations(line: &str) -> String {
    if line.matches('\'').count() % 2 == 1 {
        return line.to_owned();
    }
    line.split('\'').step_by(2).collect::<Vec<_>>().join("''")
}

fn has_client(text: &str) -> bool {
    commands(&text.replace('|', ";")).any(is_client)
}

/// The first word of each command.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    let is_before = |word: &&str| {
        let is_setting = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_+".contains(c))
        });
        BEFORE_A_COMMAND.contains(word) || (is_setting && !word.contains("$("))
    };
    text.split([';', '&', '(', '\n'])
        .filter_map(move |command| command.split_whitespace().find(|word| !is_before(word)))
}

/// Whether a word runs a client: by its name, its path, or a variable that is named for it. The label of a case does not.
fn is_client(word: &str) -> bool {
    let name: String = word.chars().filter(char::is_ascii_alphabetic).collect();
    !word.ends_with(')') && CLIENTS.iter().any(|client| name.to_lowercase().ends_with(client))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the script that removed Drydock, and of others that do the same.
    #[test]
    fn a_script_that_takes_a_text_of_the_cluster_apart_was_not_found() {
        for line in [
            r#"[ "$(kubectl get apiservice "$A" -o 'jsonpath={.spec.service.namespace}')" = "$N" ]"#,
            r#"kubectl get pods -A -o go-template="$shown" | while IFS='|' read -r namespace name by; do"#,
            "kubectl get \"$1\" -A -o custom-columns=:metadata.name |\n    awk '{ print $1 }'",
            "old=$(kubectl -n \"$N\" get secret s -o 'jsonpath={.data.ca\\.crt}' |\n        base64 -d)",
            r#"if turns=$("${KUBECTL[@]}" get evictionrequests --output=go-template="$TURNS"); then"#,
            "for pod in `kubectl get pods -o name`; do",
            "mapfile -t pods < <(kubectl get pods -o name)",
            "kubectl get pods -o name | xargs -n 1 kubectl delete",
            "kubectl get pods -o name >pods\nwhile read -r pod; do :; done <pods",
            "kubectl get deploy d -o jsonpath={.spec.replicas} >n\nwanted=$(($(cat n) - 1))",
            "kubectl get pods >pods; eval \"$(cat pods)\"",
            "kubectl get pods --output=json >pods\n[[ $(<pods) =~ x ]] && y=${BASH_REMATCH[0]}",
            "sudo -u x true && \"$bin/kubectl\" get pods \\\n    -o name \\\n    | bash",
        ] {
            assert!(!dissections(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn a_script_that_passes_no_text_of_the_cluster_through_the_shell_was_refused() {
        for script in [
            "kubectl get namespaces -o name >/dev/null || die 'it cannot be read'",
            "kubectl -n \"$N\" create secret generic s --dry-run=client -o yaml |\n    kubectl apply -f -",
            "kubectl get secret s -o 'jsonpath={.data.ca\\.crt}' >\"$dir/old\"\nopenssl x509 -in \"$dir/old\"",
            "# kubectl get pods -o name | while read -r pod; do",
            "for name in kube-scheduler kubectl kwok; do\n    echo $((1 + 1))\ndone",
            "case $1 in\n    kubectl) said=$(\"$2\" version --client) ;;\nesac",
            "while read -r line; do echo \"$line\"; done <file",
            "kubectl delete namespace n --ignore-not-found\necho $((1 + 1))",
        ] {
            assert!(dissections(script).is_empty(), "{script}: {:?}", dissections(script));
        }
    }
}
