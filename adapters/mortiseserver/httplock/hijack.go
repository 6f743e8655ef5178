package httplock

import (
	"bufio"
	"net"
	"net/http"
)

// Hijack is for handlers that look for an http.Hijacker. The lock is released when the handler
// returns, so a handler that hijacks must not return before its work ends.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.wrote = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
