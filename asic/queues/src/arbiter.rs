//! Who may use the crossbar in a round: iSLIP (N. McKeown, IEEE/ACM Transactions on Networking 7(2), 1999).
//!
//! ```text
//!   request: every input asks every output that it has something for
//!   grant:   an output takes the first asker at or behind its pointer ┐ repeated for what is still free; pointers move
//!   accept:  an input takes the first grant at or behind its pointer  ┘ one beyond a match of the first pass only
//! ```

/// A crossbar with inputs and outputs.
#[derive(Debug, Clone)]
pub struct Arbiter {
    grant: Vec<usize>,
    accept: Vec<usize>,
    to: Vec<Option<usize>>,
    from: Vec<Option<usize>>,
    granted: Vec<Option<usize>>,
}

impl Arbiter {
    /// With `inputs` and `outputs`, all pointers at zero.
    pub fn new(inputs: usize, outputs: usize) -> Self {
        Arbiter {
            grant: vec![0; outputs],
            accept: vec![0; inputs],
            to: vec![None; inputs],
            from: vec![None; outputs],
            granted: vec![None; outputs],
        }
    }

    /// Matches inputs with outputs that they ask for, at most one with one, so that no free pair that could be matched
    /// is left. The answer is each input's output.
    pub fn round(&mut self, asks: impl Fn(usize, usize) -> bool) -> &[Option<usize>] {
        self.to.fill(None);
        self.from.fill(None);
        let (inputs, outputs) = (self.to.len(), self.from.len());
        // each pass matches at least one pair, or is the last
        for pass in 0..inputs.min(outputs) {
            self.granted.fill(None);
            for output in 0..outputs {
                if at(&self.from, output).is_some() {
                    continue;
                }
                let first = self.grant.get(output).copied().unwrap_or(0);
                let taker = (0..inputs)
                    .map(|i| (first + i) % inputs)
                    .find(|i| at(&self.to, *i).is_none() && asks(*i, output));
                put(&mut self.granted, output, taker);
            }
            let mut matched = false;
            for input in 0..inputs {
                let first = self.accept.get(input).copied().unwrap_or(0);
                let taken = (0..outputs)
                    .map(|o| (first + o) % outputs)
                    .find(|o| at(&self.granted, *o) == Some(input));
                let Some(output) = taken else { continue };
                put(&mut self.to, input, Some(output));
                put(&mut self.from, output, Some(input));
                matched = true;
                if pass == 0 {
                    put(&mut self.grant, output, (input + 1) % inputs);
                    put(&mut self.accept, input, (output + 1) % outputs);
                }
            }
            if !matched {
                break;
            }
        }
        &self.to
    }
}

fn at(list: &[Option<usize>], i: usize) -> Option<usize> {
    list.get(i).copied().flatten()
}

fn put<T>(list: &mut [T], i: usize, value: T) {
    if let Some(slot) = list.get_mut(i) {
        *slot = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A matching, of what was asked for only, and maximal: no asker is left beside a free output that it asks for.
        #[test]
        fn matchings_are_maximal(
            n in 1usize..9,
            m in 1usize..9,
            rounds in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 64), 1..8),
        ) {
            let mut a = Arbiter::new(n, m);
            for asks in rounds {
                let ask = |i: usize, o: usize| asks[i * 8 + o];
                let to = a.round(ask).to_vec();
                let mut taken = vec![false; m];
                for (i, o) in to.iter().enumerate() {
                    if let Some(o) = o {
                        prop_assert!(ask(i, *o));
                        prop_assert!(!taken[*o], "two inputs on one output");
                        taken[*o] = true;
                    }
                }
                for (i, t) in to.iter().enumerate() {
                    if t.is_none() {
                        prop_assert!((0..m).all(|o| taken[o] || !ask(i, o)), "{i} could have been matched");
                    }
                }
            }
        }
    }

    /// Nobody who goes on asking waits longer than inputs times outputs.
    #[test]
    fn nobody_starves() {
        let mut a = Arbiter::new(4, 4);
        let mut waited = [[0u32; 4]; 4];
        for _ in 0..1000 {
            let to = a.round(|_, _| true).to_vec();
            for (i, row) in waited.iter_mut().enumerate() {
                for (o, w) in row.iter_mut().enumerate() {
                    *w = if to[i] == Some(o) { 0 } else { *w + 1 };
                    assert!(*w <= 16, "{i} to {o} waits");
                }
            }
        }
    }
}
