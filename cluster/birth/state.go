package birth

import (
	"encoding/binary"
	"slices"
)

// State is what a durable instance has to find again at its next start. Whatever Ask or Tick has returned may leave only after the State
// of that moment is stored, in one piece; see the package comment.
type State struct {
	Instance uint64 // of this life
	Phase    Phase
	Group    uint64   // 0 for a newborn
	Charter  *Charter // bound to it, or born with it; nil for a newborn and for a member that joined later
	Settings Settings // of the group; zero for a newborn
	Addr     string   // host:port at which this instance last took part
	Refused  string   // why it may never take part again; empty: it may
	Voters   []Voter  // of Group, with their newest addresses; AppendVoters stores them
}

// Raft returns the raft ID of this instance, or 0 if it has none.
func (s *State) Raft() uint64 {
	if s.Charter == nil {
		return 0
	}
	return s.Charter.Raft(s.Instance)
}

// Append encodes everything but Voters behind b, in the form of a message.
func (s *State) Append(b []byte) []byte {
	b = header(b, kindState)
	b = binary.AppendUvarint(b, s.Instance)
	b = append(b, byte(s.Phase))
	b = binary.AppendUvarint(b, s.Group)
	b = appendBool(b, s.Charter != nil)
	if s.Charter != nil {
		b = appendCharter(b, s.Charter)
	}
	b = appendSettings(b, s.Settings)
	b = appendText(b, cut(s.Addr, addrBytesMax))
	return appendText(b, cut(s.Refused, reasonBytesMax))
}

// DecodeState reads what Append wrote, and refuses what no core can have been in. Voters are read by DecodeVoters.
func DecodeState(b []byte) (State, error) {
	r := open(b, kindState)
	s := State{Instance: r.uint(), Phase: Phase(r.upTo(uint64(Member))), Group: r.uint()}
	if r.bool() {
		ch := r.charter()
		s.Charter = &ch
	}
	s.Settings, s.Addr, s.Refused = r.settings(), r.text(addrBytesMax), r.text(reasonBytesMax)
	if err := r.done(); err != nil {
		return State{}, err
	}
	wrong := s.Instance == 0 || (s.Phase == Newborn) != (s.Group == 0) || (s.Phase == Bound && s.Charter == nil)
	if ch := s.Charter; ch != nil {
		wrong = wrong || s.Phase == Newborn || ch.Group != s.Group || ch.malformed() != "" || ch.listed(s.Instance) < 0
	}
	if wrong {
		return State{}, ErrMalformed
	}
	return s, nil
}

// AppendVoters encodes the voters of a State behind b, in the form of a message.
func AppendVoters(b []byte, voters []Voter) []byte {
	return appendVoters(header(b, kindVoters), voters)
}

// DecodeVoters reads what AppendVoters wrote.
func DecodeVoters(b []byte) ([]Voter, error) {
	r := open(b, kindVoters)
	voters := r.voters()
	if err := r.done(); err != nil {
		return nil, err
	}
	for _, v := range voters {
		if v.Raft == 0 || v.Instance == 0 || v.Addr == "" {
			return nil, ErrMalformed
		}
	}
	return voters, nil
}

// Revision changes whenever State does.
func (c *Core) Revision() uint64 { return c.revision }

// State returns what has to be stored now. It shares nothing with the core but the charter, which never changes.
func (c *Core) State() State {
	return State{
		Instance: c.instance, Phase: c.phase, Group: c.group, Charter: c.charter, Settings: c.rulesOf, Addr: c.home, Refused: c.barred,
		Voters: slices.Clone(c.voters),
	}
}
