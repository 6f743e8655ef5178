package transport

import (
	"context"
	"net"
	"testing"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"go.etcd.io/raft/v3/raftpb"
)

type taker struct{ hearing }

func (taker) MaySendSnapshot(Identity, *raftpb.Message) error { return nil }
func (taker) Snapshot(Identity, *raftpb.Message) error        { return nil }

func BenchmarkConnection(b *testing.B) {
	for _, name := range []string{"plain", "TLS"} {
		b.Run(name, func(b *testing.B) {
			shared := Config{}
			if name == "TLS" {
				newAuthority(b).use(&shared)
			}
			var ports [2]*Port
			var selves [2]Self
			for i := range ports {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				selves[i] = instance(i+1, l.Addr().String())
				ports[i], err = New(Config{Cluster: "test", Self: selves[i], Listener: l, TLS: shared.TLS,
					Handler: &taker{},
					Dial: func(ctx context.Context, addr string) (net.Conn, error) {
						return new(net.Dialer).DialContext(ctx, "tcp", addr)
					}})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = ports[i].Close() })
			}
			ports[0].dials.places.rates = [classes]rate{} // a rate limit would be measured instead
			to := nodeid.Endpoint{ID: selves[1].Instance(), Addr: selves[1].Addr}
			m := &raftpb.Message{Type: raftpb.MsgSnap.Enum(), From: &selves[0].Raft, To: &selves[1].Raft,
				Snapshot: &raftpb.Snapshot{Data: []byte("x")}}
			b.ReportAllocs()
			for b.Loop() {
				if err := ports[0].SendSnapshot(b.Context(), to, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkProof(b *testing.B) {
	here, there := forge(1), forge(2)
	b.ReportAllocs()
	for b.Loop() {
		asked, _ := here.hello(here.Port.self.Load(), 1, there.key.ID(), 1)
		who, r := there.verify(greeting(here.key, dialer, bound, asked, asked), dialer, bound, nil)
		if r != nil {
			b.Fatal(r)
		}
		answered, _ := there.hello(there.Port.self.Load(), 1, who.peer.Instance, 2)
		if _, r = here.verify(greeting(there.key, acceptor, bound, asked, answered), acceptor, bound, asked); r != nil {
			b.Fatal(r)
		}
	}
}
