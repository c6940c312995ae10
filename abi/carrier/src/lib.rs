//! Carrier of the ABI between processes: sealed memfd, eventfd, Unix socket
