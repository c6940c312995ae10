//! Reading: DUMP by cursor, ACTIVITY, SNAPSHOT.
//!
//! A cursor is a position in the table, good whatever is inserted or removed in between: an object that is there all
//! the time comes exactly once. A call ends when the output is full, when it has written as many records as [`turn::DUMP`]
//! units are worth, or when it has looked at so many positions (of memberships: and those left of a port), whichever is
//! first, so that one command never holds up packets for long; cursor 0 in the completion is the end.

use crate::Firmware;
use crate::MAX_OUT;
use crate::classes;
use crate::object::{Failure, INVALID, Object, UNSUPPORTED, body};
use crate::objects::{fdb::Fdb, neigh::Neigh, nexthop::NextHop, nhg::Nhg, route::Route};
use crate::pools::PoolId;
use crate::turn;
use tandem_abi::raw;
use tandem_tables::exact::{self, Entry, Kind};
use zerocopy::IntoBytes;

/// Positions that one call looks at.
const SCAN: u32 = turn::DUMP as u32;
/// Records that one call writes.
const RECORDS: u32 = (turn::DUMP / turn::RECORD) as u32;
/// Cursor bit of the second of two tables: IPv6 routes after IPv4 routes.
pub(crate) const SECOND: u64 = 1 << 32;

/// Collects records until the output is full.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    room: usize,
    count: u32,
}

impl Writer<'_> {
    /// False: no room, or enough for one call; nothing written.
    fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.count >= RECORDS {
            return false;
        }
        let before = self.out.len();
        write(self.out);
        if self.out.len() > self.room {
            self.out.truncate(before);
            return false;
        }
        self.count += 1;
        true
    }
    fn object(&mut self, o: &impl Object) -> bool {
        self.put(|out| o.encode(out))
    }
}

impl Firmware {
    /// Bytes that a command may write.
    pub(crate) fn out_room(&self, cmd: &raw::tnd_cmd) -> usize {
        (cmd.out_size as usize).min(MAX_OUT)
    }

    fn writer<'a>(&self, cmd: &raw::tnd_cmd, out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer {
            out,
            room: self.out_room(cmd),
            count: 0,
        }
    }

    /// DUMP of a class from cursor `arg` on.
    pub(crate) fn dump(
        &mut self,
        cmd: &raw::tnd_cmd,
        out: &mut Vec<u8>,
        cpl: &mut raw::tnd_cpl,
    ) -> Result<(), Failure> {
        let mut w = self.writer(cmd, out);
        let cursor = cmd.arg;
        let low = cursor as u32;
        if cursor >= SECOND && !classes::of(cmd.cls).is_some_and(|c| c.wide) {
            return Err(INVALID);
        }
        let next = match cmd.cls {
            // there is nothing in it that its port does not say
            raw::TND_CLS_LED => return Err(UNSUPPORTED),
            raw::TND_CLS_COST => {
                let rows = classes::cost_rows().enumerate().skip(low as usize);
                let mut next = 0;
                for (i, (cls, row)) in rows {
                    let row = self.cost_row(cls, row);
                    if !w.put(|out| out.extend(row.as_bytes())) {
                        next = full_at(i as u32, &w);
                        break;
                    }
                }
                next
            }
            raw::TND_CLS_PORT_STATS => {
                let mut next = 0;
                for port in u16::try_from(low.max(1)).unwrap_or(u16::MAX)..=self.state.port_count()
                {
                    let row = self.port_stats_row(port);
                    if !w.put(|out| out.extend(row.as_bytes())) {
                        next = full_at(u32::from(port), &w);
                        break;
                    }
                }
                next
            }
            raw::TND_CLS_NHG_STATS => {
                let mut next = 0;
                for (slot, g) in self.state.nhgs_from(low) {
                    if !w.put(|out| Nhg::stats(g, out)) {
                        next = full_at(slot, &w);
                        break;
                    }
                }
                next
            }
            raw::TND_CLS_GEOMETRY => {
                let row = self.geometry_row();
                let fits = low > 0 || w.put(|out| out.extend(row.as_bytes()));
                if fits { 0 } else { STUCK }
            }
            cls => match classes::of(cls) {
                Some(class) => (class.dump)(self, cursor, &mut w),
                None => return Err(UNSUPPORTED),
            },
        };
        let records = u64::from(w.count);
        self.state.work.add(records * turn::RECORD);
        finish(next, &w, cpl)
    }

    /// QUERY of one group's counters.
    pub(crate) fn query_nhg_stats(
        &mut self,
        cmd: &raw::tnd_cmd,
        asked: &[u8],
        out: &mut Vec<u8>,
        cpl: &mut raw::tnd_cpl,
    ) -> Result<(), Failure> {
        let asked: raw::tnd_nhg_stats = body(asked, 8).ok_or(INVALID)?;
        let noent = Failure::Status(raw::TND_ST_NOENT);
        Nhg::stats(self.state.nhg(asked.nhg).ok_or(noent)?, out);
        if out.len() > self.out_room(cmd) {
            return Err(Failure::Status(raw::TND_ST_NO_OUTPUT));
        }
        cpl.out_count = 1;
        Ok(())
    }

    fn port_stats_row(&self, port: u16) -> raw::tnd_port_stats {
        let mut row = raw::tnd_port_stats {
            struct_size: size_of::<raw::tnd_port_stats>() as u16,
            port,
            tx_dropped: self.tx_dropped.get(usize::from(port)).copied().unwrap_or(0),
            ..Default::default()
        };
        if let Some(p) = self.state.counters.port(port) {
            row.rx_packets = p.rx.packets;
            row.rx_bytes = p.rx.bytes;
            row.rx_multicast = p.rx.multicast;
            row.rx_broadcast = p.rx.broadcast;
            row.rx_dropped = p.drops.iter().sum();
            row.rx_cpu = p.trapped + p.copied;
            row.tx_packets = p.tx.packets;
            row.tx_bytes = p.tx.bytes;
            row.tx_multicast = p.tx.multicast;
            row.tx_broadcast = p.tx.broadcast;
        }
        row
    }

    fn nothing_of(&self, mac: bool) -> bool {
        let macs = self.state.exact.count(Kind::Mac);
        if mac {
            macs == 0
        } else {
            macs == self.state.exact.len()
        }
    }

    /// The exact-match table's entries of one kind.
    pub(crate) fn walk_exact<T>(
        &self,
        from: u64,
        mac: bool,
        of: impl Fn(&Entry) -> Option<T>,
    ) -> impl Iterator<Item = (u64, Option<T>)> {
        let end = match self.nothing_of(mac) {
            true => 0,
            false => self.state.exact.positions(),
        };
        let all = strides(self, from as u32, end, |at, end| {
            self.state.exact.next_before(at, end)
        });
        all.map(move |(at, entry)| (at, entry.as_ref().and_then(&of)))
    }

    /// Positions have been looked at, of a table of so many.
    fn looked(&self, from: u32, to: u32, positions: u32) {
        self.state
            .work
            .add(to.min(positions).saturating_sub(from).into());
    }

    /// All IPv4 routes before `end` have been looked at: the cursor to go on at, or on with the IPv6 routes in this call.
    fn first_done(&self, low: &mut u32, end: &mut u32) -> Option<u64> {
        let positions = self.state.lpm4.positions();
        self.looked(*low, *end, positions);
        if *end < positions {
            return Some(u64::from(*end));
        }
        (*low, *end) = (0, (*end - positions).min(SCAN));
        (*end == 0).then_some(SECOND)
    }

    /// ACTIVITY: objects of a class that were used since the last call; their bits are cleared as they are written out.
    /// The whole body is written, as in a DUMP; `arg` and `result` are cursors as there.
    pub(crate) fn activity(
        &mut self,
        cmd: &raw::tnd_cmd,
        out: &mut Vec<u8>,
        cpl: &mut raw::tnd_cpl,
    ) -> Result<(), Failure> {
        let mut w = self.writer(cmd, out);
        let low = cmd.arg as u32;
        let next = match cmd.cls {
            raw::TND_CLS_FDB | raw::TND_CLS_NEIGH => {
                let mac = cmd.cls == raw::TND_CLS_FDB;
                if self.nothing_of(mac) {
                    0
                } else {
                    self.active_exact(low, mac, &mut w)
                }
            }
            raw::TND_CLS_ROUTE => self.active_routes(cmd.arg, &mut w),
            raw::TND_CLS_NEXTHOP => self.active_nexthops(low, &mut w),
            _ => return Err(UNSUPPORTED),
        };
        let records = u64::from(w.count);
        self.state.work.add(records * turn::RECORD);
        finish(next, &w, cpl)
    }

    fn active_nexthops(&mut self, low: u32, w: &mut Writer<'_>) -> u64 {
        let (end, slots) = (low.saturating_add(SCAN), self.state.nexthop_slots());
        let here = self.state.nexthops_from(low);
        let here = here.take_while(|(slot, _)| *slot < end);
        let used: Vec<(u32, NextHop, u32)> = here
            .filter(|(_, n)| n.active)
            .map(|(slot, n)| (slot, NextHop::from_state(n), n.id))
            .collect();
        self.looked(low, end, slots);
        for (slot, n, id) in used {
            // what doesn't fit keeps its bit
            if !w.object(&n) {
                return full_at(slot, w);
            }
            self.state.take_nexthop_active(id);
        }
        go_on(end, slots)
    }

    fn active_exact(&mut self, mut cursor: u32, mac: bool, w: &mut Writer<'_>) -> u64 {
        let end = cursor.saturating_add(SCAN);
        while let Some((next, e)) = self.state.exact.next_before(cursor, end) {
            if e.active && (e.key.kind() == Kind::Mac) == mac {
                let fits = if mac {
                    Fdb::from_entry(&self.state, &e).is_none_or(|f| w.object(&f))
                } else {
                    Neigh::from_entry(&e).is_none_or(|n| w.object(&n))
                };
                if !fits {
                    return full_at(cursor, w);
                }
                self.state.exact.take_active(e.id);
            }
            self.looked(cursor, next, next);
            cursor = next;
        }
        self.looked(cursor, end, self.state.exact.positions());
        go_on(end, self.state.exact.positions())
    }

    fn active_routes(&mut self, cursor: u64, w: &mut Writer<'_>) -> u64 {
        let mut low = cursor as u32;
        let mut end = low.saturating_add(SCAN);
        if cursor < SECOND {
            while let Some((next, r)) = self.state.lpm4.next_before(low, end) {
                if r.active {
                    let fits = Route::next4(self, low, end).is_none_or(|(_, o)| w.object(&o));
                    if !fits {
                        return full_at(low, w);
                    }
                    self.state.lpm4.take_active(r.id);
                }
                self.looked(low, next, next);
                low = next;
            }
            if let Some(next) = self.first_done(&mut low, &mut end) {
                return next;
            }
        }
        while let Some((next, r)) = self.state.lpm6.next_before(low, end) {
            if r.active {
                let fits = Route::next6(self, low, end).is_none_or(|(_, o)| w.object(&o));
                if !fits {
                    return second_at(low, w);
                }
                self.state.lpm6.take_active(r.id);
            }
            self.looked(low, next, next);
            low = next;
        }
        self.looked(low, end, self.state.lpm6.positions());
        match go_on(end, self.state.lpm6.positions()) {
            0 => 0,
            low => SECOND | low,
        }
    }

    /// SNAPSHOT: all pools, of one instant.
    pub(crate) fn snapshot(
        &mut self,
        cmd: &raw::tnd_cmd,
        out: &mut Vec<u8>,
        cpl: &mut raw::tnd_cpl,
    ) -> Result<(), Failure> {
        let mut w = self.writer(cmd, out);
        for id in PoolId::ALL {
            let row = self.pool_row(id);
            if !w.put(|out| out.extend(row.as_bytes())) {
                return Err(Failure::Status(raw::TND_ST_NO_OUTPUT));
            }
        }
        finish(0, &w, cpl)
    }

    pub(crate) fn pool_row(&self, id: PoolId) -> raw::tnd_pool {
        let p = self.pools.get(&self.state, id);
        let mut row = raw::tnd_pool {
            pool: id as u16,
            size: p.size(),
            used: p.used(),
            in_flight: p.in_flight(),
            committed: p.committed(),
            free: p.free(),
            high_watermark: p.high_watermark(),
            ..Default::default()
        };
        let name = self.profile.acl.name_of(id).unwrap_or(id.name());
        tandem_abi::set_name(&mut row.name, name);
        tandem_abi::set_name(&mut row.unit, id.unit());
        row
    }

    /// How the tables are built: what a driver's model needs to place entries as this chip does.
    pub(crate) fn geometry_row(&self) -> raw::tnd_geometry {
        let g = self.state.exact.geometry();
        let widths = self.state.exact.widths();
        let width = |kind| widths.of(kind) as u8;
        raw::tnd_geometry {
            struct_size: size_of::<raw::tnd_geometry>() as u16,
            exact_pool: PoolId::ExactMatch as u16,
            hash: raw::TND_EXACT_HASH_MIX64,
            seed: crate::EXACT_SEED,
            banks: g.banks,
            buckets_per_bank: g.buckets_per_bank,
            slots_per_bucket: g.slots_per_bucket,
            stash: g.stash,
            max_moves: g.max_moves,
            max_depth: exact::MAX_DEPTH,
            search_budget: exact::BUDGET,
            width_mac: width(Kind::Mac),
            width_host4: width(Kind::Host4),
            width_host6: width(Kind::Host6),
            nhg_member_pool: PoolId::NhgMember as u16,
            nhg_max_members: self.pools.nhg_max_members(),
            ..Default::default()
        }
    }
}

/// Not even one record fits.
const STUCK: u64 = u64::MAX;

fn full_at(cursor: u32, w: &Writer<'_>) -> u64 {
    if w.count == 0 {
        STUCK
    } else {
        u64::from(cursor)
    }
}

fn second_at(low: u32, w: &Writer<'_>) -> u64 {
    if w.count == 0 {
        STUCK
    } else {
        SECOND | u64::from(low)
    }
}

/// Everything before `end` has been looked at, of a table of so many positions.
fn go_on(end: u32, positions: u32) -> u64 {
    if end < positions { end.into() } else { 0 }
}

/// Positions of a table that a walk passes by in one step: nobody goes on without a word for longer.
const STRIDE: u32 = 64;

/// What is at positions from one on, and the last position of each stretch of [`STRIDE`] where nothing is; each position is
/// counted. `next` gives the first one there is before an end, and the position behind it.
pub(crate) fn strides<T>(
    fw: &Firmware,
    from: u32,
    end: u32,
    next: impl Fn(u32, u32) -> Option<(u32, T)>,
) -> impl Iterator<Item = (u64, Option<T>)> {
    let mut cursor = from;
    std::iter::from_fn(move || {
        let stop = cursor.saturating_add(STRIDE).min(end);
        if cursor >= stop {
            return None;
        }
        let (behind, there) = match next(cursor, stop) {
            Some((behind, there)) => (behind, Some(there)),
            None => (stop, None),
        };
        fw.state.work.add(u64::from(behind - cursor));
        cursor = behind;
        Some((u64::from(behind - 1), there))
    })
}

/// The same of a table whose positions are numbers.
pub(crate) fn slots<T>(
    fw: &Firmware,
    from: u64,
    end: u32,
    at: impl Fn(u32) -> Option<T>,
) -> impl Iterator<Item = (u64, Option<T>)> {
    strides(fw, from as u32, end, move |from, end| {
        (from..end).find_map(|i| at(i).map(|there| (i + 1, there)))
    })
}

/// Dumps objects; positions ascend and the next cursor is the position of the first that didn't fit, or behind the last that
/// was looked at. Position 0 would read as the end, but only a first record can be there, and that one fits or nothing does.
pub(crate) fn list<O: Object>(fw: &Firmware, from: u64, w: &mut Writer<'_>) -> u64 {
    let before = fw.state.work.done();
    for (at, object) in O::walk(fw, from) {
        if let Some(o) = object
            && !w.object(&o)
        {
            return if w.count == 0 { STUCK } else { at };
        }
        if fw.state.work.done() - before >= turn::DUMP {
            return at + 1;
        }
    }
    0
}

fn finish(next: u64, w: &Writer<'_>, cpl: &mut raw::tnd_cpl) -> Result<(), Failure> {
    if next == STUCK {
        return Err(Failure::Status(raw::TND_ST_NO_OUTPUT));
    }
    cpl.result = next;
    cpl.out_count = w.count;
    Ok(())
}
