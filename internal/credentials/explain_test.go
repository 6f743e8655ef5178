package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestPlainTextToATLSPort(t *testing.T) {
	s := source(t, SecretConfig{})
	for said, want := range map[string]string{
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":     OtherPlain,
		"mortise\n\x01\x02":                    OtherPlain,
		"GET / HTTP/1.1\r\n\r\n":               "plain HTTP client",
		"SSH-2.0-OpenSSH_9.6\r\n":              `does not speak TLS (it begins with "SSH-2")`,
		"\x00\x00\x00\x00\x00\n\n":             "does not speak TLS",
		"":                                     "ended the connection or stopped responding",
		"\x16\x03\x01":                         "ended the connection or stopped responding",
		"\x16\x03\x01\x00\x05\x01\x00\x00":     "ended the connection or stopped responding",
		"\x16\x03\x01\x00\x04\x01\x00\x00\x00": "the TLS handshake failed",
	} {
		a, b := pipe(t)
		if _, err := io.WriteString(b, said); err != nil {
			t.Fatal(err)
		}
		b.Close()
		err := tls.Server(a, s.ServerTLS()).Handshake()
		a.Close()
		if got := Explain(err); err == nil || !strings.Contains(got, want) {
			t.Errorf("%q: %q from %v, want %q", said, got, err, want)
		}
	}
}

func TestTLSToAPlainTextPort(t *testing.T) {
	s := source(t, SecretConfig{})
	for said, want := range map[string]string{
		"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00": "speaks plain text where TLS is required",
		"HTTP/1.1 400 Bad Request\r\n\r\n":                             "plain HTTP server: the address is wrong",
		"":                                                             "it may speak plain text",
	} {
		a, b := pipe(t)
		if _, err := io.WriteString(a, said); err != nil {
			t.Fatal(err)
		}
		if said == "" {
			a.Close()
		}
		err := tls.Client(b, s.ClientTLS()).Handshake()
		a.Close()
		b.Close()
		if got := Explain(err); err == nil || !strings.Contains(got, want) {
			t.Errorf("%q: %q from %v, want %q", said, got, err, want)
		}
	}
	a, b := pipe(t)
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if got := Explain(tls.Client(b, s.ClientTLS()).HandshakeContext(ctx)); !strings.Contains(got,
		"stopped responding") {
		t.Error(got)
	}
}

// Text from a stranger must not add lines or much text to the log.
func TestStrangersDoNotWriteTheLog(t *testing.T) {
	nasty := "x\nlevel=ERROR msg=\"all is lost\"\x1b[31m" + strings.Repeat("y", 10000)
	cert := &x509.Certificate{
		Subject: pkix.Name{CommonName: nasty, Organization: []string{nasty}}, Issuer: pkix.Name{CommonName: nasty},
		DNSNames: []string{nasty + domain}, NotAfter: noon,
	}
	plain := *cert
	plain.DNSNames = []string{nasty}
	for i, c := range []*x509.Certificate{cert, &plain} {
		for _, err := range []error{
			x509.UnknownAuthorityError{Cert: c},
			x509.CertificateInvalidError{Cert: c, Reason: x509.Expired, Detail: nasty},
			x509.CertificateInvalidError{Cert: c, Reason: x509.IncompatibleUsage, Detail: nasty},
			x509.CertificateInvalidError{Cert: c, Reason: x509.CANotAuthorizedForThisName, Detail: nasty},
			x509.HostnameError{Certificate: c, Host: "a" + domain},
			x509.HostnameError{Certificate: c, Host: nasty},
			&net.OpError{Op: "remote error", Err: errors.New(nasty)},
			errors.New(nasty),
		} {
			got := Explain(fmt.Errorf("handshake: %w", err))
			if strings.ContainsAny(got, "\n\x1b") || len(got) > 1000 || got == "" {
				t.Errorf("%d: %T is explained as %q", i, err, got)
			}
		}
	}
}

func TestExplainNeverPanics(t *testing.T) {
	for _, err := range []error{
		nil, x509.UnknownAuthorityError{}, x509.CertificateInvalidError{}, x509.HostnameError{Host: "h"},
		x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h" + domain},
		tls.RecordHeaderError{}, &net.OpError{Op: "read", Err: io.EOF}, errAuthority, errUnverified, tls.AlertError(1),
	} {
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%T: panic: %v", err, r)
				}
			}()
			if got := Explain(err); (got == "") != (err == nil) {
				t.Errorf("%T is explained as %q", err, got)
			}
		}()
	}
}
