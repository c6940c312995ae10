//! What all kinds of objects have in common: CREATE, UPDATE, DELETE, SET_TRAP and QUERY, written once.

use crate::Firmware;
use crate::costs::CostRow;
use crate::pools::{Need, PoolId};
use crate::resync::Confirmed;
use crate::turn::Entries;
use tandem_abi::raw;
use tandem_tables::pool::Full;
use zerocopy::{FromBytes, IntoBytes};

/// Why a command fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// `TND_ST_*` without numbers.
    Status(u16),
    /// A pool or bucket is full.
    Full(PoolId, Full),
}

pub(crate) const INVALID: Failure = Failure::Status(raw::TND_ST_INVALID);
pub(crate) const DEPEND: Failure = Failure::Status(raw::TND_ST_DEPEND);
pub(crate) const EXISTS: Failure = Failure::Status(raw::TND_ST_EXISTS);
pub(crate) const IN_USE: Failure = Failure::Status(raw::TND_ST_IN_USE);
pub(crate) const UNSUPPORTED: Failure = Failure::Status(raw::TND_ST_UNSUPPORTED);

/// One kind of object, in its normal form: fields that don't count are zero, so that equal objects are equal bytes.
pub(crate) trait Object: Sized + Clone + PartialEq {
    /// `TND_CLS_*`.
    const CLASS: u16;
    /// What a fault plan calls it.
    const NAME: &'static str;
    /// The slots that it takes of pools; none: it takes none.
    const COSTS: &'static [CostRow] = &[];
    /// Positions have more than 32 bits.
    const WIDE: bool = false;
    /// Positions are not near each other: what a resync has confirmed is a set, no bits.
    const SPARSE: bool = false;
    /// Ports and traps are there from the start and stay: UPDATE and QUERY only.
    const FIXED: bool = false;

    /// From a body. `None`: too short.
    fn parse(body: &[u8]) -> Option<Self>;
    /// Values that no state could make right, and the normal form.
    fn normal(self, fw: &Firmware) -> Result<Self, Failure>;
    /// The object with this one's key, as the tables hold it. Must take any key.
    fn find(&self, fw: &Firmware) -> Option<Self>;
    /// Objects that this one refers to are there.
    fn depends(&self, _: &Firmware) -> Result<(), Failure> {
        Ok(())
    }
    /// CREATE may overwrite `old`, which is not equal.
    fn gives_way(_old: &Self) -> bool {
        false
    }
    /// While a driver that attached warm names what it knows: `old` is newer, and is confirmed as it is.
    fn stale(&self, _old: &Self) -> bool {
        false
    }
    /// Writes it, in place of `old` if there is one. Takes slots, keeps references; all or nothing.
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure>;
    /// Another object refers to it, or it stays.
    fn in_use(&self, fw: &Firmware) -> bool {
        Self::FIXED || self.held(fw) || self.entries(fw).is_some_and(|all| fw.keeps(all))
    }
    /// Removes it, gives slots and references back.
    fn remove(&self, fw: &mut Firmware);
    /// The object turned into a trap; `asked` is the command's body. `None`: this kind can't be.
    fn trapped(&self, asked: &Self) -> Option<Self> {
        let _ = asked;
        None
    }
    /// The ABI's body.
    fn encode(&self, out: &mut Vec<u8>);
    /// The family of its row in [`Object::COSTS`].
    fn family(&self) -> u8 {
        0
    }
    /// Slots that a CREATE of it takes.
    fn needs(&self, fw: &Firmware) -> Vec<Need> {
        let all = fw.worst_case(Self::CLASS, self.family(), 1);
        all.unwrap_or_default()
    }
    /// Where the one with this key is: the position that [`Object::walk`] gives it. Those that are [`Object::FIXED`] need none.
    fn position(&self, _: &Firmware) -> Option<u64> {
        None
    }
    /// All objects with their positions, which ascend, from one on. A position is good whatever comes and goes. What is looked at
    /// is counted as work, and of a stretch without objects comes a position now and then, so that nobody walks on for long.
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)>;
    /// Addresses that go with it, when only they are left.
    fn entries(&self, _: &Firmware) -> Option<Entries> {
        None
    }
    /// Something else than one of [`Object::entries`] refers to it.
    fn held(&self, _: &Firmware) -> bool {
        false
    }
    /// The driver has named the one at this position since BEGIN_RESYNC.
    fn confirmed(&self, c: &Confirmed, at: u64) -> bool {
        c.has::<Self>(at)
    }
    /// Undoes a bit flip in its table entry, before anything is decided from it.
    fn unflip(&self, _fw: &mut Firmware) {}
}

/// A fixed-size body: `struct_size` says how much of it is there, what is missing reads as zero, what is more is
/// ignored. `key_size` bytes are the least.
pub(crate) fn body<
    T: FromBytes + IntoBytes + zerocopy::Immutable + zerocopy::KnownLayout + Default,
>(
    bytes: &[u8],
    key_size: usize,
) -> Option<T> {
    let (a, b) = (*bytes.first()?, *bytes.get(1)?);
    let there = usize::from(u16::from_le_bytes([a, b]));
    if there < key_size || there > bytes.len() {
        return None;
    }
    let mut out = T::default();
    for (to, from) in out.as_mut_bytes().iter_mut().zip(bytes.get(..there)?) {
        *to = *from;
    }
    Some(out)
}

impl Firmware {
    /// CREATE, UPDATE, DELETE, SET_TRAP, QUERY of one kind of object.
    pub(crate) fn operate<O: Object>(
        &mut self,
        cmd: &raw::tnd_cmd,
        body: &[u8],
        out: &mut Vec<u8>,
        cpl: &mut raw::tnd_cpl,
    ) -> Result<(), Failure> {
        let asked = O::parse(body).ok_or(INVALID)?;
        if cmd.op != raw::TND_OP_QUERY {
            asked.unflip(self);
        }
        let old = asked.find(self);
        let noent = Failure::Status(raw::TND_ST_NOENT);
        match cmd.op {
            raw::TND_OP_CREATE => {
                let new = asked.normal(self)?;
                match &old {
                    Some(o) if *o == new => {}
                    Some(o) if self.resync.is_some() && new.stale(o) => {}
                    Some(o) if !O::gives_way(o) => return Err(EXISTS),
                    None if O::FIXED => return Err(UNSUPPORTED),
                    _ => {
                        new.depends(self)?;
                        new.write(self, old.as_ref())?;
                    }
                }
                self.confirm(&new);
                Ok(())
            }
            raw::TND_OP_UPDATE => {
                let old = old.ok_or(noent)?;
                let new = asked.normal(self)?;
                if new != old {
                    new.depends(self)?;
                    new.write(self, Some(&old))?;
                }
                self.confirm(&new);
                Ok(())
            }
            raw::TND_OP_DELETE => match old {
                _ if O::FIXED => Err(UNSUPPORTED),
                None if cmd.flags & raw::TND_CMD_IDEMPOTENT != 0 => Ok(()),
                None => Err(noent),
                Some(o) if o.in_use(self) => Err(IN_USE),
                Some(o) => {
                    self.discard(&o);
                    Ok(())
                }
            },
            raw::TND_OP_SET_TRAP => {
                let old = old.ok_or(noent)?;
                let new = old.trapped(&asked).ok_or(UNSUPPORTED)?;
                new.write(self, Some(&old))?;
                self.confirm(&new);
                Ok(())
            }
            _ => {
                old.ok_or(noent)?.encode(out);
                if out.len() > self.out_room(cmd) {
                    return Err(Failure::Status(raw::TND_ST_NO_OUTPUT));
                }
                cpl.out_count = 1;
                Ok(())
            }
        }
    }

    /// Slots that live outside the tables: from the command's lease, or from free ones.
    pub(crate) fn take(&mut self, pool: PoolId, slots: u32) -> Result<(), Failure> {
        let need = Need { pool, slots };
        if slots == 0 {
            return Ok(());
        }
        let promised = self.check_lease(need)?;
        self.pools
            .take(&mut self.state, need, promised)
            .map_err(|f| Failure::Full(pool, f))?;
        self.took(need);
        Ok(())
    }

    /// Gives slots back that live outside the tables.
    pub(crate) fn give(&mut self, pool: PoolId, slots: u32) {
        if slots > 0 {
            self.pools.give(&mut self.state, Need { pool, slots });
            self.delta(pool, -i64::from(slots));
        }
    }

    /// Undoes [`Self::take`] of this command: back to the lease or to free.
    pub(crate) fn untake(&mut self, pool: PoolId, slots: u32) {
        let need = Need { pool, slots };
        self.give(pool, slots);
        if let Some(id) = self.cx.lease
            && self.pools.commit(&mut self.state, need).is_ok()
            && let Some(l) = self.leases.get_mut(&id)
        {
            l.add(need);
        }
    }

    /// The command names a lease: it must have the slots left. `true`: take committed ones.
    pub(crate) fn check_lease(&self, need: Need) -> Result<bool, Failure> {
        match self.cx.lease.map(|id| self.leases.get(&id)) {
            None => Ok(false),
            Some(Some(l)) if l.left(need.pool) >= need.slots => Ok(true),
            Some(_) => Err(Failure::Status(raw::TND_ST_LEASE)),
        }
    }

    /// Slots were taken: the lease has less, the completion tells.
    pub(crate) fn took(&mut self, need: Need) {
        if let Some(l) = self.cx.lease.and_then(|id| self.leases.get_mut(&id)) {
            l.sub(need);
        }
        self.delta(need.pool, i64::from(need.slots));
    }

    pub(crate) fn delta(&mut self, pool: PoolId, slots: i64) {
        add_delta(&mut self.cx.deltas, pool, slots);
    }
}

/// One line per pool.
pub(crate) fn add_delta(deltas: &mut Vec<(PoolId, i64)>, pool: PoolId, slots: i64) {
    match deltas.iter_mut().find(|d| d.0 == pool) {
        Some(d) => d.1 += slots,
        None => deltas.push((pool, slots)),
    }
}

/// One more reference; a map entry of 0 is not kept.
pub(crate) fn count_up<K: std::hash::Hash + Eq>(
    map: &mut std::collections::HashMap<K, u32>,
    key: K,
) {
    *map.entry(key).or_insert(0) += 1;
}

/// One reference less.
pub(crate) fn count_down<K: std::hash::Hash + Eq>(
    map: &mut std::collections::HashMap<K, u32>,
    key: K,
) {
    if let std::collections::hash_map::Entry::Occupied(mut e) = map.entry(key) {
        *e.get_mut() = e.get().saturating_sub(1);
        if *e.get() == 0 {
            e.remove();
        }
    }
}
