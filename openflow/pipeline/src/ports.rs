// SPDX-License-Identifier: Apache-2.0
//! Ports as the pipeline knows them: number, state, configuration, queues, counters.
use std::collections::BTreeMap;

/// A port (§4.1, §7.2.1). The `LOCAL` port is one, when the switch has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// Link and configuration let packets out: the opposite of `OFPPS_LINK_DOWN` and `OFPPC_PORT_DOWN`. What watches it
    /// in a fast-failover group sees this.
    pub live: bool,
    /// `OFPPC_NO_RECV`: packets that come in are dropped.
    pub no_recv: bool,
    /// `OFPPC_NO_FWD`: nothing is sent there.
    pub no_fwd: bool,
    /// `OFPPC_NO_PACKET_IN`: no packet-in for what misses a table.
    pub no_packet_in: bool,
    /// 1.0, `OFPPC_NO_FLOOD`.
    pub no_flood: bool,
    /// Queues by their numbers.
    pub queues: Vec<u32>,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    /// One more packet.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// Counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCount {
    /// Came in.
    pub rx: Count,
    /// Went out.
    pub tx: Count,
    /// Came in and were dropped by the port's configuration, or were no frames.
    pub rx_dropped: u64,
    /// Should have gone out of a port that is down or that may not send.
    pub tx_dropped: u64,
    /// When the port came, by the caller's clock.
    pub since_ns: u64,
}

/// Counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCount {
    /// Went out.
    pub tx: Count,
    /// When it came.
    pub since_ns: u64,
}

/// A port with its counters.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The port.
    pub port: Port,
    /// Its counters.
    pub count: PortCount,
    /// One for each queue.
    pub queues: Vec<QueueCount>,
}

/// Small numbers find their port through an array.
const DIRECT: u32 = 4096;

/// All ports.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    /// By number.
    pub list: Vec<Entry>,
    direct: Vec<u32>,
    others: BTreeMap<u32, u32>,
}

impl Ports {
    /// Where a port is in the list.
    #[inline]
    pub fn index(&self, number: u32) -> Option<usize> {
        let at = if number < DIRECT {
            self.direct
                .get(number as usize)
                .copied()
                .filter(|n| *n != u32::MAX)
        } else {
            self.others.get(&number).copied()
        };
        at.map(|n| n as usize)
    }

    /// The port of this number.
    pub fn get(&self, number: u32) -> Option<&Entry> {
        self.list.get(self.index(number)?)
    }

    /// The port of this number.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Entry> {
        let at = self.index(number)?;
        self.list.get_mut(at)
    }

    /// Adds a port, or gives one another state: its counters stay, and those of the queues it still has.
    pub fn set(&mut self, port: Port, now_ns: u64) {
        let fresh = QueueCount {
            since_ns: now_ns,
            ..QueueCount::default()
        };
        if let Some(e) = self.get_mut(port.number) {
            e.queues = port
                .queues
                .iter()
                .map(|q| match e.port.queues.iter().position(|old| old == q) {
                    Some(at) => e.queues[at],
                    None => fresh,
                })
                .collect();
            e.port = port;
            return;
        }
        let queues = vec![fresh; port.queues.len()];
        let count = PortCount {
            since_ns: now_ns,
            ..PortCount::default()
        };
        self.list.push(Entry {
            port,
            count,
            queues,
        });
        self.order();
    }

    /// Takes a port out; false if there was none.
    pub fn remove(&mut self, number: u32) -> bool {
        let Some(at) = self.index(number) else {
            return false;
        };
        self.list.remove(at);
        self.order();
        true
    }

    fn order(&mut self) {
        self.list.sort_by_key(|e| e.port.number);
        self.direct.clear();
        self.others.clear();
        for (at, e) in (0u32..).zip(&self.list) {
            let n = e.port.number;
            if n < DIRECT {
                let n = n as usize;
                if self.direct.len() <= n {
                    self.direct.resize(n + 1, u32::MAX);
                }
                self.direct[n] = at;
            } else {
                self.others.insert(n, at);
            }
        }
    }

    /// May a group's bucket count on it?
    pub fn is_live(&self, number: u32) -> bool {
        self.get(number).is_some_and(|e| e.port.live)
    }
}
