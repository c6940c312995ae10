//! The kernel's own type information (BTF; Documentation/bpf/btf.rst): numbers of functions that a BPF program may call,
//! and where a structure keeps a member.
//!
//! ```text
//!   /sys/kernel/btf/vmlinux:  header │ types, numbered from 1: name, kind, size, members … │ names
//! ```
//!
//! Only looked up in; every offset is checked, a file that makes no sense finds nothing.

use std::io;

use crate::netlink::wire::{u8_at, u16_at, u32_at};

/// Where the running kernel shows it.
pub const KERNEL: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const FUNC: u32 = 12;
/// Structures without a name inside one another that are looked into.
const DEPTH: usize = 8;

/// Type information in memory.
pub struct Btf {
    bytes: Vec<u8>,
    /// Where each type begins, by number; type 0 is void.
    types: Vec<usize>,
    names: usize,
}

/// Where a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Bits from the start of the structure.
    pub bit: u32,
    /// Width of a bit field; 0: an ordinary member.
    pub bits: u32,
}

impl Member {
    /// Bytes from the start of the structure; for a bit field, of the byte that it begins in.
    pub fn byte(&self) -> u32 {
        self.bit / 8
    }
}

impl Btf {
    /// Reads that of the running kernel.
    pub fn kernel() -> io::Result<Self> {
        let bytes = std::fs::read(KERNEL).map_err(|e| {
            io::Error::new(
                e.kind(),
                format!("{KERNEL}: {e} (a kernel without CONFIG_DEBUG_INFO_BTF?)"),
            )
        })?;
        Self::parse(bytes).ok_or_else(|| io::Error::other(format!("{KERNEL} can't be read")))
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        if bytes.len() < 24 || u16_at(&bytes, 0) != MAGIC {
            return None;
        }
        let header = u32_at(&bytes, 4) as usize;
        let begin = header.checked_add(u32_at(&bytes, 8) as usize)?;
        let end = begin.checked_add(u32_at(&bytes, 12) as usize)?;
        let names = header.checked_add(u32_at(&bytes, 16) as usize)?;
        if end > bytes.len() || names > bytes.len() {
            return None;
        }
        let (mut types, mut at) = (vec![0], begin);
        while at + 12 <= end {
            types.push(at);
            let info = u32_at(&bytes, at + 4);
            let n = (info & 0xffff) as usize;
            at += 12
                + match info >> 24 & 0x1f {
                    1 | 14 | 17 => 4,
                    3 => 12,
                    STRUCT | UNION | 15 | 19 => 12 * n,
                    6 | 13 => 8 * n,
                    _ => 0,
                };
        }
        Some(Btf {
            bytes,
            types,
            names,
        })
    }

    fn is_named(&self, name_at: u32, name: &str) -> bool {
        self.names
            .checked_add(name_at as usize)
            .and_then(|at| self.bytes.get(at..at.checked_add(name.len())?))
            .is_some_and(|b| b == name.as_bytes())
            && u8_at(&self.bytes, self.names + name_at as usize + name.len()) == 0
    }

    fn find(&self, kind: u32, name: &str) -> io::Result<u32> {
        (1u32..)
            .zip(self.types.iter().skip(1))
            .find(|(_, at)| {
                u32_at(&self.bytes, *at + 4) >> 24 & 0x1f == kind
                    && self.is_named(u32_at(&self.bytes, **at), name)
            })
            .map(|(number, _)| number)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("this kernel has no {name} (by its BTF)"),
                )
            })
    }

    /// Number of a function of the kernel.
    pub fn function(&self, name: &str) -> io::Result<u32> {
        self.find(FUNC, name)
    }

    /// Number of a structure and its bytes.
    pub fn structure(&self, name: &str) -> io::Result<(u32, u32)> {
        let number = self.find(STRUCT, name)?;
        let at = self.types.get(number as usize).copied().unwrap_or(0);
        Ok((number, u32_at(&self.bytes, at + 8)))
    }

    /// Where structure `number` keeps `name`; members without a name are looked into.
    pub fn member(&self, number: u32, name: &str) -> io::Result<Member> {
        self.member_in(number, name, DEPTH).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("this kernel's structure has no member {name} (by its BTF)"),
            )
        })
    }

    fn member_in(&self, number: u32, name: &str, depth: usize) -> Option<Member> {
        let at = *self.types.get(number as usize)?;
        let info = u32_at(&self.bytes, at + 4);
        if at == 0 || !matches!(info >> 24 & 0x1f, STRUCT | UNION) {
            return None;
        }
        for n in 0..(info & 0xffff) as usize {
            let at = at + 12 + 12 * n;
            let offset = u32_at(&self.bytes, at + 8);
            let here = if info >> 31 != 0 {
                Member {
                    bit: offset & 0xff_ffff,
                    bits: offset >> 24,
                }
            } else {
                Member {
                    bit: offset,
                    bits: 0,
                }
            };
            if self.is_named(u32_at(&self.bytes, at), name) {
                return Some(here);
            }
            if depth > 0
                && self.is_named(u32_at(&self.bytes, at), "")
                && let Some(inner) = self.member_in(u32_at(&self.bytes, at + 4), name, depth - 1)
            {
                return Some(Member {
                    bit: here.bit.wrapping_add(inner.bit),
                    bits: inner.bits,
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn le(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    /// struct s { int a; struct { unsigned b:3, c:2; }; }; void f(void)
    fn sample() -> Vec<u8> {
        let names = b"\0s\0a\0b\0c\0f\0int\0";
        let kflag = 1 << 31;
        let types = le(&[
            [11, 1 << 24, 4].as_slice(),
            &[32],
            &[0, STRUCT << 24 | 2 | kflag, 4],
            &[5, 1, 3 << 24, 7, 1, 2 << 24 | 3],
            &[1, STRUCT << 24 | 2 | kflag, 8],
            &[3, 1, 0, 0, 2, 32],
            &[0, 13 << 24, 0],
            &[9, FUNC << 24, 4],
        ]
        .concat());
        let mut b = le(&[
            u32::from(MAGIC) | 1 << 16,
            24,
            0,
            types.len() as u32,
            types.len() as u32,
            names.len() as u32,
        ]);
        b.extend(types);
        b.extend(names);
        b
    }

    #[test]
    fn members_are_found_inside_nameless_ones() {
        let btf = Btf::parse(sample()).unwrap();
        assert_eq!(btf.structure("s").unwrap(), (3, 8));
        assert_eq!(btf.function("f").unwrap(), 5);
        assert_eq!(btf.member(3, "c").unwrap(), Member { bit: 35, bits: 2 });
        assert_eq!(btf.member(3, "c").unwrap().byte(), 4);
        assert_eq!(btf.member(3, "a").unwrap(), Member { bit: 0, bits: 0 });
        let e = btf.member(3, "d").unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::NotFound);
        assert!(btf.function("s").unwrap_err().to_string().contains("no s "));
    }

    #[test]
    fn nonsense_finds_nothing() {
        let good = sample();
        for n in 0..good.len() {
            if let Some(btf) = Btf::parse(good[..n].to_vec()) {
                let _ = (btf.structure("s"), btf.function("f"), btf.member(3, "c"));
            }
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0xff;
            if let Some(btf) = Btf::parse(bad) {
                let _ = (btf.structure("s"), btf.member(3, "c"));
            }
        }
    }

    #[test]
    fn this_kernel_is_understood() {
        let Ok(btf) = Btf::kernel() else {
            eprintln!("skipped: this kernel shows no type information");
            return;
        };
        let (skb, size) = btf.structure("sk_buff").unwrap();
        assert!((100..1000).contains(&size));
        assert_eq!(btf.member(skb, "ip_summed").unwrap().bits, 2);
        assert!(btf.member(skb, "csum_start").unwrap().byte() < size);
        assert_eq!(btf.member(skb, "next").unwrap().bit, 0);
    }
}
