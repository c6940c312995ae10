//! IPv6 routes that no dump shows: they stand between two next hops of a multipath route of their key.
//!
//! ```text
//!   the kernel             next hop 1, H, next hop 2, Y
//!   its dump               next hop 1 + next hop 2, Y     net/ipv6/ip6_fib.c `fib6_dump_node` goes on behind the last next hop
//!   /proc/net/ipv6_route   four lines                     one more than the dump tells: there is something hidden
//! ```
//!
//! The file has neither table, nor type, nor next-hop object. So what it tells of, and no message did, is a route of no type
//! ([`Content::hidden`]) behind the multipath route: the chip leaves the prefix to the kernel. What becomes of it only a dump of
//! everything says.

use std::collections::{HashMap, HashSet};
use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv6Net};
use tandem_linux::netlink::Nexthops;

use super::super::aliases::{Alias, Key, Key6, MARK};
use super::{Content, Emit, FibCopy, HopFlags, settle};

/// All IPv6 routes of the thread's namespace, a line each, next hops of multipath routes as well.
pub const FILE: &str = "/proc/thread-self/net/ipv6_route";

/// More lines than this: the file is not read. For each page of it the kernel walks all routes from the first one (net/ipv6/ip6_fib.c
/// `ipv6_route_seq_start`): 20 ms for so many, 12 s for 100,000.
const MOST: usize = 4096;

/// How often it is read until it says the same twice of the prefixes in question: routes that come meanwhile make it repeat lines,
/// or leave some out.
const ATTEMPTS: usize = 8;

/// What the file tells routes apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    dst: IpNet,
    src: Option<IpNet>,
    metric: u32,
}

/// Destinations and metrics with a route between whose next hops others may stand.
pub(crate) type Hiding = HashSet<(IpNet, u32)>;

/// How many lines each place has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    count: HashMap<Place, usize>,
    /// The file has said the same twice.
    steady: bool,
}

impl Lines {
    /// What the file says of these; none: there is no such file.
    pub(crate) fn read(file: &dyn Fn(&str) -> Option<String>, of: &Hiding) -> Option<Self> {
        let mut last = Self::of(&file(FILE)?, of);
        for _ in 0..ATTEMPTS {
            let now = Self::of(&file(FILE)?, of);
            if now == last {
                return Some(Lines {
                    steady: true,
                    ..now
                });
            }
            last = now;
        }
        Some(last)
    }

    fn of(text: &str, of: &Hiding) -> Self {
        let mut count = HashMap::new();
        let places = text.lines().filter_map(place_of);
        for place in places.filter(|p| of.contains(&(p.dst, p.metric))) {
            *count.entry(place).or_default() += 1;
        }
        Lines {
            count,
            steady: false,
        }
    }

    fn count(&self, place: &Place) -> usize {
        self.count.get(place).copied().unwrap_or(0)
    }
}

/// A line's place: destination, its length, source, its length, gateway, metric … in hexadecimal digits.
fn place_of(line: &str) -> Option<Place> {
    let mut words = line.split_ascii_whitespace();
    let mut net = || {
        let addr = u128::from_str_radix(words.next()?, 16).ok()?;
        let len = u8::from_str_radix(words.next()?, 16).ok()?;
        Some(IpNet::V6(
            Ipv6Net::new(Ipv6Addr::from(addr), len).ok()?.trunc(),
        ))
    };
    let (dst, src) = (net()?, net()?);
    let metric = u32::from_str_radix(words.nth(1)?, 16).ok()?;
    Some(Place {
        dst,
        src: (src.prefix_len() > 0).then_some(src),
        metric,
    })
}

impl Content {
    /// A route between whose next hops others may stand.
    fn hides(&self) -> bool {
        self.may_join() && matches!(self.nexthops, Nexthops::Many(_))
    }

    /// What is known of a hidden route that no message told of: for which sources it is. The kernel has no route of type 0.
    fn hidden(src: Option<IpNet>) -> Self {
        Content {
            kind: 0,
            scope: 0,
            protocol: 0,
            nh_id: 0,
            nexthops: Nexthops::None,
            src,
            prefsrc: None,
            mtu: 0,
            other: 0,
        }
    }

    /// It is one that no message told of ([`Content::hidden`]).
    pub(in super::super) fn is_hidden(&self) -> bool {
        self.kind == 0
    }

    /// Lines that it has in the file.
    fn lines(&self) -> usize {
        match self.is_hidden() {
            true => 0,
            false => self.hops().len().max(1),
        }
    }
}

impl FibCopy {
    /// Where there may be routes that no dump shows; none: nowhere, or there are too many others for [`FILE`] to be read.
    pub(in super::super) fn hiding(&self) -> Option<Hiding> {
        if self.v6.aliases.len() > MOST || !self.contents.iter().any(Content::hides) {
            return None;
        }
        let (mut lines, mut hiding) = (0, Hiding::new());
        self.v6.aliases.visit(|key, a| {
            let Some(c) = self.contents.get(a.content) else {
                return;
            };
            lines += c.lines();
            let place = place(key, c.src).filter(|_| c.hides());
            hiding.extend(place.map(|p| (p.dst, p.metric)));
        });
        (lines <= MOST && !hiding.is_empty()).then_some(hiding)
    }

    /// After a dump of everything: each key with more lines than the dump told of has a route that nobody knows. Where the file
    /// does not stand still, another dump of everything follows.
    pub(in super::super) fn find_hidden(
        &mut self,
        lines: &Lines,
        next_hops: &HopFlags<'_>,
        emit: &mut Emit<'_>,
    ) {
        self.lost |= !lines.steady;
        let mut hiding: Vec<(Key6, Place)> = Vec::new();
        self.v6.aliases.visit(|key, a| {
            let content = self.contents.get(a.content);
            if let Some(c) = content.filter(|c| c.hides()) {
                hiding.extend(place(key, c.src).map(|place| (*key, place)));
            }
        });
        let have = self.counted(hiding.iter().map(|(_, place)| place));
        for (key, place) in hiding {
            if lines.count(&place) > have.get(&place).copied().unwrap_or(0) {
                self.hide(key, &place, next_hops, emit);
            }
        }
    }

    /// How many lines these places should have, by what is known: each of two routes that nothing tells apart has its own.
    fn counted<'a>(&self, places: impl Iterator<Item = &'a Place>) -> HashMap<Place, usize> {
        let mut have: HashMap<Place, usize> = places.map(|p| (p.clone(), 0)).collect();
        self.v6.aliases.visit(|key, a| {
            let content = self.contents.get(a.content);
            if let Some((place, c)) = content.and_then(|c| Some((place(key, c.src)?, c)))
                && let Some(n) = have.get_mut(&place)
            {
                *n += c.lines();
            }
        });
        for (key, sources) in &self.v6.twins {
            for src in sources {
                if let Some(n) = place(key, *src).and_then(|place| have.get_mut(&place)) {
                    // what joins none has one line
                    *n += 1;
                }
            }
        }
        have
    }

    /// A route that nobody knows stands behind the key's multipath route.
    fn hide(&mut self, key: Key6, at: &Place, next_hops: &HopFlags<'_>, emit: &mut Emit<'_>) {
        let old = self.v6.aliases.list(&key);
        let hides = |a: &Alias| {
            let content = self.contents.get(a.content);
            content.is_some_and(|c| c.hides() && c.src == at.src)
        };
        let (Some(i), Some(bare)) = (old.iter().position(hides), key.route()) else {
            return;
        };
        let content = Content::hidden(at.src);
        let route = tandem_linux::netlink::Route {
            src: at.src,
            ..bare
        };
        let id = self.contents.intern(content);
        let mut list = old.clone();
        list.insert(
            i + 1,
            Alias {
                content: id,
                position: u16::MAX,
                state: MARK,
            },
        );
        let (map, contents) = (&mut self.v6.aliases, &mut self.contents);
        settle(
            map,
            contents,
            key,
            &route,
            &old,
            list,
            Some(id),
            true,
            next_hops,
            emit,
        );
        self.hidden.insert(key);
    }

    /// A look at a part of the IPv6 routes ends: what stands behind a multipath route that it found may be hidden, and is taken
    /// as found. Where [`FILE`] has fewer lines than that makes, only a dump of everything says what is there. Gives whether
    /// the file should be asked ([`FibCopy::check_spared`]).
    pub(in super::super) fn spare_hidden(&mut self) -> bool {
        let (contents, spared) = (&self.contents, &mut self.spared);
        self.v6.aliases.each_list(|key, list| {
            let mut behind = false;
            for a in list {
                let Some(c) = contents.get(a.content) else {
                    continue;
                };
                if a.state & MARK != 0 {
                    behind |= c.hides();
                } else if behind {
                    a.state |= MARK;
                    spared.extend((!c.is_hidden()).then_some(*key));
                }
            }
        });
        !self.spared.is_empty()
    }

    /// The routes that a look spared, beside what [`FILE`] says (none: it was not read).
    pub(in super::super) fn check_spared(&mut self, lines: Option<&Lines>) {
        let keys: HashSet<Key6> = self.spared.drain(..).collect();
        let Some(lines) = lines.filter(|l| l.steady) else {
            return;
        };
        let mut places = Vec::new();
        for key in &keys {
            for a in self.v6.aliases.list(key) {
                let content = self.contents.get(a.content);
                places.extend(content.and_then(|c| place(key, c.src)));
            }
        }
        let have = self.counted(places.iter());
        self.lost |= have.iter().any(|(place, n)| lines.count(place) < *n);
    }

    /// IPv6 routes that another stands for here, as nothing tells the two apart: table, destination, metric of each.
    pub(in super::super) fn twins6(&self) -> Vec<(u32, IpNet, u32)> {
        let all = self.v6.twins.iter();
        let all = all.filter_map(|(key, sources)| Some((key.route()?, sources.len())));
        all.flat_map(|(r, n)| std::iter::repeat_n((r.table, r.dst, r.metric), n))
            .collect()
    }

    /// A message about a route: what is hidden there may be another now, or show.
    pub(super) fn doubt_hidden(&mut self, key: &Key6) {
        self.lost |= !self.hidden.is_empty() && self.hidden.contains(key);
    }

    /// Routes went in silence: hidden ones may be among them.
    pub(in super::super) fn doubt_all_hidden(&mut self) {
        self.lost |= !self.hidden.is_empty();
    }
}

fn place(key: &Key6, src: Option<IpNet>) -> Option<Place> {
    let route = key.route()?;
    Some(Place {
        dst: route.dst,
        src,
        metric: route.metric,
    })
}
