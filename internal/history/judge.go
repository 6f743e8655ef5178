package history

import "time"

// Options are the options of Judge. The zero value is for a history with one clock.
type Options struct {
	// Uncertainty is the largest difference between two clocks of the history.
	Uncertainty time.Duration

	// Settle is the time for which the replicated state may keep a request after its call has
	// failed, or a hold after its caller has released or lost the lock. A caller must also be
	// notified of the end of its lock within Settle. Settle must be longer than any lease together
	// with its locks' expiry delay, and longer than any time without a leader. Zero means 1 minute.
	Settle time.Duration

	// Settled means that the recording ends after all calls and locks have ended. Everything that
	// the state then keeps is a violation.
	Settled bool
}

// Judge returns nil if mortise may produce the history, a *Violation if it must not, and an error
// that wraps ErrUnknown if the history cannot be judged. The events of one stream must be in the
// order in which they were recorded. The events of different streams may be mixed in any order.
//
// Judge verifies that the order of the log explains the results of all calls:
//
//   - It replays the accounts (rules Agree, Overlap, Tokens, Order, Ends).
//   - It computes the earliest possible time of each grant and each end. These times never
//     decrease from one entry of the log to the next. A grant is not before the call that
//     requested the lock. An end is not before the time until which the holder believed that it
//     held the lock, unless the lock ended by force. If a caller observed a grant or an end
//     before its earliest possible time, Judge reports a violation (rules Real and Belief).
//   - It searches for missing grants and ends (rules Phantom, Kept, Zombie).
//   - It compares the terms of each request that entered a lock again with those that the state has
//     granted to this lock, or with a reader's behind its downgrade (rule Inside).
//   - It replays the passes of each stay in the order of their tokens in the same way, between the
//     grant and the end of the stay (rules Tokens, Phantom, Real, Belief).
//
// Judge allows three things. The holder of a lock that was ended by force may believe for longer
// that it holds the lock. The call of a crashed caller may have been granted or not. The lock of a
// crashed holder may end at any time.
func Judge(events []Event, o Options) error {
	if o.Settle == 0 {
		o.Settle = time.Minute
	}
	j := &evidence{events: events, uncertain: int64(o.Uncertainty), settle: int64(o.Settle), settled: o.Settled}
	for _, step := range [...]func() error{reading{j}.readAll, joining{j}.joinAccounts, listing{j}.listGrants,
		claiming{j}.claim, func() error { return sweep(j) }, entering{j}.inside, aftermath{j}.after} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
