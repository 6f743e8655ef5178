package lockfsm

// Each lock counts the entries that can connect its queue with another one, so that most searches
// for a deadlock end without a visit. With nested limits, thousands of requests may wait, and no
// circle is possible: the innermost limit has no request below it, and no request of the outermost
// one waits under an owner.
//
//   - An entry leads on if its request has several keys, owns a request, or is an upgrade. If no
//     entry of a queue does, they all end one after the other, and no other queue delays them.
//   - A waiting entry links back if its request has several keys, or an owner. If no entry behind a
//     hold does, these entries delay only their own queue.

// leadsOn reports whether e's request waits in another queue, or for the end of another request.
func (e *entry) leadsOn() bool {
	return e.several() || e.upgrades() || e.session.owned[e.number].first != nil
}

// linksBack reports whether the wait of e's request can delay another queue.
func (e *entry) linksBack() bool {
	return e.token == 0 && e.extra != nil && (e.extra.entries != nil || e.extra.owner != 0)
}

func (e *entry) several() bool { return e.extra != nil && e.extra.entries != nil }

// connect counts the entries of e's request, which joins a session, or uncounts them with by -1.
func (e *entry) connect(by int32) {
	leads, links := e.leadsOn(), e.linksBack()
	if !leads && !links {
		return
	}
	for _, each := range e.all(new([1]*entry)) {
		if leads {
			each.lock.leads += by
		}
		if links {
			each.lock.links += by
		}
	}
}

// ownsFirst counts the request for which e is listed, if e is the only one of its list. See
// connect.
func (e *entry) ownsFirst(by int32) {
	if o := e.session.requests[e.extra.listedFor()]; o != nil && !o.several() && !o.upgrades() {
		o.lock.leads += by
	}
}

// delaysNone reports whether all entries of l's queue end without the end of a request in another
// queue. The owners of a new request, which its session does not list yet, do not end before it.
func (l *lock) delaysNone(of owners) bool {
	return l.leads == 0 && (of[0] == nil || of[0].lock != l) && (of[1] == nil || of[1].lock != l)
}

// isFree reports whether the counts show that the waiting request e is in no deadlock. A false
// result shows nothing.
func (e *entry) isFree() bool {
	switch {
	case e.upgrades():
		return false
	case !e.leadsOn() && e.lock.delaysNone(owners{}):
		return true
	}
	for above, n := e.owner(), 0; above != nil; above = above.owner() {
		if n++; n > maxLinks || above.several() || above.upgrades() || above.lock.links > 0 {
			return false // e counts, too, if it waits for a key of its owner
		}
	}
	return true
}
