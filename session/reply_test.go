package session

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
)

// everyReply returns one reply of each kind, with every field of the kind set.
func everyReply() []Reply {
	return []Reply{
		{Kind: ReplyOpened, Nonce: lockfsm.Nonce{1, 15: 9}, Code: lockfsm.Done, Session: 1 << 62, TTL: time.Minute,
			Term: 3},
		{Kind: ReplyAttached, Session: 1 << 62, Epoch: 4, Code: lockfsm.NoSession, Term: 1 << 63},
		{Kind: ReplyState, Session: 5, Epoch: 6, Number: 7, Code: lockfsm.Granted, Token: 1 << 62, Watch: 8,
			Last: 1<<62 + 9, Grant: &lockfsm.Grant{Key: "a", Keys: []string{"a/b", "a/b/c"}, Permits: 3, Of: 1 << 31,
				Modes: []lockfsm.Mode{lockfsm.ModeIX, lockfsm.ModeIX, lockfsm.ModeX}, Delay: lockfsm.MaxDelay,
				Value: []byte("v")}},
		{Kind: ReplyHeld, Session: 5, Epoch: 6, Number: 7, Record: bytes.Repeat([]byte("r"), 300), Holder: 9,
			Token: 10, Since: 11, Waiters: 12, Value: []byte("v"), Key: []byte("k"), Kept: true},
		{Kind: ReplyFreed, Session: 5, Epoch: 6, Number: 7, Code: lockfsm.Finished},
		{Kind: ReplyRenewed, Session: 5, Epoch: 6, Seq: 13},
		{Kind: ReplyEnded, Session: 5, Epoch: 6, Reason: EndOverloaded},
		{Kind: ReplyRedirect, Term: 14, Leader: nodeidtest.ID(1<<64 - 1), Addr: []byte("host:7947")},
		{Kind: ReplyGrace, Session: 5, Epoch: 6, TTL: time.Second},
		{Kind: ReplyBehind, Session: 5, Epoch: 6, Number: 7, Record: []byte("r"), Holder: 9, Token: 10, Since: 11,
			Waiters: 12, Value: []byte("v"), Key: []byte("k"), Kept: true},
		{Kind: ReplyDeadlock, Session: 5, Epoch: 6, Number: 7, Circle: []lockfsm.Link{
			{Session: 8, Record: []byte("r"), Key: "a"}, {Session: 9, Record: []byte("s"), Key: "b"},
		}},
		{Kind: ReplyEvicted, Session: 5, Epoch: 6, Number: 7, Record: []byte("who"), Value: []byte("why")},
		{Kind: ReplyWanted, Session: 5, Epoch: 6, Number: 7},
		{Kind: ReplyTaken, Session: 5, Epoch: 6, Number: 7, Record: []byte("who"), Value: []byte{}, Token: 8},
		{Kind: ReplyForbidden, Session: 5, Epoch: 6, Number: 7, Key: []byte("k"), Value: []byte("cron-host"),
			Code: lockfsm.NotForced},
		{Kind: ReplyAsked, Session: 5, Epoch: 6, Number: 7, Place: 1 << 61},
		{Kind: ReplyYield, Session: 5, Epoch: 6, Number: 7},
		{Kind: ReplyUnsupported, Session: 5, Epoch: 6, Number: 7, Command: 200, Rules: 1<<32 - 1},
	}
}

// TestReplyKindsArePinned checks the numbers of the kinds, because different builds exchange them.
func TestReplyKindsArePinned(t *testing.T) {
	t.Parallel()
	for i, r := range everyReply() {
		if int(r.Kind) != i+1 {
			t.Errorf("kind %d is at index %d", r.Kind, i+1)
		}
	}
	if EndUnknown != 1 || EndNoSession != 2 || EndOverloaded != 3 || EndRefused != 4 {
		t.Error("the reasons have moved")
	}
	r := Reply{Kind: ReplyState, Session: 300, Epoch: 2, Number: 3, Code: lockfsm.Granted, Token: 4, Watch: 5}
	if got, want := r.Append(nil), []byte{8, 3, 0xac, 2, 2, 3, 2, 4, 5}; !bytes.Equal(got, want) {
		t.Errorf("a state is %v, want %v", got, want)
	}
	if got, want := (Renewal{300, 2, 3, 1}).Append(nil), []byte{0xac, 2, 2, 3, 1}; !bytes.Equal(got, want) {
		t.Errorf("a renewal is %v, want %v", got, want)
	}
}

func TestARefusalOfAnOldBuildReturns(t *testing.T) {
	t.Parallel()
	r := Reply{Kind: ReplyOpened, Code: lockfsm.Unsupported, Term: 3, Outdated: Outdated{Group: 1<<32 - 1, Build: 3}}
	if got, rest, err := NextReply(r.Append(nil)); err != nil || len(rest) > 0 || got.Outdated != r.Outdated {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRepliesSurviveTheWay(t *testing.T) {
	t.Parallel()
	var frame []byte
	all := everyReply()
	for i := range all {
		frame = all[i].Append(frame)
	}
	rest := frame
	for i := range all {
		r, next, err := NextReply(rest)
		if err != nil {
			t.Fatalf("kind %d: %v", all[i].Kind, err)
		}
		if !reflect.DeepEqual(r, all[i]) {
			t.Errorf("%+v became %+v", all[i], r)
		}
		rest = next
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
	for n := range frame {
		for b := frame[:n]; len(b) > 0; {
			var err error
			if _, b, err = NextReply(b); err != nil {
				break
			}
		}
	}
}

// TestFieldsOfStaysMayBeMissing checks replies of builds that do not know stays, and replies that
// are not about stays.
func TestFieldsOfStaysMayBeMissing(t *testing.T) {
	t.Parallel()
	for _, r := range []Reply{
		{Kind: ReplyState, Session: 5, Epoch: 6, Number: 7, Code: lockfsm.Granted, Token: 8},
		{Kind: ReplyState, Session: 5, Epoch: 6, Number: 7, Code: lockfsm.Granted, Token: 8, Last: 9},
		{Kind: ReplyState, Session: 5, Epoch: 6, Number: 7, Code: lockfsm.Granted, Token: 8,
			Grant: &lockfsm.Grant{Key: "a"}},
		{Kind: ReplyState, Session: 5, Epoch: 6, Number: 7, Code: lockfsm.OverGroupBudget, Budget: 100},
		{Kind: ReplyHeld, Session: 5, Epoch: 6, Number: 7, Record: []byte("r"), Holder: 9, Value: []byte("v"),
			Key: []byte("k")},
		{Kind: ReplyBehind, Session: 5, Epoch: 6, Number: 7, Record: []byte("r"), Holder: 9, Value: []byte("v"),
			Key: []byte("k")},
	} {
		got, rest, err := NextReply(r.Append(nil))
		if err != nil || len(rest) > 0 || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v became %+v, %v", r, got, err)
		}
	}
}

// TestUnknownKindsAndFieldsAreSkipped checks replies of newer builds.
func TestUnknownKindsAndFieldsAreSkipped(t *testing.T) {
	t.Parallel()
	frame := []byte{3, 200, 1, 2}
	renewed := (&Reply{Kind: ReplyRenewed, Session: 1, Epoch: 1, Seq: 1}).Append(nil)
	renewed = append(renewed, 77)
	renewed[0]++
	frame = append(frame, renewed...)
	r, rest, err := NextReply(frame)
	if err != nil || r.Kind != 200 {
		t.Fatalf("%+v, %v", r, err)
	}
	r, rest, err = NextReply(rest)
	if err != nil || r.Seq != 1 || len(rest) != 0 {
		t.Fatalf("%+v, %d left, %v", r, len(rest), err)
	}
}

func TestBadFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for _, r := range []Reply{
		{Kind: ReplyHeld, Record: make([]byte, lockfsm.MaxRecordBytes+1)},
		{Kind: ReplyRedirect, Addr: make([]byte, maxAddrBytes+1)},
		{Kind: ReplyState, Grant: &lockfsm.Grant{}},
		{Kind: ReplyState, Grant: &lockfsm.Grant{Key: "b", Keys: []string{"b"}}},
		{Kind: ReplyState, Grant: &lockfsm.Grant{Key: "b", Keys: []string{"a"}}},
		{Kind: ReplyState, Grant: &lockfsm.Grant{Key: strings.Repeat("k", LongestKey+1)}},
		{Kind: ReplyState, Grant: &lockfsm.Grant{Key: "a", Modes: []lockfsm.Mode{0, 0}}},
		{Kind: ReplyState, Grant: &lockfsm.Grant{Key: "a", Modes: []lockfsm.Mode{lockfsm.ModeU + 1}}},
		{Kind: ReplyState, Grant: &lockfsm.Grant{Key: "a", Delay: lockfsm.MaxDelay + 1}},
		{Kind: ReplyState, Grant: &lockfsm.Grant{Key: "a", Value: make([]byte, lockfsm.MaxValueBytes+1)}},
		{Kind: ReplyState, Grant: &lockfsm.Grant{Key: "a", Keys: ascending(lockfsm.MaxKeys)}},
	} {
		if _, _, err := NextReply(r.Append(nil)); err == nil {
			t.Errorf("kind %d with a bad field is accepted: %+v, %+v", r.Kind, r, r.Grant)
		}
	}
}

func ascending(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("k%04d", i))
	}
	return keys
}

func FuzzReplies(f *testing.F) {
	for _, r := range everyReply() {
		f.Add(r.Append(nil))
		r.Session, r.Epoch = 100, 1
		f.Add(r.Append(nil))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, frame []byte) {
		for b := frame; len(b) > 0; {
			r, rest, err := NextReply(b)
			if err != nil {
				break
			}
			if r.Kind >= ReplyOpened && r.Kind <= ReplyYield {
				again, left, err := NextReply(r.Append(nil))
				if err != nil || len(left) != 0 || !reflect.DeepEqual(normal(again), normal(r)) {
					t.Fatalf("%+v became %+v, %v", r, again, err)
				}
			}
			b = rest
		}
	})
}

func normal(r Reply) Reply {
	if len(r.Addr) == 0 {
		r.Addr = nil
	}
	if len(r.Record) == 0 {
		r.Record = nil
	}
	return r
}
