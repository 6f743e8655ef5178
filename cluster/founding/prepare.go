package founding

import (
	"encoding/binary"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Prepare asks one life of an instance to start an empty replica (rule 9). The leader puts it, and
// adds the replica to the configuration only when the answer is Running.
type Prepare struct {
	To     nodeid.ID // the only life that may answer
	Group  uint64
	Raft   uint64 // minted for this, never used before
	Term   uint64 // of the leader that asks
	At     uint64 // the configuration that it has applied, which Voters are
	Voters []Voter
}

// PreparedState says what became of a Prepare. The values go over the wire and never change.
type PreparedState uint8

// What became of a Prepare.
const (
	Running  PreparedState = iota // the replica is there: it was started now, or by an earlier Prepare with the same ID
	Ended                         // that ID has been used in this life, and is over
	Declined                      // not now, Detail says why; the ID has not been used
)

// PrepareAnswer is the answer to a Prepare.
type PrepareAnswer struct {
	Instance nodeid.ID // that answers: by its connection, not in the message
	Raft     uint64
	State    PreparedState
	Detail   string // for people
}

// Announce tells one life of an instance that a configuration of its group is applied where it
// comes from (rule 14).
type Announce struct {
	To     nodeid.ID
	Group  uint64
	At     uint64
	Voters []Voter
}

// AppendPrepare encodes a question that is put with Net.Ask behind b.
func AppendPrepare(b []byte, p Prepare) []byte {
	b = append(header(b, kindPrepare), p.To[:]...)
	for _, n := range [...]uint64{p.Group, p.Raft, p.Term, p.At} {
		b = binary.AppendUvarint(b, n)
	}
	return appendVoters(b, p.Voters)
}

func decodePrepare(b []byte) (Prepare, error) {
	r := open(b, kindPrepare)
	p := Prepare{To: r.instance(), Group: r.uint(), Raft: r.uint(), Term: r.uint(), At: r.uint(), Voters: r.voters()}
	if p.To.IsZero() || p.Group == 0 || p.Raft == 0 || p.At == 0 || p.At > atMax || p.Term > atMax || !whole(p.Voters) {
		r.fail()
	}
	return p, r.done()
}

func appendPrepared(b []byte, a PrepareAnswer) []byte {
	b = header(b, kindPrepared)
	b = binary.AppendUvarint(b, a.Raft)
	return appendText(append(b, byte(a.State)), cut(a.Detail, textBytesMax))
}

// DecodePrepared reads the answer that an instance has given to a Prepare. It counts only if
// Instance and Raft are those that were asked.
func DecodePrepared(from nodeid.ID, b []byte) (PrepareAnswer, error) {
	r := open(b, kindPrepared)
	a := PrepareAnswer{
		Instance: from, Raft: r.uint(), State: PreparedState(r.upTo(uint64(Declined))), Detail: r.text(textBytesMax),
	}
	if r.done() != nil {
		return PrepareAnswer{}, ErrMalformed
	}
	return a, nil
}

// AppendAnnounce encodes a question that is put with Net.Ask behind b. The answer is one byte that
// means nothing.
func AppendAnnounce(b []byte, a Announce) []byte {
	b = append(header(b, kindAnnounce), a.To[:]...)
	for _, n := range [...]uint64{a.Group, a.At} {
		b = binary.AppendUvarint(b, n)
	}
	return appendVoters(b, a.Voters)
}

func decodeAnnounce(b []byte) (Announce, error) {
	r := open(b, kindAnnounce)
	a := Announce{To: r.instance(), Group: r.uint(), At: r.uint(), Voters: r.voters()}
	if a.To.IsZero() || a.Group == 0 || a.At == 0 || a.At > atMax || !whole(a.Voters) {
		r.fail()
	}
	return a, r.done()
}

// whole reports whether voters can be a whole configuration.
func whole(voters []Voter) bool {
	for _, v := range voters {
		if v.Raft == 0 || v.Instance.IsZero() || v.Addr == "" {
			return false
		}
	}
	return len(voters) > 0
}

// AppendPlace encodes behind b who a replica is, to be kept beside its raft ID in the configuration
// of the log.
func AppendPlace(b []byte, v Voter) []byte {
	b = append(header(b, kindPlace), v.Instance[:]...)
	return binary.AppendUvarint(appendText(b, v.Addr), v.Life)
}

// DecodePlace reads what AppendPlace wrote. The raft ID, and whether it is a learner, is for the
// caller to fill in.
func DecodePlace(b []byte) (Voter, error) {
	r := open(b, kindPlace)
	v := Voter{Instance: r.instance(), Addr: r.text(addrBytesMax), Life: r.uint()}
	if r.done() != nil || v.Instance.IsZero() || v.Addr == "" {
		return Voter{}, ErrMalformed
	}
	return v, nil
}
