package mortise

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// Token is a fencing token: a later grant of a key has a higher token. A resource that remembers
// the highest token it has received and refuses lower ones is safe even against a holder that was
// stopped in the middle of its work. It is a uint64, and a string in JSON.
type Token = locker.Token

// Mode is how a request locks a key. The zero Mode is Exclusive. Modes are compared with ==.
//
// Requests of all modes wait in one queue per key, and are granted in the order of the queue. The
// requests at the head of the queue that are compatible hold the lock together. So a waiting
// exclusive request blocks later shared requests, and a request for few permits never overtakes a
// request for many.
type Mode uint64

const (
	// Exclusive excludes all other requests.
	Exclusive Mode = iota
	// Shared excludes only exclusive requests, like the lock of a reader.
	Shared
	// Upgradable excludes exclusive and other upgradable requests, but not shared ones.
	// [Lock.Upgrade] makes it exclusive for a while. It is for a holder that reads first, and then
	// decides whether to write.
	Upgradable
)

// Permits returns the mode of a semaphore: the request takes n permits out of a total, 1 <= n <= of
// <= 1<<30. A shared request takes one permit of any total. All requests for a key should name the
// same total. If they do not, the smallest total among the holders counts, so the total can be
// changed while the group runs. Permits(1, 1) is Exclusive. With wrong numbers the Mode is invalid:
// a request with it fails with ErrBadRequest, and the error names them.
func Permits(n, of int) Mode { return Mode(modes.Permits(n, of)) }

// String returns "exclusive", "shared", "upgradable", permits such as "2 of 5", or why the mode is
// invalid.
func (m Mode) String() string {
	if err := modes.Mode(m).Check(); err != nil {
		return "invalid: " + err.Error()
	}
	return modes.Mode(m).Text()
}

// MarshalText returns the text of String. For an invalid mode it returns ErrBadRequest.
func (m Mode) MarshalText() ([]byte, error) {
	if err := modes.Mode(m).Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	return []byte(modes.Mode(m).Text()), nil
}

// UnmarshalText parses the text of a valid mode. For any other text it returns ErrBadRequest.
func (m *Mode) UnmarshalText(text []byte) error {
	parsed, err := modes.Parse(string(text))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	*m = Mode(parsed)
	return nil
}

// Part is a further key of a request, see [Request.Also].
type Part struct {
	Key  string // as Request.Key
	Mode Mode   // as Request.Mode
	Tree bool   // as Request.Tree
}

// Request describes a lock to acquire. With only Key set it waits for the exclusive lock of that
// key. The call copies it.
//
// Requests that hold a lock together have different tokens, and a resource that compares tokens
// would refuse all but the highest. So the token fences only the exclusive parts of a request: it
// is higher than the tokens of all earlier shared and exclusive holders. Tokens do not fence the
// permits of a semaphore.
type Request struct {
	// Key is what to lock: 1 to 512 bytes of UTF-8 without control characters. It names the lock, in
	// [Lock.Key] and in errors.
	Key string

	// Mode is how to lock Key. Permits cannot be combined with Tree and Also, and Upgradable not with
	// Tree, Also and LockDelay.
	Mode Mode

	// Tree makes Key a node of a tree: "tenants/7/orders" is below "tenants/7". The request then
	// excludes others not only for this node, but also for nodes below it, and for the nodes above it
	// with Tree. A shared one excludes only the exclusive ones of these. Requests for nodes of which
	// neither is above the other do not exclude each other. No part of such a key is empty.
	//
	// Each node is a key. The request locks Key, and the keys of all nodes above it with an
	// intention, which excludes no other intention. So a Lock of the key "tenants" excludes every
	// request for a node below "tenants", and an RLock of it excludes only exclusive requests for
	// "tenants" itself. The queue of each node is served in order, so a request for a node near the
	// root, while it waits, stops all later ones for nodes below. Do not lock the root of a busy tree.
	//
	// A derived secret needs the right to lock every node from the root on, because an intention keeps
	// exclusive requests for its node waiting: for "tenants/7/orders" it is derived with -allow "lock
	// tenants", "lock tenants/7" and "lock tenants/7/*".
	Tree bool

	// Also are further keys to lock, in any order. All are granted in one moment, with one token that
	// is higher than all earlier tokens of each key. While the request waits for one key, it may block
	// other requests for another of its keys. Two such requests cannot deadlock each other. If a key
	// is named twice, it gets the weakest mode that includes both. Together with the nodes above those
	// with Tree, a request has at most 256 keys.
	Also []Part

	// Try makes the request fail with a *HeldError, instead of waiting for a holder, if the lock is
	// held. If no request is known to hold it, but it is not free either, the error is another one,
	// because the other requests may fail, too: ErrQueueFull if requests without Try wait for it, and
	// ErrNotReady if an earlier request with Try has not been decided after 2 s. A request with Try
	// for several keys has a place in the queue of each until it is decided. See [Node.TryLock].
	Try bool

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

	// MaxIdle ends the hold when that time has passed without a [Lock.Beat], or up to a quarter of it
	// later. It is for work that can hang, because the lease lasts as long as the process lives. The
	// hold ends as at MaxHold, and its code may still run, so use tokens or LockDelay. The time counts
	// from the grant and from each Beat, by this instance's boot-time clock. It also passes while the
	// lock is in doubt. [Lock.Put] and [Lock.SetValue] beat when they are called. If the lock was
	// entered again, all its handles have one MaxIdle. It is zero, which means no limit, or at least
	// 100 ms.
	MaxIdle time.Duration

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
	// returns ErrLost.
	JeopardyGrace time.Duration

	// LockDelay keeps the lock taken for that time, at most 7 days, when its holder is gone: its
	// session has expired, its lease was not renewed, MaxHold or MaxIdle has ended the hold, or
	// [Lock.Detach] was called. If the resource cannot compare tokens, a delay of a few seconds
	// gives the holder's last writes time to finish. A delay of hours is for a hold that must
	// outlive its process; see [Node.Resume].
	//
	// The leader counts the delay from the expiry of the session. A new leader counts the whole
	// delay again, and a newly founded group does not have the hold. After an Unlock that arrives
	// before the session expires, there is no delay. A later Unlock returns ErrLost.
	// The delay is rounded up to whole milliseconds.
	LockDelay time.Duration

	// Notice makes the channel of [Lock.Wanted] close when another request waits for one of the
	// keys.
	Notice bool

	// Value is a text for other callers, in HeldError.Value, for example the holder's address. At
	// most 1,024 bytes, and a few less if it begins with a zero byte.
	Value string

	// Labels are named texts for other callers, in HeldError.Labels. Value and Labels together, as
	// JSON, may have 1,024 bytes. The label "mortise.purpose" with the value "job" marks a hold
	// that is long by design: the console, mortise doctor and the alerts do not warn about it.
	// Packages election, tick, keep and barrier set it to "election", "tick" or "job".
	Labels map[string]string
}

// demand is what one call asks for. A call of [Node.Resume] or [Node.LockSticky] has a Request with
// those of its options that a Request has, too.
type demand struct {
	Request
	resume Token
	sticky bool
}

// parts returns the parts of r in a new slice.
func (r *Request) parts() []modes.Part {
	all := append(make([]modes.Part, 0, 1+len(r.Also)), r.own())
	for _, p := range r.Also {
		all = append(all, modes.Part{Key: p.Key, Mode: modes.Mode(p.Mode), Tree: p.Tree})
	}
	return all
}

func (r *Request) own() modes.Part {
	return modes.Part{Key: r.Key, Mode: modes.Mode(r.Mode), Tree: r.Tree}
}

// validate checks a request whose keys are valid.
func (r *Request) validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf("%w: Request."+format, append([]any{ErrBadRequest}, args...)...))
		}
	}
	wrong(r.MaxWaiting < 0 || r.MaxWaiting > modes.MaxPermits, "MaxWaiting is %d; want 0 to %d", r.MaxWaiting,
		modes.MaxPermits)
	wrong(r.LockDelay < 0 || r.LockDelay > lockfsm.MaxDelay, "LockDelay is %v; want 0 to %v", r.LockDelay,
		lockfsm.MaxDelay)
	wrong(r.JeopardyGrace < 0 || r.JeopardyGrace > lockfsm.MaxDelay, "JeopardyGrace is %v; want 0 to %v",
		r.JeopardyGrace, lockfsm.MaxDelay)
	wrong(r.MaxHold < 0, "MaxHold is %v; want 0 (no limit) or more", r.MaxHold)
	wrong(r.MaxIdle != 0 && r.MaxIdle < client.MinIdle, "MaxIdle is %v; want 0 (no limit), or %v or more", r.MaxIdle,
		client.MinIdle)
	wrong(len(r.Value) > lockfsm.MaxValueBytes, "Value has %d bytes, more than %d", len(r.Value),
		lockfsm.MaxValueBytes)
	together := len(shown.Encode(r.Value, r.Labels, nil))
	wrong(len(r.Value) <= lockfsm.MaxValueBytes && together > lockfsm.MaxValueBytes,
		"Labels and Value take %d bytes, more than %d", together, lockfsm.MaxValueBytes)
	if err := modes.Check(r.parts(), r.LockDelay); err != nil {
		errs = append(errs, fmt.Errorf("%w: Request.%w", ErrBadRequest, err))
	}
	return errors.Join(errs...)
}

// ordinary reports whether r sets only Key and Try.
func (r *Request) ordinary() bool {
	return r.Mode == Exclusive && r.single() && r.MaxWaiting == 0 && r.MaxHold == 0 && r.MaxIdle == 0 &&
		!r.Notice && r.JeopardyGrace == 0 && r.LockDelay == 0 && r.Value == "" && len(r.Labels) == 0
}

// single reports whether r locks its Key and no other key.
func (r *Request) single() bool { return !r.Tree && len(r.Also) == 0 }

// limit lowers MaxWaiting to the limits of the request's keys, which are given by their prefixes.
func (d *demand) limit(byPrefix map[string]int) {
	if d.Try || d.sticky || d.resume != 0 {
		return
	}
	for i := range 1 + len(d.Also) {
		key := d.Key
		if i > 0 {
			key = d.Also[i-1].Key
		}
		longest, most := -1, 0
		for prefix, limit := range byPrefix {
			if len(prefix) > longest && strings.HasPrefix(key, prefix) {
				longest, most = len(prefix), limit
			}
		}
		if longest >= 0 && (d.MaxWaiting == 0 || most < d.MaxWaiting) {
			d.MaxWaiting = most
		}
	}
}

// ask writes d to a request of package client. If d is made under a lock, the caller passes the
// request of that lock, and otherwise nil.
func (d *demand) ask(s *client.Request, under *client.Request) {
	s.Key, s.Try = d.Key, d.Try
	if d.ordinary() && d.resume == 0 && under == nil {
		return
	}
	t := &client.Terms{Most: uint32(d.MaxWaiting), Value: shown.Encode(d.Value, d.Labels, nil), Longest: d.MaxHold,
		Idle: d.MaxIdle, Grace: d.JeopardyGrace, Notice: d.Notice, Delay: client.WholeDelay(d.LockDelay), Under: under,
		Resume: lockfsm.Token(d.resume)}
	s.Terms = t
	if d.Mode != Exclusive || !d.single() {
		a := modes.Expand(d.parts())
		s.Key, t.Keys, t.Modes, t.Permits, t.Of = a.Keys[0], a.Keys[1:], a.Modes, a.Permits, a.Of
	}
}

// wants returns what r would be granted. It returns nothing if r cannot enter a lock, because
// permits are always requested anew.
func (r *Request) wants() lockfsm.Grant {
	switch {
	case r.Mode == Exclusive && r.single():
		return lockfsm.Grant{Key: r.Key}
	case r.permits():
		return lockfsm.Grant{}
	}
	return modes.Grant(r.parts())
}

// permits reports whether r asks for permits of a semaphore.
func (r *Request) permits() bool { return r.Mode > Upgradable }

// reads reports whether all parts of r are shared.
func (r *Request) reads() bool {
	return r.Mode == Shared && !slices.ContainsFunc(r.Also, func(p Part) bool { return p.Mode != Shared })
}

// trees reports whether a part of r is a node of a tree.
func (r *Request) trees() bool {
	return r.Tree || slices.ContainsFunc(r.Also, func(p Part) bool { return p.Tree })
}

// String names the keys, for errors.
func (d *demand) String() string {
	if d.resume != 0 {
		return fmt.Sprintf("resume %s by token %d", shownKey(d.Key), d.resume)
	}
	if len(d.Also) == 0 {
		return "lock " + shownKey(d.Key)
	}
	some := append(make([]string, 0, 10), shownKey(d.Key))
	for _, p := range d.Also[:min(len(d.Also), cap(some)-1)] {
		some = append(some, shownKey(p.Key))
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
	err := badKey(r.Key)
	for i := 0; i < len(r.Also) && err == nil; i++ {
		err = badKey(r.Also[i].Key)
	}
	return err
}

const maxMarkBytes = 64

// mark adds the result of Hooks.Mark to a request. It drops a mark that is longer than
// maxMarkBytes, or for which Value and Labels leave too little room. It also drops the mark if the
// request is a Resume and keeps the hold's value.
func (d *demand) mark(mark []byte, s *client.Request) {
	if len(mark) == 0 || len(mark) > maxMarkBytes || d.resume != 0 && d.Value == "" && len(d.Labels) == 0 {
		return
	}
	value := shown.Encode(d.Value, d.Labels, mark)
	if len(value) > lockfsm.MaxValueBytes {
		return
	}
	if s.Terms == nil {
		s.Terms = &client.Terms{} // a zero Terms means the exclusive lock
	}
	s.Terms.Value = value
}
