//! The search, the rules that hold in every state and for every event, and the fair schedule by which every request ends.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};

use super::state::{End, PodState, Request};
use super::world::{Event, Fault, Found, Laws, Scope, World};

/// More steps than any fair schedule takes until the request is removed.
const PATIENCE: usize = 100;

/// What a search found.
pub struct Exploration {
    pub states: usize,
    pub events: usize,
    /// The first broken rule, and the events that lead to it.
    pub broken: Option<(String, Vec<Event>)>,
}

/// Visits every state that can be reached, nearest first, until a rule is broken.
pub fn explore(scope: Scope, fault: Fault) -> Exploration {
    let laws = Laws::new(scope, fault);
    let mut reached: HashMap<World, Option<(World, Event)>> = HashMap::new();
    let mut queue = VecDeque::new();
    for world in beginnings(scope) {
        reached.insert(world, None);
        queue.push_back(world);
    }
    let mut ending = HashSet::new();
    let mut events = 0;
    while let Some(world) = queue.pop_front() {
        let mut broken = state_rule(&laws, &world).or_else(|| is_stuck(&laws, &world, &mut ending));
        let mut at = world;
        for (event, next) in laws.successors(&world) {
            events += 1;
            if broken.is_none() {
                broken = event_rule(&laws, &world, event, &next);
            }
            if let Entry::Vacant(place) = reached.entry(next) {
                place.insert(Some((world, event)));
                queue.push_back(next);
            }
            if broken.is_some() {
                at = next;
                break;
            }
        }
        if let Some(rule) = broken {
            let trace = trace(&reached, at);
            return Exploration { states: reached.len(), events, broken: Some((rule, trace)) };
        }
    }
    Exploration { states: reached.len(), events, broken: None }
}

/// A request that was just made: for a pod that is there, or is not.
fn beginnings(scope: Scope) -> Vec<World> {
    let running = PodState::Running { label: 0 };
    let pods = [
        (running, None),
        (running, Some(PodState::Gone)),
        (PodState::Gone, Some(running)),
        (PodState::Gone, None),
        (PodState::Replaced, None),
    ];
    let requesters: &[u8] = if scope == Scope::Turns { &[1, 2] } else { &[1] };
    let world = |(pod, seen_pod), requesters| World {
        request: Some(Request::new(requesters, 0)),
        pod,
        seen_request: Some(None),
        seen_pod,
        saw_deleted: false,
        queued: false,
        wake: None,
    };
    pods.into_iter().flat_map(|pod| requesters.iter().map(move |count| world(pod, *count))).collect()
}

fn trace(reached: &HashMap<World, Option<(World, Event)>>, mut at: World) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(Some((before, event))) = reached.get(&at) {
        events.push(*event);
        at = *before;
    }
    events.reverse();
    events
}

/// What holds in each state.
fn state_rule(laws: &Laws, world: &World) -> Option<String> {
    let request = world.request?;
    let turns = request.processed + u8::from(request.active.is_some());
    if request.active.is_some_and(|active| active != request.processed) || turns > 3 {
        return Some(format!("turns are not in order: {request:?}"));
    }
    if request.end.is_some() && request.active.is_some() {
        return Some(format!("somebody is active after the end: {request:?}"));
    }
    if !world.queued && world.seen_request.is_none() && world.seen_pod.is_none() && world.wake != Some(0) {
        let found = match world.pod {
            pod if pod.object().is_some() => Found::Pod(pod),
            _ if world.saw_deleted => Found::Absent,
            _ => Found::NotCached,
        };
        // A request that has ended is removed in its own time.
        let decided = laws.decide(&request, found);
        if decided.acts() {
            return Some(format!("nothing wakes the controller, which has something to do: {decided:?}"));
        }
    }
    None
}

/// What holds for each event.
fn event_rule(laws: &Laws, before: &World, event: Event, after: &World) -> Option<String> {
    if event == Event::Reconcile && is_refused(laws, before) {
        return Some("admission refuses what the controller decided".into());
    }
    let (old, new) = (before.request?, after.request?);
    let (was, is) = (old.end.map(|(end, _)| end), new.end.map(|(end, _)| end));
    if was.is_some() && was != is {
        return Some(format!("the end is not final: {was:?} becomes {is:?}"));
    }
    if new.processed < old.processed {
        return Some(format!("a processed interceptor is forgotten: {old:?} becomes {new:?}"));
    }
    if was.is_none() {
        match is {
            Some(End::Evicted) if after.pod.is_there() => {
                return Some(format!("a request is Evicted while its pod is there: {:?}", after.pod));
            }
            Some(End::NoRequesters) if old.requesters > 0 => {
                return Some(format!("a request is Canceled while a requester wants it: {old:?}"));
            }
            Some(End::Deleted) if !old.deleting => {
                return Some(format!("a request is Canceled as deleted, and is not: {old:?}"));
            }
            Some(End::Invalid) if old.begun || before.pod.is_there() => {
                return Some(format!(
                    "a request fails validation that was taken up, or whose pod is there: {old:?}"
                ));
            }
            _ => {}
        }
    }
    let passed_over = old.active.filter(|_| new.active.is_some() && new.active != old.active)?;
    let entry = old.entries[usize::from(passed_over)];
    let silent = entry.heartbeat.unwrap_or(old.activation) >= 2;
    (!silent && !entry.completed).then(|| format!("an interceptor is passed over early: {old:?}"))
}

fn is_refused(laws: &Laws, world: &World) -> bool {
    let Some(request) = world.cached_request().filter(|_| world.seen_request.is_none()) else { return false };
    let pod = world.seen_pod.unwrap_or(world.pod);
    let found = if pod.object().is_some() { Found::Pod(pod) } else { Found::Absent };
    laws.decide(&request, found).is_refused
}

/// Follows the fair schedule. `ending` holds the states that are known to end.
fn is_stuck(laws: &Laws, world: &World, ending: &mut HashSet<World>) -> Option<String> {
    let (mut at, mut path) = (*world, Vec::new());
    while at.request.is_some() || at.seen_request.is_some() {
        if ending.contains(&at) {
            break;
        }
        let Some((event, next)) = fair(laws, &at).filter(|_| path.len() < PATIENCE) else {
            return Some(format!("a request is stuck: {at:?}, after {path:?}"));
        };
        let left = at.request.filter(|request| next.request.is_none() && !request.deleting);
        if left.is_some_and(|request| request.requesters > 0) && at.pod.is_there() {
            return Some(format!("a request is removed that is wanted, and its pod is there: {at:?}"));
        }
        ending.insert(at);
        path.push(event);
        at = next;
    }
    None
}

/// The first of what happens in time when nobody does anything more: caches catch up, the controller works, evicted pods
/// go, imperative eviction evicts, finalizers are let go, and time passes.
fn fair(laws: &Laws, world: &World) -> Option<(Event, World)> {
    let may_evict = world.request.is_some_and(|request| request.active == Some(2));
    let is_over = world.request.is_some_and(|request| request.end.is_some());
    let over_grace = matches!(world.pod, PodState::Terminating { grace: 0, .. });
    let mut order = vec![Event::SeeRequest, Event::SeePod { by_list: true }, Event::Reconcile];
    order.extend(over_grace.then_some(Event::PodGoes));
    order.extend(may_evict.then_some(Event::DeletePod));
    order.extend(is_over.then_some(Event::LetGo));
    order.push(Event::Tick);
    order.into_iter().find_map(|event| Some((event, laws.after(world, event)?)))
}
