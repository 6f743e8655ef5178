package queries

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Guard is the interceptor of all services.
type Guard struct {
	Started   func() bool           // no question is answered before Started returns true
	Translate func(err error) error // converts the errors of the methods; nil means no conversion
}

var (
	errNoInstance = errors.New("mortise: only instances may ask this")
	errStarting   = errors.New("mortise: this instance is starting")
)

type rightsKey struct{}

// RightsOf returns the rights of the question in ctx. Nil means the rights of a full instance.
func RightsOf(ctx context.Context) *capability.Capability {
	c, _ := ctx.Value(rightsKey{}).(*capability.Capability)
	return c
}

// Intercept calls the method if the sender may ask the question. It sets the Origin of the question
// to the authenticated sender or, if an instance forwards the question, to the program that has
// asked.
func (g *Guard) Intercept(ctx context.Context, q any, info *grpc.UnaryServerInfo, method grpc.UnaryHandler) (any,
	error) {
	from := transport.AskerOf(ctx)
	if !serves(info.FullMethod, from.Peer.Tier) {
		return nil, errNoInstance
	}
	rights, err := settle(info.FullMethod, from, q)
	if err == nil {
		err = Allowed(rights, q)
	}
	if err == nil && !g.Started() {
		err = errStarting
	}
	var answer any
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, within(info.FullMethod, q))
		defer cancel()
		ctx = context.WithValue(ctx, userKey{}, userFrom(from, rights, q))
		answer, err = method(context.WithValue(ctx, rightsKey{}, rights), q)
	}
	if err != nil && g.Translate != nil {
		err = g.Translate(err)
	}
	if err != nil && !is(info.FullMethod, &query.Cluster_ServiceDesc) {
		err = failure(err)
	}
	return answer, err
}

type userKey struct{}

// userOf returns the user for whom limits count the question in ctx.
func userOf(ctx context.Context) fair.Identity {
	who, _ := ctx.Value(userKey{}).(fair.Identity)
	return who
}

// userFrom returns the user of a question: the program, if an instance forwards its question, and
// otherwise the sender.
func userFrom(from transport.Identity, rights *capability.Capability, q any) fair.Identity {
	who := fair.Identity{Instance: from.Instance, Secret: rights.Text()}
	if m, ok := q.(interface{ GetOrigin() *query.Origin }); ok {
		if asker := ID(m.GetOrigin().GetAsker()); !asker.IsZero() {
			who.Instance = asker
		}
	}
	return who
}

func is(method string, of *grpc.ServiceDesc) bool {
	return strings.HasPrefix(method, "/"+of.ServiceName+"/")
}

func serves(method string, tier capability.Tier) bool {
	instance, member := tier == capability.Root, tier == capability.Member
	switch {
	case is(method, &query.Admin_ServiceDesc):
		return instance || member || tier == capability.Guest
	case method == query.Cluster_ReportDisk_FullMethodName, method == query.Cluster_Disks_FullMethodName:
		return instance
	case is(method, &query.Query_ServiceDesc), is(method, &query.Cluster_ServiceDesc):
		return instance || member
	}
	return false
}

// settle returns the rights of a question and sets its origin. A question that an instance sends
// to the service Query keeps its origin, since the instance may forward the question of a
// program. Any other question has the rights that the sender's connection proves.
func settle(method string, from transport.Identity, q any) (*capability.Capability, error) {
	m := q.(proto.Message).ProtoReflect()
	field := m.Descriptor().Fields().ByName("origin")
	rights := from.Peer.Capability
	if rights == nil && field != nil && is(method, &query.Query_ServiceDesc) {
		text := q.(interface{ GetOrigin() *query.Origin }).GetOrigin().GetRights()
		if text == "" {
			return nil, nil
		}
		c, err := capability.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("mortise: a question was forwarded with unreadable rights: %w", err)
		}
		return c, nil
	}
	if field != nil {
		origin := &query.Origin{Rights: rights.Text(), Asker: from.Instance[:]}
		m.Set(field, protoreflect.ValueOfMessage(origin.ProtoReflect()))
	}
	return rights, nil
}

// Allowed returns a *session.NotAllowedError if c does not grant the right that a question needs. A
// nil c grants everything.
func Allowed(c *capability.Capability, q any) error {
	if c == nil {
		return nil
	}
	lacks := func(granted bool, verb, key string) error {
		if granted {
			return nil
		}
		return &session.NotAllowedError{Verb: verb, Key: key, For: c.For()}
	}
	sees := func(key []byte) error { return lacks(c.Sees(string(key)), "read", string(key)) }
	lists := func(prefix []byte) error {
		return lacks(c.AllowsPrefix(capability.Read, string(prefix)), "read", string(prefix)+"*")
	}
	switch q := q.(type) {
	case *query.HereRequest, *query.FoundRequest, *query.VoterStatusRequest, *query.ProbeRequest:
		return nil
	case *query.KeyRequest:
		return sees(q.Key)
	case *query.HoldRequest:
		return sees(q.Key)
	case *query.HoldersRequest:
		return sees(q.Key)
	case *query.ListRequest:
		if err := lists(q.Prefix); err != nil || len(q.GetNext().GetKey()) == 0 || isSealed(string(q.Next.Key)) {
			return err
		}
		return sees(q.Next.Key)
	case *query.WatchRequest:
		for _, each := range q.Prefixes {
			if err := lists(each); err != nil {
				return err
			}
		}
		if len(q.Prefixes) == 0 {
			return lists(nil)
		}
		return nil
	case *query.StateRequest, *query.PageRequest:
		return lists(nil)
	case *query.PutRequest:
		err := lacks(c.Allows(capability.Write, string(q.Key)), "write", string(q.Key))
		if err == nil && q.Token != 0 {
			err = sees(q.Lock)
		}
		return err
	case *query.ValueRequest:
		return lacks(c.Allows(capability.Lock, string(q.Key)), "lock", string(q.Key))
	case *query.ReserveRequest:
		return lacks(c.AllowsPrefix(capability.Lock, ""), "lock", "*")
	case *query.EvictRequest:
		if err := lacks(c.Allows(capability.Force, string(q.Key)), "force", string(q.Key)); err != nil {
			return err
		}
		return lacks(c.Allows(capability.Read, string(q.Key)), "read", string(q.Key))
	}
	return lacks(false, "root", "")
}

// ID decodes an instance ID. It returns zero if b has another length.
func ID(b []byte) (id nodeid.ID) {
	if len(b) == nodeid.Size {
		id = nodeid.ID(b)
	}
	return id
}
