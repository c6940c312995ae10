//! Where a message puts its route among those of the same key.

use tandem_linux::netlink::{NewMode, Nexthops, RouteNexthop};

use super::aliases::Alias;
use super::fib::{Content, Contents, Op};

/// Gives new aliases (position `u16::MAX`) a place between their neighbours, without moving others
/// when there is room.
pub(super) fn number(list: &mut [Alias]) {
    let unset = |a: &Alias| a.position == u16::MAX;
    match list {
        [] => return,
        [only] if unset(only) => only.position = 0,
        [first, second, ..] if unset(first) && !unset(second) && second.position > 0 => {
            first.position = second.position - 1;
        }
        [.., before, last] if unset(last) && before.position < u16::MAX - 1 => {
            last.position = before.position + 1;
        }
        _ => {}
    }
    let rising = list.windows(2).all(|w| match w {
        [a, b] => a.position < b.position,
        _ => true,
    });
    if !rising || list.iter().any(unset) {
        for (i, a) in list.iter_mut().enumerate() {
            a.position = i as u16;
        }
    }
}

/// Where a message stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub v6: bool,
    /// A dump came before this message: in IPv6 it has found the route, in IPv4 one is gone that may have been the first.
    pub late: bool,
    /// Where the dump's route before this one stands, if it has the same key.
    pub after: Option<u16>,
}

/// A message that changes no order names one of those that are there. `false`: it is not there.
pub(super) fn told(list: &mut [Alias], contents: &Contents, alias: Alias) -> bool {
    if list.iter().any(|a| a.content == alias.content) {
        touch(list, alias);
        return true;
    }
    let Some(new) = contents.get(alias.content) else {
        return false;
    };
    let same = |a: &&mut Alias| {
        let have = contents.get(a.content);
        have.is_some_and(|c| c.same_but_kind(new))
    };
    let Some(place) = list.iter_mut().find(same) else {
        return false;
    };
    (place.content, place.state) = (alias.content, alias.state);
    true
}

/// IPv4: `fib_table_insert`.
pub(super) fn insert4(list: &mut Vec<Alias>, alias: Alias, op: Op, at: At) {
    let fresh = Alias {
        position: u16::MAX,
        ..alias
    };
    let found = list.iter().position(|a| a.content == alias.content);
    match op {
        // the key was not there before: whatever we have went in silence
        Op::New(NewMode::Plain | NewMode::Told) | Op::Del => {
            let position = list.first().map_or(0, |a| a.position);
            *list = vec![Alias { position, ..alias }];
        }
        Op::New(NewMode::Replace(_)) if found == Some(0) => touch(list, alias),
        // the kernel puts in the first one's place only what is not there, and tells of nothing else (net/ipv4/fib_trie.c
        // `fib_table_insert`): if it is there, a dump has found it before this message
        Op::New(NewMode::Replace(_)) => {
            list.retain(|a| a.content != alias.content);
            match list.first_mut() {
                // which one's place it took is not known: none goes until all are dumped
                Some(_) if at.late => list.insert(0, fresh),
                Some(first) => {
                    *first = Alias {
                        position: first.position,
                        ..alias
                    };
                }
                None => list.push(fresh),
            }
        }
        Op::New(NewMode::Append) => {
            if found.is_some_and(|i| i + 1 == list.len()) {
                touch(list, alias);
            } else {
                list.retain(|a| a.content != alias.content);
                list.push(fresh);
            }
        }
        Op::New(NewMode::Prepend) => {
            if found == Some(0) {
                touch(list, alias);
            } else {
                list.retain(|a| a.content != alias.content);
                list.insert(0, fresh);
            }
        }
        Op::Dumped { .. } => {
            let in_order = found
                .and_then(|i| list.get(i))
                .is_some_and(|a| Some(a.position) > at.after);
            if in_order {
                touch(list, alias);
            } else {
                list.retain(|a| a.content != alias.content);
                list.push(fresh);
            }
        }
    }
}

/// IPv6: `fib6_add_rt2node`. A message holds all next hops of its multipath route. `true`: the kernel has the route twice now.
pub(super) fn insert6(
    list: &mut Vec<Alias>,
    contents: &Contents,
    alias: Alias,
    op: Op,
    at: At,
) -> bool {
    let overtakes = |a: &Alias| Some(a.position) <= at.after;
    if at.late {
        list.retain(|a| a.content != alias.content);
    } else if at.after.is_some() {
        list.retain(|a| a.content != alias.content || !overtakes(a));
    }
    let replace = matches!(op, Op::New(NewMode::Replace(_)));
    let there = list.iter().any(|a| a.content == alias.content);
    if there && !replace {
        touch(list, alias);
        return false;
    }
    let new = contents.get(alias.content);
    let joins = new.is_some_and(Content::joins);
    let src = new.and_then(|c| c.src);
    // in whose place a route comes that no message told of, only the kernel knows
    let same_source = |c: &Content| c.src == src && !c.is_hidden();
    let before = match joins {
        true => absorb(list, contents, new),
        false => None,
    };
    let target = list.iter().position(|a| {
        contents
            .get(a.content)
            .is_some_and(|c| same_source(c) && c.joins() == joins)
    });
    let place = match target {
        Some(i) if joins && list.get(i).is_some_and(overtakes) => {
            list.remove(i);
            None
        }
        Some(i) if joins || replace => Some(i),
        None if replace => list
            .iter()
            .position(|a| contents.get(a.content).is_some_and(same_source)),
        _ => None,
    };
    let Some(place) = place else {
        let position = before.unwrap_or(u16::MAX);
        let behind = list.iter().position(|a| a.position > position);
        list.insert(behind.unwrap_or(list.len()), Alias { position, ..alias });
        return false;
    };
    // in another's place though it is there already
    let twin = there && list.get(place).is_some_and(|a| a.content != alias.content);
    if let Some(a) = list.get_mut(place) {
        *a = Alias {
            position: a.position,
            ..alias
        };
    }
    if twin {
        let first = list.iter().position(|a| a.content == alias.content);
        let mut i = 0;
        list.retain(|a| {
            i += 1;
            a.content != alias.content || first == Some(i - 1)
        });
    }
    twin
}

/// Takes out routes that somebody else than the kernel made with `proto ra`: only when another joins them it shows that
/// they do. The place of the first of them.
fn absorb(list: &mut Vec<Alias>, contents: &Contents, new: Option<&Content>) -> Option<u16> {
    let new = new.filter(|c| matches!(c.nexthops, Nexthops::Many(_)))?;
    let mut place = None;
    list.retain(|a| {
        let is_next_hop = contents.get(a.content).is_some_and(|c| {
            c.src == new.src
                && c.may_join()
                && !c.joins()
                && (c.hops().iter()).all(|h| new.hops().iter().any(|n| same_next_hop(n, h)))
        });
        if is_next_hop {
            place = place.or(Some(a.position));
        }
        !is_next_hop
    });
    place
}

fn same_next_hop(a: &RouteNexthop, b: &RouteNexthop) -> bool {
    a.ifindex == b.ifindex && a.gateway == b.gateway
}

fn touch(list: &mut [Alias], alias: Alias) {
    for a in list.iter_mut().filter(|a| a.content == alias.content) {
        a.state = alias.state;
    }
}

/// Takes the alias of this content out, or of an IPv6 multipath route the next hops that went.
pub(super) fn delete(
    list: &mut Vec<Alias>,
    contents: &mut Contents,
    gone: &Content,
    v6: bool,
) -> bool {
    if let Some(i) = list
        .iter()
        .position(|a| contents.get(a.content) == Some(gone))
    {
        list.remove(i);
        return true;
    }
    let but_kind = |a: &Alias| {
        let have = contents.get(a.content);
        have.is_some_and(|c| c.same_but_kind(gone))
    };
    if let Some(i) = list.iter().position(but_kind) {
        list.remove(i);
        return true;
    }
    if !v6 || !gone.may_join() {
        return false;
    }
    for a in list.iter_mut() {
        let Some(have) = contents.get(a.content) else {
            continue;
        };
        let holds = |g: &RouteNexthop| have.hops().iter().any(|h| same_next_hop(h, g));
        if !have.joins() || have.src != gone.src || !gone.hops().iter().all(holds) {
            continue;
        }
        let left: Vec<RouteNexthop> = have
            .hops()
            .iter()
            .filter(|h| !gone.hops().iter().any(|g| same_next_hop(h, g)))
            .copied()
            .collect();
        let mut rest = have.clone();
        rest.nexthops = match left.as_slice() {
            [] => break,
            // alone, a next hop's weight means nothing, and the kernel tells it as an ordinary route
            [one] => Nexthops::One(RouteNexthop { weight: 1, ..*one }),
            _ => Nexthops::Many(left.into()),
        };
        a.content = contents.intern(rest);
        return true;
    }
    false
}
