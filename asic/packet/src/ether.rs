//! Ethernet II and 802.1Q/802.1ad numbers (IEEE 802.3 clause 3, 802.1Q clause 9).

/// A MAC address in network order.
pub type Mac = [u8; 6];

/// Bytes of an Ethernet header without tag: the shortest frame with a meaning.
pub const HEADER: usize = 14;
/// Bytes of one tag.
pub const TAG: usize = 4;
/// ff:ff:ff:ff:ff:ff
pub const BROADCAST: Mac = [0xff; 6];

/// EtherType numbers the pipeline knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP
    pub const ARP: EtherType = EtherType(0x0806);
    /// 802.1Q tag
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// 802.1ad service tag
    pub const SVLAN: EtherType = EtherType(0x88a8);

    /// Does it announce a tag?
    #[inline]
    pub fn is_tag(self) -> bool {
        self == Self::VLAN || self == Self::SVLAN
    }
}

/// One tag. Aligned, so that one that may not be there is copied as two words, not as words across two of them: such a copy
/// has to wait for the writes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(4))]
pub struct Tag {
    /// Tag protocol identifier, 0x8100 or 0x88a8.
    pub tpid: u16,
    /// Priority (3 bits), drop eligible (1), VLAN id (12).
    pub tci: u16,
}

impl Tag {
    /// VLAN id; 0 carries a priority only.
    #[inline]
    pub fn vid(self) -> u16 {
        self.tci & 0x0fff
    }
}

/// Group address (multicast or broadcast)?
#[inline]
pub fn is_group(mac: &Mac) -> bool {
    mac[0] & 1 != 0
}

/// May it be a source: neither group nor all zero.
#[inline]
pub fn is_valid_source(mac: &Mac) -> bool {
    !is_group(mac) && *mac != [0; 6]
}

/// 01:80:c2:00:00:00 to :0f, which a bridge never forwards (802.1Q table 8-1).
#[inline]
pub fn is_link_local(mac: &Mac) -> bool {
    matches!(mac, [0x01, 0x80, 0xc2, 0, 0, last] if *last < 0x10)
}

/// Text as people write it: 02:00:00:00:00:01.
pub fn show(mac: &Mac) -> impl std::fmt::Display {
    struct Show(Mac);
    impl std::fmt::Display for Show {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            let [a, b, c, d, e, g] = self.0;
            write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
        }
    }
    Show(*mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_addresses() {
        assert!(is_group(&BROADCAST) && is_group(&[1, 0, 0x5e, 0, 0, 1]));
        assert!(!is_valid_source(&[0; 6]) && !is_valid_source(&BROADCAST));
        assert!(is_valid_source(&[2, 0, 0, 0, 0, 1]));
        assert!(is_link_local(&[1, 0x80, 0xc2, 0, 0, 0x0e]));
        assert!(!is_link_local(&[1, 0x80, 0xc2, 0, 0, 0x10]));
        assert_eq!(
            show(&[2, 0, 0, 0, 0, 0xab]).to_string(),
            "02:00:00:00:00:ab"
        );
        assert_eq!(
            Tag {
                tpid: 0x8100,
                tci: 0x6064
            }
            .vid(),
            100
        );
    }
}
