//! What the kernel says, if it were not the kernel.

use std::sync::OnceLock;

use tandem_abi::raw;
use tandem_firmware::{Firmware, Profile};
use tandem_linux::netlink::{self as nl, Event, Protocol};
use tandem_store::{Attach, Completion, Config, Planned, Store};

/// Any datagram: decoded or skipped, in a time that its length bounds. A decoder must not depend on what else is in
/// the datagram.
pub(crate) fn decode(data: &[u8]) {
    for protocol in [Protocol::Route, Protocol::Netfilter] {
        let mut whole: Vec<Event> = Vec::new();
        nl::decode(protocol, data, |event| whole.push(event));
        // a header is 16 bytes; a message of none would be one that the walk never leaves behind
        let messages = nl::wire::Msgs::new(data).count();
        assert!(messages <= data.len() / nl::wire::HEADER_LEN);
        assert!(whole.len() <= messages);
        // message by message: the same events
        let (mut single, mut rest) = (Vec::new(), data);
        while rest.len() >= nl::wire::HEADER_LEN {
            let len = nl::wire::u32_at(rest, 0) as usize;
            let Some(message) = rest.get(..len).filter(|m| m.len() >= nl::wire::HEADER_LEN) else {
                break;
            };
            nl::decode(protocol, message, |event| single.push(event));
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        assert_eq!(whole, single);
    }
}

/// Steps of the store's planning that one step of the script may take.
const ROUNDS: usize = 256;

/// A switch whose kernel says anything: decoder, view, store and firmware, as switchd and asicd have them. The store
/// comes to rest after every step, and the chip's accounts hold. At the end the kernel has nothing any more: then the chip
/// holds what it held at the beginning.
pub(crate) fn switch(data: &[u8]) {
    let mut switch = Switch::new();
    let mut empty = None;
    tandem_netlink::fuzz_view(data, &mut |events| {
        switch.store.approach(&events);
        for event in events {
            switch.store.apply(event, switch.now);
        }
        switch.settle();
        empty.get_or_insert_with(|| switch.used());
    });
    // what was refused is tried again for a while
    for _ in 0..RETRIES {
        switch.settle();
    }
    switch.tell();
    assert_eq!(empty, Some(switch.used()), "left in the chip");
}

/// Turns in which what the chip has refused may be tried again.
const RETRIES: usize = 8;

struct Switch {
    store: Store,
    fw: Firmware,
    now: u64,
}

impl Switch {
    fn new() -> Self {
        static PROFILE: OnceLock<Profile> = OnceLock::new();
        let profile = PROFILE.get_or_init(|| Profile::builtin("tiny").expect("a profile"));
        let fw = Firmware::new(profile.clone()).expect("a chip");
        let (pools, costs) = fw.resources();
        let mut store = Store::new(Config::of_chip(profile.port_count(), &pools, &costs));
        store.attach(Attach::Cold, 0);
        Switch { store, fw, now: 0 }
    }

    /// Slots in use by pool.
    fn used(&self) -> Vec<(String, u32)> {
        let (pools, _) = self.fw.resources();
        let rows = pools.iter();
        rows.map(|p| (tandem_abi::get_name(&p.name), p.used))
            .collect()
    }

    fn settle(&mut self) {
        self.now += 1_000_000_000;
        let mut planned = Vec::new();
        for _ in 0..ROUNDS {
            if self.store.plan(&mut planned, self.now) == 0 {
                let _ = self.store.take_wanted();
                return;
            }
            for p in planned.drain(..) {
                let completion = self.execute(&p);
                self.store.complete(p.token, &completion, self.now);
            }
        }
        panic!("the store does not come to rest");
    }

    fn execute(&mut self, p: &Planned) -> Completion {
        let body = p.body.bytes();
        let cmd = raw::tnd_cmd {
            op: p.op,
            cls: p.cls,
            flags: p.flags,
            lease: p.lease,
            body_size: body.len() as u32,
            ..Default::default()
        };
        let mut out = Vec::new();
        let cpl = self.fw.execute(&cmd, body, &mut out, self.now);
        assert_eq!(self.fw.check_accounting(), Ok(()));
        // the chip may refuse what is said of a port without an address, or of a group that is a station's address: no
        // kernel says that, and the store takes the answer as any other failure
        let mut deltas = [(0, 0); 8];
        for (to, from) in deltas.iter_mut().zip(cpl.delta) {
            *to = (from.pool, from.slots as i32);
        }
        Completion {
            status: cpl.status,
            table: cpl.table,
            needed: cpl.needed,
            free: cpl.free,
            size: cpl.size,
            result: cpl.result,
            delta_count: cpl.delta_count as u8,
            deltas,
        }
    }

    /// What a person may ask.
    fn tell(&self) {
        for row in self.store.neighbours() {
            let _ = self.store.explain_neighbour(row.addr);
        }
        let _ = (self.store.fdb(), self.store.mdb(), self.store.counters());
        let _ = self.store.failures(64);
        for slot in 0..3 {
            for prefix in [
                "0.0.0.0/0",
                "10.0.1.0/24",
                "10.0.1.1/32",
                "::/0",
                "2001:db8::/64",
            ] {
                if let Ok(prefix) = prefix.parse() {
                    let _ = self.store.explain_route_in(slot, prefix);
                }
            }
        }
    }
}
