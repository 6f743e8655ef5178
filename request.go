package mortise

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// Token is a fencing token: of two grants of one key the later has the higher token. A resource
// that remembers the highest token it has seen and refuses lower ones is safe even against a holder
// that was stopped in the middle of its work. It marshals to JSON as a string, since it does not
// fit into the numbers of JavaScript.
type Token uint64

// MarshalJSON gives the decimal number as a JSON string.
func (t Token) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(t), 10)), nil
}

// UnmarshalJSON takes what MarshalJSON gives.
func (t *Token) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	*t = Token(n)
	return err
}

// Request says what to lock and how. The zero value of every field but Key is the ordinary
// exclusive lock that waits its turn.
//
// All kinds wait in the same queue of a key and are granted by one rule, first come, first served:
// those at its head hold the lock whose permits together are no more than any of them says there
// are. An exclusive request takes one permit of one, a shared one takes one of any number. So a
// writer who waits stops the readers who come later, and a small request never passes a large one.
//
// If a request enters a lock again, MaxHold is that of the new handle, and LockDelay, Notice, Value
// and Labels must be what the first request asked for, or zero: see [Node.Acquire].
//
// Those who hold a lock together have different tokens. A resource that compares them would refuse
// all but the newest of them, so let only writers bring theirs: a writer's token is above those of
// all readers and writers before it. The permits of a semaphore are not fenced by tokens.
type Request struct {
	// Key is what to lock: 1 to 512 bytes of UTF-8 without control characters.
	Key string

	// Keys are several locks at once, instead of Key: at most 256, in any order. One that is named
	// twice is locked once. All are granted in one moment, or none, with one token, which is above
	// all earlier ones of each of them. Whoever asks so waits in all the queues from the beginning;
	// he can keep others waiting for one of his keys while he waits for another, and no two such
	// requests can wait for each other.
	Keys []string

	// Try asks for an answer now: never queue, and return a *HeldError if the lock cannot be had at
	// once.
	Try bool

	// Shared asks for the lock together with all others who share it, and with nobody else: what a
	// reader wants.
	Shared bool

	// Permits and Of make the lock a semaphore: the request takes so many permits out of so many, 1
	// <= Permits <= Of. All should name the same Of; while holders differ the lowest counts, so it
	// can be changed while the group runs. 0 and 0: no semaphore.
	Permits, Of int

	// MaxWaiting refuses the request with ErrQueueFull if so many already wait for one of its keys.
	// 0: only the group's limit of 65,536 does.
	MaxWaiting int

	// MaxHold ends the hold by itself after that time, whatever its holder does: Err is ErrLost
	// then, and says so. It is counted on this instance's boot-time clock from the moment at which
	// it is told of the grant, and guards against code that hangs; a lease of a dead process ends
	// by its TTL. The code may run on, so the lock stays taken for LockDelay then, and [Node.Audit]
	// reports the end. Zero means no limit.
	MaxHold time.Duration

	// LockDelay keeps the lock taken for so long, at most 7 days, when its holder is gone: its
	// session has expired, it has lost the lock because nobody renewed the session or by MaxHold,
	// or it has called [Lock.Detach] or [Lock.Lapse]. A few seconds are time for what the holder
	// had on its way to come to rest, where the resource cannot compare tokens. Hours are for a
	// hold that is to outlive its process: see Resume. It is counted by the leader from the moment
	// at which the session expires; a new leader counts anew, and a group that is founded anew has
	// forgotten it. An Unlock that arrives leaves no delay; one that did not before the session
	// expired is ErrLost, since the lock may stay taken.
	LockDelay time.Duration

	// Resume takes up a hold of Key by its token, with all its keys, instead of waiting for the
	// lock: one whose holder is gone and that stays for its LockDelay, or that of a holder who has
	// handed its token on; he is told by a *[ForcedError]. The result has a token of its own, which
	// is higher, so whatever still comes from the holder before can be told apart. LockDelay and
	// Value stay what they were unless they are given. ErrNotHeld says that there is no hold with
	// this token: [Node.Peek] tells the present one. If ctx ends first, a hold with a LockDelay
	// stays, but may have another token; one without may have ended.
	Resume Token

	// Notice has the holder told when somebody waits for one of his keys, by [Lock.Wanted].
	Notice bool

	// Value is shown to others who meet this holder, in HeldError.Value: what he does, say, or
	// where to reach him. At most 1,024 bytes.
	Value string

	// Labels are shown like Value: a few facts with names, for those who look. Value and Labels
	// together may take 1,024 bytes, as JSON. The label "mortise.purpose" with the value "job" says
	// that holds of this lock last long by design: the page, mortise doctor and the alerts do not
	// warn of them. Packages election and tick set it to "election", "tick" and "job" themselves.
	Labels map[string]string
}

// validate names everything that is wrong with the request.
func (r *Request) validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf("%w: Request."+format, append([]any{ErrBadRequest}, args...)...))
		}
	}
	const most = 1 << 30 // so that it is an int everywhere
	semaphore := r.Permits != 0 || r.Of != 0
	wrong(r.Key != "" && len(r.Keys) > 0, "Key and Request.Keys are both set")
	wrong(len(r.Keys) > lockfsm.MaxKeys, "Keys has %d keys, at most %d can be locked at once", len(r.Keys),
		lockfsm.MaxKeys)
	wrong(r.Shared && semaphore, "Shared is set together with Permits or Of")
	wrong(semaphore && (r.Permits < 1 || r.Permits > r.Of), "Permits is %d and Of is %d; want 1 <= Permits <= Of",
		r.Permits, r.Of)
	wrong(r.Of > most, "Of is %d, at most %d", r.Of, most)
	wrong(r.MaxWaiting < 0 || r.MaxWaiting > most, "MaxWaiting is %d; want 0 to %d", r.MaxWaiting, most)
	wrong(r.LockDelay < 0 || r.LockDelay > lockfsm.MaxDelay, "LockDelay is %v; want 0 to %v", r.LockDelay,
		lockfsm.MaxDelay)
	wrong(r.Resume != 0 && (len(r.Keys) > 0 || r.Try || r.Shared || semaphore || r.MaxWaiting != 0),
		"Resume is set together with Keys, Try, Shared, Permits or MaxWaiting: the hold has what it has")
	wrong(r.MaxHold < 0, "MaxHold is %v; want 0 for no limit, or more", r.MaxHold)
	wrong(len(r.Value) > lockfsm.MaxValueBytes, "Value has %d bytes, at most %d", len(r.Value), lockfsm.MaxValueBytes)
	together := len(shown.Encode(r.Value, r.Labels, nil))
	wrong(len(r.Labels) > 0 && together > lockfsm.MaxValueBytes, "Labels and Value take %d bytes, at most %d",
		together, lockfsm.MaxValueBytes)
	return errors.Join(errs...)
}

// ordinary reports whether r is what Lock and TryLock ask for.
func (r *Request) ordinary() bool {
	return len(r.Keys) == 0 && !r.Shared && r.Permits == 0 && r.Of == 0 && r.MaxWaiting == 0 && r.MaxHold == 0 &&
		!r.Notice && r.LockDelay == 0 && r.Resume == 0 && r.Value == "" && len(r.Labels) == 0
}

// of returns the request as the session room takes it, made under the lock of the given one, if
// there is one.
func (r *Request) of(under *client.Request) client.Request {
	s := client.Request{Key: r.Key, Try: r.Try}
	if r.ordinary() && under == nil {
		return s
	}
	t := &client.Terms{Most: uint32(r.MaxWaiting), Value: shown.Encode(r.Value, r.Labels, nil), Longest: r.MaxHold,
		Notice: r.Notice, Delay: r.LockDelay.Round(time.Millisecond), Under: under}
	t.Resume = lockfsm.Token(r.Resume)
	if len(r.Keys) > 0 {
		keys := slices.Compact(slices.Sorted(slices.Values(r.Keys)))
		s.Key, t.Keys = keys[0], keys[1:]
	}
	switch {
	case r.Shared:
		t.Permits = 1
	case r.Of > 1: // one of one is the ordinary lock
		t.Permits, t.Of = uint32(r.Permits), uint32(r.Of)
	}
	s.Terms = t
	return s
}

// String names the keys, for errors.
func (r *Request) String() string {
	if r.Resume != 0 {
		return fmt.Sprintf("resume %s by token %d", shownKey(r.Key), r.Resume)
	}
	if len(r.Keys) == 0 {
		return "lock " + shownKey(r.Key)
	}
	some := make([]string, 0, 10)
	for _, key := range r.Keys[:min(len(r.Keys), cap(some))] {
		some = append(some, shownKey(key))
	}
	return fmt.Sprintf("lock %v", some)
}

// maxShownKey is how many bytes of a key an error shows.
const maxShownKey = 64

// shownKey is a key as errors show it. One that is too long to be a key is cut.
func shownKey(key string) string {
	if len(key) <= int(lockfsm.DefaultLimits().KeyBytes) {
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(key[:maxShownKey], "?"), len(key))
}

// badKey says which rule a key breaks; nil: none.
func badKey(key string) error {
	limit := int(lockfsm.DefaultLimits().KeyBytes)
	rule := ""
	switch {
	case key == "":
		rule = "it is empty"
	case len(key) > limit:
		rule = fmt.Sprintf("it has %d bytes, at most %d are allowed", len(key), limit)
	case !utf8.ValidString(key):
		rule = "it is not UTF-8"
	case strings.ContainsFunc(key, unicode.IsControl):
		rule = "it has a control character"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrBadKey, shownKey(key), rule)
}

// badKeys is badKey for all keys of a request. A Resume that names no key is no exception.
func (r *Request) badKeys() error {
	if len(r.Keys) == 0 {
		return badKey(r.Key)
	}
	for _, key := range r.Keys {
		if err := badKey(key); err != nil {
			return err
		}
	}
	return nil
}

// maxMarkBytes is the most of a mark of Hooks.Mark.
const maxMarkBytes = 64

// marked adds the mark to what the session room is asked for. One that is too long, or for which
// there is no room, is left out: a link of a trace is no reason to refuse a lock. So is that of a
// Resume that leaves the hold its value.
func marked(mark []byte, r *Request, s client.Request) client.Request {
	if len(mark) == 0 || len(mark) > maxMarkBytes || r.Resume != 0 && r.Value == "" && len(r.Labels) == 0 {
		return s
	}
	value := shown.Encode(r.Value, r.Labels, mark)
	if len(value) > lockfsm.MaxValueBytes {
		return s
	}
	if s.Terms == nil {
		s.Terms = &client.Terms{} // those of a mutex
	}
	s.Terms.Value = value
	return s
}
