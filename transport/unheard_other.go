//go:build !linux

package transport

import "net"

// limitUnheard does nothing: the pulse finds the silence of a link.
func limitUnheard(net.Conn) {}

// hastenRepeats does nothing: a lost packet is sent again when TCP does so by itself.
func hastenRepeats(net.Conn) {}
