package transport

import (
	"net"
	"syscall"
	"time"
)

// The kernel options in this file are not essential: where they cannot be set, the keepalive
// detects the silence later.

// unheardFor is how long the other machine may leave bytes of a link unacknowledged before the link
// ends. After an outage of a few seconds, TCP would wait as long as the outage lasted before it
// resends. A new connection does not have to wait.
const unheardFor = 3 * time.Second

// Options of a TCP connection, as in linux/tcp.h.
const (
	tcpThinLinearTimeouts = 0x10
	tcpUserTimeout        = 0x12
)

func limitUnheard(conn net.Conn) {
	setOption(conn, tcpUserTimeout, int(unheardFor.Milliseconds()))
}

// repeatEvenly makes the kernel resend lost packets at equal intervals. By default, TCP doubles the
// interval after each loss. That is not needed here, because connections have few packets in
// flight.
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
