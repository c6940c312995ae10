// SPDX-License-Identifier: Apache-2.0
//! Port Timers state machine (17.22): each second, each timer that is not over counts down by one.

use crate::port::Port;

/// TICK.
pub(crate) fn tick(p: &mut Port) {
    let t = &mut p.timers;
    for timer in [
        &mut t.edge_delay_while,
        &mut t.fd_while,
        &mut t.hello_when,
        &mut t.mdelay_while,
        &mut t.rb_while,
        &mut t.rcvd_info_while,
        &mut t.rr_while,
        &mut t.tc_while,
    ] {
        *timer = timer.saturating_sub(1);
    }
    p.tx_count = p.tx_count.saturating_sub(1);
}
