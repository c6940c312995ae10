//! Front-panel ports: AF_PACKET, TAP, pcap
