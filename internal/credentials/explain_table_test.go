package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEachErrorHasItsExplanation has at least one error for each explanation. The errors of one row
// have the same explanation but for what they quote, and each row has another one.
func TestEachErrorHasItsExplanation(t *testing.T) {
	cert := func(issuer string, life time.Duration, names ...string) *x509.Certificate {
		return &x509.Certificate{Issuer: pkix.Name{CommonName: issuer}, Subject: pkix.Name{CommonName: "subject"},
			NotBefore: noon, NotAfter: noon.Add(life), DNSNames: names}
	}
	const whole, name = backdate + lifetime, "*.x" + domain
	expired := func(c *x509.Certificate) error {
		return x509.CertificateInvalidError{Cert: c, Reason: x509.Expired, Detail: "it is late"}
	}
	head := func(text string) error {
		var h tls.RecordHeaderError
		copy(h.RecordHeader[:], text)
		return h
	}
	alert := func(err error) error { return &net.OpError{Op: "remote error", Err: err} }
	bare, anon := cert("by", whole, "a.test"), cert("by", whole)
	type row struct {
		want string
		errs []error
	}
	seen := map[string]string{}
	for _, c := range []row{
		{"an authority that is not trusted here: Config.Secret", []error{x509.UnknownAuthorityError{}}},
		{`has another secret ("by")`, []error{x509.UnknownAuthorityError{Cert: cert("by", whole, name)}}},
		{`("a.test, b` + domain + `", issued by "CN=by")`, []error{x509.UnknownAuthorityError{Cert: cert("by", whole,
			"b"+domain, "a.test")}}},
		{`("CN=subject", issued by "CN=by")`, []error{x509.UnknownAuthorityError{Cert: anon}}},
		{`secret ended at 2030-05-25T11:59:59Z, but here "it is late"`, []error{
			expired(cert(derivedName+"x", whole-time.Second, name))}},
		{"showed 2030-05-18T12:00:00Z and is valid until 2030-05-25T12:00:00Z, but here \"it is late\"", []error{
			expired(cert(derivedName+"x", whole, name)), expired(cert("x"+derivedName, whole, name))}},
		{"showed 2030-05-18T12:00:00Z and is valid until 2030-05-17T12:00:01Z", []error{
			expired(cert("x", time.Second, name))}},
		{`("a.test") is valid from 2030-05-17T12:00:00Z until 2030-05-25T12:00:00Z, but here "it is late"`,
			[]error{expired(bare)}},
		{`("a.test") is not for this use`, []error{
			x509.CertificateInvalidError{Cert: bare, Reason: x509.IncompatibleUsage}}},
		{"is not valid: ", []error{x509.CertificateInvalidError{},
			x509.CertificateInvalidError{Cert: bare, Reason: x509.TooManyIntermediates}}},
		{"belongs to another cluster", []error{
			x509.HostnameError{Certificate: cert("by", whole, name), Host: "y" + domain}}},
		{"not one made from Config.Secret", []error{x509.HostnameError{Certificate: bare, Host: "y" + domain},
			x509.HostnameError{Host: "y" + domain}}},
		{`does not carry the name "b.test"`, []error{x509.HostnameError{Certificate: bare, Host: "b.test"}}},
		{OtherPlain, []error{head("PRI *"), head("morti"), head("\x00\x01\x02\x04\x05")}},
		{"plain HTTP server", []error{head("HTTP/")}},
		{"plain HTTP client", []error{head("GET /"), head("HEAD "), head("POST "), head("PUT /"), head("DELET"),
			head("OPTIO"), head("CONNE"), head("PATCH"), head("TRACE")}},
		{"does not speak TLS (it begins with", []error{head("GETS "), head("SSH-2"), head("\x00\x01\x02\x03\x05"),
			head("\x01\x01\x02\x04\x05")}},
		{"refuses our certificate: Config.Secret", []error{alert(badCertificate)}},
		{"does not trust the authority of our certificate", []error{alert(unknownAuthority)}},
		{"finds our certificate expired", []error{alert(certificateExpired)}},
		{"got no certificate from us", []error{alert(certificateRequired)}},
		{"refuses our version of TLS", []error{alert(protocolVersion)}},
		{"refuses the TLS handshake: ", []error{alert(errors.New("why"))}},
		{`certificate ("a.test") carries no listed name`, []error{unlisted{bare}}},
		{"of an authority as its own: it is not mortise", []error{errAuthority}},
		{"is not an instance, though it answers", []error{errServer, mayServe(Peer{Tier: Guest}),
			mayServe(Peer{Tier: Member})}},
		{"has dialed this one, which has a derived secret", []error{errServes}},
		{"not one that mortise secret has made: ", []error{errText, errChain}},
		{"gave no certificate", []error{errors.New("tls: client didn't provide a certificate")}},
		{"does not speak TLS 1.3", []error{errors.New("tls: client offered only unsupported versions"),
			errors.New("tls: server selected unsupported protocol version 301")}},
		{"ended the connection or stopped responding", []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe,
			net.ErrClosed, os.ErrDeadlineExceeded, syscall.ECONNRESET, syscall.EPIPE, &net.DNSError{IsTimeout: true}}},
		{`the TLS handshake failed: "handshake: why"`, []error{errors.New("why")}},
		{"the TLS handshake failed: ", []error{errUnverified, &net.DNSError{}, &net.OpError{Op: "remote error"},
			&net.OpError{Op: "read", Err: badCertificate}}},
	} {
		for _, err := range c.errs {
			got := Explain(fmt.Errorf("handshake: %w", err))
			if !strings.Contains(got, c.want) {
				t.Errorf("%v: %q, want %q", err, got, c.want)
			}
			if before, ok := seen[got]; ok && before != c.want {
				t.Errorf("%v: %q is also the explanation of what says %q", err, got, before)
			}
			seen[got] = c.want
		}
	}
	if got := Explain(nil); got != "" {
		t.Errorf("nothing is explained as %q", got)
	}
	if err := mayServe(Peer{Tier: Root}); err != nil {
		t.Errorf("an instance: %v", err)
	}
}
