//go:build !linux

package transport

import "net"

// limitUnheard does nothing. The keepalive detects that the peer is silent.
func limitUnheard(net.Conn) {}

// repeatEvenly does nothing. TCP chooses the intervals at which it resends packets.
func repeatEvenly(net.Conn) {}
