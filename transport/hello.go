package transport

import (
	"fmt"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const (
	protocol = 1   // the version of what peer.proto describes
	maxAddr  = 512 // bytes of an address in a hello
)

// greet makes the hello of self for the instance that is meant (0: whoever is there).
func (i Identity) greet(intended Instance, number uint64) *wire.Hello {
	return &wire.Hello{
		Version: protocol, Cluster: i.Cluster, Instance: uint64(i.Instance), Intended: uint64(intended),
		Group: i.Group, Raft: i.Raft, Addr: i.Addr, Number: number,
	}
}

// identity reads who says h.
func identity(h *wire.Hello) Identity {
	return Identity{Cluster: h.GetCluster(), Instance: Instance(h.GetInstance()), Group: h.GetGroup(), Raft: h.GetRaft(), Addr: h.GetAddr()}
}

// refuse says why self does not talk to whoever says h; nil: it does. The label is looked at first: of somebody with another label
// nothing else need make sense.
func (i Identity) refuse(h *wire.Hello) *wire.Refusal {
	no := func(reason wire.Refusal_Reason, format string, args ...any) *wire.Refusal {
		return &wire.Refusal{Reason: reason, Text: fmt.Sprintf(format, args...), Instance: uint64(i.Instance)}
	}
	switch {
	case h == nil:
		return no(wire.Refusal_MALFORMED, "the stream does not begin with a hello")
	case h.Cluster != i.Cluster:
		return no(wire.Refusal_CLUSTER, "this is cluster %q, the peer belongs to %q: nodes of one service need equal labels", i.Cluster, clip(h.Cluster))
	case h.Version != protocol:
		return no(wire.Refusal_VERSION, "protocol version %d here, %d there: run versions of mortise that overlap", protocol, h.Version)
	case h.Instance == 0 || len(h.Addr) > maxAddr:
		return no(wire.Refusal_MALFORMED, "a hello without an instance or with an absurd address")
	case !bug("no-instance-check") && h.Intended != 0 && h.Intended != uint64(i.Instance):
		return no(wire.Refusal_INSTANCE, "this is instance %v, not %v", i.Instance, h.Intended)
	}
	return nil
}

// clip shortens foreign text before it is shown.
func clip(s string) string {
	if len(s) > maxLabel {
		return s[:maxLabel] + "..."
	}
	return s
}

// kindOf is the error that stands for a reason.
func kindOf(reason wire.Refusal_Reason) error {
	switch reason {
	case wire.Refusal_CLUSTER:
		return ErrForeign
	case wire.Refusal_VERSION:
		return ErrVersion
	case wire.Refusal_INSTANCE:
		return ErrOther
	case wire.Refusal_GROUP:
		return ErrGroup
	case wire.Refusal_FULL:
		return ErrFull
	case wire.Refusal_MALFORMED:
		return ErrGarbage
	case wire.Refusal_CROSSED:
		return ErrNoLink
	}
	return ErrSilent
}

// refused turns a refusal that came from addr into an error.
func refused(addr string, asked Instance, r *wire.Refusal) error {
	if r.GetReason() == wire.Refusal_INSTANCE {
		return &OtherError{Addr: addr, Asked: asked, Answered: Instance(r.GetInstance())}
	}
	return fmt.Errorf("%w: %s refuses: %s", kindOf(r.GetReason()), addr, clip(r.GetText()))
}

// answered checks the hello with which addr answered us, who asked for one instance (0: any).
func (i Identity) answered(addr string, asked Instance, h *wire.Hello) error {
	if r := i.refuse(h); r != nil && r.Reason != wire.Refusal_INSTANCE {
		if r.Reason == wire.Refusal_MALFORMED {
			return fmt.Errorf("%w: %s: %s", ErrForeign, addr, r.Text)
		}
		return refused(addr, asked, r)
	}
	if asked != 0 && Instance(h.Instance) != asked {
		return &OtherError{Addr: addr, Asked: asked, Answered: Instance(h.Instance)}
	}
	return nil
}
