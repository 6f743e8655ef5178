//go:build !linux

package transport

import "net"

// limitUnheard does nothing.
func limitUnheard(net.Conn) {}

// repeatEvenly does nothing.
func repeatEvenly(net.Conn) {}
