package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Guard is a server's middleware that compares the token of each request with the mark of the
// resource. If the token is admitted, it calls the handler with the token in the context
// ([FromContext]). Otherwise it answers itself, in plain text:
//
//	400 Bad Request             the token or the resource is malformed, or there are two
//	412 Precondition Failed     the token is stale; Mortise-Highest is the highest token seen
//	428 Precondition Required   there is no token, and Optional is not set
//	503 Service Unavailable     the store failed, or the wait for lower tokens was interrupted
//
// If the store is a [Section], such as [Mark], the handler runs in it: no handler of a lower token
// is running or starts later, and its context ends when a higher token is seen. With another store,
// such as [Table], a handler can be overtaken, and must fence its own write, for example by [Tx].
// The same applies to work that a handler leaves behind.
//
// Wrap the handlers that write; reads need no token. Admit only clients that you trust: one that
// may write can send the highest token and lock all others out. A Guard may be copied; it is safe
// for concurrent use if its functions are.
type Guard struct {
	Store Store // required

	// Resource returns what a request writes to. Nil means the resource of the header
	// Mortise-Resource. Then all clients must use the same names, and a request without the header
	// is malformed. Set it if the server can derive the resource, for example from the path.
	Resource func(*http.Request) string

	Optional bool // a request without a token is passed on unguarded
	// Failed is called with errors of the store that are not refusals, which the client never sees.
	// Nil means that they are dropped.
	Failed func(*http.Request, error)
}

// Wrap returns a handler that guards next.
func (g Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := tokenOf(r.Header)
		if errors.Is(err, ErrNoToken) && g.Optional {
			next.ServeHTTP(w, r)
			return
		}
		if err != nil {
			g.answer(w, r, err)
			return
		}
		resource, err := g.resource(r)
		if err != nil {
			g.answer(w, r, err)
			return
		}
		admitted := false
		err = Run(r.Context(), g.Store, resource, token, func(ctx context.Context) error {
			admitted = true
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		if err != nil && !admitted {
			g.answer(w, r, err)
		} else if err != nil && g.Failed != nil {
			g.Failed(r, err) // the store failed after the handler had answered
		}
	})
}

func (g Guard) resource(r *http.Request) (string, error) {
	if g.Resource != nil {
		return g.Resource(r), nil
	}
	values := r.Header.Values(ResourceHeader)
	if len(values) != 1 || len(values[0]) > 3*maxResource { // escaped, a byte takes three
		return "", errors.Join(ErrBadResource,
			fmt.Errorf("the request needs exactly one header %s, of at most %d bytes", ResourceHeader, 3*maxResource))
	}
	resource, err := url.PathUnescape(values[0])
	if err != nil {
		return "", errors.Join(ErrBadResource, err)
	}
	return resource, nil
}

// answer writes the response for a request whose handler has not run.
func (g Guard) answer(w http.ResponseWriter, r *http.Request, err error) {
	var stale *StaleError
	switch {
	case errors.As(err, &stale):
		w.Header().Set(TokenHeader, FormatToken(stale.Token))
		w.Header().Set(HighestHeader, FormatToken(stale.Highest))
		w.Header().Set(ResourceHeader, url.PathEscape(stale.Resource))
		refuse(w, http.StatusPreconditionFailed, stale.Error())
	case errors.Is(err, ErrNoToken):
		refuse(w, http.StatusPreconditionRequired, err.Error())
	case errors.Is(err, ErrBadToken), errors.Is(err, ErrBadResource):
		refuse(w, http.StatusBadRequest, strings.ReplaceAll(err.Error(), "\n", ": "))
	default:
		if g.Failed != nil {
			g.Failed(r, err)
		}
		refuse(w, http.StatusServiceUnavailable, "fence: the token could not be compared")
	}
}
