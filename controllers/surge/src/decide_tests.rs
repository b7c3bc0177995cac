//! What is decided in single situations: each cause to decline, and the arithmetic of the delta.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
}

/// A Deployment that may be surged by one.
fn deployment(replicas: i32) -> Deployment {
    Deployment {
        name: "d".into(),
        is_opted_in: true,
        replicas,
        current_replicas: replicas,
        updated_replicas: replicas,
        max_surge: Some(IntOrString::Int(1)),
        progress_deadline: SignedDuration::from_secs(600),
        ..Deployment::default()
    }
}

/// A budget that wants `min` healthy pods of as many, and allows so many evictions now.
fn budget(min: i32, allowed: i32) -> Arc<PodDisruptionBudget> {
    Arc::new(PodDisruptionBudget {
        name: "b".into(),
        min_available: Some(IntOrString::Int(min)),
        expected_pods: min,
        disruptions_allowed: allowed,
        ..Default::default()
    })
}

fn turn(pod: &str, began: i64, allowed: i32) -> SurgeTurn {
    let budgets = vec![budget(1, allowed)];
    SurgeTurn {
        pod: pod.into(),
        began: at(began),
        is_waiting: true,
        is_ready: true,
        budgets,
        unknown_budget: None,
    }
}

fn ended(turn: SurgeTurn) -> SurgeTurn {
    SurgeTurn { is_waiting: false, ..turn }
}

fn record(base: i32, pods: &[&str], since: i64) -> SurgeRecord {
    SurgeRecord::new(base, base, pods.iter().map(|pod| (*pod).to_owned()).collect(), at(since))
}

/// A Deployment in the state that the record's write has brought about.
fn surged(base: i32, pods: &[&str]) -> Deployment {
    let record = record(base, pods, 0);
    Deployment { record: FoundRecord::Valid(record.clone()), ..deployment(record.number) }
}

fn decided(deployment: &Deployment, turns: &[SurgeTurn]) -> SurgeDecision {
    decide(deployment, &deployment.scale(), turns, at(10))
}

/// Asserts that the turn of pod `a` is declined for a reason with these words.
fn assert_declined(decision: &SurgeDecision, words: &str) {
    let declined = |(pod, end): &(String, TurnEnd)| {
        pod == "a" && matches!(end, TurnEnd::Declined(why) if why.contains(words))
    };
    assert!(decision.ends.iter().any(declined), "{words}: {decision:?}");
}

fn taken_back(base: i32) -> Option<SurgeWrite> {
    Some(SurgeWrite { number: base, record: None })
}

#[test]
fn a_deployment_at_its_budget_gets_one_replica_more() {
    let decision = decided(&deployment(1), &[turn("a", 5, 0)]);
    assert_eq!(decision.write, Some(SurgeWrite { number: 2, record: Some(record(1, &["a"], 10)) }));
    assert_eq!((decision.ends.len(), decision.waits.len()), (0, 1));
    assert_eq!(decision.again_at, Some(at(605)));
}

#[test]
fn the_turn_ends_when_the_budget_allows_the_eviction_and_the_replica_stays_until_the_pod_leaves() {
    let up = surged(1, &["a"]);
    let ready = decided(&up, &[turn("a", 5, 1)]);
    assert!(matches!(ready.ends.as_slice(), [(_, TurnEnd::Done(_))]), "{ready:?}");
    assert_eq!(ready.write, None);
    let leaving = SurgeDecision { again_at: Some(at(600)), ..SurgeDecision::default() };
    assert_eq!(decided(&up, &[ended(turn("a", 5, 1))]), leaving);
    assert_eq!(decided(&up, &[]).write, taken_back(1));
}

#[test]
fn a_budget_that_allows_the_eviction_needs_no_surge() {
    let decision = decided(&deployment(2), &[turn("a", 5, 1)]);
    assert_declined(&decision, "budget b allows the eviction");
    assert_eq!(decision.write, None);
}

/// A record of more could not be read.
#[test]
fn a_surge_is_for_a_thousand_pods_at_most() {
    let large = Deployment { max_surge: Some(IntOrString::String("100%".into())), ..deployment(3_000) };
    let turns: Vec<_> = (0..1_200).map(|at| turn(&format!("{at:04}"), 5, 0)).collect();
    let record = decided(&large, &turns).write.and_then(|write| write.record);
    assert_eq!(record.map(|record| record.pods.len()), Some(MAX_PODS));
}

/// The cause was 'more than one PodDisruptionBudget covers the pod', which nobody could find.
#[test]
fn a_budget_of_which_only_the_host_knows_whether_it_covers_the_pod_is_a_cause_of_its_own() {
    let unknown = |turn: SurgeTurn| SurgeTurn { unknown_budget: Some("huge".into()), ..turn };
    assert_declined(&decided(&deployment(1), &[unknown(turn("a", 5, 0))]), "PodDisruptionBudget huge covers");
    let alone = SurgeTurn { budgets: Vec::new(), ..unknown(turn("a", 5, 0)) };
    assert_declined(&decided(&deployment(1), &[alone]), "PodDisruptionBudget huge covers");
    let several = SurgeTurn { budgets: vec![budget(1, 0), budget(1, 0)], ..unknown(turn("a", 5, 0)) };
    assert_declined(&decided(&deployment(1), &[several]), "more than one");
    // The pod may not be able to go, and no replica can come: none is kept for it.
    let rollout = Deployment { updated_replicas: 1, ..surged(1, &["a"]) };
    assert_eq!(decided(&rollout, &[ended(turn("a", 5, 1))]).write, None);
    assert_eq!(decided(&rollout, &[ended(unknown(turn("a", 5, 1)))]).write, taken_back(1));
}

#[test]
fn an_eviction_that_is_about_to_come_uses_up_the_budget() {
    let turns = [ended(turn("z", 1, 1)), turn("a", 5, 1)];
    let decision = decided(&deployment(2), &turns);
    assert_eq!(decision.write, Some(SurgeWrite { number: 3, record: Some(record(2, &["a"], 10)) }));
    let both = decided(&deployment(3), &[turn("a", 5, 1), turn("b", 6, 1)]);
    assert_declined(&both, "allows");
    assert_eq!(both.write, Some(SurgeWrite { number: 4, record: Some(record(3, &["b"], 10)) }));
}

#[test]
fn the_delta_is_the_number_of_live_requests_and_at_most_max_surge() {
    let turns = [turn("c", 3, 0), turn("a", 1, 0), turn("b", 2, 0)];
    let two = Deployment { max_surge: Some(IntOrString::Int(2)), ..deployment(4) };
    let decision = decided(&two, &turns);
    assert_eq!(decision.write, Some(SurgeWrite { number: 6, record: Some(record(4, &["a", "b"], 10)) }));
    let waits: Vec<_> = decision.waits.iter().map(|(pod, _)| pod.as_str()).collect();
    assert_eq!(waits, ["a", "b", "c"]);
    assert!(decision.waits[2].1.contains("at most 2 at a time"), "{decision:?}");
}

#[test]
fn the_next_pod_takes_over_the_replica_of_one_that_has_left() {
    let decision = decided(&surged(3, &["a"]), &[turn("b", 5, 0)]);
    assert_eq!(decision.write, Some(SurgeWrite { number: 4, record: Some(record(3, &["b"], 10)) }));
}

/// The requesters of the first had withdrawn: the second was told that the budget allows its eviction, and the replica by
/// which it did was taken back.
#[test]
fn what_the_budget_allows_by_a_replica_of_the_surge_is_for_its_pods_alone() {
    let decision = decided(&surged(2, &["z"]), &[turn("a", 5, 1)]);
    assert_eq!(decision.ends, []);
    assert_eq!(decision.write, Some(SurgeWrite { number: 3, record: Some(record(2, &["a"], 10)) }));
    let stopping = Deployment { current_replicas: 3, updated_replicas: 3, ..deployment(2) };
    assert_eq!(decided(&stopping, &[turn("a", 5, 1)]).ends, [], "it still runs, but is taken back");
    let more = decided(&surged(2, &["z"]), &[turn("a", 5, 2)]);
    assert_declined(&more, "allows");
    assert_eq!(more.write, taken_back(2));
}

#[test]
fn a_percentage_is_of_the_replicas_without_the_surge() {
    let quarter = Some(IntOrString::String("25%".into()));
    let up = Deployment { max_surge: quarter, ..surged(4, &["a"]) };
    let decision = decided(&up, &[turn("a", 1, 0), turn("b", 2, 0)]);
    assert_eq!(decision.write, None, "a quarter of 4 is 1, of 5 it would be 2");
}

#[test]
fn causes_in_the_deployment_decline_and_take_the_surge_back() {
    type Change = fn(&mut Deployment);
    let causes: [(&str, Change); 6] = [
        ("is being deleted", |d| d.is_deleting = true),
        ("has no annotation", |d| d.is_opted_in = false),
        ("strategy Recreate", |d| d.max_surge = None),
        ("maxSurge of Deployment d is 0", |d| d.max_surge = Some(IntOrString::Int(0))),
        ("cannot create pods: quota", |d| d.replica_failure = Some("quota".into())),
        ("a rollout of Deployment d runs", |d| d.updated_replicas = 1),
    ];
    for (words, change) in causes {
        let (mut before, mut up) = (deployment(2), surged(2, &["a"]));
        change(&mut before);
        change(&mut up);
        let declined = decided(&before, &[turn("a", 5, 0)]);
        assert_declined(&declined, words);
        assert_eq!(declined.write, None, "{words}");
        let undone = decided(&up, &[turn("a", 5, 0)]);
        assert_declined(&undone, words);
        assert_eq!(undone.write, taken_back(2), "{words}");
    }
    assert_declined(&decided(&deployment(0), &[turn("a", 5, 0)]), "has 0 replicas");
}

/// The load asks for 5 replicas of 2 to 9.
fn autoscaler(most: i32, record: &FoundRecord) -> Scale<'_> {
    let number = record.valid().map_or(2, |record| record.number);
    let (holder, field) = ("HorizontalPodAutoscaler h".to_owned(), "spec.minReplicas");
    Scale { holder, field, number, replicas: number.max(5), most: Some(most), applied_by: None, record }
}

#[test]
fn with_an_autoscaler_the_least_number_is_raised_and_at_most_to_the_greatest() {
    let twice = Deployment { max_surge: Some(IntOrString::Int(2)), ..deployment(5) };
    let turns = [turn("a", 1, 0), turn("b", 2, 0)];
    for (most, pods) in [(9, vec!["a", "b"]), (6, vec!["a"])] {
        let decision = decide(&twice, &autoscaler(most, &FoundRecord::Absent), &turns, at(10));
        let pods: BTreeSet<String> = pods.into_iter().map(str::to_owned).collect();
        let record = SurgeRecord::new(2, 5, pods, at(10));
        assert_eq!(decision.write, Some(SurgeWrite { number: record.number, record: Some(record) }));
    }
    let full = decide(&twice, &autoscaler(5, &FoundRecord::Absent), &turns, at(10));
    assert_declined(&full, "HorizontalPodAutoscaler h is at its maxReplicas");
    assert_eq!(full.write, None);
}

/// The owner has raised the least number, and the autoscaler has not acted on it yet: a surge from the present replicas
/// lowered it for good.
#[test]
fn a_surge_never_lowers_the_least_number_of_an_autoscaler() {
    for number in [4, 10] {
        let scale = Scale { number, replicas: 3, ..autoscaler(20, &FoundRecord::Absent) };
        let write = decide(&deployment(3), &scale, &[turn("a", 5, 0)], at(10)).write.expect("a surge");
        let record = write.record.expect("a record");
        assert_eq!((write.number, record.delta), (number + 1, 1));
        assert!(matches!(FoundRecord::read(Some(&record.annotation("o")), "o"), FoundRecord::Valid(_)));
    }
}

#[test]
fn a_lowered_minimum_and_the_greatest_maximum_do_not_overflow() {
    let record = FoundRecord::Valid(SurgeRecord::new(1, 1, ["x".to_owned(), "y".to_owned()].into(), at(0)));
    let scale = Scale { number: 1, replicas: 1, ..autoscaler(i32::MAX, &record) };
    assert_eq!(decide(&deployment(1), &scale, &[turn("a", 5, 0)], at(10)).write, taken_back(1));
}

#[test]
fn with_an_autoscaler_the_next_pod_takes_over_and_the_last_one_takes_all_back() {
    let record = FoundRecord::Valid(SurgeRecord::new(2, 5, ["a".to_owned()].into(), at(0)));
    let up = deployment(6);
    let next = decide(&up, &autoscaler(9, &record), &[turn("b", 2, 0)], at(10));
    let taken_over = SurgeRecord::new(2, 5, ["b".to_owned()].into(), at(10));
    assert_eq!(next.write, Some(SurgeWrite { number: 6, record: Some(taken_over) }));
    assert_eq!(decide(&up, &autoscaler(9, &record), &[], at(10)).write, taken_back(2));
}

/// What was applied is what is wanted: to subtract from it would leave one too few.
#[test]
fn replicas_that_another_manager_applies_are_left_as_they_are() {
    let owned = |d: Deployment| Deployment { applied_by: Some("flux".into()), ..d };
    let decision = decided(&owned(deployment(1)), &[turn("a", 5, 0)]);
    assert_declined(&decision, "flux owns spec.replicas");
    assert_eq!(decision.write, None);
    assert_eq!(decided(&owned(surged(1, &["a"])), &[turn("a", 5, 0)]).write, taken_back(2));
}

#[test]
fn a_pod_that_no_surge_helps_is_declined() {
    let of = |change: fn(&mut SurgeTurn)| {
        let mut turn = turn("a", 5, 0);
        change(&mut turn);
        decided(&deployment(1), &[turn])
    };
    assert_declined(&of(|turn| turn.is_ready = false), "not ready");
    assert_declined(&of(|turn| turn.budgets.clear()), "no PodDisruptionBudget");
    assert_declined(&of(|turn| turn.budgets.push(budget(1, 0))), "more than one PodDisruptionBudget");
    let all = |turn: &mut SurgeTurn| {
        let budget = PodDisruptionBudget { max_unavailable: Some(IntOrString::Int(0)), ..Default::default() };
        turn.budgets = vec![Arc::new(budget)];
    };
    assert_declined(&of(all), "wants all pods");
}

#[test]
fn a_replica_that_is_not_ready_within_the_deadline_is_taken_back() {
    let up = surged(1, &["a"]);
    let after = |second| decide(&up, &up.scale(), &[turn("a", 0, 0)], at(second));
    assert_eq!((after(599).write, after(599).again_at), (None, Some(at(600))));
    let late = after(600);
    assert_declined(&late, "within 600 seconds");
    assert_eq!(late.write, taken_back(1));
    // After a crash between the write and the end of the turn.
    assert_declined(
        &decide(&deployment(1), &deployment(1).scale(), &[turn("a", 0, 0)], at(601)),
        "within 600 seconds",
    );
}

#[test]
fn a_record_of_the_future_does_not_stop_the_deadline() {
    let up = Deployment { record: FoundRecord::Valid(record(1, &["a"], 9_000_000)), ..surged(1, &["a"]) };
    assert_declined(&decide(&up, &up.scale(), &[turn("a", 0, 0)], at(600)), "within 600 seconds");
}

/// Another pod went in its place, and quota stopped the next replica: the request stayed, and so did the surge.
#[test]
fn a_pod_that_cannot_go_keeps_no_replica_that_cannot_come() {
    let full = Deployment { replica_failure: Some("quota".into()), ..surged(1, &["a"]) };
    assert_eq!(decided(&full, &[ended(turn("a", 5, 0))]).write, taken_back(1));
    assert_eq!(decided(&full, &[ended(turn("a", 5, 1))]).write, None, "it is there already");
    let up = surged(1, &["a"]);
    let after = |allowed| decide(&up, &up.scale(), &[ended(turn("a", 0, allowed))], at(600)).write;
    assert_eq!((after(1), after(0)), (None, taken_back(1)));
}

#[test]
fn what_its_controllers_have_not_seen_is_waited_for_and_only_for_the_deadline() {
    let unseen = Deployment { generation: 2, observed_generation: 1, ..deployment(1) };
    let decision = decided(&unseen, &[turn("a", 5, 0)]);
    assert_eq!((decision.write, decision.ends.len(), decision.waits.len()), (None, 0, 1));
    assert_declined(&decide(&unseen, &unseen.scale(), &[turn("a", 5, 0)], at(605)), "within 600 seconds");
    let budget = PodDisruptionBudget { generation: 2, disruptions_allowed: 1, ..(*budget(1, 1)).clone() };
    let stale = SurgeTurn { budgets: vec![Arc::new(budget)], ..turn("a", 5, 0) };
    let decision = decided(&deployment(1), &[stale]);
    assert_eq!((decision.write, decision.ends.len(), decision.waits.len()), (None, 0, 1));
}

#[test]
fn a_record_that_cannot_be_read_is_not_acted_on() {
    let broken = Deployment { record: FoundRecord::Broken("at line 1".into()), ..deployment(2) };
    let decision = decided(&broken, &[turn("a", 5, 0)]);
    assert_declined(&decision, "cannot be read: at line 1");
    assert_eq!(decision.write, None);
    assert_eq!(decided(&broken, &[]), SurgeDecision::default());
}

#[test]
fn an_owner_who_scales_meanwhile_keeps_the_difference() {
    let scaled = |replicas| Deployment { replicas, ..surged(2, &["a"]) };
    assert_eq!(decided(&scaled(7), &[]).write, taken_back(6));
    assert_eq!(decided(&scaled(7), &[turn("a", 5, 0)]).write, None, "the surge goes on");
}

/// `kubectl apply` of a manifest with the old number takes the surge back; to subtract it again would stop the last pod,
/// and to surge again would be a fight.
#[test]
fn an_owner_who_lowers_the_replicas_has_taken_the_surge_back() {
    for replicas in [2, 1] {
        let lowered = Deployment { replicas, ..surged(2, &["a"]) };
        assert_eq!(decided(&lowered, &[]).write, taken_back(replicas));
        let decision = decided(&lowered, &[turn("a", 5, 0)]);
        assert_declined(&decision, "others have lowered spec.replicas of Deployment d");
        assert_eq!(decision.write, taken_back(replicas));
        assert_eq!(decided(&lowered, &[ended(turn("a", 5, 0))]).write, taken_back(replicas));
    }
    let next = decided(&Deployment { replicas: 2, ..surged(2, &["a"]) }, &[turn("b", 5, 0)]);
    assert_eq!((next.write, next.ends.len()), (taken_back(2), 0), "another pod is decided about next time");
    let stopped = Deployment { replicas: 0, ..surged(2, &["a"]) };
    assert_eq!(decided(&stopped, &[turn("a", 5, 0)]).write, taken_back(0));
}
