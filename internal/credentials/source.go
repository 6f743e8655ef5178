package credentials

import (
	"crypto/tls"
	"fmt"
	"log/slog"
)

// Source gives out the TLS configurations of one node. It is made by [FromSecret], [FromTLS] or
// [FromFiles], has nothing to close, and is safe for concurrent use.
type Source struct {
	server func() *tls.Config // each makes a configuration that belongs to the caller
	client func() *tls.Config

	checker checker
	about   string // for people; nothing in it is secret
}

// ServerTLS returns a configuration for accepted connections. It belongs to the caller, is cheap to
// make, and stays good for as long as the node lives: what changes meanwhile is looked up at each
// handshake. NextProtos is the caller's to set.
func (s *Source) ServerTLS() *tls.Config { return s.server() }

// ClientTLS returns a configuration for dialed connections. It belongs to the caller and is cheap
// to make. Take one per dial: the authorities of [FromFiles] are those of this call. With a secret
// ServerName is set and must stay; otherwise, if it is empty, the caller must set it to the host
// that is dialed. Certificates of one's own are verified by VerifyConnection then, with
// InsecureSkipVerify set so that crypto/tls does not compare ServerName: VerifyConnection must
// stay. NextProtos is the caller's to set.
func (s *Source) ClientTLS() *tls.Config { return s.client() }

// Format prints what kind of source s is, under every verb: the fields hold keys.
func (s *Source) Format(out fmt.State, _ rune) {
	if s == nil {
		fmt.Fprint(out, "no credentials")
		return
	}
	fmt.Fprint(out, s.about)
}

// LogValue is what slog prints.
func (s *Source) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }

// harden sets in place what holds for every configuration of this package, whoever wrote it: TLS
// 1.3, certificates on both sides, and no resumption, which would skip the callbacks that check a
// peer.
func harden(config *tls.Config) *tls.Config {
	config.MinVersion = tls.VersionTLS13
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.SessionTicketsDisabled = true
	config.ClientSessionCache = nil
	return config
}

// Explain is [Explain].
func (s *Source) Explain(err error) string { return Explain(err) }
