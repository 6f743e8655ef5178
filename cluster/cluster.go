package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Cluster finds and founds groups for one instance, and keeps their voters up to date. All methods
// are safe for concurrent use.
type Cluster struct {
	cfg    Config
	in     *inbox
	view   atomic.Pointer[view]
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}  // closed when the owner has ended
	helper sync.WaitGroup // goroutines that were started by the method help
	gossip gossip.Gossip  // nil if this instance does not gossip; safe for concurrent use
	left   atomic.Bool

	looking      atomic.Bool // a Look is not yet processed
	removedPeers strays

	closing atomic.Bool
	closed  chan struct{} // closed when the first Close is about to return
	hung    error         // result of Close
	quiet   atomic.Bool

	own owner // used only by the owner goroutine
}

// Start starts an instance. The instance then founds a group with others, joins their group, or
// resumes the group in Records. Start waits only for Records. An error that concerns the directory
// wraps ErrDirectory or ErrUnsaved.
func Start(cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, in: newInbox(), done: make(chan struct{}), closed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.begin(); err != nil {
		c.cancel()
		return nil, err
	}
	if cfg.gossips() {
		g, err := c.startGossip()
		if err != nil {
			c.cancel()
			return nil, err
		}
		c.gossip = g
	}
	c.publish()
	go c.loop()
	return c, nil
}

// answerWithin is how long a question may wait for the owner. The asking instance waits no longer
// than that either.
const answerWithin = time.Second

// Answer returns the answer to a question of another instance. If the result is nil, no answer must
// be sent. A question to an incarnation that ends before its turn gets no answer, because the asker
// would take the answer for that of the incarnation that it has asked.
func (c *Cluster) Answer(from Asker, question []byte) []byte {
	return asked(c, c.in.postOfLife, func() []byte { return c.answer(from, question) })
}

// Tell answers the question "Who are you?" of an admin client. It returns nil for any other
// question, and records nothing that the client sends.
func (c *Cluster) Tell(from nodeid.ID, question []byte) []byte {
	return asked(c, c.in.post, func() []byte { return c.own.core.Founding.Tell(c.now(), c.wall(), from, question) })
}

// This function calls answer on the owner goroutine and waits at most answerWithin. It returns the
// zero value if no answer arrives in time, or after Close.
func asked[T any](c *Cluster, post func(func()) bool, answer func() T) (none T) {
	reply := make(chan T, 1)
	if !post(func() { reply <- answer() }) {
		return none
	}
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	select {
	case a := <-reply:
		return a
	case <-timer.C:
	case <-c.done:
	}
	return none
}

// Voter returns the replica with the given raft ID and its address, if the group has such a
// replica. It takes no mutex, so it may be called for every message.
func (c *Cluster) Voter(raft uint64) (Voter, bool) {
	v, ok := c.view.Load().byRaft[raft]
	return v, ok
}

// These limits end the wait for the announcement that this instance leaves. A round of gossip takes
// 200 ms. Before a group is founded, and when all leave, nothing depends on the announcement.
const (
	leaveWithin = 2 * time.Second
	leaveAlone  = 250 * time.Millisecond
)

// Leave announces by gossip that this instance leaves, so that the others need not detect its end.
// It returns when the announcement was sent, when ctx ends, or after two seconds; if alone is set,
// after a quarter of a second. alone is Departure.Alone: this instance is not a member of a group,
// or perhaps no other instance remains that could receive the announcement. Leave does not leave
// the group, and Close must still be called.
func (c *Cluster) Leave(ctx context.Context, alone bool) {
	if c.gossip == nil || c.left.Swap(true) {
		return
	}
	said := make(chan struct{})
	within := leaveWithin
	if alone {
		within = leaveAlone
	}
	if !c.help(func() { defer close(said); c.gossip.Leave(within) }) {
		return
	}
	select {
	case <-said:
	case <-ctx.Done():
	case <-c.done:
	}
}

const maxCloseWait = 5 * time.Second

// ErrHung is returned by Close if a call to Host or Records has not returned, for example because
// of a dead disk.
var ErrHung = errors.New("cluster: a call does not return: check the disk of the directory and the Logger")

// Close stops everything and returns when all goroutines have ended. It waits up to two seconds for
// a Leave. It does not notify other instances. It may be called more than once, but not by Host.
//
// If a call to Host or Records has not returned after 5 s, Close ends everything else and returns
// ErrHung. The remaining goroutine ends when the call returns, and has no further effect.
func (c *Cluster) Close() error {
	if !c.closing.CompareAndSwap(false, true) { // a sync.Once would hold a lock while it waits
		<-c.closed
		return c.hung
	}
	defer close(c.closed)
	c.in.close()
	c.cancel()
	limit := time.NewTimer(maxCloseWait)
	defer limit.Stop()
	select {
	case <-c.done:
	case <-limit.C:
		c.endGossip()
		c.hung = fmt.Errorf("%w: a call has not returned for %v; the goroutines that wait for it end when it returns",
			ErrHung, maxCloseWait)
	}
	return c.hung
}

// endGossip is called by the owner goroutine at its end, and by Close if the owner goroutine hangs.
func (c *Cluster) endGossip() {
	if c.gossip != nil && c.quiet.CompareAndSwap(false, true) {
		c.gossip.Close()
	}
}

// help runs f on a helper goroutine, for which Close waits. It reports false after Close.
func (c *Cluster) help(f func()) bool {
	c.in.mu.Lock() // prevents an addition to helper while Close waits for helper
	defer c.in.mu.Unlock()
	if c.in.closed {
		return false
	}
	c.helper.Go(f)
	return true
}

func (c *Cluster) now() time.Duration { return time.Duration(c.cfg.Clock.Now()) }

func (c *Cluster) wall() int64 { return c.cfg.Wall().UnixMilli() }

func (c *Cluster) random() founding.Random {
	var r founding.Random
	r.Instance = c.own.next.ID()
	words := []*uint64{&r.Group, &r.Spread}
	for i := range r.Raft {
		words = append(words, &r.Raft[i])
	}
	for _, w := range words {
		*w = c.id()
	}
	return r
}

func (c *Cluster) id() uint64 {
	for {
		if w := c.word(); w != 0 {
			return w
		}
	}
}

func (c *Cluster) word() uint64 {
	var b [8]byte
	c.cfg.Random(b[:])
	n := uint64(0)
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n
}
