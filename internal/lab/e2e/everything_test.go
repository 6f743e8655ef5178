package e2e

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// everyCall is what callers do while a node closes. The names are the methods that a call uses.
var everyCall = []struct {
	names string
	do    func(ctx context.Context, n *node, key string) error
}{
	{"Node.Lock Lock.Context Lock.Unlock", func(ctx context.Context, n *node, key string) error {
		l, err := n.Lock(ctx, key)
		if err != nil {
			return err
		}
		inner := l.Context(ctx)
		time.Sleep(oneWay / 2)
		_ = l.Unlock(ctx)
		<-inner.Done()
		return nil
	}},
	{"Node.TryLock Lock.Done", func(ctx context.Context, n *node, key string) error {
		l, err := n.TryLock(ctx, key)
		if err == nil {
			_ = l.Unlock(ctx)
			<-l.Done()
		}
		return err
	}},
	{"Node.RLock Lock.UnlockSoon", func(ctx context.Context, n *node, key string) error {
		return used(n.RLock(ctx, key))(func(*mortise.Lock) error { return nil })
	}},
	{"Node.LockAll", func(ctx context.Context, n *node, key string) error {
		return used(n.LockAll(ctx, key, "all"))(func(*mortise.Lock) error { return nil })
	}},
	{"Node.Acquire Lock.Upgrade", func(ctx context.Context, n *node, key string) error {
		request := mortise.Request{Key: key, Mode: mortise.Upgradable}
		return used(n.Acquire(ctx, request))(func(l *mortise.Lock) error {
			return used(l.Upgrade(ctx))(func(*mortise.Lock) error { return nil })
		})
	}},
	{"Lock.Downgrade", func(ctx context.Context, n *node, key string) error {
		return used(n.Lock(ctx, key))(func(l *mortise.Lock) error { return l.Downgrade(ctx) })
	}},
	{"Node.LockSticky", func(ctx context.Context, n *node, key string) error {
		var err error
		for range 8 { // most of them without a message
			err = used(n.LockSticky(ctx, "kept "+key, mortise.StickyOptions{}))(func(*mortise.Lock) error { return nil })
		}
		return err
	}},
	{"Lock.Detach Node.Resume", func(ctx context.Context, n *node, key string) error {
		l, err := n.Acquire(ctx, mortise.Request{Key: "passed " + key, LockDelay: 10 * oneWay})
		if err != nil {
			return err
		}
		_ = l.Detach(ctx)
		return used(n.Resume(ctx, l.Key(), l.Token(), mortise.ResumeOptions{}))(func(*mortise.Lock) error { return nil })
	}},
	{"Lock.Regain Lock.Put Lock.SetValue", func(ctx context.Context, n *node, key string) error {
		return used(n.Lock(ctx, key))(func(l *mortise.Lock) error {
			_ = l.Regain(ctx)
			_, err := l.Put(ctx, key, []byte("data"), 0)
			return errors.Join(err, l.SetValue(ctx, "value"))
		})
	}},
	{"Node.Do", func(ctx context.Context, n *node, key string) error {
		return n.Do(ctx, key, func(context.Context, mortise.Token) error { return nil })
	}},
	{"Node.DoNested", func(ctx context.Context, n *node, key string) error {
		return n.DoNested(ctx, []mortise.Request{{Key: key}}, func(context.Context, mortise.Token) error { return nil })
	}},
	{"Node.NewSession Session.Lock Session.Acquire Session.LockSticky Session.Resume Session.Close",
		func(ctx context.Context, n *node, key string) error {
			s, err := n.NewSession(ctx, 0)
			if err != nil {
				return err
			}
			l, err := s.Lock(ctx, key)
			_ = used(l, err)(func(*mortise.Lock) error { return nil })
			_ = used(s.Acquire(ctx, mortise.Request{Key: key, Try: true}))(func(*mortise.Lock) error { return nil })
			_ = used(s.LockSticky(ctx, key, mortise.StickyOptions{Try: true}))(func(*mortise.Lock) error { return nil })
			_, _ = s.Resume(ctx, key, 1, mortise.ResumeOptions{})
			_ = s.Close(ctx)
			return err
		}},
	{"Node.Ready Node.Status Node.Err", func(ctx context.Context, n *node, _ string) error {
		_ = n.Status().String()
		return errors.Join(n.Ready(ctx), n.Err())
	}},
	{"Node.Health", func(ctx context.Context, n *node, _ string) error { _, err := n.Health(ctx); return err }},
	{"Node.Members", func(ctx context.Context, n *node, _ string) error { return begun(n.Members(ctx, "")) }},
	{"Node.Peek", func(ctx context.Context, n *node, key string) error { _, err := n.Peek(ctx, key); return err }},
	{"Node.Ahead", func(ctx context.Context, n *node, key string) error {
		_, _, err := n.Ahead(ctx, mortise.Request{Key: key})
		return err
	}},
	{"Node.List", func(ctx context.Context, n *node, key string) error { return begun(n.List(ctx, key)) }},
	{"Node.Sessions", func(ctx context.Context, n *node, _ string) error { _, err := n.Sessions(ctx); return err }},
	{"Node.Check", func(ctx context.Context, n *node, key string) error { _, err := n.Check(ctx, key, 1); return err }},
	{"Node.ForceUnlock", func(ctx context.Context, n *node, key string) error {
		_, err := n.ForceUnlock(ctx, key, 1, "a test")
		return err
	}},
	{"Node.EndSession", func(ctx context.Context, n *node, _ string) error {
		_, err := n.EndSession(ctx, "1", "a test")
		return err
	}},
	{"Node.TransferLead", func(ctx context.Context, n *node, _ string) error {
		if err := n.TransferLead(ctx, "absent", "a test"); !errors.Is(err, mortise.ErrBadRequest) {
			return err
		}
		return nil
	}},
	{"Node.Get Node.Put", func(ctx context.Context, n *node, key string) error {
		data, revision, err := n.Get(ctx, key)
		if err == nil {
			_, err = n.Put(ctx, key, append(data[:0:0], key...), revision)
		}
		return err
	}},
	{"Node.IDs", func(ctx context.Context, n *node, _ string) error { _, err := n.IDs(ctx, 1); return err }},
	{"Node.Watch", func(ctx context.Context, n *node, key string) error { return begun(n.Watch(ctx, key, 0)) }},
	{"Node.Audit", func(ctx context.Context, n *node, _ string) error { _, err := n.Audit(ctx); return err }},
	{"", func(ctx context.Context, n *node, _ string) error { // a call that its caller gives up
		short, cancel := context.WithTimeout(ctx, oneWay)
		defer cancel()
		_, _ = n.Lock(short, "no call releases this one")
		return nil
	}},
}

// endsNothing are the methods that no call needs, and why.
var endsNothing = map[string]string{
	"Node.Close": "the test calls it", "Node.Leave": "the test calls it",
	"Node.Recover": "it may only be called in a group without a leader",
	"Node.Format":  "it reads nothing", "Node.LogValue": "it reads nothing", "Session.TTL": "it reads a value",
	"Lock.Key": "it reads a value", "Lock.Token": "it reads a value", "Lock.Err": "all other methods of Lock call it",
	"Lock.Wanted": "it returns a channel", "Lock.Beat": "it only counts",
}

// used calls do with a lock, and gives it up.
func used(l *mortise.Lock, err error) func(do func(*mortise.Lock) error) error {
	return func(do func(*mortise.Lock) error) error {
		if err != nil {
			return err
		}
		err = do(l)
		_ = l.UnlockSoon()
		return err
	}
}

func begun[T any](all iter.Seq2[T, error]) (err error) {
	for _, err = range all {
		break
	}
	return err
}

// TestEveryCallIsMadeWhileANodeCloses checks that everyCall has all methods.
func TestEveryCallIsMadeWhileANodeCloses(t *testing.T) {
	made := map[string]bool{}
	for _, c := range everyCall {
		for _, name := range strings.Fields(c.names) {
			made[name] = true
		}
	}
	for _, of := range []any{(*mortise.Node)(nil), (*mortise.Lock)(nil), (*mortise.Session)(nil)} {
		for m := range reflect.TypeOf(of).Methods() {
			name := reflect.TypeOf(of).Elem().Name() + "." + m.Name
			if made[name] == (endsNothing[name] != "") {
				t.Errorf("%s must be in everyCall, or in endsNothing with a reason", name)
			}
			delete(made, name)
		}
	}
	if len(made) > 0 {
		t.Errorf("everyCall names methods that do not exist: %v", made)
	}
}

// everything makes all calls, one after the other, until the node closes.
func (f *fleet) everything(n *node, caller int) {
	for turn := caller; n.Err() == nil; turn++ {
		call := everyCall[turn%len(everyCall)]
		err := call.do(f.t.Context(), n, fmt.Sprint("k", turn%3))
		switch {
		case errors.Is(err, mortise.ErrClosed), errors.Is(err, mortise.ErrLeaving):
			return
		case err != nil && errors.Is(err, context.DeadlineExceeded):
			f.t.Errorf("%s gave up: %v", call.names, err)
			return
		}
		time.Sleep(oneWay / 4)
	}
}
