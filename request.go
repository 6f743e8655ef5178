package mortise

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// Token is a fencing token: a later grant of a key has a higher token. A resource that remembers
// the highest token it has received and refuses lower ones is safe even against a holder that was
// stopped in the middle of its work. It is a uint64, and a string in JSON.
type Token = locker.Token

// Request describes a lock to acquire. With only Key set it waits for the exclusive lock of that
// key.
//
// Requests of all kinds wait in one queue per key, and are granted in the order of the queue.
// Several requests at the head of the queue hold the lock together if the sum of their permits does
// not exceed the smallest Of among them. An exclusive request takes one permit with Of 1. A shared
// request takes one permit and has no Of. So a waiting exclusive request blocks later shared
// requests, and a request for few permits never overtakes a request for many.
//
// Requests that hold a lock together have different tokens, and a resource that compares tokens
// would refuse all but the highest. So let only exclusive holders pass their token to a resource:
// it is higher than the tokens of all earlier shared and exclusive holders. Tokens do not fence the
// permits of a semaphore.
type Request struct {
	// Key is what to lock: 1 to 512 bytes of UTF-8 without control characters.
	Key string

	// Keys are up to 256 keys to lock together, in any order. If Keys is set, Key must be empty.
	// Duplicates count once. All keys are granted in one moment, with one token that is higher than
	// all earlier tokens of each key. While the request waits for one key, it may block other
	// requests for another of its keys. Two such requests cannot deadlock each other.
	Keys []string

	// Path is a node of a tree to lock, instead of Key: "tenants/7/orders" is below "tenants/7". An
	// exclusive request for a node excludes all others for this node, for nodes below it, and for the
	// nodes above it. With Shared it excludes only the exclusive ones of these. Requests for nodes of
	// which neither is above the other do not exclude each other. No part of a Path is empty, and a
	// Path has at most 256 parts.
	//
	// Each node is a key. The request locks the key Path, and the keys of all nodes above it with
	// an intention, which excludes no other intention. So a Lock of the key "tenants" excludes
	// every request for a node below "tenants", and an RLock of it excludes only exclusive requests
	// for "tenants" itself. The queue of each node is served in order, so a request for a node near
	// the root, while it waits, stops all later ones for nodes below. Do not lock the root of a
	// busy tree.
	//
	// Path cannot be combined with Key, Keys, Permits, Sticky and Resume; Resume takes a hold over by
	// its Path as the Key. A derived secret needs the right to lock every node of the Path: for
	// "tenants/7/orders" it is derived with -allow "lock tenants", "lock tenants/7" and "lock
	// tenants/7/*".
	Path string

	// Try makes the request fail with a *HeldError, instead of waiting for a holder, if the lock is
	// held. If no request is known to hold it, but it is not free either, the error is another one,
	// because the other requests may fail, too: ErrQueueFull if requests without Try wait for it, and
	// ErrNotReady if an earlier request with Try has not been decided after 2 s. See [Node.TryLock].
	Try bool

	// Shared requests a lock that other shared requests may hold at the same time, like the lock of
	// a reader.
	Shared bool

	// Upgradable requests a lock that shared requests may hold at the same time, but no other
	// upgradable request and no exclusive one. [Lock.Upgrade] makes it exclusive for a while. It is
	// for a holder that reads first, and then decides whether to write. It cannot be combined with
	// Keys, Path, Shared, Permits, LockDelay, Resume and Sticky.
	Upgradable bool

	// Permits and Of make the lock a semaphore: the request takes Permits out of Of, 1 <= Permits
	// <= Of. All requests should name the same Of. If they do not, the smallest Of among the holders
	// counts, so Of can be changed while the group runs. Zero for both means no semaphore.
	Permits, Of int

	// MaxWaiting makes the request fail with ErrQueueFull if it must wait for one of its keys, and
	// that many requests already wait for this key. A request that waits for a node of a tree also
	// counts for the nodes above, but only a request that must wait for one of these is refused. Zero
	// means only Config.MaxWaiting, and the group's limit of 65,536.
	MaxWaiting int

	// MaxHold ends the hold after that time, even if the holder has not unlocked it. Then Lock.Err
	// returns an ErrLost with that reason. This instance's boot-time clock measures the time from
	// the moment when the instance learns of the grant. The holder's code may still run, so the
	// lock stays taken for LockDelay. [Node.Audit] reports the end. If the lock was entered again,
	// MaxHold ends only the handle of this request. Zero means no limit.
	MaxHold time.Duration

	// JeopardyGrace lets the hold survive an outage of the group that lasts longer than the lease.
	// Without it, the lock is lost when its lease was not renewed in time. With it, the lock is then
	// in doubt for at most that time, which may be 7 days. [Lock.Context] and [Lock.Done] end as
	// ever, and [Lock.Err] returns ErrInJeopardy: stop all work under the lock, and call
	// [Lock.Regain]. If a leader confirms in time that the session has never ended and that the hold
	// has the same token, the lock is good again, and no other request was granted in between.
	// Otherwise it is lost.
	//
	// The grace helps only while no leader ends the session: when the group has no majority, or has
	// just elected a leader, which counts each TTL anew. A leader that works and does not hear this
	// instance ends its session after a TTL, grace or not. The grace delays no other request, except
	// that the hold is released later: after the doubt, and not at its beginning. In doubt, no
	// request can be made under the lock, and it cannot be entered again or made shared. Unlock in
	// doubt waits for a leader, and returns nil only if the release has ended the hold; UnlockSoon
	// returns ErrLost. JeopardyGrace cannot be combined with Sticky.
	JeopardyGrace time.Duration

	// LockDelay keeps the lock taken for that time, at most 7 days, when its holder is gone: its
	// session has expired, its lease was not renewed, MaxHold has ended the hold, or [Lock.Detach]
	// was called. If the resource cannot compare tokens, a delay of a few seconds
	// gives the holder's last writes time to finish. A delay of hours is for a hold that must
	// outlive its process; see Resume.
	//
	// The leader counts the delay from the expiry of the session. A new leader counts the whole
	// delay again, and a newly founded group does not have the hold. After an Unlock that arrives
	// before the session expires, there is no delay. A later Unlock returns ErrLost.
	LockDelay time.Duration

	// Resume takes over the hold of Key that has this token, with all its keys, instead of waiting for
	// the lock. Either its holder is gone and LockDelay keeps the hold, or its holder has passed the
	// token to this caller. In the second case the holder's lock ends with a *[ForcedError]. The
	// resumed lock has a higher token, which fences off the former holder. It keeps LockDelay and
	// Value unless this request sets them. It is shared, or has permits or a Path, as the hold was,
	// and Lock.Key, Downgrade and requests under its context follow that. ErrNotHeld means that no
	// hold has this token; [Node.Peek] reports the present token.
	//
	// A derived secret needs the right to lock each key of the hold. If the session of the hold has
	// not ended, and was opened neither by this instance nor with the same derived secret, it also
	// needs read and force on each key. Otherwise the error is an ErrNotAllowed. [Node.Audit] reports
	// that a hold was taken over while its session had not ended.
	//
	// If ctx ends before the answer, a hold with a LockDelay exists but may have another token, and a
	// hold without a LockDelay may have ended.
	Resume Token

	// Sticky lets the session keep the lock after Unlock. Its next sticky request for the key is then
	// granted without a message. After 1,024 such grants, or one TTL, a request asks the group again.
	// Several such requests of one kind, exclusive or shared, are served in the order of their calls.
	// When another request waits, in any session, at most 16 callers that already waited here are
	// still granted the lock, and only within 10 ms. The lock is given back when the last of them
	// unlocks. Several sessions may keep a shared lock at once, until an exclusive request waits. If
	// readers have entered an exclusive lock again, it does not become shared when they are left.
	//
	// If an instance that keeps a free lock dies, the lock stays taken until the session ends, as if
	// it were held. Unlock is confirmed by the lease and not by a majority. Peek sets Kept for a
	// kept lock, in use or free, and returns a token that no caller has. Check and ForceUnlock fail
	// with ErrKept for the token of a caller. TryLock elsewhere asks the session that keeps
	// the lock, and fails with ErrNotReady if it has no answer after 2 s.
	//
	// A sticky request under another lock is an ordinary one. Sticky cannot be combined with Keys,
	// Permits, MaxWaiting, MaxHold, JeopardyGrace, LockDelay, Resume, Value and Labels.
	Sticky bool

	// Notice makes the channel of [Lock.Wanted] close when another request waits for one of the
	// keys.
	Notice bool

	// Value is a text for other callers, in HeldError.Value, for example the holder's address. At
	// most 1,024 bytes.
	Value string

	// Labels are named texts for other callers, in HeldError.Labels. Value and Labels together, as
	// JSON, may have 1,024 bytes. The label "mortise.purpose" with the value "job" marks a hold
	// that is long by design: the console, mortise doctor and the alerts do not warn about it.
	// Packages election, tick, keep and barrier set it to "election", "tick" or "job".
	Labels map[string]string
}

func (r *Request) validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf("%w: Request."+format, append([]any{ErrBadRequest}, args...)...))
		}
	}
	const most = 1 << 30 // fits an int on every platform
	semaphore := r.Permits != 0 || r.Of != 0
	wrong(r.Key != "" && len(r.Keys) > 0, "Key and Request.Keys are both set")
	wrong(len(r.Keys) > lockfsm.MaxKeys, "Keys has %d keys, at most %d can be locked at once", len(r.Keys),
		lockfsm.MaxKeys)
	wrong(r.Shared && semaphore, "Shared is set together with Permits or Of")
	wrong(semaphore && (r.Permits < 1 || r.Permits > r.Of), "Permits is %d and Of is %d; want 1 <= Permits <= Of",
		r.Permits, r.Of)
	wrong(r.Of > most, "Of is %d, more than %d", r.Of, most)
	wrong(r.MaxWaiting < 0 || r.MaxWaiting > most, "MaxWaiting is %d; want 0 to %d", r.MaxWaiting, most)
	wrong(r.LockDelay < 0 || r.LockDelay > lockfsm.MaxDelay, "LockDelay is %v; want 0 to %v", r.LockDelay,
		lockfsm.MaxDelay)
	wrong(r.JeopardyGrace < 0 || r.JeopardyGrace > lockfsm.MaxDelay, "JeopardyGrace is %v; want 0 to %v",
		r.JeopardyGrace, lockfsm.MaxDelay)
	wrong(r.Resume != 0 && (len(r.Keys) > 0 || r.Try || r.Shared || semaphore || r.MaxWaiting != 0),
		"Resume is set together with Keys, Try, Shared, Permits or MaxWaiting: the hold keeps its own")
	wrong(r.Sticky && (len(r.Keys) > 0 || semaphore || r.MaxWaiting != 0 || r.MaxHold != 0 ||
		r.JeopardyGrace != 0 || r.LockDelay != 0 || r.Resume != 0 || r.Value != "" || len(r.Labels) > 0),
		"Sticky is set together with Keys, Permits, MaxWaiting, MaxHold, JeopardyGrace, LockDelay, Resume, Value or "+
			"Labels")
	wrong(r.Path != "" && (r.Key != "" || len(r.Keys) > 0 || semaphore || r.Sticky || r.Resume != 0),
		"Path is set together with Key, Keys, Permits, Sticky or Resume")
	wrong(strings.Count(r.Path, "/") >= lockfsm.MaxKeys, "Path has %d parts, more than %d", strings.Count(r.Path, "/")+1,
		lockfsm.MaxKeys)
	wrong(r.Path != "" && slices.Contains(strings.Split(r.Path, "/"), ""), "Path %s has an empty part: "+
		"write it without a slash at its ends, and with one slash between two parts", shownKey(r.Path))
	wrong(r.Upgradable && (len(r.Keys) > 0 || r.Path != "" || r.Shared || semaphore || r.LockDelay != 0 ||
		r.Resume != 0 || r.Sticky),
		"Upgradable is set together with Keys, Path, Shared, Permits, LockDelay, Resume or Sticky")
	wrong(r.MaxHold < 0, "MaxHold is %v; want 0 (no limit) or more", r.MaxHold)
	wrong(len(r.Value) > lockfsm.MaxValueBytes, "Value has %d bytes, more than %d", len(r.Value),
		lockfsm.MaxValueBytes)
	together := len(shown.Encode(r.Value, r.Labels, nil))
	wrong(len(r.Labels) > 0 && together > lockfsm.MaxValueBytes, "Labels and Value take %d bytes, more than %d",
		together, lockfsm.MaxValueBytes)
	return errors.Join(errs...)
}

// ordinary reports whether r sets only Key, Try and Sticky.
func (r *Request) ordinary() bool {
	return len(r.Keys) == 0 && r.Path == "" && !r.Shared && !r.Upgradable && r.Permits == 0 && r.Of == 0 &&
		r.MaxWaiting == 0 && r.MaxHold == 0 && !r.Notice && r.JeopardyGrace == 0 && r.LockDelay == 0 &&
		r.Resume == 0 && r.Value == "" && len(r.Labels) == 0
}

// limit lowers MaxWaiting to the limits of the request's keys, which are given by their prefixes.
func (r *Request) limit(byPrefix map[string]int) {
	if r.Try || r.Sticky || r.Resume != 0 {
		return
	}
	one := [1]string{r.Key + r.Path} // one of them is empty
	all := one[:]
	if len(r.Keys) > 0 {
		all = r.Keys
	}
	for _, key := range all {
		longest, most := -1, 0
		for prefix, limit := range byPrefix {
			if len(prefix) > longest && strings.HasPrefix(key, prefix) {
				longest, most = len(prefix), limit
			}
		}
		if longest >= 0 && (r.MaxWaiting == 0 || most < r.MaxWaiting) {
			r.MaxWaiting = most
		}
	}
}

// ask writes r to a request of package client. If r is made under a lock, the caller passes the
// request of that lock, and otherwise nil.
func (r *Request) ask(s *client.Request, under *client.Request) {
	s.Key, s.Try = r.Key, r.Try
	if r.ordinary() && under == nil {
		return
	}
	t := &client.Terms{Most: uint32(r.MaxWaiting), Value: shown.Encode(r.Value, r.Labels, nil), Longest: r.MaxHold,
		Grace: r.JeopardyGrace, Notice: r.Notice, Delay: r.LockDelay.Round(time.Millisecond), Under: under}
	t.Resume = lockfsm.Token(r.Resume)
	s.Terms = t
	r.askKeys(s, t)
}

// askKeys writes the keys of r, and how r locks them, to a request of package client.
func (r *Request) askKeys(s *client.Request, t *client.Terms) {
	if len(r.Keys) > 0 {
		keys := slices.Compact(slices.Sorted(slices.Values(r.Keys)))
		s.Key, t.Keys = keys[0], keys[1:]
	}
	switch {
	case r.Path != "":
		r.askPath(s, t)
	case r.Shared:
		t.Permits = 1
	case r.Upgradable:
		t.Modes = []lockfsm.Mode{lockfsm.ModeU}
	case r.Of > 1: // with Of 1 the lock is exclusive
		t.Permits, t.Of = uint32(r.Permits), uint32(r.Of)
	}
}

// wants returns what r would be granted. It returns nothing if r cannot enter a lock: permits are
// always requested anew, and Resume names its hold.
func (r *Request) wants() lockfsm.Grant {
	if r.Permits != 0 || r.Resume != 0 {
		return lockfsm.Grant{}
	}
	if r.ordinary() {
		return lockfsm.Grant{Key: r.Key}
	}
	s := client.Request{Key: r.Key, Terms: &client.Terms{}}
	r.askKeys(&s, s.Terms)
	return s.Grant()
}

// askPath writes the nodes of r.Path to a request of package client, from the root down, which is
// the order of their keys.
func (r *Request) askPath(s *client.Request, t *client.Terms) {
	above, node := lockfsm.ModeIX, lockfsm.ModeX
	if r.Shared {
		above, node = lockfsm.ModeIS, lockfsm.ModeS
	}
	for i, c := range r.Path {
		if c == '/' {
			t.Keys, t.Modes = append(t.Keys, r.Path[:i]), append(t.Modes, above)
		}
	}
	t.Keys, t.Modes = append(t.Keys, r.Path), append(t.Modes, node)
	s.Key, t.Keys = t.Keys[0], t.Keys[1:]
	if len(t.Modes) == 1 && node == lockfsm.ModeX {
		t.Modes = nil // it is an ordinary request
	}
}

// String names the keys, for errors.
func (r *Request) String() string {
	if r.Resume != 0 {
		return fmt.Sprintf("resume %s by token %d", shownKey(r.Key), r.Resume)
	}
	if len(r.Keys) == 0 {
		return "lock " + shownKey(r.Key+r.Path) // one of them is empty
	}
	some := make([]string, 0, 10)
	for _, key := range r.Keys[:min(len(r.Keys), cap(some))] {
		some = append(some, shownKey(key))
	}
	return fmt.Sprintf("lock %v", some)
}

const maxShownKey = 64

func shownKey(key string) string {
	if len(key) <= int(lockfsm.DefaultLimits().KeyBytes) {
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(key[:maxShownKey], "?"), len(key))
}

func badKey(key string) error {
	limit := int(lockfsm.DefaultLimits().KeyBytes)
	rule := ""
	switch {
	case key == "":
		rule = "it is empty"
	case len(key) > limit:
		rule = fmt.Sprintf("it has %d bytes, at most %d are allowed", len(key), limit)
	case isPrintable(key):
		return nil
	case !utf8.ValidString(key):
		rule = "it is not UTF-8"
	case strings.ContainsFunc(key, unicode.IsControl):
		rule = "it has a control character"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrBadKey, shownKey(key), rule)
}

// isPrintable reports whether key is printable ASCII, as most keys are.
func isPrintable(key string) bool {
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return false
		}
	}
	return true
}

func (r *Request) badKeys() error {
	if len(r.Keys) == 0 {
		return badKey(r.Key + r.Path) // one of them is empty
	}
	for _, key := range r.Keys {
		if err := badKey(key); err != nil {
			return err
		}
	}
	return nil
}

const maxMarkBytes = 64

// mark adds the result of Hooks.Mark to a request. It drops a mark that is longer than
// maxMarkBytes, or for which Value and Labels leave too little room. It also drops the mark if the
// request is a Resume and keeps the hold's value.
func (r *Request) mark(mark []byte, s *client.Request) {
	if len(mark) == 0 || len(mark) > maxMarkBytes || r.Resume != 0 && r.Value == "" && len(r.Labels) == 0 {
		return
	}
	value := shown.Encode(r.Value, r.Labels, mark)
	if len(value) > lockfsm.MaxValueBytes {
		return
	}
	if s.Terms == nil {
		s.Terms = &client.Terms{} // a zero Terms means the exclusive lock
	}
	s.Terms.Value = value
}
