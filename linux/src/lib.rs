//! Everything that speaks to the Linux kernel: netlink, TAP, packet sockets, BPF, shared memory
