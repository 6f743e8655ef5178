//go:build !linux

package transport

import "net"

// limitUnheard does nothing: the pulse finds the silence of a link.
func limitUnheard(net.Conn) {}

// repeatEvenly does nothing: a lost packet is sent again when TCP does so by itself.
func repeatEvenly(net.Conn) {}
