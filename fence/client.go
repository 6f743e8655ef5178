package fence

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/mortise-lock/mortise"
)

// The headers that carry a token.
const (
	TokenHeader    = "Mortise-Token"    // decimal digits, see ParseToken
	ResourceHeader = "Mortise-Resource" // optional, escaped as a path segment of a URL
	HighestHeader  = "Mortise-Highest"  // of a 412 response: the highest token seen
)

// Transport is a client's [http.RoundTripper] that adds the token of the request's context
// ([FromContext]). It does not change the given request. Its fields must not change after the first
// call; then it is safe for concurrent use.
//
// A client that follows a redirect sends the token there, too. A token is not a secret and proves
// nothing.
type Transport struct {
	Base http.RoundTripper // nil means http.DefaultTransport
	// Resource names what the request writes to, usually the lock's key. Nil or "" leaves that to the
	// server.
	Resource func(*http.Request) string
	Require  bool // a request without a token is not sent, and fails with ErrNoToken
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	token, ok := FromContext(r.Context())
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

// closing closes the body of a request that is not sent, as a RoundTripper must.
func closing(r *http.Request, err error) error {
	if r.Body != nil {
		err = errors.Join(err, r.Body.Close())
	}
	return err
}

// ResponseError returns the *StaleError of a response of [Guard], or nil for any other response. It
// reads only headers; the caller keeps the body.
func ResponseError(r *http.Response) error {
	if r.StatusCode != http.StatusPreconditionFailed || r.Header.Get(HighestHeader) == "" {
		return nil
	}
	stale := &StaleError{Resource: resourceOf(r.Header)}
	stale.Highest, _ = ParseToken(r.Header.Get(HighestHeader)) // 0 if another server made it up
	stale.Token, _ = ParseToken(r.Header.Get(TokenHeader))
	return stale
}

func resourceOf(h http.Header) string {
	resource, err := url.PathUnescape(h.Get(ResourceHeader))
	if err != nil {
		return ""
	}
	return resource
}

// tokenOf fails with ErrNoToken if there is no token, and with ErrBadToken if it is malformed or
// there are two.
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
	w.Header().Set("X-Content-Type-Options", "nosniff") // the text repeats what the client sent
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // a client that does not read the body has the status
}
