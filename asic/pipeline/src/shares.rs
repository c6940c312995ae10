//! The last policer of a trap class, of which each reason has a share, and of that each port.
//!
//! ```text
//!   packet ─► its port's share of its reason's? ──► its reason's share? ──► what the class has left? ──► dropped
//!             R / reasons / ports                   R / reasons             R, less what the shares took
//! ```
//!
//! A share can't be taken by anybody else, and what nobody takes of it is everybody's: one flood alone gets the class's
//! whole rate. What passes by a share is charged to all that lie above it, which may get into debt for that, by no more
//! than the shares' bursts and one super-frame: of that the first packet takes a token, and all pass. In any time *t* a class
//! lets `R · t` pass, and at most three bursts and one super-frame.

use tandem_tables::bucket::Bucket;

use crate::trap::{REASONS, TrapConfig};

/// A class's policer and the shares of it.
#[derive(Clone, Debug)]
pub struct Shares {
    class: Bucket,
    ports: u64,
    /// Shares there are: reasons whose class this is from the start, and those that came since.
    count: u64,
    reasons: [Option<Bucket>; REASONS],
    /// By reason and port number; made when the first packet comes.
    by_port: [Vec<Bucket>; REASONS],
}

impl Shares {
    /// The policer of a class (`TND_TC_*`) of a chip with so many ports: packets per second, 0 = lets everything pass,
    /// and packets that may come at once.
    pub fn new(class: u16, rate_pps: u32, burst: u32, ports: u16) -> Self {
        let mut all = Shares {
            class: Bucket::new(rate_pps.into(), burst.into()),
            ports: u64::from(ports.max(1)),
            count: 0,
            reasons: [None; REASONS],
            by_port: [const { Vec::new() }; REASONS],
        };
        for reason in crate::trap::reasons() {
            if TrapConfig::default_for(reason).class == class {
                all.join(reason, 0);
            }
        }
        all
    }

    /// Packets per second and burst of the class.
    pub fn config(&self) -> (u32, u32) {
        // both came in as 32 bits
        (self.class.rate() as u32, self.class.burst() as u32)
    }

    /// Packets per second that a reason has whatever the others do; 0: it has no share yet, or nobody is limited.
    pub fn share(&self, reason: u16) -> u32 {
        let bucket = self.reasons.get(usize::from(reason)).copied().flatten();
        bucket.map_or(0, |b| b.rate() as u32)
    }

    /// One reason more: all shares are smaller now.
    #[cold]
    fn join(&mut self, reason: u16, now_ns: u64) {
        if self.class.rate() == 0 {
            return;
        }
        self.count += 1;
        let (rate, burst) = (
            self.class.rate() / self.count,
            self.class.burst() / self.count,
        );
        if let Some(own) = self.reasons.get_mut(usize::from(reason)) {
            *own = Some(Bucket::new(rate, burst));
        }
        for own in self.reasons.iter_mut().flatten() {
            own.resize(rate, burst, now_ns);
        }
        for own in self.by_port.iter_mut().flatten() {
            own.resize(rate / self.ports, burst / self.ports, now_ns);
        }
    }

    /// May packets that came in together by this port for this reason pass? One token is enough; all are charged.
    pub fn take(&mut self, reason: u16, port: u16, packets: u64, now_ns: u64) -> bool {
        if self.class.rate() == 0 {
            return true;
        }
        let at = usize::from(reason).min(REASONS - 1);
        if self.reasons.get(at).is_none_or(Option::is_none) {
            self.join(at as u16, now_ns);
        }
        let (Some(Some(own)), Some(by_port)) = (self.reasons.get_mut(at), self.by_port.get_mut(at))
        else {
            return false;
        };
        if by_port.is_empty() {
            let one = Bucket::new(own.rate() / self.ports, own.burst() / self.ports);
            by_port.resize(self.ports as usize + 1, one);
        }
        let has = |b: &Bucket| b.rate() > 0 && b.admits(1, now_ns);
        // shares that became smaller may have had more: the debt has an end
        let charge = |b: &mut Bucket| b.overdraw(packets, 2 * b.burst() + packets, now_ns);
        let (in_class, in_own) = (has(&self.class), has(own));
        if let Some(port) = by_port.get_mut(usize::from(port))
            && has(port)
        {
            charge(port);
            charge(own);
        } else if in_own {
            charge(own);
        } else if !in_class {
            return false;
        }
        charge(&mut self.class);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trap::{ORDER, reason_name, reasons, trap_class_name};
    use tandem_abi::raw;

    const SECOND: u64 = 1_000_000_000;
    const PORTS: u16 = 8;
    /// Three bursts of 400 in 4 s.
    const BURSTS: u64 = 3 * 400 / 4;

    fn members(class: u16) -> Vec<u16> {
        reasons()
            .filter(|r| TrapConfig::default_for(*r).class == class)
            .collect()
    }

    /// Packets a second that pass of each sender (reason, port, packets a second), who all send evenly for 4 s.
    fn passed(shares: &mut Shares, senders: &[(u16, u16, u64)]) -> Vec<u64> {
        const SECONDS: u64 = 4;
        let mut next: Vec<u64> = (0..senders.len() as u64).collect();
        let mut passed = vec![0; senders.len()];
        while let Some((i, at)) = (next.iter().copied().enumerate()).min_by_key(|(_, at)| *at) {
            if at >= SECONDS * SECOND {
                break;
            }
            let (reason, port, pps) = senders[i];
            passed[i] += u64::from(shares.take(reason, port, 1, at));
            next[i] += SECOND / pps;
        }
        passed.iter().map(|n| n / SECONDS).collect()
    }

    #[test]
    fn one_flood_alone_gets_the_rate_of_its_class() {
        for class in ORDER {
            for reason in members(class) {
                let mut shares = Shares::new(class, 2000, 400, PORTS);
                let got = passed(&mut shares, &[(reason, 3, 10_000)])[0];
                assert!(
                    (2000..=2000 + BURSTS).contains(&got),
                    "{}: {got}",
                    reason_name(reason)
                );
            }
        }
    }

    /// Every ordered pair of reasons in one class, from one port: a flood for one takes nothing of what another sends
    /// within its share. And all others' floods together take nothing either.
    #[test]
    fn no_reason_starves_another() {
        for class in ORDER {
            let all = members(class);
            for quiet in &all {
                let own = Shares::new(class, 2000, 400, PORTS).share(*quiet);
                assert_eq!(own, 2000 / all.len() as u32);
                let own = u64::from(own) * 9 / 10;
                for loud in all.iter().filter(|r| *r != quiet) {
                    let mut shares = Shares::new(class, 2000, 400, PORTS);
                    let got = passed(&mut shares, &[(*loud, 1, 10_000), (*quiet, 1, own)]);
                    assert!(got[1] + 1 >= own, "{quiet} beside {loud}: {got:?} of {own}");
                    assert!(
                        got[0] + got[1] <= 2000 + BURSTS,
                        "{quiet} beside {loud}: {got:?}"
                    );
                }
                let mut senders = vec![(*quiet, 1, own)];
                let others = all.iter().filter(|r| *r != quiet);
                senders.extend(others.flat_map(|r| (1..=PORTS).map(|p| (*r, p, 2_000))));
                let mut shares = Shares::new(class, 2000, 400, PORTS);
                let got = passed(&mut shares, &senders);
                let name = trap_class_name(class);
                assert!(
                    got[0] + 1 >= own,
                    "{name}: {quiet} beside all: {got:?} of {own}"
                );
                assert!(got.iter().sum::<u64>() <= 2000 + BURSTS, "{name}: {got:?}");
            }
        }
    }

    /// The same for what comes in by other ports, for the same reason: LACP of a partner beside somebody's LLDP.
    #[test]
    fn no_port_starves_another() {
        for reason in reasons() {
            let class = TrapConfig::default_for(reason).class;
            let mut shares = Shares::new(class, 4096, 1024, PORTS);
            let own = u64::from(shares.share(reason) / u32::from(PORTS)) * 9 / 10;
            let mut senders: Vec<_> = (2..=PORTS).map(|p| (reason, p, 8_000)).collect();
            senders.push((reason, 1, own));
            let got = passed(&mut shares, &senders);
            assert!(got.last().unwrap() + 1 >= own, "{reason}: {got:?} of {own}");
            assert!(
                got.iter().sum::<u64>() <= 4096 + 3 * 1024 / 4,
                "{reason}: {got:?}"
            );
        }
    }

    #[test]
    fn a_reason_that_comes_later_has_a_share_as_well() {
        let mut shares = Shares::new(raw::TND_TC_LINK, 2000, 400, PORTS);
        let (link, acl) = (raw::TND_TRAP_LINK_PROTO, raw::TND_TRAP_ACL);
        assert_eq!((shares.share(link), shares.share(acl)), (2000, 0));
        let got = passed(&mut shares, &[(acl, 1, 10_000), (link, 1, 900)]);
        assert!(got[1] >= 899 && got[0] + got[1] <= 2000 + BURSTS, "{got:?}");
        assert_eq!((shares.share(link), shares.share(acl)), (1000, 1000));
    }

    #[test]
    fn no_rate_is_no_limit() {
        let mut shares = Shares::new(raw::TND_TC_LINK, 0, 0, PORTS);
        assert!((0..1000).all(|_| shares.take(raw::TND_TRAP_LINK_PROTO, 1, 1, 0)));
        assert_eq!(shares.share(raw::TND_TRAP_LINK_PROTO), 0);
    }

    #[test]
    fn what_is_beyond_any_port_has_no_share_of_a_port() {
        let mut shares = Shares::new(raw::TND_TC_LINK, 10, 10, 1);
        for port in [0, 2, u16::MAX] {
            assert!(shares.take(raw::TND_TRAP_LINK_PROTO, port, 1, 0));
        }
        // a reason that nobody knows is as good as the last one
        assert!(shares.take(u16::MAX, 1, 1, 0));
        let all = (0..1000).filter(|_| shares.take(raw::TND_TRAP_LINK_PROTO, 1, 1, 0));
        assert!(all.count() <= 30);
    }
}
