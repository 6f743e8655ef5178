package transport

import (
	"net"
	"syscall"
	"time"
)

// All of this is a help and no promise: where it cannot be set, the pulse finds the silence later.
const (
	// unheardFor is how long what a link has sent may stay without an acknowledgement of the other machine.
	// After a cut of some seconds TCP waits as long again until it tries once more; a new connection does not.
	unheardFor = 3 * time.Second

	// tryAgainAfter is how long TCP waits, beyond a round trip, before it sends again what was not
	// acknowledged. By default that is 200 ms. It is longer than the 40 ms for which an acknowledgement
	// may be delayed.
	tryAgainAfter = 60 * time.Millisecond
)

// Options of a TCP connection, as in linux/tcp.h.
const (
	tcpThinLinearTimeouts = 0x10
	tcpUserTimeout        = 0x12
	tcpMinRTO             = 0x2d // since Linux 6.15
)

// limitUnheard has the kernel end a connection whose bytes are not acknowledged.
func limitUnheard(conn net.Conn) {
	setOptions(conn, option{tcpUserTimeout, int(unheardFor.Milliseconds())})
}

// hastenRepeats has the kernel send again soon what is lost, and at equal intervals: a connection here
// has few packets under way, and TCP would double its pause after each one that is lost.
func hastenRepeats(conn net.Conn) {
	setOptions(conn, option{tcpThinLinearTimeouts, 1}, option{tcpMinRTO, int(tryAgainAfter.Microseconds())})
}

type option struct{ name, value int }

func setOptions(conn net.Conn, options ...option) {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		for _, o := range options {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, o.name, o.value)
		}
	})
}
