//! Completions in words.

use std::fmt;

use crate::raw;

/// `enum tnd_status`, and what a later version may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Done.
    Ok,
    /// The pool has no free slots.
    TableFull,
    /// The pool has free slots, but not for this key.
    BucketFull,
    /// Another object has this key.
    Exists,
    /// No object has this key.
    NoEnt,
    /// Another object refers to it.
    InUse,
    /// It refers to an object that is not there.
    Depend,
    /// Body, key or flags make no sense.
    Invalid,
    /// Operation or class not known to this device.
    Unsupported,
    /// No such lease, or it is used up.
    Lease,
    /// The hardware failed the write.
    Fault,
    /// Wrong epoch.
    Stale,
    /// Output area too small for one record.
    NoOutput,
    /// Another driver holds the chip.
    Busy,
    /// A number of a later version.
    Unknown(u16),
}

impl Status {
    /// From the wire.
    pub fn from_raw(n: u16) -> Self {
        match n {
            raw::TND_ST_OK => Status::Ok,
            raw::TND_ST_TABLE_FULL => Status::TableFull,
            raw::TND_ST_BUCKET_FULL => Status::BucketFull,
            raw::TND_ST_EXISTS => Status::Exists,
            raw::TND_ST_NOENT => Status::NoEnt,
            raw::TND_ST_IN_USE => Status::InUse,
            raw::TND_ST_DEPEND => Status::Depend,
            raw::TND_ST_INVALID => Status::Invalid,
            raw::TND_ST_UNSUPPORTED => Status::Unsupported,
            raw::TND_ST_LEASE => Status::Lease,
            raw::TND_ST_FAULT => Status::Fault,
            raw::TND_ST_STALE => Status::Stale,
            raw::TND_ST_NO_OUTPUT => Status::NoOutput,
            raw::TND_ST_BUSY => Status::Busy,
            n => Status::Unknown(n),
        }
    }

    /// To the wire.
    pub fn to_raw(self) -> u16 {
        match self {
            Status::Ok => raw::TND_ST_OK,
            Status::TableFull => raw::TND_ST_TABLE_FULL,
            Status::BucketFull => raw::TND_ST_BUCKET_FULL,
            Status::Exists => raw::TND_ST_EXISTS,
            Status::NoEnt => raw::TND_ST_NOENT,
            Status::InUse => raw::TND_ST_IN_USE,
            Status::Depend => raw::TND_ST_DEPEND,
            Status::Invalid => raw::TND_ST_INVALID,
            Status::Unsupported => raw::TND_ST_UNSUPPORTED,
            Status::Lease => raw::TND_ST_LEASE,
            Status::Fault => raw::TND_ST_FAULT,
            Status::Stale => raw::TND_ST_STALE,
            Status::NoOutput => raw::TND_ST_NO_OUTPUT,
            Status::Busy => raw::TND_ST_BUSY,
            Status::Unknown(n) => n,
        }
    }

    /// Success.
    pub fn is_ok(self) -> bool {
        self == Status::Ok
    }

    /// There was no space: the object may fit later, when something is freed.
    pub fn is_full(self) -> bool {
        matches!(self, Status::TableFull | Status::BucketFull)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Ok => "done",
            Status::TableFull => "table full",
            Status::BucketFull => "bucket full",
            Status::Exists => "another object has this key",
            Status::NoEnt => "no such object",
            Status::InUse => "still in use by another object",
            Status::Depend => "refers to an object that is not there",
            Status::Invalid => "invalid object",
            Status::Unsupported => "not supported by this chip",
            Status::Lease => "no such lease, or it is used up",
            Status::Fault => "the hardware failed the write",
            Status::Stale => "of an earlier attach",
            Status::NoOutput => "output area too small for one record",
            Status::Busy => "another driver holds the chip",
            Status::Unknown(n) => return write!(f, "status {n} of a later ABI version"),
        })
    }
}

/// A pool's name as people write it: `ipv4-lpm` is `IPv4 LPM`, `exact-match` is `exact match`.
pub fn pool_title(name: &str) -> String {
    let words: Vec<String> = name
        .split('-')
        .map(|w| match w {
            "ipv4" => "IPv4".into(),
            "ipv6" => "IPv6".into(),
            "lpm" | "rif" | "vrf" | "ecmp" | "lag" | "tcam" | "acl" | "mac" | "fdb" | "fid"
            | "vlan" | "nhg" | "mdb" => w.to_uppercase(),
            w => w.into(),
        })
        .collect();
    words.join(" ")
}

/// One line on a completion: `IPv4 LPM full (needs 1, free 0 of 65536)`. `pool` is the name of
/// pool `cpl.table`, as SNAPSHOT gives it; an empty name is replaced by the pool's number.
pub fn describe(cpl: &raw::tnd_cpl, pool: &str) -> String {
    let status = Status::from_raw(cpl.status);
    if !status.is_full() {
        return status.to_string();
    }
    let title = if pool.is_empty() {
        format!("pool {}", cpl.table)
    } else {
        pool_title(pool)
    };
    let numbers = format!("needs {}, free {} of {}", cpl.needed, cpl.free, cpl.size);
    match status {
        Status::BucketFull => format!("{title} bucket full for this key ({numbers})"),
        _ => format!("{title} full ({numbers})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_says_what_was_needed_and_what_is_there() {
        let mut cpl = raw::tnd_cpl {
            status: raw::TND_ST_TABLE_FULL,
            table: 3,
            needed: 1,
            free: 0,
            size: 65536,
            ..Default::default()
        };
        assert_eq!(
            describe(&cpl, "ipv4-lpm"),
            "IPv4 LPM full (needs 1, free 0 of 65536)"
        );
        assert_eq!(describe(&cpl, ""), "pool 3 full (needs 1, free 0 of 65536)");
        cpl.status = raw::TND_ST_BUCKET_FULL;
        cpl.free = 9;
        assert_eq!(
            describe(&cpl, "exact-match"),
            "exact match bucket full for this key (needs 1, free 9 of 65536)"
        );
        cpl.status = raw::TND_ST_NOENT;
        assert_eq!(describe(&cpl, "exact-match"), "no such object");
    }

    #[test]
    fn every_number_survives() {
        for n in 0..40 {
            assert_eq!(Status::from_raw(n).to_raw(), n);
        }
    }
}
