package credentials

import (
	"crypto/tls"
	"fmt"
	"log/slog"
)

// Source makes the TLS configurations of one node. [FromSecret], [FromTLS] and [FromFiles] return
// one. It needs no Close, and is safe for concurrent use.
type Source struct {
	server func() *tls.Config // both return a configuration that belongs to the caller
	client func() *tls.Config

	checker checker
	about   string // for people; contains no secret
}

// ServerTLS returns a configuration for accepted connections. It belongs to the caller, is cheap to
// make, and stays valid as long as the node lives: each handshake looks up what changes. The caller
// sets NextProtos.
func (s *Source) ServerTLS() *tls.Config { return s.server() }

// ClientTLS returns a configuration for dialed connections. It belongs to the caller and is cheap
// to make. Make one per dial: the authorities of [FromFiles] are as of this call. With a secret
// ServerName is set and must stay; otherwise, if it is empty, the caller must set it to the dialed
// host. With a user's own certificates VerifyConnection verifies the peer and must stay, and
// InsecureSkipVerify is set so that crypto/tls does not compare ServerName. The caller sets
// NextProtos.
func (s *Source) ClientTLS() *tls.Config { return s.client() }

// Format prints the kind of source under every verb, because the fields contain keys.
func (s *Source) Format(out fmt.State, _ rune) {
	if s == nil {
		fmt.Fprint(out, "no credentials")
		return
	}
	fmt.Fprint(out, s.about)
}

// LogValue implements slog.LogValuer without secrets.
func (s *Source) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }

// harden sets, in place, what every configuration of this package requires: TLS 1.3, certificates
// on both sides, and no resumption, which would skip the callbacks that check a peer.
func harden(config *tls.Config) *tls.Config {
	config.MinVersion = tls.VersionTLS13
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.SessionTicketsDisabled = true
	config.ClientSessionCache = nil
	return config
}

// Explain is [Explain].
func (s *Source) Explain(err error) string { return Explain(err) }
