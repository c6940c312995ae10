// SPDX-License-Identifier: Apache-2.0
//! Words for numbers in access lists, as IOS has them. Of a number with several words the first one is shown.

/// Protocols of IPv4; `ip` is any.
pub const PROTOCOLS: &[(&str, u8)] = &[
    ("ahp", 51),
    ("eigrp", 88),
    ("esp", 50),
    ("gre", 47),
    ("icmp", 1),
    ("igmp", 2),
    ("ipinip", 4),
    ("ospf", 89),
    ("pim", 103),
    ("tcp", 6),
    ("udp", 17),
];

/// Protocols of IPv6; `ipv6` is any.
pub const PROTOCOLS6: &[(&str, u8)] = &[
    ("ahp", 51),
    ("esp", 50),
    ("icmp", 58),
    ("tcp", 6),
    ("udp", 17),
];

/// Ports of TCP.
pub const TCP: &[(&str, u16)] = &[
    ("bgp", 179),
    ("chargen", 19),
    ("cmd", 514),
    ("daytime", 13),
    ("discard", 9),
    ("domain", 53),
    ("echo", 7),
    ("exec", 512),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("hostname", 101),
    ("ident", 113),
    ("irc", 194),
    ("klogin", 543),
    ("kshell", 544),
    ("login", 513),
    ("lpd", 515),
    ("nntp", 119),
    ("pop2", 109),
    ("pop3", 110),
    ("smtp", 25),
    ("sunrpc", 111),
    ("tacacs", 49),
    ("telnet", 23),
    ("uucp", 540),
    ("whois", 43),
    ("www", 80),
];

/// Ports of UDP.
pub const UDP: &[(&str, u16)] = &[
    ("biff", 512),
    ("bootpc", 68),
    ("bootps", 67),
    ("discard", 9),
    ("dnsix", 195),
    ("domain", 53),
    ("echo", 7),
    ("isakmp", 500),
    ("mobile-ip", 434),
    ("nameserver", 42),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ss", 139),
    ("non500-isakmp", 4500),
    ("ntp", 123),
    ("rip", 520),
    ("snmp", 161),
    ("snmptrap", 162),
    ("sunrpc", 111),
    ("syslog", 514),
    ("tacacs", 49),
    ("talk", 517),
    ("tftp", 69),
    ("time", 37),
    ("who", 513),
    ("xdmcp", 177),
];

/// Type and code of an ICMP message.
pub type Icmp = (&'static str, u8, Option<u8>);

/// Messages of ICMP.
pub const ICMP: &[Icmp] = &[
    ("administratively-prohibited", 3, Some(13)),
    ("echo", 8, None),
    ("echo-reply", 0, None),
    ("host-unreachable", 3, Some(1)),
    ("net-unreachable", 3, Some(0)),
    ("packet-too-big", 3, Some(4)),
    ("parameter-problem", 12, None),
    ("port-unreachable", 3, Some(3)),
    ("protocol-unreachable", 3, Some(2)),
    ("redirect", 5, None),
    ("router-advertisement", 9, None),
    ("router-solicitation", 10, None),
    ("source-quench", 4, None),
    ("time-exceeded", 11, None),
    ("timestamp-reply", 14, None),
    ("timestamp-request", 13, None),
    ("traceroute", 30, None),
    ("ttl-exceeded", 11, Some(0)),
    ("unreachable", 3, None),
];

/// Messages of ICMPv6.
pub const ICMP6: &[Icmp] = &[
    ("echo-reply", 129, None),
    ("echo-request", 128, None),
    ("mld-query", 130, None),
    ("mld-reduction", 132, None),
    ("mld-report", 131, None),
    ("nd-na", 136, None),
    ("nd-ns", 135, None),
    ("packet-too-big", 2, None),
    ("parameter-problem", 4, None),
    ("port-unreachable", 1, Some(4)),
    ("redirect", 137, None),
    ("router-advertisement", 134, None),
    ("router-solicitation", 133, None),
    ("time-exceeded", 3, None),
    ("unreachable", 1, None),
];

/// DSCPs.
pub const DSCP: &[(&str, u8)] = &[
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("default", 0),
    ("ef", 46),
];
