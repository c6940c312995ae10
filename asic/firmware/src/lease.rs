//! Leases: slots promised ahead, as a worst-case vector over the pools (TND_OP_LEASE, TND_OP_RELEASE).

use crate::Firmware;
use crate::object::{Failure, INVALID, body};
use crate::pools::{Lease, MAX_LEASES, Need};
use tandem_abi::raw;
use zerocopy::FromBytes;

impl Firmware {
    /// Promises room for the objects of a `struct tnd_lease`; all of it or nothing. Gives the lease's id. `cookie` is
    /// the command's, which names the lease to a driver that never got the id.
    pub(crate) fn grant(&mut self, bytes: &[u8], cookie: u64) -> Result<u32, Failure> {
        let head: raw::tnd_lease = body(bytes, 4).ok_or(INVALID)?;
        let count = usize::from(head.count);
        if count == 0 || count > raw::TND_LEASE_MAX_CLASSES {
            return Err(INVALID);
        }
        let size = size_of::<raw::tnd_lease_item>();
        let mut wanted = Lease::for_cookie(cookie);
        for i in 0..count {
            let at = usize::from(head.struct_size) + i * size;
            let item = bytes
                .get(at..at + size)
                .and_then(|b| raw::tnd_lease_item::read_from_bytes(b).ok());
            let item = item.ok_or(INVALID)?;
            let needs = self.worst_case(item.cls, item.family, item.count);
            for n in needs.ok_or(INVALID)? {
                wanted.add(n);
            }
        }
        if self.leases.len() >= MAX_LEASES {
            return Err(Failure::Status(raw::TND_ST_LEASE));
        }
        let needs = wanted.rest();
        let mut done: Vec<Need> = Vec::new();
        for n in needs {
            if let Err(full) = self.pools.commit(&mut self.state, n) {
                for d in done {
                    self.pools.release(&mut self.state, d);
                }
                return Err(Failure::Full(n.pool, full));
            }
            done.push(n);
        }
        while self.next_lease == 0 || self.leases.contains_key(&self.next_lease) {
            self.next_lease = self.next_lease.wrapping_add(1);
        }
        let id = self.next_lease;
        self.next_lease = id.wrapping_add(1);
        self.leases.insert(id, wanted);
        Ok(id)
    }

    /// Gives back what is left of the lease that the LEASE with this cookie was granted.
    pub(crate) fn drop_lease_of(&mut self, cookie: u64) -> bool {
        let id = self.leases.iter().find(|(_, l)| l.cookie() == cookie);
        id.map(|(id, _)| *id).is_some_and(|id| self.drop_lease(id))
    }

    /// Gives back what is left of a lease.
    pub(crate) fn drop_lease(&mut self, id: u32) -> bool {
        let Some(lease) = self.leases.remove(&id) else {
            return false;
        };
        for n in lease.rest() {
            self.pools.release(&mut self.state, n);
        }
        true
    }
}
