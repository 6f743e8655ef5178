package transport

import (
	"net"
	"syscall"
	"time"
)

// All of this is best effort: where it cannot be set, the keepalive detects the silence later.

// unheardFor is how long bytes that a link has sent may stay unacknowledged by the other machine.
// After an outage of some seconds TCP waits as long again before it retries; a new connection does
// not.
const unheardFor = 3 * time.Second

// Options of a TCP connection, as in linux/tcp.h.
const (
	tcpThinLinearTimeouts = 0x10
	tcpUserTimeout        = 0x12
)

func limitUnheard(conn net.Conn) {
	setOption(conn, tcpUserTimeout, int(unheardFor.Milliseconds()))
}

// repeatEvenly makes the kernel resend lost packets at equal intervals. A connection here has few
// packets in flight, and TCP would double its pause after each lost one.
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
