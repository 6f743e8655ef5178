package main

import (
	"net"

	"golang.org/x/sys/unix"
)

// userOf returns the client at the other end of a connection as far as the machine knows it: the
// user, for a socket in the file system. All programs that connect to an IP address are one client.
func userOf(conn net.Conn) any {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return anyone{}
	}
	raw, err := local.SyscallConn()
	if err != nil {
		return anyone{}
	}
	who := any(anyone{})
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			who = localUser(cred.Uid)
		}
	})
	return who
}
