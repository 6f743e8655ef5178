package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/attack"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// TestAttackersGetBeyondTheHello lets the hostile peer of the tests and of the campaign send what a
// correct instance sends. Each must have its ordinary effect. Otherwise the attacks are refused
// because of their form, and show nothing.
func TestAttackersGetBeyondTheHello(t *testing.T) {
	assaulted(t, everySecurity(), func(a *assault) {
		at := a.leader()
		n := a.nodes[at]
		enter := func(kind wire.Hello_Kind) *attack.Conn {
			c, err := a.speaker.Open(a.t.Context(), address(at))
			if err != nil {
				a.t.Fatal(err)
			}
			key := nodeid.NewKey(realWorld().Random)
			hello := a.speaker.Hello(key, kind, func(h *wire.Hello) { h.Group = n.Replica().Group })
			answer, err := c.Greet(attack.Sign(key, c.Binding, hello))
			if err != nil || answer.Refusal != nil || answer.Hello == nil {
				a.t.Fatalf("refused at the hello: %v, %v", answer, err)
			}
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			return c
		}

		link := enter(wire.Hello_LINK)
		defer link.Close()
		open := lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce(1), TTL: 10 * time.Second}.Append(nil)
		if err := link.Frame(attack.Field("commands", open)); err != nil {
			a.t.Fatal(err)
		}
		if link.Opened(nonce(1), 5*time.Second) == 0 {
			a.t.Error("the leader opens no session for the commands of a frame")
		}

		calls := enter(wire.Hello_CALLS)
		client, end, err := calls.Calls()
		if err != nil {
			a.t.Fatal(err)
		}
		defer end()
		me := []attack.Replica{{Raft: 7, Instance: nodeidtest.ID(hostileInstance), Addr: "10.0.0.66:7947", Life: 1}}
		ctx, cancel := context.WithTimeout(a.t.Context(), 5*time.Second)
		defer cancel()
		stream, err := client.Found(ctx)
		if err == nil {
			err = stream.Send(&wire.Question{Body: attack.Question(attack.Push(n.ID(), 99, 3, me))})
		}
		if err == nil {
			err = stream.CloseSend()
		}
		var answer *wire.Answer
		if err == nil {
			answer, err = stream.Recv()
		}
		if err != nil || answer.Failed || answer.Refusal != nil {
			a.t.Errorf("a question about the founding is not answered: %v, %v", answer, err)
		}
	})
}
