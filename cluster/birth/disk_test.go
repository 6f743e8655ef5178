package birth

import (
	"maps"
	"reflect"
	"slices"
	"time"
)

// disk is the directory of a slot: what is on it survives a crash.
type disk struct {
	state, voters []byte
	life          uint64
	logs          map[uint64]uint64 // raft ID → mark of its log
	member        uint64            // group that the state belongs to as a member; 0: none
	fails         bool              // the next save fails, and all after it until a restart
}

// decoded returns what is stored, or nil.
func (d *disk) decoded() *State {
	if d.state == nil {
		return nil
	}
	st, err := DecodeState(d.state)
	if err == nil {
		st.Voters, err = DecodeVoters(d.voters)
	}
	if err != nil {
		panic(err) // only what a core has said is stored
	}
	return &st
}

// load is a start with a directory: the life is counted up and stored before anything else.
func (s *slot) load(cfg *Config) {
	if s.disk == nil {
		return
	}
	s.disk.fails, s.retired = false, false
	s.disk.life++
	cfg.Durable, cfg.Life, cfg.Stored = true, s.disk.life, s.disk.decoded()
	s.saved, s.refused, s.book = 1<<63, "", map[uint64]Voter{}
	if cfg.Stored != nil {
		for _, v := range cfg.Stored.Voters {
			s.book[v.Raft] = v
		}
	}
}

// persist is the durable step of the shell. It returns false if the process has died around it; nothing it wanted to say was said then.
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
	s.disk.state, s.disk.voters, s.saved = st.Append(nil), AppendVoters(nil, st.Voters), s.core.Revision()
	group := uint64(0)
	if st.Phase == Member {
		group = st.Group
	}
	if s.disk.member != 0 && s.disk.member != group {
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

// again returns a tick for this life.
func (s *slot) again() func() {
	life := s.life
	return func() {
		if s.life == life {
			s.tick()
		}
	}
}

// mustHaveStored checks that whatever is said or done now rests on what is stored.
func (s *slot) mustHaveStored(what string) {
	if s.disk == nil || s.retired || s.w.plant != "" {
		return
	}
	now := s.core.State()
	st := s.disk.decoded()
	if now.Charter != nil && st.Charter != nil && now.Charter.Group == st.Charter.Group {
		now.Charter = st.Charter
	}
	st.Voters, now.Voters = nil, nil // where voters are is advice
	if !reflect.DeepEqual(*st, now) {
		s.w.fault("%s %s as %+v, and has stored %+v", s.name, what, now, *st)
	}
}

// open finds or makes the log of a voter.
func (s *slot) open(e Event) {
	if s.disk == nil {
		return
	}
	s.configure(e.Group, e.Charter.Voters)
	if e.Raft == 0 {
		return
	}
	mark, known := s.w.rafts[e.Raft]
	if own, found := s.disk.logs[e.Raft]; found != known || own != mark {
		s.w.fault("%s begins raft ID %x anew, which has promised something before", s.name, e.Raft)
	}
	if !known {
		s.w.rafts[e.Raft] = s.w.id()
		s.disk.logs[e.Raft] = s.w.rafts[e.Raft]
	}
}

// drop removes the logs of an old life.
func (s *slot) drop() {
	if s.disk != nil && !s.retired {
		clear(s.disk.logs)
	}
}

// configure and hear are the address book of the shell.
func (s *slot) configure(group uint64, voters []Voter) {
	if s.disk == nil {
		return
	}
	old := s.book
	s.book = map[uint64]Voter{}
	for _, v := range voters {
		s.book[v.Raft] = v
		if o, ok := old[v.Raft]; ok && o.Life > v.Life {
			s.book[v.Raft] = o
		}
		if v.Instance == s.core.Instance() {
			v.Addr, v.Life = s.addr, s.core.Life()
			s.book[v.Raft] = v
		}
	}
	s.core.Voters(group, s.voters())
}

func (s *slot) hear(e Event) {
	if s.disk == nil || e.Group != s.core.Group() {
		return
	}
	for _, v := range e.Voters {
		if o, ok := s.book[v.Raft]; ok && v.Life > o.Life {
			s.book[v.Raft] = v
		}
	}
	s.core.Voters(e.Group, s.voters())
}

func (s *slot) voters() []Voter {
	var voters []Voter
	for _, raft := range slices.Sorted(maps.Keys(s.book)) {
		voters = append(voters, s.book[raft])
	}
	return voters
}

// knows reports whether the address book of s leads to o.
func (s *slot) knows(o *slot) bool {
	if s == o || s.disk == nil {
		return true
	}
	for _, v := range s.book {
		if v.Instance == o.core.Instance() {
			return v.Addr == o.addr
		}
	}
	return true // no voter: it finds us
}

// kept reports whether the directory of a slot, running or not, holds that life as bound to the group or a member of it.
func (w *world) kept(instance, group uint64) bool {
	for _, s := range w.slots {
		if s.disk == nil {
			continue
		}
		if st := s.disk.decoded(); st != nil && st.Instance == instance && st.Group == group {
			return true
		}
	}
	return false
}

// lose empties the directory of a slot that is down.
func (s *slot) lose() {
	s.w.note("%s has lost its directory", s.name)
	if st := s.disk.decoded(); st != nil {
		s.w.emptied[st.Instance] = true
	}
	s.disk = &disk{logs: map[uint64]uint64{}}
}

// operate is what people do after all trouble: they empty the directories of groups that have lost their majority for good.
func (w *world) operate() {
	for _, s := range w.slots {
		if s.disk == nil || s.disk.member == 0 {
			continue
		}
		if g := w.groups[s.disk.member]; w.alive(g)*2 <= len(g.charter.Voters) {
			lost := 0
			for _, v := range g.charter.Voters {
				if w.emptied[v.Instance] {
					lost++
				}
			}
			if (w.alive(g)+lost)*2 <= len(g.charter.Voters) {
				w.fault("%s keeps group %x, which its other voters have left though their directories were never lost", s.name, g.charter.Group)
			}
			if s.core != nil {
				s.crash()
			}
			s.lose()
		}
	}
}

// durably gives every slot a directory.
func (w *world) durably() *world {
	for _, s := range w.slots {
		s.disk = &disk{logs: map[uint64]uint64{}}
	}
	return w
}

// swap exchanges the addresses of two slots that are down.
func (w *world) swap(a, b *slot) {
	a.addr, b.addr = b.addr, a.addr
	for _, s := range []*slot{a, b} {
		addr := s.addr
		w.after(time.Duration(w.rng.Int64N(int64(2*time.Second))), func() { s.dns = addr })
	}
	w.note("%s and %s have swapped addresses", a.name, b.name)
}
