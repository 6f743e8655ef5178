package transport

import (
	"net"
	"syscall"
	"time"
)

// unheardFor is how long what a link has sent may stay without an acknowledgement of the other machine.
// After a cut of some seconds TCP waits as long again until it tries once more; a new connection does not.
const unheardFor = 3 * time.Second

// Options of a TCP connection, as in linux/tcp.h.
const (
	tcpThinLinearTimeouts = 0x10
	tcpUserTimeout        = 0x12
)

// limitUnheard has the kernel end a connection whose bytes are not acknowledged, and try again at equal
// intervals until then: a link has few packets under way, and TCP would double its pause after each one
// that is lost. Both are a help and no promise: where they cannot be set, the pulse finds the silence
// later.
func limitUnheard(conn net.Conn) {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unheardFor.Milliseconds()))
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpThinLinearTimeouts, 1)
	})
}
