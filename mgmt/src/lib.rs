//! The management API: types, HTTP server and client on Unix sockets
