// SPDX-License-Identifier: Apache-2.0
//! A device that answers nothing for a while: stopped, or only late.

use super::{MS, World, step};

/// It answers nothing from here on, or does so again; all that was on its way first.
pub fn hush(all: &mut [&mut World], silent: bool) {
    all[0].inner(|i| i.silent = silent);
    for w in all.iter_mut() {
        w.log.push(format!("silent: {silent}"));
    }
}

/// Until it has been heard of, where it was silent: what is told before the read behind that has come is right as well.
pub fn heard(all: &mut [&mut World]) {
    if !all[0].chip.is_silent() {
        return;
    }
    for _ in 0..1000 {
        if !all[0].chip.is_silent() || !step(all) {
            break;
        }
    }
    for w in all.iter_mut() {
        w.settled();
        if w.chip.lost().is_none() && !w.chip.is_silent() && w.chip.counts.is_stale() {
            w.seen.heard += 1;
            w.check_numbers();
        }
    }
}

/// Half a second. Of a chip that is known to be silent each number that is told is right as it is.
pub fn tick(all: &mut [&mut World]) {
    let now = all.iter().map(|w| w.now).max().unwrap() + 500 * MS;
    for w in all.iter_mut() {
        w.now = now;
        w.keep();
        w.chip.turn(now);
        w.met();
        w.settled();
        w.last_counts();
        if w.chip.is_silent() {
            w.seen.silent += 1;
            w.check_numbers();
        }
    }
}
