package client

import (
	"maps"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// This file is about the begin and the end of a stay in the group.

// Granted reports that the request of a stay is granted, with its first and its last token. If last
// is zero the group has reserved no tokens, and the only caller gets the first token.
func (s *Stays) Granted(w Window, r *Request, first, last lockfsm.Token) {
	st := s.find(r)
	if st == nil {
		return
	}
	st.granted, st.first, st.spare, st.last, st.reserved, st.behind = true, first, first+1, last, w.Now, nil
	s.granted++
	if last == 0 {
		st.spare, st.last = first, first
	}
	s.settle(w, st)
}

// Failed reports that the request of a stay has failed. All its callers fail.
func (s *Stays) Failed(r *Request, err error) {
	if st := s.find(r); st != nil {
		s.fail(st, err)
		s.drop(st)
	}
}

func (s *Stays) fail(st *stay, err error) {
	for st.head != nil {
		l := st.head
		s.remove(st, l)
		s.News = append(s.News, StayNews{Caller: l, Err: err})
	}
}

// Lost reports that a granted request of a stay is lost. The caller inside has lost the lock, and
// the others wait for a new request.
func (s *Stays) Lost(r *Request, err error, why Loss) {
	st := s.find(r)
	if st == nil {
		return
	}
	if l := st.inside; l != nil {
		l.holds, st.inside = false, nil
		s.News = append(s.News, StayNews{Caller: l, Err: err, Why: why, Lost: true})
	}
	s.again(st)
}

// Behind reports the holder for which the request of a stay waits.
func (s *Stays) Behind(r *Request, behind *HeldError) {
	st := s.find(r)
	if st == nil {
		return
	}
	st.behind = behind
	for l := st.head; l != nil; l = l.next {
		s.News = append(s.News, StayNews{Caller: l, Behind: behind})
	}
}

// Recalled reports that another request waits for the stay.
func (s *Stays) Recalled(w Window, r *Request) {
	st := s.find(r)
	if st == nil || !st.granted {
		return
	}
	if st.recalled == 0 {
		st.recalled, st.upTo, st.before = w.Now, st.order, st.waiting
	}
	if st.inside == nil {
		s.settle(w, st)
	} else {
		s.News = append(s.News, StayNews{Caller: st.inside, Wanted: true})
	}
}

// Asked reports that requests with Try, up to place, wait for the answer of the stay.
func (s *Stays) Asked(w Window, r *Request, place lockfsm.Revision) {
	s.Recalled(w, r)
	if st := s.find(r); st != nil && st.granted && st.inside != nil {
		s.Commands = append(s.Commands, StayCommand{Kind: StayInUse, Request: r, Place: place,
			Token: st.inside.token})
	}
}

// Yield gives back a free stay before this session sends a request for the key to the group.
func (s *Stays) Yield(key string) {
	if st := s.stays[key]; st != nil && st.isFree {
		s.giveBack(st)
	}
}

// Renewed reports that the lease was renewed.
func (s *Stays) Renewed(w Window) {
	stalled := s.stalled
	s.stalled = nil
	for _, st := range stalled {
		if st.isStalled = false; s.stays[st.key] == st && st.granted && st.inside == nil && !st.isFree {
			s.settle(w, st)
		}
	}
}

func (s *Stays) stall(st *stay) {
	if !st.isStalled {
		st.isStalled = true
		s.stalled = append(s.stalled, st)
	}
}

// Leave gives back all stays that no caller is inside of, and the others when their caller has
// unlocked. Waiting callers fail with ErrLeaving.
func (s *Stays) Leave() {
	s.leaving = true
	s.GiveBackFree()
	for _, key := range slices.Sorted(maps.Keys(s.stays)) { // in an order that is the same in each run
		st := s.stays[key]
		if !st.granted {
			continue // the core fails the request
		}
		s.fail(st, ErrLeaving)
		if st.inside == nil {
			s.giveBack(st)
		}
	}
}

// GiveBackFree gives back all free stays.
func (s *Stays) GiveBackFree() {
	for s.first != nil {
		s.giveBack(s.first)
	}
}

// giveBack releases a stay, and makes one new request for the callers that wait.
func (s *Stays) giveBack(st *stay) {
	s.learn(st)
	s.Commands = append(s.Commands, StayCommand{Kind: StayRelease, Request: st.request})
	s.again(st)
}

// again ends a granted stay, and makes one new request for the callers that wait.
func (s *Stays) again(st *stay) {
	s.unfree(st)
	if st.granted {
		st.granted = false
		s.granted--
	}
	if st.waiting == 0 {
		s.drop(st)
		return
	}
	st.recalled, st.upTo, st.before, st.extra, st.passes, st.nested, st.behind = 0, 0, 0, 0, 0, false, nil
	s.ask(st)
}

func (s *Stays) ask(st *stay) {
	st.request = &Request{Key: st.key, Sticky: true, Caller: st}
	s.Commands = append(s.Commands, StayCommand{Kind: StayAcquire, Request: st.request})
}

func (s *Stays) drop(st *stay) {
	if s.stays[st.key] == st {
		delete(s.stays, st.key)
	}
}

// find returns the stay of a request of the group, or nil if the stay has another request now.
func (s *Stays) find(r *Request) *stay {
	if st := r.Caller.(*stay); st.request == r && s.stays[st.key] == st {
		return st
	}
	return nil
}

// skips reports whether the next grant of the key shall not be kept.
func (s *Stays) skips(key string) bool {
	b := s.useless[key]
	if b == nil || b.skip == 0 {
		return false
	}
	b.skip--
	return true
}

// learn notes whether a stay was worth its cost. A stay that ended by a recall after one pass costs
// a recall and saves no message, so the next grants of its key are not kept: 1, then 2, and so on
// up to 64.
func (s *Stays) learn(st *stay) {
	switch {
	case st.passes >= biasPasses:
		delete(s.useless, st.key)
	case st.recalled != 0 && st.passes < 2:
		b := s.useless[st.key]
		if b == nil {
			if len(s.useless) >= biasKeys {
				clear(s.useless)
			}
			b = &bias{}
			s.useless[st.key] = b
		}
		b.width = min(max(1, 2*b.width), biasLongest)
		b.skip = b.width
	}
}
