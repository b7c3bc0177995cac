//! Tests which interceptors a pod gets, in which order, and which entries are ignored with a warning.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn annotations(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter()
        .map(|(n, v)| (format!("{}priority_{n}", interceptor_annotations::PREFIX), (*v).to_owned()))
        .collect()
}

fn targets(pod: &PodProperties<'_>) -> Vec<String> {
    select_interceptors(pod, &AllowedNames::default()).targets
}

#[test]
fn a_plain_pod_gets_imperative_eviction_only() {
    let s = select_interceptors(&PodProperties::default(), &AllowedNames::default());
    assert_eq!(s, SelectedInterceptors { targets: vec![IMPERATIVE_EVICTION.to_owned()], warnings: vec![] });
}

#[test]
fn the_spec_field_wins_over_responders_and_annotations() {
    let a = annotations(&[("c.example", "1/controller")]);
    let mut pod = PodProperties {
        eviction_interceptors: vec!["a.example", "b.example"],
        eviction_responders: vec![("low.example", 1), ("high.example", 2)],
        annotations: Some(&a),
        ..Default::default()
    };
    assert_eq!(targets(&pod), ["a.example", "b.example", IMPERATIVE_EVICTION]);
    pod.eviction_interceptors.clear();
    assert_eq!(targets(&pod), ["high.example", "low.example", IMPERATIVE_EVICTION]);
    pod.eviction_responders.clear();
    assert_eq!(targets(&pod), ["c.example", IMPERATIVE_EVICTION]);
}

#[test]
fn annotations_go_by_priority_then_controllers_last_then_name() {
    let list =
        [("d.e", "5/controller"), ("c.e", "5/x"), ("b.e", "5/x"), ("a.e", "-1/x"), ("z.e", "100/controller")];
    let a = annotations(&list);
    let pod = PodProperties { annotations: Some(&a), ..Default::default() };
    assert_eq!(targets(&pod), ["z.e", "b.e", "c.e", "d.e", "a.e", IMPERATIVE_EVICTION]);
}

#[test]
fn each_ignored_entry_gives_one_warning_and_the_rest_proceeds() {
    let a = annotations(&[
        ("a.e", "x/y"),
        ("b.e", "1"),
        ("c.e", "1/"),
        ("d.e", "1/2/3"),
        ("ok.e", "1/controller"),
        ("bad", "1/interceptor"),
    ]);
    let pod = PodProperties { annotations: Some(&a), ..Default::default() };
    let s = select_interceptors(&pod, &AllowedNames::default());
    assert_eq!(s.targets, ["ok.e", IMPERATIVE_EVICTION]);
    assert_eq!(s.warnings.len(), 5, "{:?}", s.warnings);

    let pod = PodProperties {
        eviction_interceptors: vec!["a.e", "evil.k8s.io", "a.e", "job.batch.k8s.io", "Nope"],
        ..Default::default()
    };
    let s = select_interceptors(&pod, &AllowedNames::default());
    assert_eq!(s.targets, ["a.e", "job.batch.k8s.io", IMPERATIVE_EVICTION]);
    assert_eq!(s.warnings.len(), 3, "{:?}", s.warnings);
    let more = AllowedNames::default().with(["evil.k8s.io".to_owned()]);
    assert_eq!(select_interceptors(&pod, &more).warnings.len(), 2);
}

#[test]
fn beyond_fifteen_is_ignored_and_the_defaults_still_come() {
    let names: Vec<String> = (0..20).map(|i| format!("i{i:02}.example")).collect();
    let pod = PodProperties {
        eviction_interceptors: names.iter().map(String::as_str).collect(),
        of_daemon_set: true,
        ..Default::default()
    };
    let s = select_interceptors(&pod, &AllowedNames::default());
    assert_eq!(s.targets.len(), MAX_TARGET_INTERCEPTORS);
    assert_eq!(s.targets[15..], [DAEMON_SET, IMPERATIVE_EVICTION]);
    assert_eq!(s.warnings.len(), 5);
}

#[test]
fn imperative_eviction_is_moved_to_the_end_and_present_defaults_keep_their_place() {
    let pod = PodProperties {
        eviction_interceptors: vec![IMPERATIVE_EVICTION, DAEMON_SET, "a.e"],
        of_daemon_set: true,
        ..Default::default()
    };
    assert_eq!(targets(&pod), [DAEMON_SET, "a.e", IMPERATIVE_EVICTION]);
}

#[test]
fn a_mirror_pod_gets_the_kubelet() {
    let pod = PodProperties { mirror: true, ..Default::default() };
    assert_eq!(targets(&pod), [KUBELET, IMPERATIVE_EVICTION]);
}

/// A cache keeps a few of thousands of annotations: the pod has the interceptors that it has with all of them.
#[test]
fn the_annotations_with_the_first_turns_select_the_same_interceptors_as_all() {
    let mut all: Vec<(String, String)> = (0..300)
        .map(|at| (format!("i{at:03}.example"), format!("{}/interceptor", (at * 37) % 300)))
        .collect();
    let reserved = (0..100).map(|at| (format!("r{at:03}.x.k8s.io"), format!("{}/interceptor", 1000 + at)));
    all.extend(reserved);
    all.extend(BUILT_IN.iter().map(|name| ((*name).to_owned(), "290/controller".to_owned())));
    all.extend(
        [("bad", "5000/x"), ("worse.example", "5000"), ("e.example", "5000/")]
            .map(|(n, v)| (n.into(), v.into())),
    );
    let pairs: Vec<_> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let whole = annotations(&pairs);
    let first = interceptor_annotations::first_in_turn(&whole);
    assert!(first.len() <= BUILT_IN.len() + 2 * MAX_POD_INTERCEPTORS, "{}", first.len());
    let kept = whole.clone().into_iter().filter(|(key, _)| first.contains(key)).collect();
    let of = |annotations: &BTreeMap<String, String>, allowed: &AllowedNames| {
        let pod = PodProperties { annotations: Some(annotations), ..Default::default() };
        select_interceptors(&pod, allowed).targets
    };
    let more = AllowedNames::default().with((0..100).map(|at| format!("r{at:03}.x.k8s.io")));
    for allowed in [AllowedNames::default(), more] {
        assert_eq!(of(&kept, &allowed), of(&whole, &allowed));
        assert_eq!(of(&kept, &allowed).len(), MAX_POD_INTERCEPTORS + 1);
    }
}

/// Nine of the built-in names have no program anywhere: each kept a pod for twenty minutes.
#[test]
fn built_in_names_that_no_program_serves_are_left_out_and_all_others_stay() {
    let pod = PodProperties {
        eviction_interceptors: vec![
            "job.batch.k8s.io",
            SURGE,
            "a.e",
            "node-doctor.k8s.io",
            DAEMON_SET,
            KUBELET,
        ],
        ..Default::default()
    };
    let allowed =
        AllowedNames::default().with(["node-doctor.k8s.io".to_owned()]).served_by([SURGE, DAEMON_SET]);
    let selected = select_interceptors(&pod, &allowed);
    assert_eq!(selected.targets, [SURGE, "a.e", "node-doctor.k8s.io", DAEMON_SET, IMPERATIVE_EVICTION]);
    let why = "no program of this installation serves it";
    assert_eq!(selected.warnings.len(), 2, "{:?}", selected.warnings);
    assert!(selected.warnings.iter().all(|warning| warning.ends_with(why)), "{:?}", selected.warnings);
    let all: Vec<_> =
        BUILT_IN.iter().filter(|name| AllowedNames::default().served_by([]).is_unserved(name)).collect();
    assert_eq!(all.len(), BUILT_IN.len() - 1, "the last interceptor is never left out");
}

/// The default interceptors are not the tenant's choice, and stay responsible for their pods.
#[test]
fn a_default_interceptor_is_added_although_no_program_serves_it() {
    let allowed = AllowedNames::default().served_by([]);
    let pod = PodProperties { mirror: true, ..Default::default() };
    assert_eq!(select_interceptors(&pod, &allowed).targets, [KUBELET, IMPERATIVE_EVICTION]);
}

/// A tenant who deletes the request and renames the annotations had fifteen turns more, again and again.
#[test]
fn interceptors_that_had_their_turn_get_no_other_and_count_among_the_fifteen() {
    let had: Vec<String> = (0..13).map(|at| format!("had{at}.example")).collect();
    let names = ["had3.example", "new1.example", "had7.example", "new2.example", "new3.example"];
    let pod = PodProperties { eviction_interceptors: names.to_vec(), had_turns: &had, ..Default::default() };
    let selected = select_interceptors(&pod, &AllowedNames::default());
    assert_eq!(selected.targets, ["new1.example", "new2.example", IMPERATIVE_EVICTION]);
    assert_eq!(selected.warnings.len(), 1, "{:?}", selected.warnings);
}
