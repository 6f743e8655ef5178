package e2e

import (
	"cmp"
	"context"
	"hash/fnv"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// seconds makes the tests of a fleet take locks through sessions of their own as well: sessions
// that were opened before a fault, beside it and after it. A third of the tests do so; with
// MORTISE_SECOND_SESSIONS=all or none, all or none do.
type seconds struct {
	on     bool
	before map[*node]*mortise.Session // opened when the node was first ready
	ctx    context.Context
	cancel context.CancelFunc
	beside sync.WaitGroup
}

// secondWithin limits a call in a session of its own while the fleet is ready.
const secondWithin = 20 * time.Second

func (s *seconds) begin(t *testing.T) {
	root, _, _ := strings.Cut(t.Name(), "/")
	which := os.Getenv("MORTISE_SECOND_SESSIONS")
	s.on = which != "none" && (which == "all" || drawnForSeconds(root))
	s.before = map[*node]*mortise.Session{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
}

func drawnForSeconds(root string) bool { return drawn(root)%3 == 0 }

// drawn returns a number that depends on the name of a test only.
func drawn(root string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(root))
	return h.Sum32()
}

// opened returns how many sessions of their own the nodes have.
func (s *seconds) opened(nodes []*node) (count int) {
	for _, n := range nodes {
		if s.before[n] != nil {
			count++
		}
	}
	return count
}

// use takes and releases a lock in a session.
func use(ctx context.Context, s *mortise.Session, key string) error {
	l, err := s.Lock(ctx, key)
	if err != nil {
		return err
	}
	return l.Unlock(ctx)
}

// inNew takes a lock in a new session, and closes the session.
func inNew(ctx context.Context, n *node, key string) error {
	s, err := n.NewSession(ctx, cmp.Or(n.config.SessionTTL, 2*time.Second))
	if err != nil {
		return err
	}
	defer func() { _ = s.Close(ctx) }()
	return use(ctx, s, key)
}

// secondsReady checks that each node that is ready is so in each session: in the one from before
// the last fault, and in a new one.
func (f *fleet) secondsReady() {
	f.t.Helper()
	if !f.seconds.on {
		return
	}
	for _, n := range f.nodes {
		if n == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(f.t.Context(), secondWithin)
		key := "second/" + n.config.Name
		if err := inNew(ctx, n, key+"/after"); err != nil {
			f.t.Errorf("%s is ready, and a lock in a new session fails: %v", n.config.Name, err)
		}
		s, err := f.seconds.before[n], error(nil)
		if s == nil {
			s, err = n.NewSession(ctx, cmp.Or(n.config.SessionTTL, 2*time.Second))
			f.seconds.before[n] = s
		}
		if err == nil {
			err = use(ctx, s, key+"/before")
		}
		if err != nil {
			f.t.Errorf("%s is ready, and a lock in an earlier session fails: %v", n.config.Name, err)
		}
		cancel()
	}
}

// secondsBeside takes locks in new sessions of all nodes while a fault begins or ends. They may
// fail with it.
func (f *fleet) secondsBeside() {
	if !f.seconds.on {
		return
	}
	for _, n := range f.nodes {
		if n != nil {
			f.seconds.beside.Go(func() {
				ctx, cancel := context.WithTimeout(f.seconds.ctx, secondWithin)
				defer cancel()
				_ = inNew(ctx, n, "second/"+n.config.Name+"/beside")
			})
		}
	}
}

// secondsEnd closes what is left, so that the nodes end as without it.
func (f *fleet) secondsEnd() {
	f.seconds.cancel()
	f.seconds.beside.Wait()
	for _, s := range f.seconds.before {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if s != nil {
			_ = s.Close(ctx) // fails if no leader is left
		}
		cancel()
	}
}
