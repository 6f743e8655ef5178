package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/transport"
)

type outbound struct {
	port   *transport.Port
	gossip *transport.Gossip
}

func (o outbound) Ask(ctx context.Context, addr string, to nodeid.ID, question []byte) ([]byte, nodeid.ID, error) {
	answer, from, err := queries.Found(ctx, o.port.To(addr, to), question)
	return answer, from, clusterError(err)
}

func (o outbound) QueryStatus(ctx context.Context, addr string, to nodeid.ID,
	q cluster.StatusQuery) (cluster.StatusReply,
	error) {
	a, err := queries.QueryStatus(ctx, o.port.To(addr, to), q)
	return a, clusterError(err)
}

func (o outbound) Probe(ctx context.Context, addr string, to nodeid.ID) error {
	return clusterError(queries.Probe(ctx, o.port.To(addr, to)))
}

func (o outbound) WriteTo(b []byte, addr string) error { return o.gossip.WriteTo(b, addr) }

func (o outbound) ReadPacket(ctx context.Context) ([]byte, string, time.Time, error) {
	select {
	case p := <-o.gossip.Packets():
		return p.Data, p.From, p.At, nil
	case <-ctx.Done():
		return nil, "", time.Time{}, ctx.Err()
	}
}

func (o outbound) DialStream(ctx context.Context, addr string) (net.Conn, error) {
	return o.gossip.DialStream(ctx, addr)
}

func (o outbound) AcceptStream(ctx context.Context) (net.Conn, error) {
	select {
	case conn := <-o.gossip.Streams():
		return conn, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func clusterError(err error) error {
	for _, kind := range [...][2]error{
		{transport.ErrRefused, cluster.ErrRefused}, {transport.ErrForeign, foreign(err)},
		{transport.ErrOther, other(err)},
	} {
		if errors.Is(err, kind[0]) {
			return errors.Join(kind[1], err)
		}
	}
	if why := uneven(err); why != nil {
		return errors.Join(why, err)
	}
	return err
}

// The function foreign returns a *cluster.ForeignError if err reports a process of another cluster,
// and otherwise nil.
func foreign(err error) error {
	if !errors.Is(err, transport.ErrForeign) {
		return nil
	}
	why := credentials.Explain(err)
	// Explain adds this prefix to errors that it does not know. Here it would be wrong, because such
	// an error does not come from the handshake.
	if strings.HasPrefix(why, "the TLS handshake failed: ") {
		why = strings.TrimPrefix(err.Error(), transport.ErrForeign.Error()+": ")
	}
	return &cluster.ForeignError{Why: plain.Text(why)}
}

// uneven returns a *cluster.SilentError if err means that only one side uses TLS, that this machine
// has no route, or that the two builds have different rules. Otherwise it returns nil.
func uneven(err error) error {
	switch {
	case errors.Is(err, transport.ErrPlain):
		return &cluster.SilentError{Why: credentials.OtherPlain}
	case errors.Is(err, transport.ErrSecured):
		return &cluster.SilentError{Why: credentials.OwnPlain}
	case errors.Is(err, transport.ErrRules):
		_, why, _ := strings.Cut(err.Error(), transport.OtherRules)
		return &cluster.SilentError{Why: plain.Text(transport.OtherRules + why)}
	case errors.Is(err, transport.ErrNoRoute):
		number, _ := errors.AsType[syscall.Errno](err)
		return &cluster.SilentError{Why: fmt.Sprintf("this machine has no address or no route for it (%v): repair its "+
			"network, or take the address out of Join and out of the records of its names", number)}
	}
	return nil
}

// other returns the error of package cluster for a transport.ErrOther.
func other(err error) error {
	if who, ok := errors.AsType[*transport.OtherError](err); ok {
		return &cluster.OtherError{Answered: who.Answered}
	}
	return cluster.ErrOther
}
