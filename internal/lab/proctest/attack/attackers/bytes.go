//go:build linux

package attackers

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const pieceBytes = 64 << 10

// questions begins sixty requests of the largest size on one connection and never ends them.
func (a *attacker) questions(ctx context.Context, target known) (t Tally) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, _, err := a.enter(ctx, target.addr, nodeid.NewKey(random), wire.Hello_CALLS, nil)
	if err != nil {
		return refused(err)
	}
	client, end, err := c.Calls()
	if err != nil {
		c.Close()
		return refused(err)
	}
	defer end()
	done, piece := make(chan bool), make([]byte, pieceBytes)
	for range 60 {
		go func() {
			stream, err := client.Found(ctx)
			for n := 0; err == nil && n < 62<<20; n += pieceBytes {
				err = stream.Send(&wire.Question{Body: piece})
			}
			done <- err != nil
		}()
	}
	for range 60 {
		t.Tried++
		if <-done {
			t.Refused++
		}
	}
	return t
}

func (a *attacker) snapshot(ctx context.Context, target known) Tally {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	from := a.others(target)[rand.IntN(len(a.targets)-1)].hello.Raft
	c, _, err := a.enter(ctx, target.addr, nodeid.NewKey(random), wire.Hello_CALLS, func(h *wire.Hello) {
		h.Group, h.Raft = target.hello.Group, from
	})
	if err != nil {
		return refused(err)
	}
	client, end, err := c.Calls()
	if err != nil {
		c.Close()
		return refused(err)
	}
	defer end()
	kind, to, term, index := raftpb.MsgSnap, target.hello.Raft, uint64(1<<40), uint64(1<<40)
	message, err := proto.Marshal(&raftpb.Message{
		Type: &kind, From: &from, To: &to, Term: &term,
		Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &index, Term: &term}},
	})
	if err != nil {
		return refused(err)
	}
	piece := make([]byte, pieceBytes)
	stream, err := client.Snapshot(ctx)
	if err == nil {
		err = stream.Send(&wire.Chunk{Message: message, Size: 900 << 20, Data: piece})
	}
	for n := 0; err == nil && n < 64<<20; n += pieceBytes {
		err = stream.Send(&wire.Chunk{Data: piece})
	}
	return refused(err)
}

func (a *attacker) raft(ctx context.Context, target known) Tally {
	c, err := a.join(ctx, target, nodeid.NewKey(random), a.others(target)[0].hello.Raft)
	if err != nil {
		return refused(err)
	}
	defer c.Close()
	const size = 8 << 20
	empty := attack.Field("raft", nil)
	frame := bytes.Repeat(empty, size/len(empty))
	err = c.Frame(frame)
	if err == nil && c.Ended(2*time.Second) {
		err = fmt.Errorf("cut off")
	}
	return refused(err)
}

func commands(c *attack.Conn, all ...lockfsm.Command) error {
	var b []byte
	for _, one := range all {
		b = one.Append(b)
	}
	return c.Frame(attack.Field("commands", b))
}

func newNonce() (n lockfsm.Nonce) {
	random(n[:])
	return n
}

// sessions opens sessions whose records name the instances, and attaches to sessions of other
// clients.
func (a *attacker) sessions(ctx context.Context, target known) Tally {
	key := nodeid.NewKey(random)
	c, err := a.join(ctx, target, key, 0)
	if err != nil {
		return refused(err)
	}
	defer c.Close()
	var all []lockfsm.Command
	for id := range lockfsm.SessionID(64) {
		all = append(all, lockfsm.Command{Kind: lockfsm.Attach, Session: id, Epoch: 1 << 40, Number: 1 << 20,
			Nonce: newNonce()},
			lockfsm.Command{Kind: lockfsm.Close, Session: id, Epoch: 1})
	}
	for range 64 {
		all = append(all, lockfsm.Command{Kind: lockfsm.Open, Nonce: newNonce(), TTL: time.Hour,
			Record: make([]byte, lockfsm.MaxRecordBytes)})
	}
	err = commands(c, all...)
	victim := a.others(target)[0]
	record := fmt.Sprintf(`{"instance":"%v","name":"a","addr":%q,"rules":%d}`, nodeid.Of(victim.hello.Key), victim.addr,
		lockfsm.RulesVersion)
	if err == nil {
		err = commands(c, lockfsm.Command{Kind: lockfsm.Open, Nonce: newNonce(), TTL: time.Hour,
			Record: []byte(record)})
	}
	c.Ended(300 * time.Millisecond)
	return refused(err)
}

// budget opens a session and requests locks with large values until the target refuses or ctx ends.
func (a *attacker) budget(ctx context.Context, target known) (t Tally) {
	c, err := a.join(ctx, target, nodeid.NewKey(random), 0)
	if err != nil {
		return refused(err)
	}
	defer c.Close()
	nonce := newNonce()
	if err := commands(c, lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce, TTL: 2 * time.Second}); err != nil {
		return refused(err)
	}
	session := c.Opened(nonce, time.Second)
	if session == 0 {
		return Tally{Tried: 1, Refused: 1} // the target does not lead, or has no room
	}
	id := lockfsm.SessionID(session)
	err = commands(c, lockfsm.Command{Kind: lockfsm.Attach, Session: id, Epoch: 1, Number: 1, Nonce: nonce})
	for n := 1; err == nil && n <= 4_000; n += 100 {
		var all []lockfsm.Command
		for i := range 100 {
			all = append(all, lockfsm.Command{
				Kind: lockfsm.Acquire, Session: id, Epoch: 1, Number: lockfsm.Number(n + i),
				Key:   fmt.Sprintf("filler/%d/%d", session, n+i),
				Value: make([]byte, lockfsm.MaxValueBytes),
			})
		}
		t.Tried += 100
		err = commands(c, all...)
	}
	if err == nil {
		c.Ended(time.Second)
		err = commands(c, lockfsm.Command{Kind: lockfsm.Close, Session: id, Epoch: 1})
	}
	if err != nil {
		t.Refused++
	}
	return t
}
