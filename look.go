package mortise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

const (
	lookPause    = 50 * time.Millisecond // before the next attempt
	sessionsMost = 1000
)

// sight is an answer of the leader, as this package shows it to people.
type sight replica.Answer

// KeyInfo is who holds a key and who waits for it, as the leader had it at a moment between the call and its return. It is a value of its own.
type KeyInfo struct {
	Key     string
	Queue   []Standing // from the front: first those who hold it, then those who wait; at most 1,000 of Peek and 3 of List
	Held    int        // how many hold it: more than one if they share it
	Waiting int        // how many wait, all of them

	Data     []byte // see [Node.Get]
	Revision uint64 // of Data; 0: there is none
}

// Standing is one request in the queue of a key.
type Standing struct {
	Holder  string            // Name of the instance that asked
	Session string            // ID of its session
	Value   string            // Request.Value
	Labels  map[string]string // Request.Labels

	Token Token         // of the hold; 0: it waits
	Since time.Time     // when it was granted, by the leader's wall clock; zero: it waits
	Left  time.Duration // until its session ends, if nothing more is heard of its instance; 0 where the leader does not know, as right after it began

	Expired     bool     // its session has expired, and only Request.LockDelay keeps the lock, for Left
	Shared      bool     // Request.Shared
	Permits, Of int      // Request.Permits and Of
	Keys        []string // all keys of the request, if there are several

	// WaitsFor is the place in Queue of the one directly before it, for which it waits; -1 if it holds the lock, or waits for another of its
	// keys, or only for the end of the grace.
	WaitsFor int
}

// Peek returns who holds key and who waits for it, in order. Nobody does: a KeyInfo with an empty Queue. It asks the leader, and waits for one
// until ctx ends. To be told while a lock is awaited is what HeldError is for; nothing may be decided by what Peek says, since it is over when it
// returns: compare tokens.
func (n *Node) Peek(ctx context.Context, key string) (KeyInfo, error) {
	seen, err := n.look(ctx, replica.Question{Op: replica.OpPeek, Key: key})
	if err != nil || len(seen.Locks) == 0 {
		return KeyInfo{Key: key}, err
	}
	return seen.info(seen.Locks[0]), nil
}

// List goes through all keys that begin with prefix and are held or waited for, or have data, in the order in which they came to be. What is there from the
// beginning of the walk to its end is told once; what comes or goes meanwhile may be. It asks the leader for a hundred at a time. After an error,
// which comes with a zero KeyInfo, the walk ends.
func (n *Node) List(ctx context.Context, prefix string) iter.Seq2[KeyInfo, error] {
	return func(yield func(KeyInfo, error) bool) {
		q := replica.Question{Op: replica.OpList, Key: prefix}
		for more := true; more; {
			seen, err := n.look(ctx, q)
			if err != nil {
				yield(KeyInfo{}, err)
				return
			}
			for _, l := range seen.Locks {
				if !yield(seen.info(l), nil) {
					return
				}
			}
			more, q.Next = seen.More, seen.Next
		}
	}
}

// SessionInfo is one session of the group, as its leader sees it. It is a value of its own.
type SessionInfo struct {
	Session string // ID
	Holder  string // Name of the instance
	Own     bool   // one that its user has opened by NewSession, or a guest's: not the instance's first
	TTL     time.Duration
	Left    time.Duration // until it ends, if nothing more is heard of its instance; 0 where the leader does not know, as right after it began
	Leaving bool          // its instance is about to leave
	Expired bool          // it has, and only Request.LockDelay or Lock.Detach keeps locks in it

	Since   time.Time // when its instance became a member, or its guest began, as the clock there says; zero if it has not said
	Held    int       // how many keys it holds
	Waiting int       // and waits for
}

// Sessions lists the sessions of the group, the oldest first, at most 1,000, and how much time they have left. It asks the leader for a
// hundred at a time, and waits for one until ctx ends.
func (n *Node) Sessions(ctx context.Context) ([]SessionInfo, error) {
	var all []SessionInfo
	q := replica.Question{Op: replica.OpSessions}
	for more := true; more && len(all) < sessionsMost; {
		seen, err := n.look(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, seen.sessions()...)
		more, q.From = seen.More, seen.From
	}
	return all, nil
}

// sessions are what people are told of a page of sessions.
func (s *sight) sessions() []SessionInfo {
	list := make([]SessionInfo, 0, len(s.Sessions))
	for _, each := range s.Sessions {
		r := replica.DecodeRecord(each.Record)
		one := SessionInfo{
			Session: instance.SessionText(each.ID), Holder: replica.HolderName(each.Record, each.ID), Own: r.ID().IsZero(), TTL: each.TTL, Left: s.Left[each.ID],
			Leaving: each.Leaving, Expired: each.Gone, Held: each.Held, Waiting: each.Waiting,
		}
		if r.Since != 0 {
			one.Since = time.UnixMilli(r.Since)
		}
		list = append(list, one)
	}
	return list
}

// Check reports whether key is held with token. The answer is linearizable: it was true at a moment between the call and its return, whoever
// leads. It is what a resource asks that cannot compare tokens; one that can needs no question and no lock server to be there.
func (n *Node) Check(ctx context.Context, key string, token Token) (held bool, err error) {
	seen, err := n.look(ctx, replica.Question{Op: replica.OpCheck, Key: key, Token: uint64(token)})
	return seen.Held, err
}

// ForceUnlock ends the hold of key with token, whoever has it: for a person who has seen that it will not end by itself. A hold of several keys ends
// with all of them. The holder's [Lock.Err] is a *[ForcedError] then, with the reason and this instance's name, as soon as its instance hears of it: until then
// its code believes and may act, and only the token protects the resource. So stop the holder first, if you can.
//
// The instance that leads writes a line into its log.
//
// It reports whether this call has ended the hold, and false if nobody had that token any more. After an error it may have or not; call again.
func (n *Node) ForceUnlock(ctx context.Context, key string, token Token, reason string) (ended bool, err error) {
	if len(reason) > lockfsm.MaxValueBytes {
		return false, fmt.Errorf("%w: ForceUnlock: the reason has %d bytes, at most %d", ErrBadRequest, len(reason), lockfsm.MaxValueBytes)
	}
	if !plain.Is(reason) {
		return false, fmt.Errorf("%w: ForceUnlock: the reason %q %s", ErrBadRequest, reason, plain.NotText)
	}
	if token == 0 {
		return false, fmt.Errorf("%w: ForceUnlock: token 0 is nobody's; Peek tells the holder's", ErrBadRequest)
	}
	seen, err := n.look(ctx, replica.Question{Op: replica.OpEvict, Key: key, Token: uint64(token), By: n.config.Name, Reason: reason})
	return seen.Held, err
}

// ForceUnlockAll is ForceUnlock for all that is held of the keys that begin with prefix, and returns how many holds it has ended. What is granted
// while it goes on may be ended too.
func (n *Node) ForceUnlockAll(ctx context.Context, prefix, reason string) (ended int, err error) {
	for info, err := range n.List(ctx, prefix) {
		if err != nil {
			return ended, err
		}
		for told := 0; ; told = 0 {
			for _, s := range info.Queue {
				if s.Token == 0 {
					continue
				}
				told++
				one, err := n.ForceUnlock(ctx, info.Key, s.Token, reason)
				if err != nil {
					return ended, err
				}
				if one {
					ended++
				}
			}
			if told >= info.Held {
				break
			}
			if info, err = n.Peek(ctx, info.Key); err != nil { // they share it, and there are more than were told
				return ended, err
			}
		}
	}
	return ended, nil
}

// look puts a question to the leader, whoever that is, until there is an answer or ctx ends.
func (n *Node) look(ctx context.Context, q replica.Question) (sight, error) {
	doing := "look at the locks"
	for {
		if err := n.Err(); err != nil {
			return sight{}, err
		}
		if ctx.Err() != nil {
			return sight{}, n.explain(doing, &client.WaitError{Err: client.ContextError(ctx)})
		}
		asking, cancel := context.WithTimeout(ctx, q.Time())
		a, err := n.engine.LookOnce(asking, q)
		cancel()
		if err == nil {
			return sight(*a), nil
		}
		if errors.Is(err, ErrNotAllowed) {
			return sight{}, ownError(err)
		}
		if ctx.Err() == nil {
			doing = fmt.Sprintf("look at the locks (last answer: %v)", err)
		}
		pause(ctx, lookPause)
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// info is what people are told of a lock.
func (s *sight) info(l lockfsm.LockInfo) KeyInfo {
	info := KeyInfo{Key: l.Key, Held: l.Held, Waiting: l.Waiting, Data: bytes.Clone(l.Data.Value), Revision: uint64(l.Data.Revision)}
	for i, e := range l.Queue {
		st := Standing{
			Holder: replica.HolderName(e.Record, e.Session), Session: fmt.Sprint(uint64(e.Session)), Token: Token(e.Token),
			Left: s.Left[e.Session], Keys: e.Keys, WaitsFor: -1, Shared: e.Permits == 1 && e.Of == 0, Expired: e.Gone,
		}
		st.Value, st.Labels = showed(e.Value)
		if e.Of != 0 {
			st.Permits, st.Of = int(e.Permits), int(e.Of)
		}
		if e.Token != 0 {
			st.Since = time.UnixMilli(e.SinceUnixMS)
		} else if i > 0 && l.Queue[i-1].Place == e.Watch {
			st.WaitsFor = i - 1
		}
		info.Queue = append(info.Queue, st)
	}
	return info
}
