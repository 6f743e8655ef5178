package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
)

// TestTooManyCallers cuts a node off from the leader and makes more calls on it than it can
// queue. The node must refuse the excess calls without delay.
func TestTooManyCallers(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		// The nodes record no history, because more events happen at one time than the buffer of a
		// recorder can hold.
		f := startFleet(t, 3, func(c *mortise.Config) { c.History = nil })
		i := f.follower()
		held := f.lock((i+1)%3, "elsewhere")
		f.isolate(i)
		time.Sleep(5 * time.Second) // the node has noticed the cut
		const callers = 18_000      // 8 MiB are 16,384 keys of 512 bytes
		key := strings.Repeat("k", 500)
		var granted, refused atomic.Int64
		var calls sync.WaitGroup
		for c := range callers {
			calls.Go(func() {
				l, err := f.nodes[i].Lock(t.Context(), fmt.Sprintf("%s-%011d", key, c))
				switch {
				case errors.Is(err, mortise.ErrOverloaded):
					refused.Add(1)
				case err != nil:
					t.Error(err)
				default:
					granted.Add(1)
					if err := l.Unlock(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		synctest.Wait()
		early, waiting := refused.Load(), f.nodes[i].Client.Status().Waiting
		if early < callers-16_400 || waiting+int(early) != callers || granted.Load() != 0 {
			t.Errorf("%d were refused at once, %d wait, %d were granted", early, waiting, granted.Load())
		}
		f.rejoin(i)
		calls.Wait()
		if refused.Load() != early || granted.Load() != int64(waiting) {
			t.Errorf("%d of %d that waited were served; %d were refused later", granted.Load(), waiting,
				refused.Load()-early)
		}
		unlock(t, held)
		f.nothingLeft()
	})
}

func TestFullQueueIsAClearError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		f.alter = func(e *outside.World) { e.Limits.WaitersPerLock, e.Limits.EntriesPerSession = 5, 8 }
		for i := range 3 {
			f.start(i, f.config(i, 3))
		}
		f.ready()
		held := f.lock(0, "k")
		var served []int
		var mu sync.Mutex
		var calls sync.WaitGroup
		for c := range 5 {
			calls.Go(func() {
				l := f.lock(c%3, "k")
				mu.Lock()
				served = append(served, c)
				mu.Unlock()
				unlock(t, l)
			})
			synctest.Wait()
		}
		for i := range 3 {
			_, err := f.nodes[i].Lock(t.Context(), "k")
			wantIs(t, err, mortise.ErrQueueFull)
		}
		var mine []*mortise.Lock
		for n := range 5 { // in addition to k and two requests that wait for k
			mine = append(mine, f.lock(0, fmt.Sprint("mine ", n)))
		}
		_, err := f.nodes[0].Lock(t.Context(), "one too many")
		wantIs(t, err, mortise.ErrOverloaded)
		for _, l := range mine {
			unlock(t, l)
		}
		unlock(t, held)
		calls.Wait()
		if fmt.Sprint(served) != "[0 1 2 3 4]" {
			t.Errorf("served in the order %v", served)
		}
		f.nothingLeft()
	})
}

// TestMemberThatStopsReading checks that the leader limits the data queued for a member that does
// not read, without delaying other members.
func TestMemberThatStopsReading(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		leader := f.leader()
		lock := f.lock((leader+1)%3, "k")
		h, ours := newHostile(f, 0), f.sessions()
		keeper := f.nodes[leader].Replica().Keeper
		to := nodeid.Endpoint{ID: nodeid.ID(f.nodes[leader].ID()), Addr: address(leader)}
		send := func(c lockfsm.Command) {
			if err := h.Send(to, transport.Frame{Commands: c.Append(nil)}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		var id lockfsm.SessionID
		h.onReplies = func(b []byte) { // format: size, kind 1, nonce, code, session
			if len(b) > 20 && b[1] == 1 {
				v, _ := binary.Uvarint(b[19:])
				id = lockfsm.SessionID(v)
			}
		}
		send(lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce(1), Record: make([]byte, lockfsm.MaxRecordBytes)})
		send(lockfsm.Command{Kind: lockfsm.Attach, Session: id, Epoch: 1, Number: 1, Nonce: nonce(1)})
		send(lockfsm.Command{Kind: lockfsm.Acquire, Session: id, Epoch: 1, Number: 1, Key: "big"})
		if got := keeper.Status().Attachments; got != ours+1 {
			t.Fatalf("%d attachments", got)
		}
		silent := make(chan struct{})
		h.onReplies = func([]byte) { <-silent }
		n := lockfsm.Number(2)
		// Each answer contains the record of the holder, which makes it a thousand times as long as
		// the request.
		for range 100 {
			var b []byte
			for range 1000 {
				b = lockfsm.Command{Kind: lockfsm.Acquire, Session: id, Epoch: 1, Number: n, Key: "big",
					Try: true}.Append(b)
				n++
			}
			if err := h.Send(to, transport.Frame{Commands: b}); err != nil {
				break
			}
			synctest.Wait()
			if keeper.Status().Attachments == ours {
				break
			}
		}
		if got := keeper.Status(); got.Attachments != ours {
			t.Errorf("the attachment of a member that does not read lives on after %d requests: %+v", n, got)
		}
		for i := range 3 {
			unlock(t, f.lock(i, "meanwhile"))
		}
		close(silent)
		time.Sleep(20 * time.Second) // ten leases
		if err := lock.Err(); err != nil {
			t.Errorf("a member that does not read cost another its lock: %v", err)
		}
		unlock(t, lock)
		_ = h.Close()
		f.nothingLeft()
	})
}
