package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

func wentAway(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}

// brokeOff reports whether the dialer closed the connection during the handshake, as stopping
// instances do.
func brokeOff(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE)
}

// clientTLS makes a TLS connection over raw. It returns ErrForeign if the peer is proven not to be
// an instance of the cluster. A connection that breaks or stays silent proves nothing.
func clientTLS(ctx context.Context, raw net.Conn, addr string, config *tls.Config) (*tls.Conn, error) {
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		if header, ok := errors.AsType[tls.RecordHeaderError](err); ok &&
			string(header.RecordHeader[:]) == linkPreface[:len(header.RecordHeader)] {
			return nil, fmt.Errorf("%w: %s: %w: %w", ErrSilent, addr, ErrPlain, err)
		}
		if ctx.Err() != nil || silence(err) {
			return nil, fmt.Errorf("%w: %s: TLS handshake: %w", ErrSilent, addr, err)
		}
		return nil, fmt.Errorf("%w: %s: TLS handshake: %w", ErrForeign, addr, err)
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		return nil, fmt.Errorf("%w: %s: TLS without HTTP/2", ErrForeign, addr)
	}
	return conn, nil
}

// First bytes of a TLS record: of a client's handshake, and of a server's alert.
const (
	tlsHandshake = 0x16
	tlsAlert     = 0x15
)

// noTLS is the fatal TLS alert handshake_failure (RFC 8446).
const noTLS = "\x15\x03\x03\x00\x02\x02\x28"

// hint answers a dialer whose first byte shows that only one side has TLS. A dialer without TLS
// gets an alert, and a dialer with TLS gets our preface. If the connection ended without an answer,
// the dialer would not learn the reason.
func (c *accepted) hint(first byte) {
	switch {
	case c.listener.secured && first == linkPreface[0]:
		_, _ = c.Write([]byte(noTLS))
	case !c.listener.secured && first == tlsHandshake:
		_, _ = c.Write([]byte(linkPreface))
	}
}

// refusedTLS reports whether a read failed because the peer refuses our certificate. With TLS 1.3,
// a server refuses the certificate only after the dialer has finished the handshake.
func refusedTLS(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && !silence(err)
}

const expiredAlert tls.AlertError = 45

// silence reports whether err proves nothing about the peer: the connection broke, or a certificate
// of either side has expired. It compares the text of an alert, because crypto/tls exports no type
// for a received alert.
func silence(err error) bool {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return true
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, syscall.EPIPE) || wentAway(err) {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op != "remote error" || op.Err.Error() == expiredAlert.Error())
}
