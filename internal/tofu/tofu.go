package tofu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

const (
	answerWithin = 3 * time.Second // shorter than the timeouts of clients, which repeat a 503
	maxChanges   = 5               // how often the hold may change while one request follows it
	maxBody      = 1 << 20
)

// Locks takes and ends the locks of the program that has sent a request. A lease is named by the
// run and its key; the leases of programs with other rights are others.
type Locks interface {
	// Open opens the lease, or finds it. If most is not zero, the lease ends after that time. The
	// caller calls done after its last Acquire, which ends the lease if it has no lock.
	Open(lease, name string, most time.Duration) (done func(), err error)
	// Holds reports whether the lease has a lock that is not lost.
	Holds(lease string) bool
	// Acquire takes a lock that belongs to the lease.
	Acquire(ctx context.Context, lease string, r mortise.Request) error
	// Resume takes the hold of key with this token over. The lock then belongs to the lease.
	Resume(ctx context.Context, lease, key string, token mortise.Token) error
	// Finish unlocks the lock of the lease, and ends the lease. If no lock of it was held, it
	// returns false and the reason, and the lease stays.
	Finish(ctx context.Context, lease string) (ended bool, err error)
	// Drop ends the lease, if there is one.
	Drop(lease string)
	// Key returns the state of a key.
	Key(ctx context.Context, key string) (mortise.KeyInfo, error)
	// End resumes the hold with this token, in any instance, and unlocks it. It returns
	// mortise.ErrNotHeld if there is no such hold.
	End(ctx context.Context, key string, token mortise.Token) error
}

// Serve answers a request of a run. It passes an error to refuse, which answers with it.
func Serve(w http.ResponseWriter, r *http.Request, locks Locks, refuse func(http.ResponseWriter, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	err := serve(ctx, w, r, locks)
	held, is := errors.AsType[*mortise.HeldError](err)
	switch {
	case err == nil:
		answer(w, http.StatusOK, struct{}{})
	case is:
		answer(w, http.StatusLocked, HolderInfo(held))
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, fmt.Errorf("%w: %w", mortise.ErrNotReady, err))
	default:
		refuse(w, err)
	}
}

// serve also accepts the methods that lock_method and unlock_method of the backend often name.
func serve(ctx context.Context, w http.ResponseWriter, r *http.Request, locks Locks) error {
	t, err := readTerms(r.URL.Query())
	if err != nil {
		return err
	}
	info, err := readInfo(w, r)
	if err != nil {
		return err
	}
	switch r.Method {
	case "LOCK", http.MethodPost, http.MethodPut:
		return lock(ctx, locks, t, info)
	case "UNLOCK", http.MethodDelete:
		return unlock(ctx, locks, t, info)
	}
	return bad("%s is not served: there are locks and no states here, so let address name a store for the state, "+
		"and only lock_address and unlock_address this agent", r.Method)
}

// answer writes v with its own names of fields, which are those of the protocol.
func answer(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}
func readInfo(w http.ResponseWriter, r *http.Request) (info Info, err error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return info, bad("the body: %v", err)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return info, nil
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return info, bad("the body is no lock info: %v", err)
	}
	if len(info.ID) > maxID || !plain.Is(info.ID) {
		return info, bad("the ID of the lock info has more than %d bytes, or %s", maxID, plain.NotText)
	}
	return info, nil
}

// lock takes the lock for the run that info names. It succeeds at once if the run has the lock.
func lock(ctx context.Context, locks Locks, t terms, info Info) error {
	if info.ID == "" {
		return bad("the lock info has no ID: send the lock info as the body")
	}
	fresh := mortise.Request{Key: t.key, Try: true, LockDelay: t.delay}
	fresh.Value, fresh.Labels = info.Shown()
	lease := t.lease(info.ID)
	done, err := locks.Open(lease, info.name(), t.most)
	if err != nil {
		return err
	}
	defer done()
	if locks.Holds(lease) {
		return nil
	}
	var resumed mortise.Token
	for range maxChanges {
		if resumed != 0 {
			err = locks.Resume(ctx, lease, t.key, resumed)
		} else {
			err = locks.Acquire(ctx, lease, fresh)
		}
		held, is := errors.AsType[*mortise.HeldError](err)
		switch {
		case is && held.Token != 0 && held.Labels[LabelID] == info.ID:
			resumed = held.Token
		case errors.Is(err, mortise.ErrNotHeld):
			resumed = 0
		default:
			return err
		}
	}
	return fmt.Errorf("%w: %w", mortise.ErrNotReady, err)
}

// unlock ends the hold of the run that info names, also if another agent has it. It succeeds if the
// lock is free, because a client repeats an UNLOCK whose answer it has not received.
func unlock(ctx context.Context, locks Locks, t terms, info Info) error {
	if info.ID == "" && !t.any {
		return bad("the body has no lock info with an ID. This client does not send the ID of force-unlock: send it " +
			"with curl, or add any=true to unlock_address to end each hold")
	}
	lease := t.lease(info.ID)
	ended, lost := locks.Finish(ctx, lease)
	if ended {
		return nil
	}
	was, err := end(ctx, locks, t, info.ID)
	if err == nil || errors.Is(err, mortise.ErrHeld) {
		locks.Drop(lease)
		if !was && errors.Is(lost, mortise.ErrLost) {
			return lost // another run may have had the lock in between
		}
	}
	return err
}

// end ends the hold of a key if its lock info has this ID, or with an empty ID and terms.any. It
// reports whether there was such a hold. It returns a *mortise.HeldError for the hold of another
// run.
func end(ctx context.Context, locks Locks, t terms, id string) (was bool, err error) {
	for range maxChanges {
		k, err := locks.Key(ctx, t.key)
		if err != nil {
			return was, err
		}
		i := slices.IndexFunc(k.Queue, func(s mortise.Standing) bool { return s.Token != 0 })
		if i < 0 {
			return was, nil
		}
		first := k.Queue[i]
		if of, is := first.Labels[LabelID]; !is || of != id && (id != "" || !t.any) {
			return was, &mortise.HeldError{Key: t.key, Hold: mortise.Hold{Holder: first.Holder, Token: first.Token,
				Value: first.Value, Labels: first.Labels, Session: first.Session, Since: first.Since}}
		}
		was = true
		if err = locks.End(ctx, t.key, first.Token); !errors.Is(err, mortise.ErrNotHeld) {
			return was, err
		}
	}
	return was, fmt.Errorf("%w: the hold of %q changes too often", mortise.ErrNotReady, t.key)
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", mortise.ErrBadRequest, fmt.Sprintf(format, args...))
}
