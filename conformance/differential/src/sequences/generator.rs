//! Numbers that look random and are the same in every run of a seed (splitmix64).

/// A stream of them.
pub(super) struct Generator(u64);

impl Generator {
    /// The stream of one sequence of a run.
    pub(super) fn new(seed: u64, sequence: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c55).wrapping_add(sequence))
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(super) fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    pub(super) fn one<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap_or_default();
        &all[at]
    }

    /// Some of them, each once, in any order.
    pub(super) fn some<T: Copy>(&mut self, all: &[T]) -> Vec<T> {
        let mut some: Vec<T> = all.iter().copied().filter(|_| self.one_in(2)).collect();
        for at in (1..some.len()).rev() {
            let other = usize::try_from(self.below(at as u64 + 1)).unwrap_or_default();
            some.swap(at, other);
        }
        some
    }
}
