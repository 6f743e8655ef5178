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

	"github.com/mortise-lock/mortise/internal/formats"
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

const linkPreface = formats.Preface // distinguishes the protocol of links from HTTP/2 and TLS

// First bytes of a TLS record: of a client's handshake, and of a server's alert.
const (
	tlsHandshake = 0x16
	tlsAlert     = 0x15
)

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
