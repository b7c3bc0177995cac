//! For tests of pure steps: visits every state of a small world, in the order of the distance from the start.
//!
//! ```text
//!   start ──move──▶ state ──move──▶ state ...      a move that breaks a rule: the way to it is returned
//!                     └──fair moves alone──▶ rest  a state from which no such way leads to rest is stuck
//! ```
//!
//! A fair move is one that happens in the end, if it stays possible: time passes, a cache catches up, a worker takes
//! its key. Others happen or not: a heartbeat, a restart, an answer that is lost. If a way of fair moves leads to rest
//! from every state, then each run in which no fair move is put off forever comes to rest.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{self, Debug, Display};
use std::hash::Hash;

// Most of an exploration is looking for states, for which this hasher takes a fraction of the time of the standard one.
use rustc_hash::FxHashMap;

/// A world with few states.
pub trait SmallWorld {
    /// A state, in a form in which states that do not differ in what they allow are equal.
    type State: Copy + Eq + Hash + Debug;

    /// The states in which it may begin.
    fn starts(&self) -> Vec<Self::State>;

    /// All moves from a state; or the rule that the state, or one of its moves, breaks.
    fn moves(&self, state: &Self::State) -> Result<Vec<Move<Self::State>>, String>;

    /// Whether nothing is left to be done.
    fn is_at_rest(&self, state: &Self::State) -> bool;
}

/// A move to another state.
#[derive(Clone, Copy, Debug)]
pub struct Move<S> {
    /// For people.
    pub name: &'static str,
    /// The state after it.
    pub to: S,
    /// Whether it happens in the end.
    pub is_fair: bool,
}

/// What a pure function returned for each of few arguments: it is called once for each.
#[derive(Debug)]
pub struct Memo<K, V>(RefCell<FxHashMap<K, V>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    /// The value for an argument, which `calculate` returns the first time.
    pub fn value_of(&self, argument: K, calculate: impl FnOnce() -> V) -> V {
        if let Some(known) = self.0.borrow().get(&argument) {
            return known.clone();
        }
        let value = calculate();
        self.0.borrow_mut().insert(argument, value.clone());
        value
    }
}

/// What an exploration has visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visited {
    /// How many states.
    pub states: usize,
    /// How many moves between them.
    pub moves: usize,
}

/// A rule that is broken, and the shortest way to where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: String,
    /// The names of the moves from the start.
    pub way: Vec<&'static str>,
    /// The state in which it is broken.
    pub state: String,
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nafter: {}\nin: {}", self.rule, self.way.join(", "), self.state)
    }
}

/// The rule that a state breaks from which no fair moves lead to rest.
pub const STUCK: &str = "it is stuck";

/// Visits all states of a world.
///
/// # Errors
/// Returns the first violation: of a rule of the world, or of [`STUCK`].
pub fn explore<W: SmallWorld>(world: &W) -> Result<Visited, Box<Violation>> {
    let mut found = Found::default();
    world.starts().into_iter().for_each(|start| {
        found.visit(start, None);
    });
    while let Some(at) = found.next.pop_front() {
        let state = found.states[at];
        let moves = world.moves(&state).map_err(|rule| found.violation(rule, at))?;
        found.moves += moves.len();
        for Move { name, to, is_fair } in moves {
            let to = found.visit(to, Some((at, name)));
            if is_fair && to != at {
                found.fair.push((to, at));
            }
        }
    }
    match found.first_stuck(|state| world.is_at_rest(state)) {
        Some(stuck) => Err(found.violation(STUCK.to_owned(), stuck)),
        None => Ok(Visited { states: found.states.len(), moves: found.moves }),
    }
}

struct Found<S> {
    states: Vec<S>,
    index: FxHashMap<S, usize>,
    /// The state from which each was found, and the move.
    from: Vec<Option<(usize, &'static str)>>,
    /// Fair moves, the end of each before its beginning.
    fair: Vec<(usize, usize)>,
    next: VecDeque<usize>,
    moves: usize,
}

impl<S> Default for Found<S> {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            index: FxHashMap::default(),
            from: Vec::new(),
            fair: Vec::new(),
            next: VecDeque::new(),
            moves: 0,
        }
    }
}

impl<S: Copy + Eq + Hash + Debug> Found<S> {
    fn visit(&mut self, state: S, from: Option<(usize, &'static str)>) -> usize {
        let new = self.states.len();
        let at = *self.index.entry(state).or_insert(new);
        if at == new {
            self.states.push(state);
            self.from.push(from);
            self.next.push_back(at);
        }
        at
    }

    /// The first state from which no fair moves lead to rest.
    fn first_stuck(&mut self, is_at_rest: impl Fn(&S) -> bool) -> Option<usize> {
        self.fair.sort_unstable();
        let mut leads: Vec<bool> = self.states.iter().map(is_at_rest).collect();
        let mut next: Vec<usize> = (0..leads.len()).filter(|at| leads[*at]).collect();
        while let Some(at) = next.pop() {
            let first = self.fair.partition_point(|(to, _)| *to < at);
            for (_, before) in self.fair[first..].iter().take_while(|(to, _)| *to == at) {
                if !std::mem::replace(&mut leads[*before], true) {
                    next.push(*before);
                }
            }
        }
        leads.iter().position(|leads| !leads)
    }

    fn violation(&self, rule: String, at: usize) -> Box<Violation> {
        let mut way: Vec<_> = std::iter::successors(self.from[at], |(from, _)| self.from[*from])
            .map(|(_, name)| name)
            .collect();
        way.reverse();
        Box::new(Violation { rule, way, state: format!("{:?}", self.states[at]) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Counts up to 3 and rests there; `trap` leads to a state beyond.
    struct Counter {
        most: u8,
        trap: bool,
    }

    impl SmallWorld for Counter {
        type State = u8;

        fn starts(&self) -> Vec<u8> {
            vec![0]
        }

        fn moves(&self, state: &u8) -> Result<Vec<Move<u8>>, String> {
            if *state > self.most {
                return Err(format!("it is above {}", self.most));
            }
            let up = Move { name: "up", to: state + 1, is_fair: true };
            let trap = Move { name: "trap", to: 9, is_fair: false };
            let moves = [(*state < 3, up), (self.trap && *state == 1, trap)];
            Ok(moves.into_iter().filter_map(|(may, to)| may.then_some(to)).collect())
        }

        fn is_at_rest(&self, state: &u8) -> bool {
            *state == 3
        }
    }

    #[test]
    fn all_states_are_visited_and_a_rule_or_a_trap_is_found_by_the_shortest_way() {
        let explored = |most, trap| explore(&Counter { most, trap });
        assert_eq!(explored(3, false).unwrap(), Visited { states: 4, moves: 3 });
        let broken = explored(2, false).unwrap_err();
        assert_eq!((broken.rule.as_str(), broken.way.len()), ("it is above 2", 3));
        let stuck = explored(9, true).unwrap_err();
        assert_eq!((stuck.rule.as_str(), stuck.way.as_slice()), (STUCK, ["up", "trap"].as_slice()));
    }
}
