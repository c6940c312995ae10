//! packet_socket
