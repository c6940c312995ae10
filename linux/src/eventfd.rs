//! eventfd
