//! Trap policing, all of it: what of a reason passes, and what of its class.
//!
//! ```text
//!   trap ─► reason's own policer ─► class's policer, of which each reason has a share ─► Sink::cpu
//!           │ TND_CLS_TRAP          │ the profile's
//!           ▼ dropped               ▼ trapped, but lost on its way: TND_EV_TRAP_DROP says how many
//! ```

use tandem_abi::raw;
use tandem_tables::bucket::Bucket;

use crate::shares::Shares;
use crate::trap::{REASONS, TRAP_CLASSES, TrapConfig};

/// What becomes of a packet for the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policed {
    /// It may go.
    Pass,
    /// Its reason has had its most: a drop.
    Reason,
    /// Its class has no more: it counts as trapped, and gets lost.
    Class,
}

/// One reason: its configuration and its token bucket.
#[derive(Debug, Clone, Copy)]
struct Reason {
    config: TrapConfig,
    bucket: Bucket,
    /// Packets that the class had no room for.
    lost: u64,
}

impl Reason {
    fn new(config: TrapConfig) -> Reason {
        Reason {
            config,
            bucket: Bucket::new(config.rate_pps.into(), config.burst.into()),
            lost: 0,
        }
    }

    /// Takes `packets` tokens if the bucket has them (a super-frame counts as its segments, but never as more than a
    /// full bucket).
    #[inline]
    fn admit(&mut self, packets: u64, now_ns: u64) -> bool {
        let passes = self.bucket.admits(packets, now_ns);
        if passes {
            self.bucket.charge(packets, now_ns);
        }
        passes
    }
}

/// One class: its policer and what that has dropped.
#[derive(Debug, Clone)]
struct Class {
    shares: Shares,
    dropped: u64,
    /// Of these, what no event has told of yet.
    unreported: u64,
}

/// All reasons and classes.
#[derive(Debug, Clone)]
pub struct Police {
    reasons: [Reason; REASONS],
    classes: [Class; TRAP_CLASSES],
    ports: u16,
}

impl Police {
    /// Every reason in its own class, nobody limited, on a chip with so many ports.
    pub fn new(ports: u16) -> Police {
        Police {
            reasons: std::array::from_fn(|r| Reason::new(TrapConfig::default_for(r as u16))),
            classes: std::array::from_fn(|class| Class {
                shares: Shares::new(class as u16, 0, 0, ports),
                dropped: 0,
                unreported: 0,
            }),
            ports,
        }
    }

    /// Cold reset: reasons are as they were at first. Classes and counts stay.
    pub(crate) fn clear(&mut self) {
        for (r, reason) in self.reasons.iter_mut().enumerate() {
            let lost = reason.lost;
            *reason = Reason::new(TrapConfig::default_for(r as u16));
            reason.lost = lost;
        }
    }

    /// The last policer of a class (`TND_TC_*`): packets per second, 0 = lets everything pass, and packets at once.
    pub fn set_class(&mut self, class: u16, rate_pps: u32, burst: u32) {
        if let Some(c) = self.classes.get_mut(usize::from(class)) {
            c.shares = Shares::new(class, rate_pps, burst, self.ports);
        }
    }

    /// A class's rate and burst.
    pub fn class(&self, class: u16) -> (u32, u32) {
        let c = self.classes.get(usize::from(class));
        c.map_or((0, 0), |c| c.shares.config())
    }

    /// Packets per second that a reason has of a class's policer whatever the others do; 0: nothing is set apart for it.
    pub fn share(&self, class: u16, reason: u16) -> u32 {
        let c = self.classes.get(usize::from(class));
        c.map_or(0, |c| c.shares.share(reason))
    }

    /// Packets that a class's policer has dropped.
    pub fn class_dropped(&self, class: u16) -> u64 {
        let c = self.classes.get(usize::from(class));
        c.map_or(0, |c| c.dropped)
    }

    /// Packets of a reason that its class's policer has dropped.
    pub fn lost(&self, reason: u16) -> u64 {
        let r = self.reasons.get(usize::from(reason));
        r.map_or(0, |r| r.lost)
    }

    /// Packets that classes' policers dropped since the last call, for classes where there are any.
    pub fn take_unreported(&mut self) -> impl Iterator<Item = (u16, u64)> + use<> {
        let all = std::array::from_fn::<_, TRAP_CLASSES, _>(|class| {
            let c = self.classes.get_mut(class);
            c.map_or(0, |c| std::mem::take(&mut c.unreported))
        });
        let all = all.into_iter().enumerate().filter(|(_, n)| *n > 0);
        all.map(|(class, n)| (class as u16, n))
    }

    /// Gives a count back that could not be reported.
    pub fn put_unreported(&mut self, class: u16, n: u64) {
        if let Some(c) = self.classes.get_mut(usize::from(class)) {
            c.unreported += n;
        }
    }

    pub(crate) fn config(&self, reason: u16) -> Option<TrapConfig> {
        self.reasons.get(usize::from(reason)).map(|r| r.config)
    }

    /// Configures a reason; its bucket is full. False: no such reason.
    pub(crate) fn configure(&mut self, reason: u16, config: TrapConfig) -> bool {
        let r = self.reasons.get_mut(usize::from(reason));
        r.is_some_and(|r| {
            let lost = r.lost;
            *r = Reason::new(config);
            r.lost = lost;
            true
        })
    }

    /// May `packets` that came in by `port` go to the CPU for this reason, in this class?
    pub(crate) fn admit(
        &mut self,
        reason: u16,
        class: u16,
        port: u16,
        packets: u64,
        now_ns: u64,
    ) -> Policed {
        let Some(own) = self.reasons.get_mut(usize::from(reason)) else {
            return Policed::Reason;
        };
        if !own.admit(packets, now_ns) {
            return Policed::Reason;
        }
        let Some(c) = self.classes.get_mut(usize::from(class)) else {
            return Policed::Reason;
        };
        if c.shares.take(reason, port, packets, now_ns) {
            return Policed::Pass;
        }
        own.lost += packets;
        c.dropped += packets;
        // What only asks the kernel for a redirect has been forwarded: no packet is lost.
        if reason != raw::TND_TRAP_REDIRECT {
            c.unreported += packets;
        }
        Policed::Class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(config: TrapConfig) -> Reason {
        Reason::new(config)
    }

    #[test]
    fn bucket_lets_burst_then_rate_pass() {
        let mut t = reason(TrapConfig {
            class: 3,
            rate_pps: 1000,
            burst: 10,
        });
        let mut now = 0;
        assert_eq!((0..100).filter(|_| t.admit(1, now)).count(), 10);
        now += 999_999;
        assert!(!t.admit(1, now));
        now += 1;
        assert!(t.admit(1, now) && !t.admit(1, now));
        // ten seconds at 5,000 packets/s: 1,000/s pass
        let mut passed = 0;
        for _ in 0..50_000 {
            now += 200_000;
            passed += u32::from(t.admit(1, now));
        }
        assert!((9_990..=10_010).contains(&passed), "{passed}");
        // after a long pause only the burst is saved up
        now += 1_000_000_000_000;
        assert!(t.admit(1000, now));
        assert!(!t.admit(1, now));
    }

    #[test]
    fn no_rate_is_no_limit() {
        let mut t = reason(TrapConfig::default_for(raw::TND_TRAP_ARP));
        assert!((0..1000).all(|_| t.admit(1, 0)));
    }

    /// Of a class of one packet a second that goes at once, `reason` sends eight.
    fn eight(reason: u16) -> Police {
        let class = TrapConfig::default_for(reason).class;
        let mut police = Police::new(1);
        police.set_class(class, 1, 1);
        let policed = (0..8).map(|_| police.admit(reason, class, 1, 1, 1));
        let lost = policed.filter(|v| *v == Policed::Class).count() as u64;
        assert!((5..8).contains(&lost), "{lost}");
        assert_eq!(
            (police.class_dropped(class), police.lost(reason)),
            (lost, lost)
        );
        police
    }

    #[test]
    fn policed_packets_are_reported_once() {
        let mut police = eight(raw::TND_TRAP_LPM_MISS);
        let policed = police.class_dropped(raw::TND_TC_DATA);
        let told: Vec<_> = police.take_unreported().collect();
        assert_eq!(told, [(raw::TND_TC_DATA, policed)]);
        assert_eq!(police.take_unreported().count(), 0);
        police.put_unreported(raw::TND_TC_DATA, 3);
        let told: Vec<_> = police.take_unreported().collect();
        assert_eq!(told, [(raw::TND_TC_DATA, 3)]);
    }

    /// The packet itself was forwarded, and the kernel limits its redirects as well.
    #[test]
    fn policed_copies_for_redirects_are_counted_and_not_reported_as_lost() {
        let mut police = eight(raw::TND_TRAP_REDIRECT);
        assert_eq!(police.take_unreported().count(), 0);
    }

    #[test]
    fn a_super_frame_is_charged_with_all_its_packets() {
        // 13 reasons, 8 ports: a share is less than a packet a second, and the class has 100
        let (reason, class) = (raw::TND_TRAP_TTL, raw::TND_TC_DATA);
        let mut police = Police::new(8);
        police.set_class(class, 100, 100);
        let mut passed = 0;
        for ms in 0..10_000 {
            if police.admit(reason, class, 1, 45, ms * 1_000_000) == Policed::Pass {
                passed += 45;
            }
        }
        assert!((1000..=1000 + 300 + 45).contains(&passed), "{passed}");
    }
}
