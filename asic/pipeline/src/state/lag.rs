//! Link aggregation groups. Group *n* is used like a port: its number is the number of front-panel ports plus *n*.

use super::object::{Port, PortConfig};
use super::{SetError, State};
use crate::group::{FlowHash, HashPolicy, hash4, hash6};
use tandem_abi::raw;
use tandem_packet::parse::Parsed;
use tandem_packet::{L3, Mac, parse};
use tandem_tables::lag::Active;

/// Largest number of a group.
pub const MAX_LAG: u16 = 1024;

/// `struct tnd_lag` and its members, without the key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LagConfig {
    /// `TND_LAG_HASH_*`.
    pub hash: u16,
    /// Front-panel ports, and whether they take part: collect and distribute.
    pub members: Vec<(u16, bool)>,
}

/// A group.
#[derive(Debug, Clone)]
pub struct Lag {
    /// As configured.
    pub config: LagConfig,
    /// Members that take part and are up.
    pub(crate) active: Active,
}

impl Lag {
    /// Does this member take part?
    pub(crate) fn takes_part(&self, port: u16) -> bool {
        self.config.members.contains(&(port, true))
    }
}

impl State {
    /// One group, from 1.
    pub fn lag(&self, lag: u16) -> Option<&Lag> {
        self.lags.get(usize::from(lag).wrapping_sub(1))?.as_ref()
    }

    /// All groups, ascending.
    pub fn lags(&self) -> impl Iterator<Item = (u16, &Lag)> {
        let all = self.lags.iter().enumerate();
        all.filter_map(|(i, l)| l.as_ref().map(|l| (i as u16 + 1, l)))
    }

    /// The port number of a group.
    pub fn lag_port(&self, lag: u16) -> u16 {
        self.physical + lag
    }

    /// The group behind a port number.
    pub fn lag_at(&self, port: u16) -> Option<u16> {
        port.checked_sub(self.physical).filter(|l| *l > 0)
    }

    /// A front-panel port, or that of a group which is there.
    pub fn has_port(&self, port: u16) -> bool {
        match self.lag_at(port) {
            Some(lag) => self.lag(lag).is_some(),
            None => port > 0,
        }
    }

    /// Creates or changes a group in one step.
    pub fn set_lag(&mut self, lag: u16, config: LagConfig) -> Result<(), SetError> {
        if !(1..=MAX_LAG).contains(&lag) {
            return Err(SetError::BadLag(lag));
        }
        let own = self.lag_port(lag);
        for (port, _) in &config.members {
            match self.port(*port) {
                Some(p) if *port <= self.physical && (p.lag == 0 || p.lag == own) => {}
                _ => return Err(SetError::NoPort(*port)),
            }
        }
        self.grow(own);
        self.detach(own);
        for (port, _) in &config.members {
            self.port_mut(*port)?.lag = own;
        }
        if let Some(slot) = self.lags.get_mut(usize::from(lag) - 1) {
            *slot = Some(Lag {
                config,
                active: Active::default(),
            });
        }
        self.refresh_lag(own);
        Ok(())
    }

    /// Removes a group; its ports are ports of their own again. False: it was not there.
    pub fn remove_lag(&mut self, lag: u16) -> bool {
        let own = self.lag_port(lag);
        let slot = self.lags.get_mut(usize::from(lag).wrapping_sub(1));
        if slot.and_then(Option::take).is_none() {
            return false;
        }
        self.detach(own);
        let vids: Vec<u16> = self.members_of(own, 0).map(|(vid, _)| vid).collect();
        for vid in vids {
            self.remove_member(own, vid);
        }
        if let Ok(p) = self.port_mut(own) {
            p.configure(PortConfig::default());
            p.link = false;
        }
        true
    }

    fn detach(&mut self, own: u16) {
        for p in self.ports.iter_mut().filter(|p| p.lag == own) {
            p.lag = 0;
        }
    }

    /// Room for a group's port wherever there is a line per port.
    fn grow(&mut self, port: u16) {
        let n = usize::from(port);
        if self.ports.len() < n {
            self.ports.resize(n, Port::new(false));
        }
        let lags = n - usize::from(self.physical);
        if self.lags.len() < lags {
            self.lags.resize(lags, None);
        }
        for v in self.vlans.iter_mut().flatten() {
            grow(&mut v.egress, n + 1);
            grow(&mut v.vids, n + 1);
        }
        self.acl.grow(n);
    }

    /// A port came or went: its group, if it is in one, distributes over those that are left.
    pub(super) fn refresh_lag_of(&mut self, port: u16) {
        match self.port(port).map(|p| p.lag) {
            Some(own) if own != 0 => self.refresh_lag(own),
            _ => {}
        }
    }

    fn refresh_lag(&mut self, own: u16) {
        let Some(lag) = self.lag_at(own) else { return };
        let Some(config) = self.lag(lag).map(|l| l.config.clone()) else {
            return;
        };
        let up = |port: &u16| self.port(*port).is_some_and(Port::is_up);
        let takes_part = config.members.iter().filter(|m| m.1).map(|m| m.0);
        let active = Active::new(takes_part.filter(up));
        let link = !active.is_empty();
        if let Some(Some(l)) = self.lags.get_mut(usize::from(lag) - 1) {
            l.active = active;
        }
        if let Ok(p) = self.port_mut(own) {
            p.link = link;
        }
    }

    /// The front-panel port by which a frame to a port number leaves: itself, or the member that the frame's flow has.
    #[inline]
    pub(crate) fn member_for(&self, port: u16, frame: &[u8]) -> Option<u16> {
        if port <= self.physical {
            return Some(port);
        }
        let lag = self.lag(self.lag_at(port)?)?;
        let hash = parse(frame).map_or(0, |eth| flow(&eth, frame, lag.config.hash, self.lag_hash));
        lag.active.choose(hash)
    }
}

/// Lines of a table by port number, at least so many.
fn grow<T: Clone + Default>(table: &mut Box<[T]>, lines: usize) {
    if table.len() < lines {
        let mut all = std::mem::take(table).into_vec();
        all.resize(lines, T::default());
        *table = all.into_boxed_slice();
    }
}

/// Flow hash of a frame (docs/lag.md): frames of one flow have one hash, whatever else is in them.
pub(crate) fn flow(eth: &Parsed, frame: &[u8], policy: u16, by: FlowHash) -> u32 {
    let station = |m: &Mac| {
        let [a, b, c, d, e, f] = *m;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    };
    let vid = eth.tag.map_or(0, |t| u64::from(t.vid()));
    let other = vid << 16 | u64::from(eth.ethertype.0);
    let l2 = by.stations(station(&eth.src), station(&eth.dst), other);
    let ip_policy = if policy == raw::TND_LAG_HASH_L4 {
        HashPolicy::L4
    } else {
        HashPolicy::L3
    };
    if policy == raw::TND_LAG_HASH_L2 {
        return l2;
    }
    let ip = match eth.l3(frame) {
        L3::Ip4(ip) => hash4(&ip, ip_policy, by),
        L3::Ip6(ip) => hash6(&ip, ip_policy, by),
        _ => return l2,
    };
    if policy == raw::TND_LAG_HASH_L3 {
        return ip ^ l2;
    }
    ip
}
