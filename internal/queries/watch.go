package queries

import (
	"errors"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Watch asks the leader what happens to the keys that begin with a prefix, and tells every event in
// order, none left out and none told twice. It begins with what there is, and does so again when
// the leader has forgotten what came behind the last event.
type Watch struct {
	Origin *query.Origin // nil is this instance
	Prefix string
	Tell   func(Told) bool // false: the watch is to end

	// The questions, each of which waits for a leader.
	Events  func(*query.WatchRequest) (*query.EventList, error)
	Walk    func(*query.ListRequest) (*query.LockList, error)
	Holders func(*query.HoldersRequest) (*query.LockList, error)

	after uint64 // position up to which all is told
}

// Told is one thing that a Watch tells.
type Told struct {
	Reset    bool         // forget what was told before: what there is now follows
	Current  bool         // all that has happened up to Position is told
	Position uint64       // zero from Reset until all that there is has been told
	Event    *query.Event // nil for the two above
}

// errStopped says that Tell has returned false.
var errStopped = errors.New("queries: the watch was stopped")

// Run tells what happens after a position, or, if that is zero, what there is and what happens
// then. It returns nil when Tell has returned false, and the error of a question otherwise.
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
			if err := w.tell(Told{Position: e.Position, Event: e}); err != nil {
				return err
			}
		}
		w.after = s.Position
		if s.More {
			continue
		}
		if err := w.tell(Told{Current: true, Position: w.after}); err != nil {
			return err
		}
	}
}

func (w *Watch) tell(t Told) error {
	if !w.Tell(t) {
		return errStopped
	}
	return nil
}

// since asks the leader what has happened after a position.
func (w *Watch) since(after uint64) (*query.EventList, error) {
	return w.Events(&query.WatchRequest{Origin: w.Origin, Prefix: []byte(w.Prefix), After: after})
}

// begin tells what there is now. It is read page by page while things happen: behind each page
// comes what has happened meanwhile, as far as it goes on from what was told. A reading is not
// whole if two leaders have answered, whose lists have different orders, or if the leader has
// forgotten what happened meanwhile. Then it begins anew.
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
		return w.tell(Told{Current: true, Position: w.after})
	}
}

// read tells what there is, from a reset on.
func (w *Watch) read(r *reading) (whole bool, err error) {
	if err := w.tell(Told{Reset: true}); err != nil {
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

// catchUp tells what has happened from where the reading is to where the last page was read.
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
			if err := w.tell(Told{Event: e}); err != nil {
				return false, err
			}
		}
		r.from, r.more = s.Position, s.More
	}
	return true, nil
}

// tellLock tells what there is of one key. If very many share it the page does not have all of
// them.
func (w *Watch) tellLock(l *query.Lock, r *reading) (whole bool, err error) {
	if revision := l.Data.GetRevision(); revision > r.data[string(l.Key)] {
		r.data[string(l.Key)] = revision
		if err := w.tell(Told{Event: &query.Event{What: uint32(lockfsm.Wrote), Key: l.Key, Data: l.Data}}); err != nil {
			return false, err
		}
	}
	for l.Held > 0 && len(l.Queue) > 0 {
		for _, st := range l.Queue {
			if st.Token == 0 {
				continue
			}
			if err := w.tellHold(l.Key, st, r); err != nil {
				return false, err
			}
		}
		if int(l.Held) <= len(l.Queue) {
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

// tellHold tells a hold, unless it was told when it began.
func (w *Watch) tellHold(key []byte, st *query.Standing, r *reading) error {
	hold := holdID{string(key), st.Token}
	if !r.held[hold] {
		began := &query.Event{
			What: uint32(lockfsm.Began), Key: key, Token: st.Token, Session: st.Session, Record: st.Record,
			At: st.Since, Value: st.Value,
		}
		if err := w.tell(Told{Event: began}); err != nil {
			return err
		}
	}
	r.held[hold] = true
	if !st.Gone || r.left[hold] {
		return nil
	}
	r.left[hold] = true
	left := &query.Event{What: uint32(lockfsm.Left), Key: key, Token: st.Token, Session: st.Session, Record: st.Record}
	return w.tell(Told{Event: left})
}

// reading is what was told of what there is, by one leader.
type reading struct {
	leader     uint64
	from, upTo uint64 // it is at from, and the last page was read at upTo
	more       bool   // has happened behind from
	held, left map[holdID]bool
	data       map[string]uint64
}

type holdID struct {
	key   string
	token uint64
}

// page notes a part of what there is, and reports whether the same leader answers as before.
func (r *reading) page(s *query.LockList) bool {
	if r.leader == 0 {
		r.leader, r.from = s.Leader, s.Position
	}
	r.upTo = s.Position
	return s.Leader == r.leader
}

// goesOn reports whether an event that lies within the time of the reading is news behind what was
// told.
func (r *reading) goesOn(e *query.Event) bool {
	key := string(e.Key)
	hold := holdID{key, e.Token}
	switch lockfsm.Happening(e.What) {
	case lockfsm.Began:
		known := r.held[hold]
		r.held[hold] = true
		return !known
	case lockfsm.Ended:
		known := r.held[hold]
		delete(r.held, hold)
		delete(r.left, hold)
		return known
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
