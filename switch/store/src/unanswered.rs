//! Commands that get no answer.

use crate::Store;
use crate::api::Completion;
use crate::fib::{F_DELETE, F_FLIGHT, F_REPEAT, Fam, V4, V6};
use crate::hw::{Cls, Flight, ring_no};
use crate::undecided::UNKNOWN;
use tandem_abi::raw::*;

impl Store {
    /// A command got no answer in time. Whether its key is there is not known, least of all after a warm attach: it keeps
    /// its place until what is wanted there is, for where it is deleted a less specific route answers.
    pub fn timed_out(&mut self, token: u64, now_ns: u64) {
        let Some(f) = self.hw.flights.end(token) else {
            return;
        };
        self.progress.answered[ring_no(f.ring)] += 1;
        fn lost<F: Fam>(s: &mut Store, f: &Flight) {
            let e = f.what.id;
            let fib = F::fib_mut(&mut s.fibs);
            let node = fib.entries[e].node;
            fib.entries[e].set(F_FLIGHT | F_DELETE, false);
            s.answered::<F>(e);
            let fib = F::fib_mut(&mut s.fibs);
            match f.op {
                TND_OP_CREATE => {
                    fib.entries[e].have = UNKNOWN;
                    if f.aggregate {
                        fib.cover.aggregate_failed(node);
                        s.pending_aggregates = s.pending_aggregates.saturating_sub(1);
                    }
                }
                // There with the old or the new content; or perhaps gone.
                _ => fib.entries[e].flags |= F_REPEAT,
            }
            if f.op != TND_OP_DELETE
                && let Some(d) = f.content.dep()
            {
                s.hw.hold(d, -1);
            }
            if F::fib(&s.fibs).entries[e].want.present() {
                s.undecided::<F>(e);
            }
            if let Some(d) = f.content.dep() {
                s.hw.landed(d);
            }
            s.queue_route::<F>(e);
        }
        match f.what.cls {
            Cls::Route4 => lost::<V4>(self, &f),
            Cls::Route6 => lost::<V6>(self, &f),
            Cls::Lease => {
                let timeout = Completion {
                    status: TND_ST_FAULT,
                    ..Completion::default()
                };
                match f.op {
                    TND_OP_LEASE => self.complete_lease(&f, &timeout, now_ns),
                    op => self.phase_done(op, &timeout, now_ns),
                }
            }
            _ => self.hw.lost(f.what, f.op),
        }
        self.drain_touched();
    }
}
