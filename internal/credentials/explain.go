package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise/internal/plain"
)

// Explain returns one sentence about the cause of a failed TLS handshake and what to do, or "" for
// nil. err is the error of the handshake or of a client's first Read, because with TLS 1.3 a server
// refuses a client only after the client has finished the handshake. Text from the peer is quoted
// and shortened.
func Explain(err error) string {
	if err == nil {
		return ""
	}
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return explainUnknown(unknown.Cert)
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return explainInvalid(invalid)
	}
	if name, ok := errors.AsType[x509.HostnameError](err); ok {
		return explainName(name)
	}
	if header, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return explainNoTLS(header)
	}
	// crypto/tls returns this error if it has received an alert.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" && op.Err != nil {
		return explainAlert(op.Err.Error())
	}
	if other, ok := errors.AsType[unlisted](err); ok {
		return fmt.Sprintf("the other side's certificate (%s) carries no listed name: it is not an instance, or "+
			"its name is missing in Config.TLSPeers (an instance) or Config.TLSGuests (anything else)", subjectOf(other.cert))
	}
	text := err.Error()
	switch {
	case errors.Is(err, errAuthority):
		return "the other side presents the certificate of an authority as its own: it is not mortise"
	case errors.Is(err, errServer):
		return "the other side is not an instance, though it answers at an instance's address: its secret is a " +
			"derived one, or its name is in Config.TLSGuests; correct the address, and find out which process " +
			"listens there"
	case errors.Is(err, errServes):
		return "another process has dialed this one, which has a derived secret and does not serve: correct " +
			"Config.Join of that process"
	case errors.Is(err, errText) || errors.Is(err, errChain):
		return "the other side's derived secret is not one that mortise secret has made: " + clip(text)
	case strings.Contains(text, "client didn't provide a certificate"):
		return noCertificate("the other side gave no certificate")
	case strings.Contains(text, "unsupported versions") || strings.Contains(text, "unsupported protocol version"):
		return "the other side does not speak TLS 1.3, which is required: it is not mortise, or a proxy between " +
			"the two terminates TLS"
	case silent(err):
		return "the other side ended the connection or stopped responding in the handshake without a reason: it " +
			"may speak plain text (then it needs Config.Secret or Config.TLS too), be stopping, or not be mortise"
	}
	return "the TLS handshake failed: " + clip(text)
}

func explainUnknown(cert *x509.Certificate) string {
	switch {
	case cert == nil:
		return "the other side's certificate is from an authority that is not trusted here: Config.Secret, " +
			"Config.Cluster or Config.TLS differ"
	case ours(cert):
		return fmt.Sprintf("the other side has another secret (%s) or another Config.Cluster: set the same "+
			"Config.Secret and Config.Cluster on all instances; while a secret is replaced, finish each step on all of "+
			"them before the next, and derive again what was derived from the old one",
			clip(cert.Issuer.CommonName))
	}
	return fmt.Sprintf("the other side's certificate (%s, issued by %s) is from an authority that is not trusted "+
		"here: it is not mortise of this cluster, or Config.Secret is set on one side and Config.TLS on the "+
		"other, or RootCAs and ClientCAs of Config.TLS lack the issuer", subjectOf(cert), clip(cert.Issuer.String()))
}

// explainInvalid returns the times of both clocks if the certificate was made from a secret. The
// NotBefore of such a certificate is the time of its creation, by the clock of its maker, minus
// backdate.
func explainInvalid(invalid x509.CertificateInvalidError) string {
	cert := invalid.Cert
	switch {
	case cert == nil:
	case invalid.Reason == x509.Expired && ours(cert) && cutShort(cert):
		return fmt.Sprintf("the other side's derived secret ended at %s, but here %s: derive a new one with "+
			"mortise secret, or set the clocks of both machines", stamp(cert.NotAfter), clip(invalid.Detail))
	case invalid.Reason == x509.Expired && ours(cert):
		return fmt.Sprintf("the clocks differ too much: the other side's certificate was made when its clock "+
			"showed %s and is valid until %s, but here %s: set the clocks of both machines",
			stamp(cert.NotBefore.Add(backdate)), stamp(cert.NotAfter), clip(invalid.Detail))
	case invalid.Reason == x509.Expired:
		return fmt.Sprintf("the other side's certificate (%s) is valid from %s until %s, but here %s: renew the "+
			"certificate, or set the clocks of both machines",
			subjectOf(cert), stamp(cert.NotBefore), stamp(cert.NotAfter), clip(invalid.Detail))
	case invalid.Reason == x509.IncompatibleUsage:
		return fmt.Sprintf("the other side's certificate (%s) is not for this use: issue it with the extended "+
			"key usages serverAuth and clientAuth, since every instance dials and is dialed", subjectOf(cert))
	}
	return "the other side's certificate is not valid: " + clip(invalid.Error())
}

func explainName(name x509.HostnameError) string {
	if name.Certificate != nil && ours(name.Certificate) {
		return "the other side belongs to another cluster: set the same Config.Cluster on all instances, or " +
			"correct the address"
	}
	if strings.HasSuffix(name.Host, domain) {
		return "the other side's certificate is not one made from Config.Secret: it is not mortise of this " +
			"cluster, or uses Config.TLS"
	}
	return fmt.Sprintf("the other side's certificate does not carry the name %s: set ServerName of Config.TLS to "+
		"a name that the certificates of all instances carry", clip(name.Host))
}

// Texts for a connection on which only one side has TLS.
const (
	OtherPlain = "the other side has no secret and speaks plain text where TLS is required: set the same " +
		"Config.Secret (or Config.TLS) there too"
	OwnPlain = "the other side has a secret (or Config.TLS), and this one has none: set the same Config.Secret " +
		"(or Config.TLS) here, and not Config.Insecure"
)

// explainNoTLS recognizes plain text. In plain HTTP/2 a client sends "PRI " and a server sends a
// settings frame.
func explainNoTLS(header tls.RecordHeaderError) string {
	head := string(header.RecordHeader[:])
	settings := header.RecordHeader[0] == 0 && header.RecordHeader[3] == 4
	switch {
	case strings.HasPrefix(head, "PRI ") || strings.HasPrefix(head, "morti") || settings:
		return OtherPlain
	case strings.HasPrefix(head, "HTTP/"):
		return "the other side is a plain HTTP server: the address is wrong"
	case plainHTTP(head):
		return "the other side is a plain HTTP client: this port is mortise's own and needs its certificates"
	}
	return fmt.Sprintf("the other side does not speak TLS (it begins with %q): it is not mortise, or has neither "+
		"Config.Secret nor Config.TLS", head)
}

func plainHTTP(head string) bool {
	for _, method := range [...]string{"GET ", "HEAD ", "POST ", "PUT ", "DELET", "OPTIO", "CONNE", "PATCH", "TRACE"} {
		if strings.HasPrefix(head, method) {
			return true
		}
	}
	return false
}

// Alerts of RFC 8446 with which a side refuses a certificate or a version.
const (
	badCertificate      tls.AlertError = 42
	certificateExpired  tls.AlertError = 45
	unknownAuthority    tls.AlertError = 48
	protocolVersion     tls.AlertError = 70
	certificateRequired tls.AlertError = 116
)

// explainAlert compares the text of an alert, because crypto/tls exports its type only for QUIC.
func explainAlert(text string) string {
	switch text {
	case badCertificate.Error(): // the only alert that a client of crypto/tls sends
		return "the other side refuses our certificate: Config.Secret or Config.Cluster differ, the clocks differ by " +
			"days, a derived secret has ended, or with Config.TLS the authorities or names (TLSPeers, TLSGuests) do " +
			"not match; its own log shows which"
	case unknownAuthority.Error():
		return "the other side does not trust the authority of our certificate: set the same Config.Secret and " +
			"Config.Cluster on all instances (while a secret is replaced, finish each step on all of them), or " +
			"give it our authority in ClientCAs of Config.TLS"
	case certificateExpired.Error():
		return "the other side finds our certificate expired or not yet valid: compare the clocks of both " +
			"machines, its own log shows what it reads; with Config.TLS, renew the certificate"
	case certificateRequired.Error():
		return noCertificate("the other side got no certificate from us")
	case protocolVersion.Error():
		return "the other side refuses our version of TLS: one of the two does not speak TLS 1.3, which is required"
	}
	return "the other side refuses the TLS handshake: " + clip(text)
}

func noCertificate(what string) string {
	return what + ": a client without Config.Secret or Config.TLS is not a member, and one with Config.TLS needs " +
		"a certificate of an authority in the other side's ClientCAs"
}

func silent(err error) bool {
	for _, e := range [...]error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded,
		syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// ours reports whether a certificate looks as if it was made from a secret. This proves nothing.
func ours(cert *x509.Certificate) bool {
	return len(cert.DNSNames) == 1 && strings.HasSuffix(cert.DNSNames[0], domain)
}

func cutShort(cert *x509.Certificate) bool {
	return strings.HasPrefix(cert.Issuer.CommonName, derivedName) &&
		cert.NotAfter.Sub(cert.NotBefore) < backdate+lifetime
}

func subjectOf(cert *x509.Certificate) string {
	list := namesOf(cert)
	if len(list) == 0 {
		return clip(cert.Subject.String())
	}
	return clip(strings.Join(list, ", "))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// A call of clip quotes and shortens text of a peer, because the text is logged.
func clip(text string) string {
	const most = 128
	if len(text) > most {
		text = plain.Cut(text, most) + "..."
	}
	return fmt.Sprintf("%q", text)
}
