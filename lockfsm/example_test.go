package lockfsm_test

import (
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// In this example two instances request one lock. The release by the first instance grants the lock
// to the second.
func Example() {
	machine, err := lockfsm.New(lockfsm.Charter{
		FoundedUnixMS: 1_800_000_000_000, Rules: lockfsm.RulesVersion, SessionTTL: 10 * time.Second,
		Limits: lockfsm.DefaultLimits(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	index := uint64(0)
	apply := func(c lockfsm.Command) (last lockfsm.Result) {
		index++
		machine.ApplyEntry(index, 1, c.Append(nil), func(r *lockfsm.Result) { last = *r })
		return last
	}

	apply(lockfsm.Command{Kind: lockfsm.Born})
	var sessions []lockfsm.SessionID
	for i := range 2 {
		s := apply(lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{byte(i + 1)}}).Session
		apply(lockfsm.Command{Kind: lockfsm.Attach, Session: s, Epoch: 1, Number: 1, Nonce: lockfsm.Nonce{byte(i + 1)}})
		sessions = append(sessions, s)
	}
	acquire := lockfsm.Command{Kind: lockfsm.Acquire, Session: sessions[0], Epoch: 1, Number: 1, Key: "orders/42"}
	first := apply(acquire)
	fmt.Println("first: ", first.Code)
	acquire.Session = sessions[1]
	fmt.Println("second:", apply(acquire).Code)

	released := apply(lockfsm.Command{Kind: lockfsm.Release, Session: sessions[0], Epoch: 1, Number: 1})
	woken := released.Fired[0]
	fmt.Println("woken: ", woken.Session == sessions[1], woken.Token > first.Token)
	// Output:
	// first:  granted
	// second: waiting
	// woken:  true true
}
