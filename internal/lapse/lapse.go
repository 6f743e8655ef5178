// Package lapse lets programs that hold locks for others, such as the agent of mortise, end a lock
// on behalf of a holder that is gone and has not unlocked it. The reason is passed to Lock.Detach
// through its context, so package mortise needs no exported method for it.
//
// Such a Detach does not wait, and returns the errors of UnlockSoon. The lock stays taken for its
// LockDelay. Without a LockDelay it is free immediately. Watch and Audit report it as expired, with
// the first 1,024 bytes of the reason. If an instance keeps the lock (a sticky lock), it goes on to
// keep it, and the event, which has the token of the caller, is missing if the connection to the
// leader breaks at that moment.
//
// Guarantees, concurrency, failure, limits: those of context values. Only packages below this
// repository can import it. Refused alternative: an exported Lock.Lapse, which no caller needs that
// holds locks for itself.
package lapse

import "context"

type key struct{}

// Because returns a child of ctx with which Lock.Detach reports that the holder is gone, for a
// reason that must not be empty.
func Because(ctx context.Context, why string) context.Context {
	return context.WithValue(ctx, key{}, why)
}

// Reason returns the reason in ctx, or "".
func Reason(ctx context.Context) string {
	why, _ := ctx.Value(key{}).(string)
	return why
}
