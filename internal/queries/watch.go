package queries

import (
	"bytes"
	"errors"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Watch asks the leader for the events of the keys that begin with a prefix. It passes the current
// state and then every event to Tell, exactly once and in order. If the leader no longer has the
// next events, Watch passes the current state again.
type Watch struct {
	Origin *query.Origin // nil for questions of this instance
	Prefix string
	Tell   func(WatchItem) bool // returns false to end the watch

	// Each of these functions asks one question, and waits for a leader.
	Events  func(*query.WatchRequest) (*query.EventList, error)
	Walk    func(*query.ListRequest) (*query.LockList, error)
	Holders func(*query.HoldersRequest) (*query.LockList, error)

	after uint64 // all events up to this position were passed
}

// WatchItem is one item that a Watch passes to Tell.
type WatchItem struct {
	Reset    bool         // the receiver must discard all earlier items; the current state follows
	Current  bool         // everything up to Position was passed
	Position uint64       // zero until the whole state was passed
	Event    *query.Event // nil with Reset and with Current
}

var errStopped = errors.New("queries: the watch was stopped")

// Run passes the events after the given position, or first the current state if the position is
// zero. It returns nil when Tell has returned false, and otherwise the error of a question.
func (w *Watch) Run(after uint64) error {
	w.after = after
	if err := w.run(); err != errStopped {
		return err
	}
	return nil
}

func (w *Watch) run() error {
	missed := w.after == 0
	for {
		if missed {
			if err := w.begin(); err != nil {
				return err
			}
		}
		s, err := w.since(w.after)
		if err != nil {
			return err
		}
		if missed = s.Missed; missed {
			continue
		}
		for _, e := range s.Events {
			if err := w.tell(WatchItem{Position: e.Position, Event: e}); err != nil {
				return err
			}
		}
		w.after = s.Position
		if s.More {
			continue
		}
		if err := w.tell(WatchItem{Current: true, Position: w.after}); err != nil {
			return err
		}
	}
}

func (w *Watch) tell(t WatchItem) error {
	if !w.Tell(t) {
		return errStopped
	}
	return nil
}

func (w *Watch) since(after uint64) (*query.EventList, error) {
	return w.Events(&query.WatchRequest{Origin: w.Origin, Prefixes: [][]byte{[]byte(w.Prefix)}, After: after})
}

// begin passes the current state page by page. After each page it passes the newer events that
// the pages so far do not show. It starts again if the leader changes, because another leader
// lists the locks in another order. It also starts again if the leader no longer has the events.
func (w *Watch) begin() error {
	for {
		r := reading{held: map[holdID]bool{}, left: map[holdID]bool{}, data: map[string]uint64{}}
		whole, err := w.read(&r)
		if err != nil {
			return err
		}
		if !whole {
			continue
		}
		if w.after = r.from; r.more {
			return nil
		}
		return w.tell(WatchItem{Current: true, Position: w.after})
	}
}

func (w *Watch) read(r *reading) (whole bool, err error) {
	if err := w.tell(WatchItem{Reset: true}); err != nil {
		return false, err
	}
	q := &query.ListRequest{Origin: w.Origin, Prefix: []byte(w.Prefix)}
	for more := true; more; {
		s, err := w.Walk(q)
		if err != nil || !r.page(s) {
			return false, err
		}
		for _, l := range s.Locks {
			if whole, err := w.tellLock(l, r); !whole || err != nil {
				return false, err
			}
		}
		if whole, err := w.catchUp(r); !whole || err != nil {
			return false, err
		}
		more, q.Next = s.More, s.Next
	}
	return true, nil
}

func (w *Watch) catchUp(r *reading) (whole bool, err error) {
	r.more = false
	for r.from < r.upTo {
		s, err := w.since(r.from)
		if err != nil || s.Missed {
			return false, err
		}
		for _, e := range s.Events {
			if !r.goesOn(e) {
				continue
			}
			if err := w.tell(WatchItem{Event: e}); err != nil {
				return false, err
			}
		}
		r.from, r.more = s.Position, s.More
	}
	return true, nil
}

// tellLock passes the state of one key. If a page does not contain all holders of the key, tellLock
// asks for the other holders.
func (w *Watch) tellLock(l *query.Lock, r *reading) (whole bool, err error) {
	if revision := l.Data.GetRevision(); revision > r.data[string(l.Key)] {
		r.data[string(l.Key)] = revision
		wrote := &query.Event{What: uint32(lockfsm.Wrote), Part: &query.Part{Key: l.Key}, Data: l.Data}
		if err := w.tell(WatchItem{Event: wrote}); err != nil {
			return false, err
		}
	}
	for l.Held > 0 && len(l.Queue) > 0 {
		held := 0
		for _, st := range l.Queue {
			if st.Token == 0 {
				continue
			}
			held++
			if err := w.tellHold(l.Key, st, r); err != nil {
				return false, err
			}
		}
		if int(l.Held) <= held {
			break
		}
		more, err := w.Holders(&query.HoldersRequest{Origin: w.Origin, Key: l.Key,
			After: l.Queue[len(l.Queue)-1].Place})
		if err != nil || !r.page(more) {
			return false, err
		}
		if len(more.Locks) == 0 {
			break
		}
		l = more.Locks[0]
	}
	return true, nil
}

// tellHold passes a hold of key, unless the hold has only an intention for it.
func (w *Watch) tellHold(key []byte, st *query.Standing, r *reading) error {
	if !bytes.Equal(st.Part.GetKey(), key) {
		return nil
	}
	hold := holdID{string(key), st.Token}
	if !r.held[hold] {
		began := &query.Event{
			What: uint32(lockfsm.Began), Part: st.Part, Token: st.Token, Session: st.Session, Record: st.Record,
			At: st.Since, Value: st.Value,
		}
		if st.Upgrades {
			began.What = uint32(lockfsm.Upgraded)
		}
		if err := w.tell(WatchItem{Event: began}); err != nil {
			return err
		}
	}
	r.held[hold] = true
	if !st.Gone || r.left[hold] {
		return nil
	}
	r.left[hold] = true
	left := &query.Event{What: uint32(lockfsm.Left), Part: st.Part, Token: st.Token, Session: st.Session,
		Record: st.Record}
	return w.tell(WatchItem{Event: left})
}

// reading describes the part of the state of one leader that was passed to Tell.
type reading struct {
	leader     uint64
	from, upTo uint64 // the position of the state passed so far, and that of the last page
	more       bool   // the leader has events that are newer than the passed state
	held, left map[holdID]bool
	data       map[string]uint64
}

type holdID struct {
	key   string
	token uint64
}

func (r *reading) page(s *query.LockList) bool {
	if r.leader == 0 {
		r.leader, r.from = s.Leader, s.Position
	}
	r.upTo = s.Position
	return s.Leader == r.leader
}

func (r *reading) goesOn(e *query.Event) bool {
	key := string(e.Part.GetKey())
	hold := holdID{key, e.Token}
	switch lockfsm.EventKind(e.What) {
	case lockfsm.Began, lockfsm.Upgraded:
		known := r.held[hold]
		r.held[hold] = true
		return !known
	case lockfsm.Ended:
		known := r.held[hold]
		delete(r.held, hold)
		delete(r.left, hold)
		return known
	case lockfsm.Valued, lockfsm.Lowered:
		return r.held[hold]
	case lockfsm.Left:
		news := r.held[hold] && !r.left[hold]
		r.left[hold] = r.left[hold] || news
		return news
	case lockfsm.Wrote:
		known, any := r.data[key]
		if e.Data.GetRevision() <= known || len(e.Data.GetValue()) == 0 && !any {
			return false
		}
		r.data[key] = e.Data.GetRevision()
		return true
	}
	return false
}
