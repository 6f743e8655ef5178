package credentials

import (
	"crypto/tls"
	"fmt"
	"log/slog"
)

// Source makes the TLS configurations of one node. [FromSecret], [FromTLS] and [FromFiles] return a
// Source. It has no Close method, and is safe for concurrent use.
type Source struct {
	server func() *tls.Config // the caller owns the results of server and client
	client func() *tls.Config

	checker checker
	about   string // for logs; contains no secret
}

// ServerTLS returns a configuration for accepted connections. The caller owns it and sets
// NextProtos. It can be used as long as the node runs, because each handshake looks up everything
// that may change.
func (s *Source) ServerTLS() *tls.Config { return s.server() }

// ClientTLS returns a configuration for dialed connections. The caller owns it and sets NextProtos.
// Call ClientTLS for each dial, because with [FromFiles] the configuration contains the authorities
// at the time of the call. The call is cheap. With a secret, ServerName is set and must not be
// changed. Without a secret, the caller must set an empty ServerName to the dialed host. With a
// user's own certificates, VerifyConnection verifies the peer and must not be changed, and
// InsecureSkipVerify is set so that crypto/tls does not compare ServerName.
func (s *Source) ClientTLS() *tls.Config { return s.client() }

// Format prints the kind of source for every verb, because the fields contain keys.
func (s *Source) Format(out fmt.State, _ rune) {
	if s == nil {
		fmt.Fprint(out, "no credentials")
		return
	}
	fmt.Fprint(out, s.about)
}

// LogValue implements slog.LogValuer. The value contains no secrets.
func (s *Source) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }

// harden sets what every configuration of this package requires: TLS 1.3, certificates on both
// sides, and no session resumption, which would skip the callbacks that check a peer.
func harden(config *tls.Config) *tls.Config {
	config.MinVersion = tls.VersionTLS13
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.SessionTicketsDisabled = true
	config.ClientSessionCache = nil
	return config
}

// Explain is [Explain].
func (s *Source) Explain(err error) string { return Explain(err) }
