package founding

import (
	"reflect"
	"time"
)

type disk struct {
	state, voters []byte
	life          uint64
	logs          map[uint64]uint64 // raft ID → mark of its log
	// the group to which the instance belongs in the stored state; zero means none
	member uint64
	fails  bool
}

func (d *disk) decoded() *State {
	if d.state == nil {
		return nil
	}
	st, err := DecodeState(d.state)
	if err == nil {
		st.Voters, err = DecodeVoters(d.voters)
	}
	if err != nil {
		panic(err)
	}
	return &st
}

// If the slot has a directory, load puts its stored state into cfg. It also increments and stores
// the life.
func (s *slot) load(cfg *Config) {
	if s.disk == nil {
		return
	}
	s.disk.fails, s.retired = false, false
	s.disk.life++
	cfg.Durable, cfg.Life, cfg.Stored = true, s.disk.life, s.disk.decoded()
	s.saved, s.refused = 1<<63, ""
	if cfg.Stored != nil {
		s.book.Configure(cfg.Stored.At, cfg.Stored.Voters)
		s.floor = cfg.Stored.FloorUnixMS
	}
}

// persist stores the state as the shell does. It returns false if the process dies during the save;
// then nothing was sent.
func (s *slot) persist(out *Output) bool {
	w := s.w
	if s.disk == nil || s.saved == s.core.Revision() || s.retired {
		return true
	}
	if w.rng.Float64() < w.brittle {
		w.note("%s dies before it has stored revision %d", s.name, s.core.Revision())
		s.crash()
		return false
	}
	if s.disk.fails {
		w.note("%s cannot store revision %d", s.name, s.core.Revision())
		s.retired = true
		if out == nil {
			out = &Output{}
		}
		*out = s.core.Unsaved(*out, "disk full")
		s.w.after(0, s.again())
		return true
	}
	st := s.core.State()
	old := s.disk.decoded()
	if old == nil {
		old = &State{}
	}
	s.disk.state, s.disk.voters, s.saved = st.Append(nil), AppendVoters(nil, st.Voters), s.core.Revision()
	group := uint64(0)
	if st.Phase == Member {
		group = st.Group
	}
	if s.disk.member != 0 && s.disk.member != group && !w.givenUp[s.disk.member] &&
		w.needs(s.disk.member, old.Raft, old.Lingers) {
		w.fault("%s has given up group %x, which its directory held", s.name, s.disk.member)
	}
	s.disk.member = group
	if st.Charter != nil {
		w.groupOf(*st.Charter).accepted[st.Instance] = true
	}
	if w.rng.Float64() < w.brittle {
		w.note("%s dies after it has stored revision %d", s.name, s.core.Revision())
		s.crash()
		return false
	}
	return true
}

func (s *slot) again() func() {
	life := s.life
	return func() {
		if s.life == life {
			s.tick()
		}
	}
}

func (s *slot) mustHaveStored(what string) {
	if s.disk == nil || s.retired || s.w.plant != "" {
		return
	}
	now := s.core.State()
	st := s.disk.decoded()
	if now.Charter != nil && st.Charter != nil && now.Charter.Group == st.Charter.Group {
		now.Charter = st.Charter
	}
	st.Voters, now.Voters = nil, nil // stored addresses may be older
	if !reflect.DeepEqual(*st, now) {
		s.w.fault("%s %s as %+v, and has stored %+v", s.name, what, now, *st)
	}
}

func (s *slot) open(raft uint64) {
	if raft == 0 {
		return
	}
	mark, known := s.w.rafts[raft]
	own, found := uint64(0), false
	if s.disk != nil {
		own, found = s.disk.logs[raft]
	}
	if found != known || own != mark || s.w.over[raft] {
		s.w.fault("%s begins raft ID %x anew, which has promised something before", s.name, raft)
	}
	if known {
		return
	}
	s.w.rafts[raft] = s.w.id()
	if s.disk != nil {
		s.disk.logs[raft] = s.w.rafts[raft]
	}
}

func (s *slot) drop() {
	if s.disk != nil && !s.retired {
		clear(s.disk.logs)
	}
}

func (s *slot) configure(group, at uint64, voters []Voter) {
	s.book.Configure(at, voters)
	s.book.Hear(Voter{Raft: s.raft, Instance: s.core.Instance(), Addr: s.addr, Life: s.core.Life()}, true)
	s.core.Voters(s.w.now, group, s.book.At(), s.book.Voters())
}

func (s *slot) hear(e Event) {
	if e.Group != s.core.Group() {
		return
	}
	if e.At > 0 {
		s.configure(e.Group, e.At, e.Voters)
		return
	}
	for _, v := range e.Voters {
		s.book.Hear(v, false)
	}
	s.core.Voters(s.w.now, e.Group, s.book.At(), s.book.Voters())
}

func (s *slot) knows(o *slot) bool {
	if s == o || s.disk == nil {
		return true
	}
	for _, v := range s.book.Voters() {
		if v.Instance == o.core.Instance() {
			return v.Addr == o.addr
		}
	}
	return true // o is no voter, so o contacts s
}

func (w *world) kept(raft, group uint64) bool {
	for _, s := range w.slots {
		if s.disk == nil {
			continue
		}
		if st := s.disk.decoded(); st != nil && st.Raft == raft && st.Group == group {
			return true
		}
	}
	return false
}

func (s *slot) lose() {
	s.w.note("%s has lost its directory", s.name)
	if st := s.disk.decoded(); st != nil {
		s.w.emptied[st.Instance] = true
	}
	s.disk = &disk{logs: map[uint64]uint64{}}
}

func (s *slot) recover(group uint64) bool {
	if s.core == nil || s.retired {
		return false
	}
	known := s.leader
	if err := s.core.Recover(s.w.now, group); err != nil {
		s.w.note("%s does not give up group %x: %v", s.name, group, err)
		return false
	}
	if known {
		s.w.fault("%s gave up group %x, which has a leader", s.name, group)
	}
	s.w.givenUp[group] = true
	s.tick()
	return true
}

// operate does what operators do after all faults have ended: they give up groups that have lost
// their majority for good, or empty their directories.
func (w *world) operate() {
	for _, s := range w.slots {
		if s.disk == nil || s.disk.member == 0 {
			continue
		}
		if g := w.groups[s.disk.member]; w.alive(g)*2 <= len(g.voters()) {
			lost := 0
			for _, v := range g.voters() {
				if w.emptied[v.Instance] {
					lost++
				}
			}
			if (w.alive(g)+lost)*2 <= len(g.voters()) && !w.givenUp[g.charter.Group] {
				w.fault("%s keeps group %x, which its other voters have left though their directories were never "+
					"lost", s.name, g.charter.Group)
			}
			if w.rng.IntN(2) == 0 && s.recover(g.charter.Group) {
				continue
			}
			if s.core != nil {
				s.crash()
			}
			s.lose()
		}
	}
}

func (w *world) durably() *world {
	for _, s := range w.slots {
		s.disk = &disk{logs: map[uint64]uint64{}}
	}
	return w
}

func (w *world) swap(a, b *slot) {
	a.addr, b.addr = b.addr, a.addr
	for _, s := range []*slot{a, b} {
		addr := s.addr
		w.after(time.Duration(w.rng.Int64N(int64(2*time.Second))), func() { s.dns = addr })
	}
	w.note("%s and %s have swapped addresses", a.name, b.name)
}
