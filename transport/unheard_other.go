//go:build !linux

package transport

import "net"

// limitUnheard does nothing: the keepalive detects the silence of a link.
func limitUnheard(net.Conn) {}

// repeatEvenly does nothing: TCP resends lost packets at its own pace.
func repeatEvenly(net.Conn) {}
