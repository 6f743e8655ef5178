package founding

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func samples() [][]byte {
	s := Settings{Founders: []string{"a", "b"}, Voters: 3, SessionTTL: simTTL, Grace: simTTL}
	_, ch := pair()
	return [][]byte{
		appendQuestion(nil, question{Instance: nodeidtest.ID(5), Addr: "a:1", Group: 7, Bound: true}),
		appendInfo(nil, InstanceInfo{
			Instance: nodeidtest.ID(5), Name: "n", Addr: "a:1", Phase: Member, Leader: true, RefusedYou: true,
			Group: 9, Settings: s, Rules: 1,
			WallUnixMS: 1 << 40, Voters: []Voter{{Raft: 1, Instance: nodeidtest.ID(2), Addr: "b:1", Life: 3}},
			Obstacle: "none",
			At:       12, Supersedes: []uint64{3, 4}, FloorUnixMS: 1 << 40,
		}),
		appendProposal(nil, proposal{To: nodeidtest.ID(5), Charter: ch}),
		appendVerdict(nil, verdict{Instance: nodeidtest.ID(5), Group: 6, Refusal: RefusedClock, Detail: "2 s"}),
		AppendPrepare(nil, Prepare{To: nodeidtest.ID(5), Group: 99, Raft: 77, Term: 3, At: 12,
			Voters: configuration(66)}),
		appendPrepared(nil, PrepareAnswer{Instance: nodeidtest.ID(5), Raft: 77, State: Declined, Detail: "not now"}),
		AppendPush(nil, Push{To: nodeidtest.ID(5), Group: 99, At: 12, Voters: configuration(66)}),
		AppendPlace(nil, Voter{Instance: nodeidtest.ID(5), Addr: "a:1", Life: 3}),
	}
}

func again(b []byte) []byte {
	if q, err := decodeQuestion(b); err == nil {
		return appendQuestion(nil, q)
	}
	if w, err := decodeInfo(b); err == nil {
		return appendInfo(nil, w)
	}
	if p, err := decodeProposal(b); err == nil {
		return appendProposal(nil, p)
	}
	if v, err := decodeVerdict(b); err == nil {
		return appendVerdict(nil, v)
	}
	if p, err := decodePrepare(b); err == nil {
		return AppendPrepare(nil, p)
	}
	if a, err := DecodePrepared(nodeidtest.ID(7), b); err == nil {
		return appendPrepared(nil, a)
	}
	if a, err := decodePush(b); err == nil {
		return AppendPush(nil, a)
	}
	if v, err := DecodePlace(b); err == nil {
		return AppendPlace(nil, v)
	}
	return nil
}

func TestMessagesReturn(t *testing.T) {
	for _, b := range samples() {
		if !bytes.Equal(again(b), b) {
			t.Errorf("% x came back as % x", b, again(b))
		}
		for n := range b {
			if again(b[:n]) != nil {
				t.Errorf("the first %d bytes of % x were accepted", n, b)
			}
		}
		if again(append(bytes.Clone(b), 0)) != nil {
			t.Errorf("% x was accepted with a byte behind it", b)
		}
		other := bytes.Clone(b)
		other[0]++
		if again(other) != nil {
			t.Errorf("% x was accepted in another version", b)
		}
	}
	long := InstanceInfo{Instance: nodeidtest.ID(1), Obstacle: strings.Repeat("ä", maxTextBytes)}
	if w, err := decodeInfo(appendInfo(nil, long)); err != nil || len(w.Obstacle) > maxTextBytes ||
		!strings.HasPrefix(long.Obstacle, w.Obstacle) {
		t.Errorf("a long text came back with %d bytes, %v", len(w.Obstacle), err)
	}
}

func FuzzWire(f *testing.F) {
	for _, b := range samples() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if out := again(b); out != nil {
			if third := again(out); !bytes.Equal(out, third) {
				t.Fatalf("% x, then % x", out, third)
			}
		}
		m := ordinary(true)
		m.Ask(m.now, m.wall, aVoter(), b)
		m.Tick(m.now+1, m.wall, Random{Instance: nodeidtest.ID(1)})
		if st := m.State(); m.Instance() == nodeidtest.ID(5) && m.At() < 10 {
			t.Fatalf("it went back to configuration %d", st.At)
		} else if _, err := DecodeState(st.Append(nil)); err != nil {
			t.Fatalf("its State %+v does not return", st)
		}
		c, _ := pair()
		c.Ask(c.now, c.wall, aVoter(), b)
		c.arrange()
		for _, p := range c.contacts.places {
			p.pending = 1 << 40
		}
		c.Result(c.now, 1<<40, c.now, Answered, nodeidtest.ID(7), b)
		c.Tick(c.now+1, c.wall, Random{Instance: nodeidtest.ID(1), Group: 2, Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
		_ = c.Waiting()
	})
}

func TestWireValuesAreFixed(t *testing.T) {
	got := []int{int(Newborn), int(Bound), int(Member), int(Accepted), int(RefusedMalformed), int(RefusedGroup),
		int(refusals),
		kindQuestion, kindInfo, kindProposal, kindVerdict, wireVersion,
		int(Running), int(Ended), int(Declined), kindPrepare, kindPrepared, kindPush, kindPlace}
	if want := []int{0, 1, 2, 0, 1, 12, 15, 1, 2, 3, 4, 1, 0, 1, 2, 7, 8, 9, 10}; !reflect.DeepEqual(got, want) {
		t.Errorf("values on the wire are %v, want %v", got, want)
	}
}
