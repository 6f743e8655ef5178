package lockfsm

import "container/list"

// unsearched contains the sessions with unsearched requests, in the order in which they are served.
type unsearched struct{ sessions list.List }

func (u *unsearched) add(e *entry) {
	s := e.session
	e.extra.pending = &pendingSearch{at: s.unsearched.requests.PushBack(e)}
	if s.unsearched.at == nil {
		s.unsearched.at = u.sessions.PushBack(s)
	}
}

// drop removes the mark of e, if it has one.
func (u *unsearched) drop(e *entry) {
	if e.extra == nil || e.extra.pending == nil {
		return
	}
	s := &e.session.unsearched
	s.requests.Remove(e.extra.pending.at)
	if e.extra.pending = nil; s.requests.Len() == 0 {
		u.sessions.Remove(s.at)
		s.at = nil
	}
}
