package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Guard is an HTTP middleware for servers. It compares the token of each request with the mark of
// the resource. If the token is admitted, Guard calls the handler with the token in the context
// ([mortise.TokenFrom]). Otherwise Guard sends one of these responses, in plain text:
//
//	400 Bad Request             the token or the resource is malformed, or there are two
//	412 Precondition Failed     the token is stale; Mortise-Highest is the highest token seen
//	428 Precondition Required   there is no token, and Optional is not set
//	503 Service Unavailable     the store failed, or the wait for lower tokens was interrupted
//
// If the store is a [Section], such as [Mark], the handler runs under [Section.Do]: no handler of a
// lower token still runs, and a higher token may end the handler's context. Otherwise a holder of a
// higher token can write while the handler runs, so the handler must fence its own write, for
// example by [Tx]. Work that continues after the handler has returned must also be fenced.
//
// Wrap only the handlers that write; reads need no token. Admit only clients that you trust (see
// the limits of the package). A Guard may be copied. It is safe for concurrent use if its functions
// are.
type Guard struct {
	Store Store // required

	// Resource returns the name of the resource that a request writes to. If Resource is nil, Guard
	// uses the name in the header Mortise-Resource, and a request without the header is malformed.
	// All clients must then use the same names.
	Resource func(*http.Request) string

	Optional bool // whether requests without a token are passed to the handler unchecked
	// Failed is called with errors of the store other than refusals. The client does not get these
	// errors. If Failed is nil, they are discarded.
	Failed func(*http.Request, error)
}

// Wrap returns a handler that checks the token of each request before it calls next.
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
	if len(values) != 1 || len(values[0]) > 3*maxResource { // an escaped byte of the name takes up to three bytes
		return "", errors.Join(ErrBadResource,
			fmt.Errorf("the request needs exactly one header %s, of at most %d bytes", ResourceHeader, 3*maxResource))
	}
	resource, err := url.PathUnescape(values[0])
	if err != nil {
		return "", errors.Join(ErrBadResource, err)
	}
	return resource, nil
}

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
