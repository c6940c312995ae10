//! Ageing: a scan of the exact-match table in small steps.

use tandem_abi::raw;
use tandem_tables::exact::Key;

use crate::entry::{Action, FdbValue};
use crate::io::{Event, Sink};
use crate::state::State;

/// Entries that one call removes at most; what is beyond waits for the next call.
const MOST: usize = 256;

/// Looks at up to `budget` entries from where the last call stopped and removes those MAC entries that are neither
/// static nor without age nor seen as a source for their domain's ageing time, telling `sink`. Call it often enough
/// that `budget` × calls per second exceeds the table's size.
pub fn age<S: Sink>(state: &mut State, now_ns: u64, budget: u32, sink: &mut S) {
    let mut old = [None; MOST];
    let mut found = 0;
    let mut stopped_at = None;
    let vlans = &state.vlans;
    let next = state.exact.scan(state.age_cursor, budget, |entry| {
        let Key::Mac { fid, mac } = entry.key else {
            return;
        };
        let value = FdbValue::unpack(entry.value);
        let ageless = raw::TND_FDB_STATIC | raw::TND_FDB_NO_AGE;
        if value.action != Action::Forward || value.flags & ageless != 0 {
            return;
        }
        let ageing_s = vlans
            .get(usize::from(fid))
            .and_then(|v| v.as_deref())
            .map_or(0, |v| v.config.ageing_s);
        if ageing_s == 0
            || now_ns.saturating_sub(entry.stamp_ns) < u64::from(ageing_s) * 1_000_000_000
        {
            return;
        }
        match old.get_mut(found) {
            Some(slot) => {
                *slot = Some((fid, mac, value.port));
                found += 1;
            }
            None if stopped_at.is_none() => stopped_at = Some(entry.id.0),
            None => {}
        }
    });
    state.age_cursor = stopped_at.unwrap_or(next);
    for (fid, mac, port) in old.into_iter().take(found).flatten() {
        if state.exact.remove(&Key::Mac { fid, mac }).is_some() {
            state.counters.learn.aged += 1;
            sink.event(Event::Age { fid, mac, port });
        }
    }
}
