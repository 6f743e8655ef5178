package transport

import (
	"net"
	"syscall"
	"time"
)

// unheardFor is how long what a link has sent may stay without an acknowledgement of the other machine.
// After a cut of some seconds TCP waits as long again until it tries once more; a new connection does not.
const unheardFor = 3 * time.Second

const tcpUserTimeout = 0x12 // TCP_USER_TIMEOUT

// limitUnheard has the kernel end a connection whose bytes are not acknowledged. It is a help and no
// promise: where it cannot be set, the pulse finds the silence later.
func limitUnheard(conn net.Conn) {
	tcp, ok := conn.(syscall.Conn)
	if !ok || bug("unheard-for-minutes") {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unheardFor.Milliseconds()))
	})
}
