package queries

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

const (
	sharedQueue    = 1024    // events that wait for one caller; a slower caller asks for them itself
	sharedPrefixes = 256     // prefixes of a watch; more are shortened until they are so few
	sharedBytes    = 8 << 10 // bytes of these prefixes
)

// Watches is the one watch that all callers of a node share. It asks the leader for the events of
// all of them, and passes each event to the callers whose prefixes it matches. It is safe for
// concurrent use.
type Watches struct {
	mu      sync.Mutex // guards all below, and all Subscriptions; never held across a wait
	callers map[*Subscription]struct{}
	after   uint64           // all events up to this position were passed to the callers
	covers  lockfsm.Prefixes // of the question that is being asked
	cancel  func()           // ends that question; nil if none is being asked
	runs    bool             // the goroutine runs
}

// WatchedNode contains what Watches needs of a node.
type WatchedNode struct {
	// Ask asks the leader, and waits for one. It must return soon when its context ends.
	Ask func(context.Context, *query.WatchRequest) (*query.EventList, error)
	// Spawn runs a function on a goroutine, with a context that ends when the node is closed. It
	// returns false after that.
	Spawn func(func(context.Context)) bool
}

// Subscription is the part of one caller in Watches. It is for one caller at a time.
type Subscription struct {
	of     *Watches
	node   WatchedNode
	prefix string
	news   chan struct{} // capacity 1

	joined bool
	from   uint64 // all events after this position are in queue, or were taken
	upTo   uint64 // and up to this one
	queue  []*query.Event
	more   bool      // the leader has further events
	due    bool      // the caller must be told upTo
	toldAt time.Time // when it was last woken
}

// Open returns a Subscription for the keys that begin with prefix. The caller must close it.
func (w *Watches) Open(node WatchedNode, prefix string) *Subscription {
	return &Subscription{of: w, node: node, prefix: prefix, news: make(chan struct{}, 1)}
}

// Events returns the events after a position, like the leader's Watch: it waits for some time if
// there is none.
func (s *Subscription) Events(ctx context.Context, after uint64) (*query.EventList, error) {
	for {
		list, joined := s.collect(after)
		if list != nil {
			return list, nil
		}
		if joined {
			select {
			case <-s.news:
				continue
			case <-ctx.Done():
				return s.node.Ask(ctx, s.question(after)) // returns the error of ctx, in its caller's words
			}
		}
		list, err := s.node.Ask(ctx, s.question(after))
		if err != nil {
			return nil, err
		}
		if !list.Missed {
			s.join(list.Position)
		}
		if list.Missed || list.Position != after {
			return list, nil
		}
	}
}

func (s *Subscription) question(after uint64) *query.WatchRequest {
	return &query.WatchRequest{Prefixes: [][]byte{[]byte(s.prefix)}, After: after, AtOnce: true}
}

// Close ends the part of this caller.
func (s *Subscription) Close() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.leave()
}

// collect returns what the caller must be told, or nil. If joined is false, the caller must ask the
// leader itself for the events after the position `after`.
func (s *Subscription) collect(after uint64) (list *query.EventList, joined bool) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if !s.joined || after < s.from {
		return nil, false
	}
	if !s.due {
		return nil, true
	}
	queue := slices.DeleteFunc(s.queue, func(e *query.Event) bool { return e.Position <= after })
	list = &query.EventList{Events: queue, Position: max(after, s.upTo), More: s.more}
	s.queue, s.due = nil, false
	return list, true
}

// join makes s a part of the shared watch. The caller has all events up to the given position. If
// the shared watch is further, the caller must ask once more.
func (s *Subscription) join(position uint64) {
	w := s.of
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.joined {
		return
	}
	if len(w.callers) == 0 {
		w.callers, w.after = map[*Subscription]struct{}{}, position
	}
	if !w.runs {
		if w.runs = s.node.Spawn(func(ctx context.Context) { w.run(ctx, s.node) }); !w.runs {
			return // the caller's next question fails, because the node is closed
		}
	}
	s.joined, s.from, s.upTo, s.queue, s.more, s.due = true, w.after, w.after, nil, false, false
	w.callers[s] = struct{}{}
	if w.cancel != nil && !w.covers.Cover(s.prefix) {
		w.stop() // the next question covers this caller, too
	}
}

// leave is the opposite of join. The caller holds mu.
func (s *Subscription) leave() {
	delete(s.of.callers, s)
	s.joined, s.queue = false, nil
	if len(s.of.callers) == 0 {
		s.of.stop()
	}
}

// stop ends the question that is being asked, and makes its answer void. The caller holds mu.
func (w *Watches) stop() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// run asks one question after the other, until there are no callers.
func (w *Watches) run(ctx context.Context, node WatchedNode) {
	for {
		asking, cancel := context.WithCancel(ctx)
		q := w.next(cancel)
		if q == nil {
			cancel()
			return
		}
		list, err := node.Ask(asking, q)
		cancel()
		w.pass(list, err, time.Now())
	}
}

func (w *Watches) next(cancel func()) *query.WatchRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.callers) == 0 {
		w.runs = false
		return nil
	}
	prefixes := make([]string, 0, len(w.callers))
	for s := range maps.Keys(w.callers) {
		prefixes = append(prefixes, s.prefix)
	}
	w.covers = fewer(prefixes)
	w.cancel = cancel
	q := &query.WatchRequest{After: w.after}
	for _, each := range w.covers {
		q.Prefixes = append(q.Prefixes, []byte(each))
	}
	return q
}

// fewer returns a set that covers all prefixes and is within the limits. It shortens long ones.
func fewer(prefixes []string) lockfsm.Prefixes {
	longest := 0
	for _, each := range prefixes {
		longest = max(longest, len(each))
	}
	for ; ; longest -= (longest + 7) / 8 {
		for i, each := range prefixes {
			prefixes[i] = each[:min(len(each), longest)]
		}
		set := lockfsm.NewPrefixes(prefixes...)
		if checkPrefixes(set) == nil {
			return set
		}
	}
}

// pass gives the answer to a question to the callers. After an error and after missed events, each
// caller asks for itself.
func (w *Watches) pass(list *query.EventList, err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel == nil {
		return // the question was ended
	}
	w.cancel = nil
	if err == nil && !list.Missed {
		w.after = list.Position
	}
	for s := range maps.Keys(w.callers) {
		if err != nil || list.Missed || len(s.queue) > sharedQueue {
			s.leave()
			s.wake(now)
			continue
		}
		s.pass(list, now)
	}
}

func (s *Subscription) pass(list *query.EventList, now time.Time) {
	before := len(s.queue)
	for _, e := range list.Events {
		if strings.HasPrefix(string(e.Part.GetKey()), s.prefix) {
			s.queue = append(s.queue, e)
		}
	}
	s.upTo, s.more = list.Position, list.More
	quiet := !list.More && (len(list.Events) == 0 || now.Sub(s.toldAt) >= replica.WatchTime)
	if len(s.queue) > before || quiet {
		s.due = true
		s.wake(now)
	}
}

func (s *Subscription) wake(now time.Time) {
	s.toldAt = now
	select {
	case s.news <- struct{}{}:
	default:
	}
}
