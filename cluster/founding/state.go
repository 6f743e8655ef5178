package founding

import (
	"encoding/binary"
	"slices"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
)

// State is what a durable instance needs at its next start. The package comment says when the host
// must store it.
type State struct {
	Instance nodeid.ID
	Phase    Phase
	Group    uint64   // 0 for a newborn
	Charter  *Charter // nil for a newborn, and for a member that joined a founded group
	Settings Settings // settings of the group; zero for a newborn
	Addr     string   // host:port at which this instance last took part
	Refused  string   // why this instance may never take part again; empty if it may
	Voters   []Voter  // voters of Group with their newest addresses; AppendVoters encodes them

	At      uint64 // number of the configuration Voters; 0 for a newborn
	Raft    uint64 // present raft ID, from the charter or a Prepare; zero means none
	Term    uint64
	Used    []Used // raft IDs of this incarnation whose replicas have ended, oldest first
	Lingers uint64 // raft ID in Used whose replica still runs; zero means none
	// highest configuration number of the IDs that were dropped from Used
	UsedAt      uint64
	Supersedes  []uint64 // groups that Group has replaced
	GaveUp      []uint64 // groups that operators have given up here, oldest first
	FloorUnixMS int64
}

// Append appends the encoding of all fields but Voters to b.
func (s *State) Append(b []byte) []byte {
	b = header(b, kindState)
	b = append(b, s.Instance[:]...)
	b = append(b, byte(s.Phase))
	b = binary.AppendUvarint(b, s.Group)
	b = appendBool(b, s.Charter != nil)
	if s.Charter != nil {
		b = appendCharter(b, s.Charter)
	}
	b = appendSettings(b, s.Settings)
	b = appendText(b, plain.Cut(s.Addr, maxAddrBytes))
	b = appendText(b, plain.Cut(s.Refused, maxReasonBytes))
	for _, n := range [...]uint64{s.At, s.Raft, s.Term, s.Lingers, s.UsedAt, uint64(len(s.Used))} {
		b = binary.AppendUvarint(b, n)
	}
	for _, u := range s.Used {
		b = binary.AppendUvarint(binary.AppendUvarint(b, u.Raft), u.At)
	}
	b = appendIDs(b, s.Supersedes)
	b = binary.AppendUvarint(b, uint64(len(s.GaveUp)))
	for _, group := range s.GaveUp {
		b = binary.AppendUvarint(b, group)
	}
	return binary.AppendUvarint(b, uint64(s.FloorUnixMS))
}

func readState(r *reader, s *State) {
	s.At, s.Raft, s.Term, s.Lingers, s.UsedAt = r.uint(), r.uint(), r.uint(), r.uint(), r.uint()
	for range r.length(maxUsed, 2) {
		s.Used = append(s.Used, Used{Raft: r.uint(), At: r.uint()})
	}
	s.Supersedes = r.ids(maxSupersedes)
	for range r.length(maxGaveUp, 1) {
		s.GaveUp = append(s.GaveUp, r.uint())
	}
	s.FloorUnixMS = int64(r.upTo(maxWall))
}

// DecodeState decodes the bytes of Append, without Voters. It fails with ErrMalformed if the
// encoding is invalid or if no core can be in that state.
func DecodeState(b []byte) (State, error) {
	r := open(b, kindState)
	s := State{Instance: r.instance(), Phase: Phase(r.upTo(uint64(Member))), Group: r.uint()}
	if r.bool() {
		ch := readCharter(r)
		s.Charter = &ch
	}
	s.Settings, s.Addr, s.Refused = readSettings(r), r.text(maxAddrBytes), r.text(maxReasonBytes)
	readState(r, &s)
	if err := r.done(); err != nil {
		return State{}, err
	}
	wrong := s.Instance.IsZero() || (s.Phase == Newborn) != (s.Group == 0) || (s.Phase == Bound && s.Charter == nil) ||
		(s.Phase == Newborn) != (s.At == 0) || s.Raft != 0 && s.Lingers != 0 || s.Phase == Newborn &&
		(s.Raft != 0 || s.Lingers != 0 || s.Used != nil || s.Supersedes != nil) ||
		s.Raft != 0 && slices.ContainsFunc(s.Used, func(u Used) bool { return u.Raft == s.Raft })
	if ch := s.Charter; ch != nil {
		wrong = wrong || s.Phase == Newborn || ch.Group != s.Group || ch.malformed() != "" || ch.listed(s.Instance) < 0
	}
	if wrong {
		return State{}, ErrMalformed
	}
	return s, nil
}

// AppendVoters appends the encoded voters of a State to b.
func AppendVoters(b []byte, voters []Voter) []byte {
	return appendVoters(header(b, kindVoters), voters)
}

// DecodeVoters decodes the bytes of AppendVoters, or fails with ErrMalformed.
func DecodeVoters(b []byte) ([]Voter, error) {
	r := open(b, kindVoters)
	voters := readVoters(r)
	if err := r.done(); err != nil {
		return nil, err
	}
	for _, v := range voters {
		if v.Raft == 0 || v.Instance.IsZero() || v.Addr == "" {
			return nil, ErrMalformed
		}
	}
	return voters, nil
}
