package transport

import (
	"crypto/sha256"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/formats"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const (
	protocol  = formats.Hello // version of the protocol in peer.proto
	maxAddr   = 512           // bytes
	bootBytes = 16
)

type role byte

const (
	dialer   role = 1
	acceptor role = 2
)

func (p *base) hello(self *Self, kind wire.Hello_Kind, intended nodeid.ID, number uint64) ([]byte, error) {
	h := &wire.Hello{
		Version: protocol, Cluster: p.config.Cluster, Key: self.Key.Public(), Kind: kind,
		Group: self.Group, Raft: self.Raft, Addr: self.Addr, Number: number, Life: p.config.Life, Boot: p.boot[:],
		Rules: p.config.Rules,
	}
	if !intended.IsZero() {
		h.Intended = intended[:]
	}
	return proto.Marshal(h)
}

func signedBytes(as role, binding, dialerHello, own []byte) []byte {
	b := append([]byte(formats.HelloContext), byte(as))
	b = append(b, binding...)
	sum := sha256.Sum256(dialerHello)
	b = append(b, sum[:]...)
	if as == acceptor {
		sum = sha256.Sum256(own)
		b = append(b, sum[:]...)
	}
	return b
}

func greeting(key nodeid.Key, as role, binding, dialerHello, own []byte) *wire.Greeting {
	return &wire.Greeting{Hello: own, Signature: key.Sign(signedBytes(as, binding, dialerHello, own))}
}

type introduction struct {
	peer     Identity
	kind     wire.Hello_Kind
	intended nodeid.ID
	number   uint64
	boot     [bootBytes]byte
	raw      []byte // signed bytes of the hello
	binding  []byte
}

// verify checks the hello of the side with the given role. dialerHello is nil if g is the greeting
// of the dialer. verify checks the label first, because the hello of another cluster may have any
// format.
func (p *base) verify(g *wire.Greeting, as role, binding, dialerHello []byte) (*introduction, *wire.Refusal) {
	no := func(reason wire.Refusal_Reason, format string, args ...any) (*introduction, *wire.Refusal) {
		return nil, &wire.Refusal{Reason: reason, Text: fmt.Sprintf(format, args...)}
	}
	h := &wire.Hello{}
	if err := proto.Unmarshal(g.Hello, h); err != nil || len(g.Hello) == 0 {
		return no(wire.Refusal_MALFORMED, "the connection does not begin with a hello")
	}
	if h.Cluster != p.config.Cluster {
		return no(wire.Refusal_CLUSTER,
			"this is cluster %q, the peer belongs to %q: all nodes of one service need the same Config.Cluster",
			p.config.Cluster, clip(h.Cluster))
	}
	if h.Version != protocol {
		return no(wire.Refusal_VERSION, "protocol version %d here, %d there: run versions of mortise that overlap",
			protocol, h.Version)
	}
	if text := otherRules(p.config.Rules, h.Rules); text != "" {
		return no(wire.Refusal_RULES, "%s", text)
	}
	who := &introduction{
		peer: Identity{Instance: nodeid.Of(h.Key), Group: h.Group, Raft: h.Raft, Addr: h.Addr, Life: h.Life},
		kind: h.Kind, number: h.Number, raw: g.Hello, binding: binding,
	}
	meant, some := nodeid.FromBytes(h.Intended)
	who.intended = meant
	if who.peer.Instance.IsZero() || len(h.Addr) > maxAddr || !some && len(h.Intended) > 0 || h.Life == 0 ||
		len(h.Boot) != bootBytes || h.Kind != wire.Hello_LINK && h.Kind != wire.Hello_CALLS {
		return no(wire.Refusal_MALFORMED, "a hello with a field that no correct peer sends")
	}
	copy(who.boot[:], h.Boot)
	if dialerHello == nil {
		dialerHello = g.Hello
	}
	if !nodeid.Verify(h.Key, signedBytes(as, binding, dialerHello, g.Hello), g.Signature) {
		return no(wire.Refusal_MALFORMED, "the hello claims instance %v and is not signed with its key",
			who.peer.Instance)
	}
	return who, nil
}

// OtherRules is the beginning of the reason in the text of an ErrRules.
const OtherRules = "both builds have lock rules"

// otherRules compares the fingerprints of the rules that both sides have. Two builds with the same
// version and different rules would apply the same log to different states.
func otherRules(here, there []uint64) string {
	for i := range min(len(here), len(there)) {
		if here[i] != there[i] {
			return fmt.Sprintf(OtherRules+" %d, and they are not the same rules (%016x here, %016x there): "+
				"the builds are from two unreleased commits; deploy one of them everywhere", i+1, here[i], there[i])
		}
	}
	return ""
}

func clip(s string) string {
	if len(s) > maxLabel {
		return plain.Cut(s, maxLabel) + "..."
	}
	return plain.Cut(s, maxLabel)
}

func kindOf(reason wire.Refusal_Reason) error {
	switch reason {
	case wire.Refusal_CLUSTER:
		return ErrForeign
	case wire.Refusal_VERSION:
		return ErrVersion
	case wire.Refusal_RULES:
		return ErrRules
	case wire.Refusal_GROUP:
		return ErrGroup
	case wire.Refusal_FULL:
		return ErrFull
	case wire.Refusal_MALFORMED:
		return ErrGarbage
	case wire.Refusal_CROSSED:
		return ErrNoLink
	case wire.Refusal_COPY:
		return ErrCopy
	}
	return ErrSilent
}

// refused turns a refusal from addr into an error. A refusal is not signed, so it does not prove
// which process sent it.
func refused(addr string, r *wire.Refusal) error {
	return fmt.Errorf("%w: %s refuses: %s", kindOf(r.GetReason()), addr, clip(r.GetText()))
}
