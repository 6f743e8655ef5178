package founding

import (
	"encoding/binary"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
)

// Prepare asks one incarnation to start an empty replica (rule 9). The leader sends it, and adds
// the replica to the configuration only if the answer is Running.
type Prepare struct {
	To     nodeid.ID // the only incarnation that may answer
	Group  uint64
	Raft   uint64 // new raft ID that was never used before
	Term   uint64
	At     uint64 // number of the configuration Voters, which the leader has applied
	Voters []Voter
}

// PreparedState is the result of a Prepare. The values are sent to other instances and never
// change.
type PreparedState uint8

// The results of a Prepare.
const (
	// the replica exists: this Prepare or an earlier one with the same ID started it
	Running  PreparedState = iota
	Ended                  // this incarnation has used the ID, and its replica has ended
	Declined               // the replica cannot be started now; Detail is the reason; the ID was not used
)

// PrepareAnswer is the answer to a Prepare.
type PrepareAnswer struct {
	Instance nodeid.ID // the connection proves the ID; not in the message
	Raft     uint64
	State    PreparedState
	Detail   string
}

// Push informs one incarnation that the sender has applied a configuration of its group (rule 14).
type Push struct {
	To     nodeid.ID
	Group  uint64
	At     uint64
	Voters []Voter
}

// AppendPrepare appends the encoded question to b.
func AppendPrepare(b []byte, p Prepare) []byte {
	b = append(header(b, kindPrepare), p.To[:]...)
	for _, n := range [...]uint64{p.Group, p.Raft, p.Term, p.At} {
		b = binary.AppendUvarint(b, n)
	}
	return appendVoters(b, p.Voters)
}

func decodePrepare(b []byte) (Prepare, error) {
	r := open(b, kindPrepare)
	p := Prepare{To: r.instance(), Group: r.uint(), Raft: r.uint(), Term: r.uint(), At: r.uint(), Voters: readVoters(r)}
	if p.To.IsZero() || p.Group == 0 || p.Raft == 0 || p.At == 0 || p.At > maxAt || p.Term > maxAt || !whole(p.Voters) {
		r.fail()
	}
	return p, r.done()
}

func appendPrepared(b []byte, a PrepareAnswer) []byte {
	b = header(b, kindPrepared)
	b = binary.AppendUvarint(b, a.Raft)
	return appendText(append(b, byte(a.State)), plain.Cut(a.Detail, maxTextBytes))
}

// DecodePrepared decodes the answer to a Prepare, or fails with ErrMalformed. The caller must
// ignore an answer whose Instance or Raft differs from the question.
func DecodePrepared(from nodeid.ID, b []byte) (PrepareAnswer, error) {
	r := open(b, kindPrepared)
	a := PrepareAnswer{
		Instance: from, Raft: r.uint(), State: PreparedState(r.upTo(uint64(Declined))), Detail: r.text(maxTextBytes),
	}
	if r.done() != nil {
		return PrepareAnswer{}, ErrMalformed
	}
	return a, nil
}

// AppendPush appends the encoded question to b. The answer is one byte without meaning.
func AppendPush(b []byte, a Push) []byte {
	b = append(header(b, kindPush), a.To[:]...)
	for _, n := range [...]uint64{a.Group, a.At} {
		b = binary.AppendUvarint(b, n)
	}
	return appendVoters(b, a.Voters)
}

func decodePush(b []byte) (Push, error) {
	r := open(b, kindPush)
	a := Push{To: r.instance(), Group: r.uint(), At: r.uint(), Voters: readVoters(r)}
	if a.To.IsZero() || a.Group == 0 || a.At == 0 || a.At > maxAt || !whole(a.Voters) {
		r.fail()
	}
	return a, r.done()
}

func whole(voters []Voter) bool {
	for _, v := range voters {
		if v.Raft == 0 || v.Instance.IsZero() || v.Addr == "" {
			return false
		}
	}
	return len(voters) > 0
}

// AppendPlace appends the instance, address and life of a replica to b. The log's configuration
// stores these bytes with the raft ID.
func AppendPlace(b []byte, v Voter) []byte {
	b = append(header(b, kindPlace), v.Instance[:]...)
	return binary.AppendUvarint(appendText(b, v.Addr), v.Life)
}

// DecodePlace decodes the bytes of AppendPlace, or fails with ErrMalformed. The caller sets Raft
// and Learner.
func DecodePlace(b []byte) (Voter, error) {
	r := open(b, kindPlace)
	v := Voter{Instance: r.instance(), Addr: r.text(maxAddrBytes), Life: r.uint()}
	if r.done() != nil || v.Instance.IsZero() || v.Addr == "" {
		return Voter{}, ErrMalformed
	}
	return v, nil
}
