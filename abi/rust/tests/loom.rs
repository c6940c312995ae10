//! All interleavings of a producer and a consumer, barriers modelled: no entry is lost, changed or
//! read while it is written, and nobody sleeps while something waits.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p tandem-abi --release --test loom`
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc; // not under test
use tandem_abi::ring::{Consumer, Producer, PushError, RingLayout};
use tandem_abi::{Memory, raw};

const ENTRY: usize = 64;
const PROD: usize = 0;
const CONS: usize = 64;
const ENTRIES: usize = 128;

/// Index words are atomics; entries are plain cells, one number each: loom refuses an interleaving
/// in which one is read and written at the same time.
struct Model {
    prod: AtomicU32,
    cons: AtomicU32,
    flags: AtomicU32,
    entries: Vec<UnsafeCell<u32>>,
    /// What is left out, to see the tests fail.
    broken: Broken,
}

#[derive(Clone, Copy, PartialEq)]
enum Broken {
    No,
    WithoutFence,
    WithoutRelease,
}

impl Model {
    fn new(count: usize, broken: Broken) -> Self {
        Model {
            broken,
            prod: AtomicU32::new(0),
            cons: AtomicU32::new(0),
            flags: AtomicU32::new(0),
            entries: (0..count).map(|_| UnsafeCell::new(0)).collect(),
        }
    }

    fn word(&self, off: usize) -> &AtomicU32 {
        match off {
            PROD => &self.prod,
            CONS => &self.cons,
            68 => &self.flags,
            other => panic!("no word at {other}"),
        }
    }
}

// the raw pointers that loom's cells hand out
#[allow(unsafe_code)]
mod cells {
    use super::*;

    // SAFETY: loom checks every access to the cells; that is what this test is for.
    unsafe impl Sync for Model {}
    // SAFETY: as above.
    unsafe impl Send for Model {}

    impl Memory for Model {
        fn len(&self) -> usize {
            ENTRIES + self.entries.len() * ENTRY
        }
        fn load_acquire(&self, off: usize) -> u32 {
            self.word(off).load(Ordering::Acquire)
        }
        fn store_release(&self, off: usize, v: u32) {
            let order = match self.broken {
                Broken::WithoutRelease => Ordering::Relaxed,
                _ => Ordering::Release,
            };
            self.word(off).store(v, order);
        }
        fn fence(&self) {
            if self.broken != Broken::WithoutFence {
                fence(Ordering::SeqCst);
            }
        }
        fn read(&self, off: usize, out: &mut [u8]) {
            let cell = &self.entries[(off - ENTRIES) / ENTRY];
            // SAFETY: loom stops the run if somebody writes at the same time.
            let v = cell.with(|p| unsafe { *p });
            out.copy_from_slice(&v.to_le_bytes());
        }
        fn write(&self, off: usize, data: &[u8]) {
            let cell = &self.entries[(off - ENTRIES) / ENTRY];
            let v = u32::from_le_bytes(data.try_into().unwrap());
            // SAFETY: loom stops the run if somebody else accesses it at the same time.
            cell.with_mut(|p| unsafe { *p = v });
        }
    }
}

fn ring(count: u32) -> RingLayout {
    RingLayout {
        kind: raw::TND_RING_CMD,
        pair: 0,
        entry_size: ENTRY,
        entry_count: count,
        doorbell: 1,
        prod: PROD,
        cons: CONS,
        entries: ENTRIES,
    }
}

/// A doorbell: what an eventfd is.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_one();
    }
    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = false;
    }
}

fn push_all(producer: &mut Producer<Arc<Model>>, items: std::ops::Range<u32>, bell: Option<&Bell>) {
    for n in items {
        loop {
            match producer.push(&[&n.to_le_bytes()]) {
                Ok(()) => break,
                Err(PushError::Full) => thread::yield_now(),
                Err(e) => panic!("{e}"),
            }
        }
        if producer.publish() {
            if let Some(bell) = bell {
                bell.ring();
            }
        }
    }
}

fn transfer(broken: Broken) {
    // two slots and three entries: the ring fills and a slot is reused
    loom::model(move || {
        let model = Arc::new(Model::new(2, broken));
        let mut producer = Producer::new(model.clone(), ring(2));
        let mut consumer = Consumer::new(model, ring(2));
        let filler = thread::spawn(move || push_all(&mut producer, 1..4, None));
        let mut want = 1;
        while want < 4 {
            let mut out = [0; 4];
            match consumer.pop(&mut out).unwrap() {
                Some(_) => {
                    assert_eq!(u32::from_le_bytes(out), want);
                    want += 1;
                }
                None => thread::yield_now(),
            }
        }
        filler.join().unwrap();
        assert_eq!(consumer.pending().unwrap(), 0);
    });
}

fn transfer_asleep(broken: Broken) {
    // the consumer sleeps whenever arm() allows it: a lost doorbell is a deadlock, loom reports it
    loom::model(move || {
        let model = Arc::new(Model::new(2, broken));
        let bell = Arc::new(Bell::default());
        let mut producer = Producer::new(model.clone(), ring(2));
        let mut consumer = Consumer::new(model, ring(2));
        let rings = bell.clone();
        let filler = thread::spawn(move || push_all(&mut producer, 1..3, Some(&rings)));
        let mut want = 1;
        while want < 3 {
            let mut out = [0; 4];
            if consumer.pop(&mut out).unwrap().is_some() {
                assert_eq!(u32::from_le_bytes(out), want);
                want += 1;
            } else {
                if consumer.arm().unwrap() {
                    bell.wait();
                }
                consumer.disarm();
            }
        }
        filler.join().unwrap();
    });
}

#[test]
fn no_doorbell_for_a_consumer_that_polls() {
    loom::model(|| {
        let model = Arc::new(Model::new(2, Broken::No));
        let kicked = Arc::new(AtomicBool::new(false));
        let mut producer = Producer::new(model.clone(), ring(2));
        let mut consumer = Consumer::new(model, ring(2));
        let seen = kicked.clone();
        let filler = thread::spawn(move || {
            producer.push(&[&7u32.to_le_bytes()]).unwrap();
            seen.store(producer.publish(), Ordering::Relaxed);
        });
        let mut out = [0; 4];
        let _ = consumer.pop(&mut out).unwrap();
        filler.join().unwrap();
        assert!(!kicked.load(Ordering::Relaxed));
    });
}

#[test]
fn no_entry_is_lost_or_torn() {
    transfer(Broken::No);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_release_it_is_noticed() {
    transfer(Broken::WithoutRelease);
}

#[test]
fn no_wakeup_is_lost() {
    transfer_asleep(Broken::No);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_full_barrier_it_is_noticed() {
    transfer_asleep(Broken::WithoutFence);
}
