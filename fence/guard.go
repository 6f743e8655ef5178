package fence

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Guard is a server's middleware that compares the token of each request with the mark of the
// resource. A handler that it calls finds the token in its context ([FromContext]). Otherwise it
// answers itself, in plain text:
//
//	400 Bad Request             the token or the resource is malformed, or there are two
//	412 Precondition Failed     the token is stale; Mortise-Highest says what has been seen
//	428 Precondition Required   there is no token, and Optional is not set
//	503 Service Unavailable     the store cannot be asked, or the wait for lower tokens was cut off
//
// If the store is a [Section], such as [Mark], the handler runs in it: no handler of a lower token
// is running, or starts later, and its context ends when a higher one is seen. With another store,
// such as [Table], a handler can be overtaken while it runs, and has to fence its own write, for
// example by [Tx]; so does a handler that leaves work behind when it returns.
//
// Wrap the handlers that write; reads need no token. A client that may write may also send the
// highest token there is, and shut everybody out: let in whom you trust. A Guard may be copied; it
// is safe for concurrent use if its functions are.
type Guard struct {
	Store Store // required

	// Resource says what a request writes to. nil means what the header Mortise-Resource names;
	// then all clients must name it alike, and a request without it is malformed. A server that
	// knows better, by the path, should say so here.
	Resource func(*http.Request) string

	Optional bool // a request without a token is let through, unguarded
	// is told what the store complains of, beyond refusals; nil: nobody is. The client never is
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
			g.Failed(r, err) // the store could not be left as it should be; the handler has answered
		}
	})
}

// resource is what the request writes to.
func (g Guard) resource(r *http.Request) (string, error) {
	if g.Resource != nil {
		return g.Resource(r), nil
	}
	values := r.Header.Values(ResourceHeader)
	if len(values) != 1 || len(values[0]) > 3*maxResource { // escaped, a byte takes three
		return "", errors.Join(ErrBadResource, errors.New("the request needs one header "+ResourceHeader))
	}
	resource, err := url.PathUnescape(values[0])
	if err != nil {
		return "", errors.Join(ErrBadResource, err)
	}
	return resource, nil
}

// answer says why the handler has not run.
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
