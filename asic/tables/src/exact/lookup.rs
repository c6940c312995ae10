//! Finding a key, as the packet path does it: to its slot, without its id.

use super::{ExactMatch, IN_STASH, MAX_BANKS, NONE, Packed, Stamp};
use crate::prefetch::prefetch;

/// Where an entry is until the table changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub(super) u32);

/// How much older than the last use a stamp may be: a few jiffies, nothing beside an ageing time.
pub const STAMP_NS: u64 = 1 << 26;

/// Addresses whose loads [`ExactMatch::see_macs`] has under way at a time.
const BULK: usize = 32;

/// Where [`ExactMatch::see_macs`] found an address, and in which state of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    place: u32,
    change: u32,
}

impl Default for Seen {
    /// Nowhere.
    fn default() -> Self {
        let (place, change) = (NONE, 0);
        Seen { place, change }
    }
}

/// Answer of a lookup on the packet path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// For [`ExactMatch::touch_at`] and [`ExactMatch::set_value_at`], before anything else changes the table.
    pub place: Place,
    /// What was stored.
    pub value: u64,
}

/// 16 bits of a hash for each slot of a line, slot 0 lowest; 0 where no entry starts. A lookup compares those of all its
/// buckets first: they are an eighth of the table, near where the lines themselves are not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs(u64);

const EACH: u64 = 0x0001_0001_0001_0001;

impl Signs {
    /// The sign of a hash. Never 0.
    #[inline]
    fn of(hash: u64) -> u64 {
        hash >> 48 | 1
    }

    pub(super) fn set(&mut self, slot: usize, hash: u64) {
        self.clear(slot);
        self.0 |= Self::of(hash) << (16 * slot);
    }

    pub(super) fn clear(&mut self, slot: usize) {
        self.0 &= !(0xffff << (16 * slot));
    }

    /// The highest bit of each slot with this sign, and perhaps of others beside one.
    #[inline]
    fn with(self, sign: u64) -> u64 {
        let zero_where_equal = self.0 ^ (sign * EACH);
        zero_where_equal.wrapping_sub(EACH) & !zero_where_equal & EACH << 15
    }
}

/// An address that [`ExactMatch::see_macs`] looks for.
#[derive(Clone, Copy, Default)]
struct Wanted {
    head: u64,
    sign: u64,
    /// One of each bank.
    lines: [u32; 4],
}

impl ExactMatch {
    #[inline]
    pub(super) fn find(&self, p: &Packed) -> Option<Found> {
        let h = p.hash(self.seed);
        if p.is_host() && !self.presence.may(h) {
            return None;
        }
        let found = if self.geometry.banks == 4 && self.geometry.slots_per_bucket == 4 {
            let lines: [u32; 4] = std::array::from_fn(|bank| self.bucket(h, bank));
            self.find_in(&lines, p, h)
        } else {
            self.find_any(p, h)
        };
        match found {
            None if !self.stash.is_empty() => self.find_stash(p, h),
            found => found,
        }
    }

    fn find_any(&self, p: &Packed, hash: u64) -> Option<Found> {
        let per_bucket = self.geometry.slots_per_bucket / 4;
        let mut lines = [0; 2 * MAX_BANKS];
        let mut n = 0;
        for bank in 0..self.geometry.banks as usize {
            let first = self.bucket(hash, bank) * per_bucket;
            for (at, line) in (first..first + per_bucket).zip(&mut lines[n..]) {
                *line = at;
                n += 1;
            }
        }
        self.find_in(&lines[..n], p, hash)
    }

    /// Looks through up to 16 lines. The signs of all of them are compared before the first line is looked at: in which
    /// one a key is can't be foretold, and a wrong guess costs more than the comparisons.
    #[inline]
    fn find_in(&self, lines: &[u32], p: &Packed, hash: u64) -> Option<Found> {
        let sign = Signs::of(hash);
        let mut with = 0;
        for (n, at) in lines.iter().enumerate() {
            with |= self.signs.get(*at as usize)?.with(sign) >> n;
        }
        while with != 0 {
            // bit 16 × slot + 15 − line
            let k = with.trailing_zeros() as usize;
            let at = *lines.get(15 - k % 16)?;
            let slot = k / 16;
            let line = &self.lines.get(at as usize)?.0;
            if let Some([head, value]) = line.get(slot)
                && *head == p.head
                && (!p.wide() || line.get(slot + 1) == Some(&p.tail))
            {
                return Some(found(at * 4 + slot as u32, *value));
            }
            with &= with - 1;
        }
        None
    }

    #[cold]
    fn find_stash(&self, p: &Packed, hash: u64) -> Option<Found> {
        let pos = self.stash_index.find(hash, |i| {
            self.stash.get(i as usize).is_some_and(|s| s.key == *p)
        })?;
        let value = self.stash.get(pos as usize)?.value;
        Some(found(IN_STASH | pos, value))
    }

    /// Looks as many MAC addresses up as there are places to write; lines of one kind are asked for for all of them before
    /// the first is read. With `used`, what [`ExactMatch::touch_at`] will read is asked for as well.
    pub fn see_macs(&self, fid: u16, macs: &[[u8; 6]], seen: &mut [Seen], used: bool) {
        let change = self.changes;
        if self.geometry.banks != 4 || self.geometry.slots_per_bucket != 4 {
            seen.fill(Seen::default());
            return;
        }
        for (macs, seen) in macs.chunks(BULK).zip(seen.chunks_mut(BULK)) {
            let mut all = [Wanted::default(); BULK];
            for (mac, wanted) in macs.iter().zip(&mut all) {
                let p = Packed::mac(fid, *mac);
                let hash = p.hash(self.seed);
                let lines = std::array::from_fn(|bank| self.bucket(hash, bank));
                for at in lines {
                    prefetch(&self.signs, at as usize);
                }
                *wanted = Wanted {
                    head: p.head,
                    sign: Signs::of(hash),
                    lines,
                };
            }
            for (wanted, seen) in all.iter().zip(seen.iter_mut()) {
                let place = self.candidate(wanted);
                prefetch(&self.lines, place as usize / 4);
                if used {
                    prefetch(&self.stamps, place as usize);
                }
                *seen = Seen { place, change };
            }
            for (seen, wanted) in seen.iter_mut().zip(&all) {
                if self.head_at(seen.place) != Some(wanted.head) {
                    *seen = Seen::default();
                }
            }
        }
    }

    /// The first slot whose sign is that of an address, or [`NONE`].
    #[inline]
    fn candidate(&self, wanted: &Wanted) -> u32 {
        let Wanted { sign, lines, .. } = *wanted;
        let mut with = 0;
        for (n, at) in lines.iter().enumerate() {
            with |= self.signs.get(*at as usize).map_or(0, |s| s.with(sign)) >> n;
        }
        if with == 0 {
            return NONE;
        }
        let k = with.trailing_zeros();
        lines[(15 - k as usize % 16) % 4] * 4 + k / 16
    }

    #[inline]
    fn head_at(&self, place: u32) -> Option<u64> {
        let line = self.lines.get(place as usize / 4)?;
        Some(line.0[place as usize % 4][0])
    }

    /// The same as [`ExactMatch::get_mac`], quickly if the address was seen there and the table did not change since.
    #[inline]
    #[must_use]
    pub fn get_mac_seen(&self, fid: u16, mac: [u8; 6], seen: Seen) -> Option<Found> {
        let p = Packed::mac(fid, mac);
        if seen.change == self.changes
            && let Some(line) = self.lines.get(seen.place as usize / 4)
        {
            let [head, value] = line.0[seen.place as usize % 4];
            if head == p.head {
                return Some(found(seen.place, value));
            }
        }
        self.find(&p)
    }

    /// Looks a MAC address up.
    #[inline]
    #[must_use]
    pub fn get_mac(&self, fid: u16, mac: [u8; 6]) -> Option<Found> {
        self.find(&Packed::mac(fid, mac))
    }
    /// Looks an IPv4 host up.
    #[inline]
    #[must_use]
    pub fn get_host4(&self, vrf: u16, addr: [u8; 4]) -> Option<Found> {
        self.find(&Packed::host4(vrf, addr))
    }
    /// Looks an IPv6 host up.
    #[inline]
    #[must_use]
    pub fn get_host6(&self, vrf: u16, addr: [u8; 16]) -> Option<Found> {
        self.find(&Packed::host6(vrf, addr))
    }

    /// The entry was used now: sets its activity bit, and its stamp if that is older than [`STAMP_NS`]. A burst's
    /// addresses are all over the table, and what is not written is not waited for.
    #[inline]
    pub fn touch_at(&mut self, place: Place, now_ns: u64) {
        if let Some(stamp) = self.stamp_mut(place.0)
            && !(stamp.active() && now_ns.wrapping_sub(stamp.ns()) < STAMP_NS)
        {
            *stamp = Stamp::new(now_ns, true);
        }
    }

    /// How long ago the entry was used, by its stamp.
    #[must_use]
    pub fn idle_at(&self, place: Place, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.stamp(place.0).ns())
    }

    /// Changes the value of an entry.
    pub fn set_value_at(&mut self, place: Place, value: u64) {
        if let Some(id) = self.id_at(place) {
            self.write_value(id, value);
        }
    }

    /// The id of the entry at a place.
    pub(super) fn id_at(&self, place: Place) -> Option<u32> {
        if place.0 & IN_STASH != 0 {
            return self.stash.get((place.0 & !IN_STASH) as usize).map(|s| s.id);
        }
        let id = *self.heads.get(place.0 as usize)?;
        (id != NONE).then_some(id)
    }

    pub(super) fn stamp(&self, place: u32) -> Stamp {
        if place & IN_STASH != 0 {
            let stashed = self.stash.get((place & !IN_STASH) as usize);
            return stashed.map_or(Stamp::default(), |s| s.stamp);
        }
        self.stamps.get(place as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn stamp_mut(&mut self, place: u32) -> Option<&mut Stamp> {
        if place & IN_STASH != 0 {
            let stashed = self.stash.get_mut((place & !IN_STASH) as usize);
            return stashed.map(|s| &mut s.stamp);
        }
        self.stamps.get_mut(place as usize)
    }
}

#[inline]
fn found(place: u32, value: u64) -> Found {
    let place = Place(place);
    Found { place, value }
}
