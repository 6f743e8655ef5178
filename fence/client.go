package fence

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/mortise-lock/mortise"
)

// The headers in which a token travels.
const (
	TokenHeader    = "Mortise-Token"    // decimal digits, see ParseToken
	ResourceHeader = "Mortise-Resource" // optional, escaped as a path segment of a URL
	HighestHeader  = "Mortise-Highest"  // of an answer 412: the highest token seen
)

// Transport is a client's [http.RoundTripper] that sends the token of the request's context
// ([FromContext]) along. It does not change the request that it is given. Its fields must not be
// changed after the first call; then it is safe for concurrent use.
//
// A client that follows a redirect sends the token there, too. A token is no secret, and proves
// nothing.
type Transport struct {
	Base http.RoundTripper // nil means http.DefaultTransport
	// what the request is about, usually the lock's key; nil or "": the server knows
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

// closing does what a RoundTripper owes the body of a request that it does not send.
func closing(r *http.Request, err error) error {
	if r.Body != nil {
		err = errors.Join(err, r.Body.Close())
	}
	return err
}

// ResponseError returns the *StaleError that an answer of [Guard] says, and nil if it says
// something else. It reads headers only; the body stays the caller's.
func ResponseError(r *http.Response) error {
	if r.StatusCode != http.StatusPreconditionFailed || r.Header.Get(HighestHeader) == "" {
		return nil
	}
	stale := &StaleError{Resource: resourceOf(r.Header)}
	stale.Highest, _ = ParseToken(r.Header.Get(HighestHeader)) // 0 if somebody made it up
	stale.Token, _ = ParseToken(r.Header.Get(TokenHeader))
	return stale
}

// resourceOf is the resource that a header names, "" if it names none.
func resourceOf(h http.Header) string {
	resource, err := url.PathUnescape(h.Get(ResourceHeader))
	if err != nil {
		return ""
	}
	return resource
}

// tokenOf reads the token of a request: ErrNoToken if it has none, ErrBadToken if it has something
// else, or two.
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

// refuse answers in place of the handler.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff") // the text repeats what the client sent
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // who does not read the answer has the status
}
