package transport

import (
	"net"
	"syscall"
	"time"
)

// All of this is a help and no promise: where it cannot be set, the pulse finds the silence later.

// unheardFor is how long what a link has sent may stay without an acknowledgement of the other
// machine. After a cut of some seconds TCP waits as long again until it tries once more; a new
// connection does not.
const unheardFor = 3 * time.Second

// Options of a TCP connection, as in linux/tcp.h.
const (
	tcpThinLinearTimeouts = 0x10
	tcpUserTimeout        = 0x12
)

// limitUnheard has the kernel end a connection whose bytes are not acknowledged.
func limitUnheard(conn net.Conn) {
	setOption(conn, tcpUserTimeout, int(unheardFor.Milliseconds()))
}

// repeatEvenly has the kernel send again at equal intervals what is lost: a connection here has few
// packets under way, and TCP would double its pause after each one that is lost.
func repeatEvenly(conn net.Conn) {
	setOption(conn, tcpThinLinearTimeouts, 1)
}

func setOption(conn net.Conn, name, value int) {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, name, value) })
}
