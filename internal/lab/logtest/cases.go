package logtest

import (
	"bytes"
	"math/rand/v2"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

func cases() []testCase {
	return []testCase{
		{"empty", "Found must be able to detect that a store is unused.",
			func(s *subject) { s.check() }},
		{"founded", "All of the first batch must be loaded, or the replica starts as another, without voters, or " +
			"without its vote.",
			func(s *subject) { s.found() }},
		{"joined", "A replica that waits to be added has an identity and nothing else.", func(s *subject) {
			s.save(raftlog.Batch{Identity: &raftlog.Identity{Group: 3, ID: 1<<64 - 9}})
		}},
		{"hard state alone", "A vote must be kept, without touching the log: a forgotten vote is cast twice.",
			func(s *subject) {
				s.found()
				s.save(raftlog.Batch{Entries: entries(2, 1, 3)})
				s.save(raftlog.Batch{HardState: hard(7, 6, 3)})
				s.save(raftlog.Batch{HardState: hard(8, 0, 4)})
			}},
		{"entries alone", "An entry must be kept with its type, also without data, and the hard state must stay.",
			func(s *subject) {
				s.found()
				s.save(raftlog.Batch{Entries: entries(2, 1, 9)})
				s.save(raftlog.Batch{Entries: entries(11, 4, 1), HardState: hard(4, 5, 1)})
			}},
		{"overwrite", "Entries that a new leader overwrites must be gone, including a longer tail: they were " +
			"never committed.", func(s *subject) {
			s.found()
			s.save(raftlog.Batch{Entries: entries(2, 1, 9)})
			s.save(raftlog.Batch{Entries: entries(5, 2, 2)})
			s.save(raftlog.Batch{Entries: entries(2, 3, 1), HardState: hard(3, 0, 1)})
			s.save(raftlog.Batch{Entries: entries(3, 3, 20)})
		}},
		{"own snapshot", "A snapshot taken here must leave the entries behind it, which it does not cover.",
			func(s *subject) {
				s.found()
				s.save(raftlog.Batch{Entries: entries(2, 1, 9)})
				s.save(raftlog.Batch{Snapshot: snapshot(6, 1, "six"), HardState: hard(1, 0, 6)})
				s.save(raftlog.Batch{Entries: entries(9, 2, 4)})
				s.save(raftlog.Batch{Snapshot: snapshot(12, 2, "twelve")})
			}},
		{"snapshot ahead", "A snapshot beyond the log replaces it; entries before it would leave a gap.",
			func(s *subject) {
				s.found()
				s.save(raftlog.Batch{Entries: entries(2, 1, 3)})
				s.save(raftlog.Batch{Snapshot: snapshot(100, 4, "far"), HardState: hard(4, 0, 100)})
				s.save(raftlog.Batch{Entries: entries(101, 4, 2)})
			}},
		{"snapshot across", "If the log holds another entry at the snapshot's index, it is of another history " +
			"and must be deleted.", func(s *subject) {
			s.found()
			s.save(raftlog.Batch{Entries: entries(2, 1, 9)})
			s.save(raftlog.Batch{Snapshot: snapshot(6, 2, "other")})
		}},
		{"snapshot and entries", "One batch may hold everything; the entries come behind the snapshot, and those " +
			"it covers need not be kept.",
			func(s *subject) {
				s.found()
				s.save(raftlog.Batch{Entries: entries(2, 1, 9)})
				s.save(raftlog.Batch{HardState: hard(3, 6, 21), Snapshot: snapshot(20, 3, "far"),
					Entries: entries(21, 3, 3)})
				s.save(raftlog.Batch{Snapshot: snapshot(22, 3, "own"), Entries: entries(22, 3, 4)})
			}},
		{"large", "An entry or a snapshot larger than any buffer must come back whole.", func(s *subject) {
			s.found()
			big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
			s.save(raftlog.Batch{Entries: []*raftpb.Entry{{Index: new(uint64(2)), Term: new(uint64(1)), Data: big}}})
			sn := snapshot(2, 1, "")
			sn.Data = append(big, 1)
			s.save(raftlog.Batch{Snapshot: sn})
		}},
		{"gap", "A log with a gap must never be written: it is indistinguishable from a corrupt one.",
			func(s *subject) {
				s.found()
				s.save(raftlog.Batch{Entries: entries(2, 1, 2)})
				if err := s.store.Save(raftlog.Batch{Entries: entries(9, 1, 1)}); err == nil {
					s.t.Errorf("an entry behind a gap was accepted\nwhy it matters: %s", s.why)
				}
			}},
		{"any sequence", "Any sequence that raft produces must have the effect that the definition, after, states.", random},
	}
}

// random is the case that saves sequences of batches like those that raft makes.
func random(s *subject) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		if seed == 0 {
			s.found()
		}
		last, term := s.want.Snapshot.GetMetadata().GetIndex(), s.want.HardState.GetTerm()
		if n := len(s.want.Entries); n > 0 {
			last = s.want.Entries[n-1].GetIndex()
		}
		for range 25 {
			var b raftlog.Batch
			base := s.want.Snapshot.GetMetadata().GetIndex()
			switch r.IntN(8) {
			case 0:
				term++
				last += 1 + r.Uint64N(50)
				b.Snapshot = snapshot(last, term, "theirs")
			case 1:
				if n := len(s.want.Entries); n > 0 {
					e := s.want.Entries[r.IntN(n)]
					b.Snapshot = snapshot(e.GetIndex(), e.GetTerm(), "ours")
				}
			case 2:
				term++
				b.Entries = entries(base+1+r.Uint64N(last-base+1), term, 1+r.IntN(5))
			default:
				b.Entries = entries(last+1, term, 1+r.IntN(9))
			}
			if n := len(b.Entries); n > 0 {
				last = b.Entries[n-1].GetIndex()
			}
			if r.IntN(2) == 0 || b.Snapshot != nil {
				b.HardState = hard(term, r.Uint64N(9), last)
			}
			s.save(b)
		}
	}
}
