/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One row for each class of objects that the store holds, upwards: what is referred
 * to before what refers to it. Included by classes.c alone, with ROW() defined as
 * what it makes of a row; so there is no guard. struct clsw_class explains the fields.
 */
ROW(TRAP, tnd_trap, "trap", .fixed = true, KEY1(tnd_trap, reason))
ROW(VLAN, tnd_vlan, "VLAN", KEY1(tnd_vlan, fid), TRAPS(tnd_vlan, flags, TND_VLAN_UC_TRAP), BY(RIF))
ROW(PORT, tnd_port, "port", .fixed = true, KEY1(tnd_port, port))
ROW(VLAN_MEMBER, tnd_vlan_member, "VLAN member", KEY2(tnd_vlan_member, port, vid))
ROW(VRF, tnd_vrf, "VRF", KEY1(tnd_vrf, vrf), BY(RIF))
ROW(RIF, tnd_rif, "RIF", KEY1(tnd_rif, rif), TRAPS(tnd_rif, flags, TND_RIF_TRAP_ALL), BY(HOPS))
ROW(NEXTHOP, tnd_nexthop, "next hop", KEY1(tnd_nexthop, nexthop), BY(NHG))
ROW(NHG, tnd_nhg, "next-hop group", KEY1(tnd_nhg, nhg), MANY(TND_NHG_MAX_MEMBERS, tnd_nhg_member))
ROW(NEIGH, tnd_neigh, "neighbour", KEY3(tnd_neigh, rif, family, addr))
ROW(FDB, tnd_fdb, "FDB entry", KEY2(tnd_fdb, fid, mac))
ROW(ROUTE, tnd_route, "route", KEY4(tnd_route, vrf, family, prefix_len, addr))
