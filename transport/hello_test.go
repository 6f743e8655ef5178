package transport

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// bound is the binding of hellos in tests that have no connection.
var bound = make([]byte, bindingBytes)

func TestHellos(t *testing.T) {
	here, there := forge(1), forge(2)
	here.config.Rules = []uint64{7, 8}
	cases := []struct {
		why    string
		change func(*wire.Hello)
		reason wire.Refusal_Reason
		err    error
	}{
		{"all is well", func(*wire.Hello) {}, wire.Refusal_NONE, nil},
		{"for one instance", func(h *wire.Hello) { id := id(1); h.Intended = id[:] }, wire.Refusal_NONE, nil},
		{"from another group", func(h *wire.Hello) { h.Group = 9 }, wire.Refusal_NONE, nil},
		{"for calls", func(h *wire.Hello) { h.Kind = wire.Hello_CALLS }, wire.Refusal_NONE, nil},
		{"empty", func(h *wire.Hello) { proto.Reset(h) }, wire.Refusal_MALFORMED, ErrGarbage},
		{"no label", func(h *wire.Hello) { h.Cluster = "" }, wire.Refusal_CLUSTER, ErrForeign},
		{"another label", func(h *wire.Hello) { h.Cluster = "other" }, wire.Refusal_CLUSTER, ErrForeign},
		{"another label and version", func(h *wire.Hello) { h.Cluster, h.Version = "other", 3 }, wire.Refusal_CLUSTER,
			ErrForeign},
		{"another version", func(h *wire.Hello) { h.Version = 3 }, wire.Refusal_VERSION, ErrVersion},
		{"another version with another key", func(h *wire.Hello) { h.Version, h.Key = 3, nil }, wire.Refusal_VERSION,
			ErrVersion},
		{"the same rules", func(h *wire.Hello) { h.Rules = []uint64{7, 8} }, wire.Refusal_NONE, nil},
		{"fewer rules", func(h *wire.Hello) { h.Rules = []uint64{7} }, wire.Refusal_NONE, nil},
		{"more rules", func(h *wire.Hello) { h.Rules = []uint64{7, 8, 9} }, wire.Refusal_NONE, nil},
		{"other rules", func(h *wire.Hello) { h.Rules = []uint64{7, 9} }, wire.Refusal_RULES, ErrRules},
		{"other old rules", func(h *wire.Hello) { h.Rules = []uint64{6, 8, 9} }, wire.Refusal_RULES, ErrRules},
		{"no key", func(h *wire.Hello) { h.Key = nil }, wire.Refusal_MALFORMED, ErrGarbage},
		{"half a key", func(h *wire.Hello) { h.Key = h.Key[:31] }, wire.Refusal_MALFORMED, ErrGarbage},
		{"the key of another instance", func(h *wire.Hello) { h.Key = key(3).Public() }, wire.Refusal_MALFORMED,
			ErrGarbage},
		{"half an instance", func(h *wire.Hello) { h.Intended = make([]byte, 8) }, wire.Refusal_MALFORMED, ErrGarbage},
		{"no life", func(h *wire.Hello) { h.Life = 0 }, wire.Refusal_MALFORMED, ErrGarbage},
		{"no boot", func(h *wire.Hello) { h.Boot = nil }, wire.Refusal_MALFORMED, ErrGarbage},
		{"too much boot", func(h *wire.Hello) { h.Boot = make([]byte, bootBytes+1) }, wire.Refusal_MALFORMED,
			ErrGarbage},
		{"for nothing", func(h *wire.Hello) { h.Kind = wire.Hello_NONE }, wire.Refusal_MALFORMED, ErrGarbage},
		{"for what a later version adds", func(h *wire.Hello) { h.Kind = 99 }, wire.Refusal_MALFORMED, ErrGarbage},
		{"absurd address", func(h *wire.Hello) { h.Addr = strings.Repeat("x", maxAddr+1) }, wire.Refusal_MALFORMED,
			ErrGarbage},
		{"absurd label", func(h *wire.Hello) { h.Cluster = strings.Repeat("x", 1<<20) }, wire.Refusal_CLUSTER,
			ErrForeign},
	}
	for _, c := range cases {
		own := there.says(c.change)
		who, r := here.verify(greeting(there.key, dialer, bound, own, own), dialer, bound, nil)
		if r.GetReason() != c.reason || (r == nil) != (who != nil) {
			t.Errorf("%s: got %v", c.why, r)
		}
		if len(r.GetText()) > 1000 {
			t.Errorf("%s: a refusal of %d bytes", c.why, len(r.GetText()))
		}
		if r == nil {
			continue
		}
		if err := refused("a:1", r); !errors.Is(err, c.err) || !strings.Contains(err.Error(), "a:1") {
			t.Errorf("%s: %v, want %v and the address", c.why, err, c.err)
		}
	}
}

func TestWhatASignatureIsGoodFor(t *testing.T) {
	here, there := forge(1), forge(2)
	asked, answered := here.says(func(*wire.Hello) {}), there.says(func(*wire.Hello) {})
	elsewhere := append([]byte{1}, bound[1:]...)
	other := here.says(func(h *wire.Hello) { h.Number = 2 })
	changed := there.says(func(h *wire.Hello) { h.Addr = "elsewhere:1" })
	dialed, accepted := greeting(there.key, dialer, bound, answered, answered),
		greeting(there.key, acceptor, bound, asked, answered)
	cases := []struct {
		why      string
		greeting *wire.Greeting
		as       role
		binding  []byte
		dialer   []byte
		good     bool
	}{
		{"a dialer", dialed, dialer, bound, nil, true},
		{"an acceptor", accepted, acceptor, bound, asked, true},
		{"a dialer on another connection", dialed, dialer, elsewhere, nil, false},
		{"an acceptor on another connection", accepted, acceptor, elsewhere, asked, false},
		{"a dialer's hello as an answer", dialed, acceptor, bound, asked, false},
		{"a dialer's hello as an answer to itself", dialed, acceptor, bound, answered, false},
		{"an answer as a dialer's hello", accepted, dialer, bound, nil, false},
		{"an answer to another hello", accepted, acceptor, bound, other, false},
		{"another hello under the signature", &wire.Greeting{Hello: changed, Signature: dialed.Signature}, dialer,
			bound, nil, false},
		{"another answer under the signature", &wire.Greeting{Hello: changed, Signature: accepted.Signature},
			acceptor, bound, asked, false},
		{"no signature", &wire.Greeting{Hello: answered}, dialer, bound, nil, false},
		{"half a signature", &wire.Greeting{Hello: answered, Signature: dialed.Signature[:32]}, dialer, bound, nil,
			false},
		{"the signature of another key", greeting(key(3), dialer, bound, answered, answered), dialer, bound, nil,
			false},
	}
	for _, c := range cases {
		who, r := here.verify(c.greeting, c.as, c.binding, c.dialer)
		if (r == nil) != c.good || c.good && who.peer.Instance != id(2) ||
			!c.good && r.Reason != wire.Refusal_MALFORMED {
			t.Errorf("%s: got %+v, %v", c.why, who, r)
		}
	}
}

func TestHelloCarriesTheIdentity(t *testing.T) {
	p := forge(1)
	p.config.Life = 9
	self := p.Port.self.Load()
	own, err := p.hello(self, wire.Hello_LINK, id(2), 3)
	if err != nil {
		t.Fatal(err)
	}
	who, r := forge(2).verify(greeting(self.Key, dialer, bound, own, own), dialer, bound, nil)
	if r == nil {
		who.peer.Peer = self.seen(9).Peer // the rights come from the connection
	}
	if r != nil || who.peer != self.seen(9) || who.intended != id(2) || who.number != 3 ||
		who.kind != wire.Hello_LINK || who.boot != p.boot {
		t.Errorf("got %+v, %v", who, r)
	}
}

// Refusals are not signed, so no refusal results in ErrOther, not even one with a reason of a later
// version.
func TestARefusalProvesNoInstance(t *testing.T) {
	for reason := range wire.Refusal_Reason(100) {
		err := refused("a:1", &wire.Refusal{Reason: reason, Text: "text"})
		if errors.Is(err, ErrOther) {
			t.Errorf("%v: %v", reason, err)
		}
		if _, known := wire.Refusal_Reason_name[int32(reason)]; !known && !errors.Is(err, ErrSilent) {
			t.Errorf("%v: %v", reason, err)
		}
	}
}
