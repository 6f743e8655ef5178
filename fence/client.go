package fence

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/mortise-lock/mortise"
)

const (
	TokenHeader    = "Mortise-Token"    // decimal digits, see ParseToken
	ResourceHeader = "Mortise-Resource" // optional, escaped as a path segment of a URL
	HighestHeader  = "Mortise-Highest"  // only in a 412 response: the highest token of the resource
)

// Transport is an [http.RoundTripper] for clients. It sends the token of the request's context
// ([mortise.TokenFrom]) in a header of a copy of the request. Transport is safe for concurrent use
// if its fields do not change after the first call.
//
// When an [http.Client] follows a redirect, Transport sends the token to the new address too. A
// token is not a secret, and does not prove that its sender holds the lock.
type Transport struct {
	Base http.RoundTripper // nil means http.DefaultTransport
	// Resource returns the name of the resource that the request writes to, usually the lock's key.
	// If Resource is nil or returns "", no name is sent.
	Resource func(*http.Request) string
	Require  bool // whether a request without a token fails with ErrNoToken and is not sent
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	token, ok := mortise.TokenFrom(r.Context())
	if !ok && t.Require {
		return nil, closing(r, fmt.Errorf("%w in the context of %s %s", ErrNoToken, r.Method, r.URL.Redacted()))
	}
	if !ok {
		return base.RoundTrip(r)
	}
	sent := r.Clone(r.Context())
	if sent.Header == nil {
		sent.Header = http.Header{}
	}
	sent.Header.Set(TokenHeader, FormatToken(token))
	if t.Resource != nil {
		if resource := t.Resource(r); resource != "" {
			sent.Header.Set(ResourceHeader, url.PathEscape(resource))
		}
	}
	return base.RoundTrip(sent)
}

func closing(r *http.Request, err error) error {
	if r.Body != nil {
		err = errors.Join(err, r.Body.Close())
	}
	return err
}

// ResponseError returns the *StaleError that a response of [Guard] reports, or nil for any other
// response. It reads only headers; the caller must still close the body.
func ResponseError(r *http.Response) error {
	if r.StatusCode != http.StatusPreconditionFailed || r.Header.Get(HighestHeader) == "" {
		return nil
	}
	stale := &StaleError{Resource: resourceOf(r.Header)}
	stale.Highest, _ = ParseToken(r.Header.Get(HighestHeader)) // 0 if the header is malformed
	stale.Token, _ = ParseToken(r.Header.Get(TokenHeader))
	return stale
}

func resourceOf(h http.Header) string {
	resource, _ := url.PathUnescape(h.Get(ResourceHeader)) // "" if the header is malformed
	return resource
}

func tokenOf(h http.Header) (mortise.Token, error) {
	switch values := h.Values(TokenHeader); len(values) {
	case 0:
		return 0, fmt.Errorf("%w: the request has no header %s", ErrNoToken, TokenHeader)
	case 1:
		return ParseToken(values[0])
	default:
		return 0, fmt.Errorf("%w: %d headers %s", ErrBadToken, len(values), TokenHeader)
	}
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff") // the text may contain input of the client
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // the status was already sent
}
