package lockfsm

import (
	"fmt"
	"testing"
	"time"
)

// TestDetachedHoldsLeaveRoomForInstances checks that instances can open sessions after one instance
// has detached as many holds as possible.
func TestDetachedHoldsLeaveRoomForInstances(t *testing.T) {
	charter := Charter{FoundedUnixMS: 1, SessionTTL: time.Second, Rules: 1, Limits: DefaultLimits()}
	charter.Limits.Sessions = 10
	m, err := New(charter)
	if err != nil {
		t.Fatal(err)
	}
	index := uint64(0)
	apply := func(c Command) Result {
		index++
		var result Result
		m.ApplyEntry(index, 1, c.Append(nil), func(r *Result) { result = *r })
		return result
	}
	apply(Command{Kind: Born})
	open := func(i int) Result { return apply(Command{Kind: Open, Nonce: Nonce{byte(i)}}) }
	session := open(1).Session
	apply(Command{Kind: Attach, Session: session, Nonce: Nonce{1}, Epoch: 1, Number: 1})
	left := 0
	for i := range 20 {
		number := Number(i + 1)
		if r := apply(Command{Kind: Acquire, Session: session, Epoch: 1, Number: number, Key: fmt.Sprint(i),
			Delay: time.Hour}); r.Token == 0 {
			t.Fatalf("%+v", r)
		}
		if r := apply(Command{Kind: Detach, Session: session, Epoch: 1, Number: number}); r.Detached != 0 {
			left++
		} else if r.Code != TooManySessions {
			t.Fatalf("%+v", r)
		}
	}
	opened := 0
	for i := range 20 {
		if open(i+2).Code == Done {
			opened++
		}
	}
	if left != 5 || opened != 4 {
		t.Errorf("%d holds are detached, and %d of 10 sessions could be opened after them", left, opened)
	}
}
