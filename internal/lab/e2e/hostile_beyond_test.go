package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// TestAttackersGetBeyondTheHello lets the hostile peer of the tests and of the campaign send what a
// correct instance sends. Each must have its ordinary effect. Otherwise the attacks are refused
// because of their form, and show nothing.
func TestAttackersGetBeyondTheHello(t *testing.T) {
	slow.UnderRace(t)
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

		raw := enter(wire.Hello_CALLS)
		defer raw.Close()
		// A call without a message is not answered.
		b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		b = attack.AppendFrame(b, attack.FrameSettings, 0, 0, nil)
		b = attack.AppendFrame(b, attack.FrameHeaders, attack.EndHeaders, 1,
			attack.CallHeaders(query.Admin_Here_FullMethodName))
		b = attack.AppendFrame(b, attack.FrameData, attack.EndStream, 1, make([]byte, 5))
		if _, err := raw.Write(b); err != nil {
			a.t.Fatal(err)
		}
		if err := awaitCall(raw); err != nil {
			a.t.Errorf("the frames of HTTP/2 begin no call: %v", err)
		}
	})
}

// awaitCall waits for the headers of the answer to the first call on a connection of HTTP/2.
func awaitCall(c *attack.Conn) error {
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return err
		}
		payload := make([]byte, binary.BigEndian.Uint32(append([]byte{0}, head[:3]...)))
		if _, err := io.ReadFull(c, payload); err != nil {
			return err
		}
		switch kind := attack.FrameKind(head[3]); kind {
		case attack.FrameHeaders:
			return nil
		case attack.FrameSettings, attack.FrameWindow, attack.FramePing:
		default:
			return fmt.Errorf("a frame of type %d: %q", kind, payload)
		}
	}
}
