//go:build linux

package attackers

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// impostor greets one instance in the name of each other instance, in every way that is possible
// without a private key.
func (a *attacker) impostor(ctx context.Context, target known) (t Tally) {
	kind := []wire.Hello_Kind{wire.Hello_LINK, wire.Hello_CALLS}[rand.IntN(2)]
	for _, victim := range a.others(target) {
		key := nodeid.NewKey(random)
		own := a.speaker.Hello(key, kind, func(h *wire.Hello) {
			h.Key, h.Group, h.Raft, h.Addr = victim.hello.Key, victim.hello.Group, victim.hello.Raft, victim.addr
			h.Number, h.Life = 1<<40, victim.hello.Life+uint64(rand.IntN(3))
		})
		for way := range 4 {
			c, err := a.speaker.Open(ctx, target.addr)
			if err != nil {
				t.Tried, t.Refused = t.Tried+1, t.Refused+1
				continue
			}
			g := attack.Sign(key, c.Binding, own)
			switch way {
			case 1:
				g.Signature = nil
			case 2:
				g.Signature = victim.said.Signature
			case 3:
				g = victim.said
			}
			answer, err := c.Greet(g)
			t.Tried++
			if err != nil || answer.Refusal != nil {
				t.Refused++
			} else {
				t.Believed++
			}
			c.Close()
		}
	}
	return t
}

// ask sends requests under one identity. A request that ends without an answer counts as refused.
func (a *attacker) ask(ctx context.Context, target known, key nodeid.Key, bodies ...[]byte) (t Tally) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, _, err := a.enter(ctx, target.addr, key, wire.Hello_CALLS, func(h *wire.Hello) { h.Group = target.hello.Group })
	if err != nil {
		return refused(err)
	}
	client, end, err := c.Calls()
	if err != nil {
		c.Close()
		return refused(err)
	}
	defer end()
	for _, body := range bodies {
		t.Tried++
		stream, err := client.Found(ctx)
		if err == nil {
			_ = stream.Send(&wire.Question{Body: attack.Question(body)}) // Recv returns the error
			_ = stream.CloseSend()
			_, err = stream.Recv()
		}
		if err != nil && err != io.EOF { //nolint:errorlint // gRPC returns io.EOF unwrapped
			t.Refused++
		}
	}
	return t
}

// hearsay sends messages that claim that the attacker is the only voter.
func (a *attacker) hearsay(ctx context.Context, target known) Tally {
	key := nodeid.NewKey(random)
	to, group := nodeid.Of(target.hello.Key), target.hello.Group
	me := []attack.Replica{{Raft: rand.Uint64() >> 1, Instance: key.ID(), Addr: "127.0.0.1:9", Life: 1}}
	var bodies [][]byte
	for _, at := range []uint64{1 << 20, 1 << 50, 1<<56 - 1, 1 << 60} {
		bodies = append(bodies,
			attack.Push(to, group, at, me),
			attack.Prepare(to, group, rand.Uint64()>>1, 1<<40, at, me),
			attack.InstanceInfo("z", "127.0.0.1:9", group, at, me))
	}
	return a.ask(ctx, target, key, bodies...)
}

// gossip sends members that do not exist, and false messages under the names of the instances.
func (a *attacker) gossip(ctx context.Context, target known) (t Tally) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	key := nodeid.NewKey(random)
	c, _, err := a.enter(ctx, target.addr, key, wire.Hello_CALLS, nil)
	if err != nil {
		return refused(err)
	}
	client, end, err := c.Calls()
	if err != nil {
		c.Close()
		return refused(err)
	}
	defer end()
	members := a.gossipMembers(ctx, client)
	stream, err := client.Packets(ctx)
	if err != nil {
		return refused(err)
	}
	for range 10 {
		var packets [][]byte
		for _, victim := range a.targets {
			for _, member := range members {
				packets = append(packets, attack.Alive(a.speaker.Label, member, rand.Uint32(), attack.Meta{
					Instance: nodeid.Of(victim.hello.Key), Group: victim.hello.Group ^ uint64(rand.IntN(2)),
					At: 1 << 50, Leader: true, Name: "a", Addr: "127.0.0.1:9",
				}))
			}
		}
		for range 20 {
			ghost := binary.BigEndian.AppendUint64(nil, rand.Uint64())
			ghost[0] = 127 // the instances dial some of them, and must not dial other machines
			packets = append(packets, attack.Alive(a.speaker.Label, attack.Member{Name: fmt.Sprintf("%x", ghost),
				IP: ghost[:4], Port: 7947}, 1, attack.Meta{
				Instance: nodeid.NewKey(random).ID(), Name: "ghost", Addr: "127.0.0.1:9",
			}))
		}
		t.Tried += int64(len(packets))
		if err := stream.Send(&wire.Parcel{Packets: packets}); err != nil {
			t.Refused += int64(len(packets))
			break
		}
	}
	return t
}

func (a *attacker) gossipMembers(ctx context.Context, client *attack.Client) (members []attack.Member) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	stream, err := client.Conn(ctx)
	if err != nil || stream.Send(&wire.Bytes{}) != nil ||
		stream.Send(&wire.Bytes{Data: attack.Exchange(a.speaker.Label)}) != nil {
		return nil
	}
	var answer []byte
	for len(answer) < 1<<20 {
		m, err := stream.Recv()
		if err != nil {
			break
		}
		answer = append(answer, m.Data...)
		if members = attack.Members(answer); len(members) >= 3 {
			break
		}
	}
	return members[:min(len(members), 16)]
}

// identities opens links in the names of many instances that never existed. Each link reports that
// its instance has retired, and then ends.
func (a *attacker) identities(ctx context.Context, target known) (t Tally) {
	for _, victim := range a.targets {
		c, err := a.join(ctx, target, nodeid.NewKey(random), victim.hello.Raft)
		if err == nil {
			err = c.Frame([]byte{0x30, 1}) // retired
			c.Close()
		}
		one := refused(err)
		t.Tried, t.Refused = t.Tried+one.Tried, t.Refused+one.Refused
	}
	return t
}

// strangers opens connections that send nothing, or data that is not TLS.
func (a *attacker) strangers(ctx context.Context, target known) (t Tally) {
	var open []net.Conn
	for n := range 50 {
		conn, err := a.speaker.Dial(ctx, target.addr)
		t.Tried++
		if err != nil {
			t.Refused++
			continue
		}
		open = append(open, conn)
		if n%2 == 0 {
			_, _ = io.WriteString(conn, "mortise\nGET / HTTP/1.1\r\n\r\n")
		}
	}
	wait(ctx, 100*time.Millisecond)
	for _, conn := range open {
		conn.Close()
	}
	return t
}
