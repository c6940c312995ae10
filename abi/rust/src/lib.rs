//! The device ABI: generated layouts and the rings
