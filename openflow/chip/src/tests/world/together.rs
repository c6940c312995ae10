// SPDX-License-Identifier: Apache-2.0
//! What is done to all switches on a chip at once.

use super::super::device::Fate;
use super::{MS, PORTS, World};
use crate::{Ahead, Part, parts};

/// The device attached to, as each switch has it. What an attach asks for was read: whoever waits for an answer gets none.
fn attached(all: &[&mut World], warm: bool) -> Vec<Part> {
    let device = all[0].device.attach(warm);
    let ahead = Ahead::read(device, warm).unwrap();
    all[0].inner(|i| i.deaf = true);
    parts(Box::new(ahead), all.len())
}

/// A cold attach of all switches on a chip.
pub fn attach(all: &mut [&mut World]) {
    let parts = attached(all, false);
    for (w, part) in all.iter_mut().zip(parts) {
        w.unseen = true;
        w.ended = false;
        w.log.push("attach".into());
        w.chip.lose("attached anew");
        w.chip.attach(Box::new(part), w.now).unwrap();
        let mut i = w.device.lock();
        for p in 1..=PORTS as u16 {
            let _ = i.firmware.state.set_link(w.base + p, !w.down.contains(&p));
        }
    }
    all[0].inner(|i| i.deaf = false);
}

/// The process is killed; the next one has its flows, and the chip what it held. Is that the next one's, and open as it is?
pub fn killed(all: &mut [&mut World]) -> Result<bool, String> {
    all.iter_mut().for_each(|w| w.begins_again());
    let parts = attached(all, true);
    let adopted: Result<Vec<bool>, _> = all
        .iter_mut()
        .zip(parts)
        .map(|(w, part)| w.chip.adopt(Box::new(part), w.now))
        .collect();
    all[0].inner(|i| i.deaf = false);
    let open = match adopted {
        Ok(open) => Ok(open.iter().all(|o| *o)),
        Err(e) => {
            attach(all);
            Err(e.to_string())
        }
    };
    all.iter_mut().for_each(|w| w.settled());
    open
}

/// The next command is executed, its answer looked at. False: nothing waits.
pub fn step(all: &mut [&mut World]) -> bool {
    let now = all.iter().map(|w| w.now).max().unwrap() + MS;
    for w in all.iter_mut() {
        w.now = now;
        // Of what the chip does in its turn nothing is written down before the next one
        w.keep();
        w.chip.turn(now);
        w.measure();
    }
    if all.iter().any(|w| w.chip.lost().is_some()) {
        attach(all);
        return true;
    }
    let fate = all[0].next;
    let (op, left) = all[0].refuses;
    let mut refused = 0;
    let said = all[0].inner(|i| {
        i.step(now, |c| {
            refused = u32::from(c.op == op && left > 0);
            if refused > 0 { Fate::Refused } else { fate }
        })
    });
    all[0].refuses.1 -= refused;
    let Some(said) = said else {
        return false;
    };
    for w in all.iter_mut() {
        w.next = Fate::Done;
        w.log.push(said.clone());
        w.chip.turn(now);
        w.met();
        w.settled();
    }
    true
}

/// Until the chip has nothing left to do.
pub fn rest(all: &mut [&mut World]) {
    all[0].inner(|i| i.silent = false);
    for _ in 0..100_000 {
        if step(all) {
            continue;
        }
        all.iter_mut().for_each(|w| w.met());
        let now = all.iter().map(|w| w.now).max().unwrap();
        let done = |w: &&mut World| w.chip.is_open() && w.chip.is_settled();
        match all.iter().filter_map(|w| w.chip.next_ns()).min() {
            _ if all.iter().all(done) => return,
            Some(at) if at > now => {
                for w in all.iter_mut() {
                    w.now = at + MS;
                    w.chip.turn(w.now);
                }
            }
            _ => {}
        }
    }
    panic!("it never ends: {:?}\n{}", all[0].chip, all[0].history());
}

/// Time passes in which nothing is done.
pub fn pass(all: &mut [&mut World], seconds: u64) {
    let mut now = all.iter().map(|w| w.now).max().unwrap();
    let until = now + seconds * 1000 * MS;
    while now < until {
        // as often as somebody looks after it
        now = (now + 500 * MS).min(until);
        for w in all.iter_mut() {
            w.now = now;
        }
        rest(all);
        for w in all.iter_mut() {
            w.read();
            w.expire();
        }
        now = all.iter().map(|w| w.now).max().unwrap();
    }
    rest(all);
}
