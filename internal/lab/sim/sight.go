package sim

import (
	"iter"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// sight is what all parts of the watch see.
type sight struct {
	w       *world
	history []history.Event
	groups  map[uint64]*group
	running []*life            // what runs on each machine; nil if nothing does
	gone    gone               // the last confirmed release
	overs   map[sessionOf]bool // sessions that the state has ended
}

// sessionOf is a session of a group.
type sessionOf struct {
	group   uint64
	session lockfsm.SessionID
}

type group struct {
	charter founding.Charter
	born    bool
	front   uint64                 // highest index that any replica has applied
	newest  *raftlog.Configuration // newest configuration that any replica has applied
	acks    check.Acks
	fifo    check.FIFO
	delays  check.Delays
}

// gone is a hold whose release was confirmed to its caller.
type gone struct {
	group uint64
	key   string
	token lockfsm.Token
}

func (o *sight) procs() iter.Seq[*life] {
	return func(yield func(*life) bool) {
		for _, p := range o.running {
			if p != nil && !yield(p) {
				return
			}
		}
	}
}

// leasesOf returns the leases of all sessions of all processes.
func (o *sight) leasesOf() iter.Seq[*lease] {
	return func(yield func(*lease) bool) {
		for p := range o.procs() {
			for _, s := range p.leases {
				if !yield(s) {
					return
				}
			}
		}
	}
}

func (o *sight) replicas() iter.Seq[*voter] {
	return func(yield func(*voter) bool) {
		for p := range o.procs() {
			if p.voter != nil && !yield(p.voter) {
				return
			}
		}
	}
}

func (o *sight) record(p *life, e history.Event) {
	e.At, e.Stream, e.Node = int64(o.w.now), p.stream, p.m.name
	o.history = append(o.history, e)
}

// termsOf returns the terms of the key of e with the index i.
func termsOf(e *history.Event, i int) check.Terms {
	t := check.Terms{Permits: e.Permits, Of: e.Of}
	if i < len(e.Modes) {
		t.Permits, t.Of = lockfsm.Mode(e.Modes[i] - '0').Terms()
	}
	return t
}
