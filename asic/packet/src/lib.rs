//! Views, parser, checksums, segmentation of packets
