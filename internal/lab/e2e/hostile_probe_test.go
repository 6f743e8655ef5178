package e2e

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

type diverted struct {
	from, to string
	on       atomic.Bool
}

func (d *diverted) alter(e *outside.World) {
	dial := e.Dial
	e.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
		if addr == d.from && d.on.Load() {
			addr = d.to
		}
		return dial(ctx, addr)
	}
}

// TestHostileProbes cuts a voter off, and lets an impostor answer at its address. The answer must
// not change the time after which the voter is replaced.
func TestHostileProbes(t *testing.T) {
	slow.UnderRace(t)
	imposter := func(key nodeid.Key, signed bool) func(*attack.Speaker, *wire.Greeting) *wire.Greeting {
		return func(s *attack.Speaker, said *wire.Greeting) *wire.Greeting {
			hello := s.Hello(key, wire.Hello_CALLS, nil)
			if !signed {
				return &wire.Greeting{Hello: hello}
			}
			return attack.Sign(nodeidtest.Key(hostileInstance), make([]byte, 32), hello)
		}
	}
	refusal := func(reason wire.Refusal_Reason) func(*attack.Speaker, *wire.Greeting) *wire.Greeting {
		return func(*attack.Speaker, *wire.Greeting) *wire.Greeting {
			return &wire.Greeting{Refusal: &wire.Refusal{Reason: reason,
				Text: "instance 0123456789abcdef0123456789abcdef is not here"}}
		}
	}
	silent := replacedAfter(t, "nothing", nil)
	for name, answer := range map[string]func(*attack.Speaker, *wire.Greeting) *wire.Greeting{
		"another service":                 nil,
		"a refusal: another cluster":      refusal(wire.Refusal_CLUSTER),
		"a refusal: malformed":            refusal(wire.Refusal_MALFORMED),
		"a refusal: failed":               refusal(wire.Refusal_FAILED),
		"a refusal: copy":                 refusal(wire.Refusal_COPY),
		"another ID without a signature":  imposter(nodeidtest.Key(77), false),
		"another ID with a bad signature": imposter(nodeidtest.Key(77), true),
	} {
		if testing.Short() && len(name)%2 > 0 { // at a merge three of the seven
			continue
		}
		took := replacedAfter(t, name, func(a *assault, conn net.Conn) {
			if answer == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
				return
			}
			c, said, err := attack.Accept(conn, a.security.ServerTLS())
			if err == nil && c.Say(answer(a.speaker, said)) == nil {
				c.Ended(time.Second)
			}
		})
		if took < silent*9/10 {
			t.Errorf("with %s at its address a voter was replaced after %v, with nothing there after %v", name, took,
				silent)
		}
	}
}

// replacedAfter returns the time after which a voter that is cut off is replaced. The function
// answer handles connections to the voter's address. If answer is nil, no process listens there.
func replacedAfter(t *testing.T, name string, answer func(a *assault, conn net.Conn)) (took time.Duration) {
	t.Run(name, func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			d := &diverted{to: "10.0.0.77:7947"}
			a := newAssaultWith(t, withSecret(secretA), d.alter)
			a.join(3)
			time.Sleep(5 * time.Second)
			victim := a.follower()
			if victim == 3 {
				t.Fatal("the fourth instance votes")
			}
			raft := raftOf(a.nodes[victim])
			d.from = address(victim)
			if answer != nil {
				l, err := a.net.Listen(d.to)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				go func() {
					for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
						go func() {
							answer(a, conn)
							conn.Close()
						}()
					}
				}()
				d.on.Store(true)
			}
			a.isolate(victim)
			// The leader no longer has a link to the voter, so it probes the voter.
			a.net.Reset(host(victim))
			began := time.Now()
			for still := true; still; {
				time.Sleep(50 * time.Millisecond)
				if took = time.Since(began); took > time.Minute {
					t.Fatal("the voter was not replaced")
				}
				_, still = a.nodes[a.leader()].Cluster().Voter(raft)
			}
			t.Logf("replaced after %v", took)
			d.on.Store(false)
			a.rejoin(victim)
			a.wantVoters(3)
		})
	})
	return took
}
