package transport

import (
	"net"
	"syscall"
	"time"
)

// unheardFor limits how long the other machine may leave bytes of a link unacknowledged. After an
// outage of a few seconds, TCP may wait for a few more seconds before it resends; a new connection
// avoids this wait. If the option cannot be set, the keepalive detects a silent peer later.
const unheardFor = 3 * time.Second

// Options of a TCP connection, as in linux/tcp.h.
const (
	tcpThinLinearTimeouts = 0x10
	tcpUserTimeout        = 0x12
)

func limitUnheard(conn net.Conn) {
	setOption(conn, tcpUserTimeout, int(unheardFor.Milliseconds()))
}

// repeatEvenly makes the kernel resend lost packets at equal intervals. By default TCP doubles the
// interval after each loss.
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
