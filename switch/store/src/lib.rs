//! The store: desired and installed state of every object
