//! A path-compressed binary trie of prefixes (PATRICIA with prefixes in inner nodes), 28 bytes a node for IPv4 and 40
//! for IPv6, nodes by 32-bit id.
//!
//! Every node also carries the number of *uncovered* entries in its subtree; [`crate::Cover`] gives that its meaning.

use crate::bits::Bits;
use crate::slab::{NONE, Slab};

/// One prefix, or a branch without a meaning of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<B> {
    pub bits: B,
    pub up: u32,
    pub kids: [u32; 2],
    pub value: u32,
    pub uncovered: u32,
    pub len: u8,
    pub flags: u8,
}

impl<B: Bits> Default for Node<B> {
    fn default() -> Self {
        Node {
            bits: B::default(),
            up: NONE,
            kids: [NONE; 2],
            value: NONE,
            uncovered: 0,
            len: 0,
            flags: 0,
        }
    }
}

/// The root is always there: the prefix of length 0.
pub(crate) const ROOT: u32 = 0;

/// Steps up by which nodes are brought near: what is higher has some 2^8 prefixes below it, and was read for another one just now.
const CLIMB: usize = 8;

#[derive(Debug, Clone)]
pub(crate) struct Trie<B> {
    pub nodes: Slab<Node<B>>,
}

impl<B: Bits> Default for Trie<B> {
    fn default() -> Self {
        let mut nodes = Slab::default();
        nodes.insert(Node::default());
        Trie { nodes }
    }
}

impl<B: Bits> Trie<B> {
    /// The node of exactly this prefix.
    pub fn find(&self, bits: B, len: u8) -> Option<u32> {
        let mut cur = ROOT;
        loop {
            let n = &self.nodes[cur];
            if n.len == len {
                return (n.bits == bits).then_some(cur);
            }
            if n.len > len {
                return None;
            }
            let kid = n.kids[bits.bit(n.len)];
            if kid == NONE {
                return None;
            }
            let k = &self.nodes[kid];
            if k.len > len || k.bits.common(bits) < k.len {
                return None;
            }
            cur = kid;
        }
    }

    /// Walks to several prefixes at once, each a step in turn: the nodes that aren't in the cache come at the same time, where
    /// one walk after the other waits for each. `found` gets what lies there, or on the way.
    pub fn approach(&self, wanted: &[(B, u8)], found: &mut [u32]) {
        found.fill(ROOT);
        let mut moved = true;
        while moved {
            moved = false;
            for (at, (bits, len)) in found.iter_mut().zip(wanted) {
                let n = &self.nodes[*at];
                if n.len >= *len || n.bits.common(*bits) < n.len {
                    continue;
                }
                let kid = n.kids[bits.bit(n.len)];
                if kid != NONE {
                    *at = kid;
                    moved = true;
                }
            }
        }
    }

    /// Goes [`CLIMB`] steps up from each of several nodes, one step of all of them in turn, as [`Trie::approach`] goes down.
    /// `from` gets where each has come to.
    pub fn climb(&self, from: &mut [u32]) {
        for _ in 0..CLIMB {
            for at in &mut *from {
                let n = self.nodes.get(*at);
                if let Some(n) = n.filter(|n| n.up != NONE) {
                    *at = n.up;
                }
            }
        }
    }

    /// The first node behind a prefix in prefix order; that one need not be there.
    pub fn behind(&self, bits: B, len: u8) -> Option<u32> {
        let mut cur = ROOT;
        loop {
            let n = &self.nodes[cur];
            if n.len == len {
                return self.next_in(ROOT, cur, true);
            }
            let side = bits.bit(n.len);
            let kid = n.kids[side];
            if kid == NONE {
                let other = n.kids[1];
                return match side == 0 && other != NONE {
                    true => Some(other),
                    false => self.next_in(ROOT, cur, false),
                };
            }
            let k = &self.nodes[kid];
            let common = k.bits.common(bits).min(k.len).min(len);
            if common == k.len {
                cur = kid;
            } else if common == len || bits.bit(common) == 0 {
                return Some(kid);
            } else {
                return self.next_in(ROOT, kid, false);
            }
        }
    }

    /// The longest node that holds `bits` up to `max_len` and satisfies `wanted`.
    pub fn longest(&self, bits: B, max_len: u8, wanted: impl Fn(&Node<B>) -> bool) -> Option<u32> {
        let mut cur = ROOT;
        let mut best = None;
        loop {
            let n = &self.nodes[cur];
            if n.len > max_len || n.bits.common(bits) < n.len {
                return best;
            }
            if wanted(n) {
                best = Some(cur);
            }
            if n.len >= B::WIDTH {
                return best;
            }
            let kid = n.kids[bits.bit(n.len)];
            if kid == NONE {
                return best;
            }
            cur = kid;
        }
    }

    /// The node of this prefix, made if need be. `shields` says whether a node hides what is uncovered below it.
    pub fn ensure(&mut self, bits: B, len: u8, shields: impl Fn(&Node<B>) -> bool) -> u32 {
        let bits = bits.mask(len);
        let mut cur = ROOT;
        loop {
            let n = self.nodes[cur];
            if n.len == len {
                return cur;
            }
            let side = bits.bit(n.len);
            let kid = n.kids[side];
            if kid == NONE {
                let id = self.nodes.insert(Node {
                    bits,
                    len,
                    up: cur,
                    ..Node::default()
                });
                self.nodes[cur].kids[side] = id;
                return id;
            }
            let k = self.nodes[kid];
            let common = k.bits.common(bits).min(k.len).min(len);
            if common == k.len {
                cur = kid;
                continue;
            }
            let below = if shields(&k) { 0 } else { k.uncovered };
            let mut middle = Node {
                bits: bits.mask(common),
                len: common,
                up: cur,
                uncovered: below,
                ..Node::default()
            };
            middle.kids[k.bits.bit(common)] = kid;
            let mid = self.nodes.insert(middle);
            self.nodes[cur].kids[side] = mid;
            self.nodes[kid].up = mid;
            if common == len {
                return mid;
            }
            let id = self.nodes.insert(Node {
                bits,
                len,
                up: mid,
                ..Node::default()
            });
            self.nodes[mid].kids[bits.bit(common)] = id;
            return id;
        }
    }

    /// Removes the node, and branches above it, that mean nothing any more.
    pub fn prune(&mut self, mut id: u32) {
        while id != ROOT {
            let n = self.nodes[id];
            // A node that is gone already has no parent: ids in work lists may be stale.
            if n.flags != 0 || n.value != NONE || n.up == NONE {
                return;
            }
            let kid = match n.kids {
                [NONE, k] => k,
                [k, NONE] => k,
                _ => return,
            };
            let up = n.up;
            let side = n.bits.bit(self.nodes[up].len);
            self.nodes[up].kids[side] = kid;
            if kid != NONE {
                self.nodes[kid].up = up;
            }
            self.nodes.remove(id);
            id = up;
        }
    }

    /// Next node of the subtree of `top` after `cur`, in prefix order; with `down` false, `cur`'s own subtree is left
    /// out.
    pub fn next_in(&self, top: u32, cur: u32, down: bool) -> Option<u32> {
        let n = &self.nodes[cur];
        if down {
            for k in n.kids {
                if k != NONE {
                    return Some(k);
                }
            }
        }
        let mut at = cur;
        while at != top {
            let up = self.nodes[at].up;
            if up == NONE {
                return None;
            }
            let u = &self.nodes[up];
            if u.kids[0] == at && u.kids[1] != NONE {
                return Some(u.kids[1]);
            }
            at = up;
        }
        None
    }
}
