package mortise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Node is one instance of the cluster. Its methods, the rarer ones last in each line:
//
//	its life     Ready, Leave, Err, Close
//	locks        Lock, TryLock, RLock, Do, LockAll, Acquire, DoNested, LockSticky, Resume, NewSession
//	data         Get, Put, IDs
//	who holds    Peek, List, Watch, Ahead, Check, Sessions, Audit
//	the cluster  Status, Health, Members
//	operators    ForceUnlock, EndSession, TransferLead, Recover
type Node struct {
	config Config // without secrets

	engine *instance.Instance
	// client and trace are set after the engine has started, so callbacks of the engine must not
	// use them.
	client *client.Client
	trace  *trace.Tracer // nil without observers

	watches queries.Watches // the watch that all callers of Watch share

	standby atomic.Int64 // waiting calls whose purpose makes long waits normal

	readiness
}

// Start starts a node. ctx bounds the start only. When Start returns, the node listens, searches
// for the other instances and accepts requests. Requests wait until there is a leader; see Ready.
// An error names every mistake in the configuration, or the missing resource of the machine. After
// an error, nothing is left running. Close or Leave ends the node.
func Start(ctx context.Context, config Config) (*Node, error) {
	if ctx == nil {
		return nil, noContext("Start")
	}
	world := outside.From(ctx)
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	if err := config.resolvePaths(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("mortise: start: %w", context.Cause(ctx))
	}
	source, err := config.credentials(world.Wall, world.Random)
	if err != nil {
		return nil, fmt.Errorf("mortise: %w", err)
	}
	for _, text := range config.warnings {
		config.Logger.Warn(text)
	}
	n := &Node{config: config.withoutSecrets("")}
	n.engine = instance.New(n.engineConfig(source, world))
	if err := n.engine.Start(ctx); err != nil {
		return nil, err
	}
	n.client, n.trace = n.engine.Client(), n.engine.Tracer()
	if world.Inside != nil {
		world.Inside(n.engine.Inside())
	}
	return n, nil
}

func (n *Node) engineConfig(source *credentials.Source, world outside.World) instance.Config {
	c := &n.config
	return instance.Config{
		Name: c.Name, Cluster: c.Cluster, Zone: c.Zone, Bind: c.Bind, Advertise: c.Advertise, Join: c.Join,
		JoinFunc: c.JoinFunc,
		Dir:      c.Dir, RunDir: c.RunDir,
		DirFreeBytes: c.DirFreeBytes, SessionTTL: c.SessionTTL, Logger: c.Logger, Version: version,
		Stays: c.StickyLocks, StayIdle: c.StickyUnused, Group: c.group(), Alone: c.alone(), Unreachable: c.unreachable(),
		Source: source, Self: identityOf(source), World: world,
		History: c.History, Trace: lockHooks(c.Hooks), Hooks: nodeHooks(c.Hooks),
		Admin: admin{n: n, way: &way{}}, Translate: failed, Disks: func() string { return n.status().waitsForDisks() },
	}
}

// Err returns nil while the node can be used, and afterwards ErrClosed or the failure that ended
// it.
func (n *Node) Err() error { return n.engine.Err() }

// Leave removes the node from the cluster in an orderly way. It refuses new requests, ends the
// contexts of its locks so that their holders can finish, and waits for their Unlock. It hands its
// vote and its leadership to other instances, the leadership to the newest build, closes the
// session if no lock is held any more, and closes the node.
//
// Leave stops waiting when ctx ends, or after 10 s if ctx has no deadline. Then a lock that is not
// unlocked is left to expire, and a vote that was not handed over counts as lost. If all instances
// leave, none waits for a successor. Leave returns nil if nothing was held at the end and no vote
// was lost. The error wraps [ErrVoteLost] if this instance voted, others stay, and none of them has
// taken over the vote.
func (n *Node) Leave(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background() // as for Unlock
	}
	return n.engine.Leave(ctx)
}

// Close stops the node immediately and waits until everything that it started has ended. It does
// not close the session, so held locks stay taken until they expire. Use Leave for an orderly end.
// Close returns after a limited time. It may be called in every state, and repeatedly.
//
// If the disk of Config.Dir does not answer, Close stops everything else and returns an error after
// 20 s at most. A goroutine that is stuck in a system call ends when that call returns, without a
// further effect. Until then this process uses the directory.
func (n *Node) Close() error { return n.engine.Close() }

// Recover abandons a group whose majority is lost for good. Status.Group shows the ID of the group.
// An operator calls Recover on every remaining instance of that group, and starts new instances in
// place of the lost ones. Each instance ends its locks and forgets the group. When all instances
// that Founders or Replicas requires are reachable, they found the next group. Its tokens are
// higher than all tokens that its founders have received, and it grants nothing until its grace has
// passed. Members of the old group that return later join the next group by themselves.
//
// Make sure that the missing instances are stopped: if they are only unreachable, two groups grant
// the same locks. Recover fails, and changes nothing, if the group has a leader or is not this
// instance's group. ctx bounds the wait for the disk.
func (n *Node) Recover(ctx context.Context, group string) error {
	if err := n.Err(); err != nil {
		return err
	}
	if ctx == nil {
		return noContext("Recover")
	}
	if err := ownError(queries.Allowed(n.engine.Rights(), &query.RecoverRequest{})); err != nil {
		return err
	}
	id, err := nodeid.ParseHex(group)
	if err != nil {
		return fmt.Errorf("mortise: recover: %q is not a group ID; Status.Group shows the ID", group)
	}
	if err := n.engine.Recover(ctx, id); err != nil {
		return fmt.Errorf("mortise: recover: %w", err)
	}
	return nil
}

// Format implements [fmt.Formatter]: it prints the node's name and the ID of its present
// incarnation.
func (n *Node) Format(f fmt.State, _ rune) {
	if n == nil {
		fmt.Fprint(f, "<nil>")
		return
	}
	fmt.Fprintf(f, "mortise.Node(%s %s)", n.config.Name, n.engine.ID())
}

// LogValue implements [slog.LogValuer], with the text of Format.
func (n *Node) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(n)) }

// Acquire returns a lock that is held, or an error. After an error the caller does not hold the
// lock, and the request is not granted later. ctx, which must not be nil, bounds the wait. When ctx
// ends, Acquire returns immediately with an error that wraps the context's error and names what the
// call waited for. If ctx has already ended, Acquire fails even if the lock is free.
//
// If ctx comes from [Lock.Context] or from Do, the request is made under that lock. If that lock
// was itself requested under other locks, the request is made under those, too. If one of these
// locks covers the request, the lock is entered again: Acquire returns another handle of the same
// hold, with the same token. The lock is released when each of its handles is unlocked. An
// exclusive lock covers an exclusive, an upgradable or a shared request for any of its keys, a
// shared lock covers a shared request, and an upgradable lock covers a shared or an upgradable one.
// A node of a tree is covered by a lock of the same node or of one above it, of the same mode or
// exclusive, but not by a lock of its key without Tree, which does not exclude locks of the nodes
// above. A request with several keys is covered only if each of its parts is. When only handles are
// left whose parts are all shared, the lock becomes shared, as after [Lock.Downgrade]. For a handle
// whose MaxHold has passed this happens after the LockDelay. An upgradable handle keeps an
// exclusive lock exclusive. A lock of [Node.LockSticky] stays exclusive until its last handle is
// unlocked. A shared request under an upgraded lock enters the lock that was upgraded. Permits of a
// semaphore are always requested anew. If the request would have to wait, directly or through
// others, for a lock under which it is made, it fails with a *[DeadlockError].
//
// Each handle has its own MaxHold, which ends the handle, and the hold if this is the last handle.
// So the MaxHold of the first request ends no other handle, and counts no more after its Unlock.
// MaxIdle, JeopardyGrace, LockDelay, Notice, Value and Labels belong to the hold. A request for
// another MaxIdle, another Value or other Labels, for a Notice that the hold lacks, or for a longer
// LockDelay or JeopardyGrace fails with an *[EnteredError]. The label "mortise.purpose", which
// packages such as keep add, does not count.
func (n *Node) Acquire(ctx context.Context, r Request) (*Lock, error) {
	return n.acquire(ctx, n.client, &demand{Request: r})
}

func (n *Node) acquire(ctx context.Context, client *client.Client, d *demand) (*Lock, error) {
	if d.Labels != nil && shown.Lasting(d.Labels) {
		n.standby.Add(1)
		defer n.standby.Add(-1)
	}
	var call *trace.Call
	if n.trace.Observes() { // asked costs time
		call = n.trace.Start(ctx, d.asked())
	}
	l, err := n.obtain(ctx, client, d, call)
	switch {
	case err != nil:
		call.Refused(ctx, err)
		return nil, err
	case l.first() != l:
		call.Entered(ctx, l.first().call(), l.first().hold.Token())
		return l, nil
	}
	call.Granted(ctx)
	return n.watched(l), nil
}

func (n *Node) obtain(ctx context.Context, client *client.Client, d *demand, call *trace.Call) (*Lock, error) {
	if err := n.check(ctx, d); err != nil {
		return nil, err
	}
	if len(n.config.MaxWaiting) > 0 {
		d.limit(n.config.MaxWaiting)
	}
	again, under, err := n.scope(ctx, client, d)
	if again != nil || err != nil {
		return again, err
	}
	var l *Lock
	if d.sticky && under == nil {
		l, err = n.pass(ctx, client, d.Key, StickyOptions{Shared: d.Mode == Shared, Try: d.Try, Notice: d.Notice}, call)
	} else {
		l, err = n.ask(ctx, client, d, under, call)
	}
	call.Answered(err)
	if err != nil {
		return nil, n.explainUnder(under, d, err)
	}
	return l, nil
}

func (n *Node) check(ctx context.Context, d *demand) error {
	if ctx == nil {
		return noContext(d.String())
	}
	if err := n.admit(ctx, "Lock"); err != nil {
		return err
	}
	if err := d.badKeys(); err != nil || d.ordinary() {
		return err
	}
	return d.validate()
}

// explainUnder is like explain, for the request d. If d was made under a lock, the caller passes
// the request of that lock, and otherwise nil.
func (n *Node) explainUnder(under *client.Request, d *demand, err error) error {
	err = n.explain(d.String(), err)
	var deadlock *DeadlockError
	if under != nil && errors.As(err, &deadlock) && len(deadlock.Circle) == 1 {
		g := under.Grant()
		if held, is := under.Caller.(*client.Hold); is {
			g = held.Grant()
		}
		if key := deadlock.Circle[0].Key; key == g.Key || slices.Contains(g.Keys, key) {
			deadlock.upgrade, deadlock.upgradable, deadlock.permits = g.Shared(), g.Upgradable(), g.Semaphore()
		}
	}
	return err
}

// noContext returns the error for a nil context.
func noContext(doing string) error {
	return fmt.Errorf("%w: %s: the context is nil: pass context.Background() if you have none", ErrBadRequest, doing)
}

// admit returns an error if the node has failed or leaves, or if the context of a call is nil.
func (n *Node) admit(ctx context.Context, doing string) error {
	if err := n.Err(); err != nil {
		return err
	}
	if ctx == nil {
		return noContext(doing)
	}
	select {
	case <-n.engine.Leaving():
		return ErrLeaving
	default:
		return nil
	}
}

// Lock waits until the lock is granted and returns it. Waiters are served in the order in which the
// group received their requests.
func (n *Node) Lock(ctx context.Context, key string) (*Lock, error) {
	return n.acquire(ctx, n.client, &demand{Request: Request{Key: key}})
}

// RLock is Lock for a request that is [Shared].
func (n *Node) RLock(ctx context.Context, key string) (*Lock, error) {
	return n.Acquire(ctx, Request{Key: key, Mode: Shared})
}

// LockAll waits until all keys can be granted together, and returns them as one lock, which the
// first key names. See [Request.Also].
func (n *Node) LockAll(ctx context.Context, keys ...string) (*Lock, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: LockAll without a key", ErrBadRequest)
	}
	r := Request{Key: keys[0]}
	for _, key := range keys[1:] {
		r.Also = append(r.Also, Part{Key: key})
	}
	return n.Acquire(ctx, r)
}

// TryLock returns the lock if it is free. It waits for no holder, and at most 2 s each for the
// answer of a leader and of an instance that keeps the lock (LockSticky). A *HeldError, which
// matches ErrHeld, describes the holder. ErrNotReady means that the group cannot decide now, and
// ErrQueueFull that requests without Try wait for the lock, but none holds it yet. Lock with a
// short timeout is usually the better choice.
func (n *Node) TryLock(ctx context.Context, key string) (*Lock, error) {
	return n.Acquire(ctx, Request{Key: key, Try: true})
}

// ResumeOptions are what a resumed hold gets instead of what it had. The fields are those of
// [Request]. The zero value keeps the LockDelay, the Value and the Labels of the hold.
type ResumeOptions struct {
	MaxHold       time.Duration // counts from the return of Resume; zero means no limit
	MaxIdle       time.Duration // counts like MaxHold, and from each Beat; zero means no limit
	JeopardyGrace time.Duration // zero means none
	LockDelay     time.Duration // zero keeps that of the hold
	Notice        bool
	Value         string // empty, with empty Labels, keeps Value and Labels of the hold
	Labels        map[string]string
}

// Resume takes over the hold of key that has this token, with all its keys, instead of waiting for
// the lock. Either its holder is gone and [Request.LockDelay] keeps the hold, or its holder has
// passed the token to this caller. In the second case the holder's lock ends with a *[ForcedError].
// The resumed lock has a higher token, which fences off the former holder. It has the modes and the
// trees that the hold had, and Downgrade and requests under its context follow that. ErrNotHeld
// means that no hold has this token, and ErrBadRequest that none can have it; [Node.Peek] reports
// the present token. An upgradable or sticky lock cannot be resumed.
//
// A derived secret needs the right to lock each key of the hold. If the session of the hold has
// not ended, and was opened neither by this instance nor with the same derived secret, it also
// needs read and force on each key. Otherwise the error is an ErrNotAllowed. [Node.Audit] reports
// that a hold was taken over while its session had not ended.
//
// If ctx ends before the answer, a hold with a LockDelay exists but may have another token, and a
// hold without a LockDelay may have ended.
func (n *Node) Resume(ctx context.Context, key string, token Token, o ResumeOptions) (*Lock, error) {
	return n.resume(ctx, n.client, key, token, &o)
}

// Resume is [Node.Resume] in this session.
func (s *Session) Resume(ctx context.Context, key string, token Token, o ResumeOptions) (*Lock, error) {
	return s.node.resume(ctx, s.client, key, token, &o)
}

func (n *Node) resume(ctx context.Context, by *client.Client, key string, token Token, o *ResumeOptions) (*Lock,
	error) {
	if !queries.IsToken(uint64(token)) {
		return nil, fmt.Errorf("%w: Resume of %s: the token is %d, which no hold has", ErrBadRequest, shownKey(key), token)
	}
	return n.acquire(ctx, by, &demand{resume: token, Request: Request{Key: key, MaxHold: o.MaxHold,
		MaxIdle: o.MaxIdle, JeopardyGrace: o.JeopardyGrace, LockDelay: o.LockDelay, Notice: o.Notice,
		Value: o.Value, Labels: o.Labels}})
}

// StickyOptions configure LockSticky. The zero value waits for the exclusive lock.
type StickyOptions struct {
	Shared bool // the lock is Shared instead of Exclusive
	Try    bool // as Request.Try
	Notice bool // as Request.Notice
}

// LockSticky is like [Node.Lock], but the session keeps the lock after Unlock. Its next sticky
// request for the key is then granted without a message. After 1,024 such grants, or one TTL, a
// request asks the group again. Several such requests of one mode are served in the order of their
// calls. When another request waits, in any session, at most 16 callers that already waited here
// are still granted the lock, and only within 10 ms. The lock is given back when the last of them
// unlocks. Several sessions may keep a shared lock at once, until an exclusive request waits. If
// readers have entered an exclusive lock again, it does not become shared when they are left.
//
// If an instance that keeps a free lock dies, the lock stays taken until the session ends, as if
// it were held. Unlock is confirmed by the lease and not by a majority. Peek sets Kept for a
// kept lock, in use or free, and returns a token that no caller has. Check and ForceUnlock fail
// with ErrKept for the token of a caller. TryLock elsewhere asks the session that keeps
// the lock, and fails with ErrNotReady if it has no answer after 2 s.
//
// A sticky request under another lock is an ordinary one.
func (n *Node) LockSticky(ctx context.Context, key string, o StickyOptions) (*Lock, error) {
	return n.lockSticky(ctx, n.client, key, o)
}

// LockSticky is [Node.LockSticky] in this session.
func (s *Session) LockSticky(ctx context.Context, key string, o StickyOptions) (*Lock, error) {
	return s.node.lockSticky(ctx, s.client, key, o)
}

func (n *Node) lockSticky(ctx context.Context, by *client.Client, key string, o StickyOptions) (*Lock, error) {
	if !n.needsOnlyAPass(ctx, key) {
		return n.acquire(ctx, by, o.demand(key))
	}
	l, err := n.pass(ctx, by, key, o, nil)
	if err != nil {
		return nil, n.explain(o.demand(key).String(), err)
	}
	return l, nil
}

func (o StickyOptions) demand(key string) *demand {
	d := &demand{sticky: true, Request: Request{Key: key, Try: o.Try, Notice: o.Notice}}
	if o.Shared {
		d.Mode = Shared
	}
	return d
}

// needsOnlyAPass reports whether a sticky call is valid, not observed, and not made under a lock.
// Most calls are, and need none of the other steps of acquire.
func (n *Node) needsOnlyAPass(ctx context.Context, key string) bool {
	return ctx != nil && !n.trace.Observes() && scopeOf(ctx) == nil && badKey(key) == nil && n.admit(ctx, "Lock") == nil
}

// pass asks for a lock that the client may keep. The lock and its pass are one allocation. The
// parameter call is nil without observers.
func (n *Node) pass(ctx context.Context, by *client.Client, key string, o StickyOptions,
	call *trace.Call) (*Lock, error) {
	l := &struct {
		Lock
		pass client.Pass
	}{Lock: Lock{node: n}}
	l.observed(call)
	l.countAs(o.Shared)
	l.pass.Key, l.pass.Shared, l.pass.Try, l.pass.Notice = key, o.Shared, o.Try, o.Notice
	if call != nil {
		call.Asks(l.pass.Request(), &l.hold)
	}
	return &l.Lock, by.AcquireKept(ctx, &l.hold, &l.pass)
}

// Do locks key, runs fn and unlocks, even if fn panics. The context passed to fn ends when the lock
// is lost, with the reason as its cause, or when fn has returned. Use token to fence the resource.
// Do returns the errors of locking, of fn and of unlocking. A nil error means that fn succeeded and
// that the lock was held until fn returned.
func (n *Node) Do(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) (err error) {
	lock, err := n.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer func() { err = joined(err, lock.Unlock(ctx)) }()
	working, end := context.WithCancelCause(ctx)
	defer unlocks(end) // if the lock was entered again, Unlock does not end the context
	return fn(lock.Context(working), lock.Token())
}

// DoNested is Do with several requests, for several limits at once: "1 for the order, 5 for the
// tenant, 40 in all". It acquires them in the given order, each under the context of the one
// before, runs fn, and unlocks them in reverse order, even if fn panics. The token is that of the
// first request, and [TokenFrom] returns it from the context of fn, too.
//
// Put the narrowest limit first: a caller that waits for its tenant then holds its order, and no
// place of all. In the opposite order, callers that wait for one tenant would hold the places that
// other tenants need. Callers that nest the same keys in the same order cannot deadlock.
//
// The context passed to fn ends when one of the locks is lost, with the reason as its cause, or
// when fn has returned. Such a loss also ends the wait for the next lock. DoNested returns the
// errors of locking, of fn and of unlocking. A nil error means that fn succeeded, and that all
// locks were held until fn returned. If a request fails, fn does not run. After every error nothing
// is held.
func (n *Node) DoNested(ctx context.Context, requests []Request,
	fn func(ctx context.Context, token Token) error) (err error) {
	if len(requests) == 0 {
		return fmt.Errorf("%w: DoNested without a request", ErrBadRequest)
	}
	for i := range requests { // a mistake in the last one must not wait for the others
		if err := n.check(ctx, &demand{Request: requests[i]}); err != nil {
			return err
		}
	}
	inner, end := context.WithCancelCause(ctx)
	defer unlocks(end) // as in Do, but after the locks are unlocked
	var first *Lock
	for _, r := range requests {
		lock, refused := n.Acquire(inner, r)
		if refused != nil {
			return refused
		}
		defer func() { err = joined(err, lock.Unlock(ctx)) }()
		inner, first = lock.Context(inner), cmp.Or(first, lock)
	}
	return fn(ContextWithToken(inner, first.Token()), first.Token())
}

// unlocks ends a context as Unlock does.
func unlocks(end context.CancelCauseFunc) { end(ErrUnlocked) }

// joined joins the errors of fn and Unlock. It drops the error of Unlock if fn has already returned
// the same loss.
func joined(fn, unlock error) error {
	if fn != nil && unlock != nil && errors.Is(fn, ErrLost) && strings.Contains(fn.Error(), unlock.Error()) {
		return fn
	}
	return errors.Join(fn, unlock)
}

// settleTime keeps a group without a spare instance from blocking a deployment forever. It is
// longer than the minute after which a silent voter with a directory is replaced.
const settleTime = 90 * time.Second

const (
	settlePoll = 100 * time.Millisecond
	// lastAsk is the shortest time for an answer about the voters. A Ready that is called after
	// settleTime still asks once, so that its warning is about the present.
	lastAsk = time.Second
)

// readiness is what the calls of Ready know together. A readiness probe calls it repeatedly, each
// time with a short context.
type readiness struct {
	settled   atomic.Bool               // Ready has found the voters settled, or has stopped waiting
	settleBy  atomic.Int64              // clock.Time at which Ready stops waiting; zero before the first Ready
	unsettled atomic.Pointer[unsettled] // what the last leader that answered has said; nil means none has
}

// unsettled is what Ready waits for.
type unsettled struct {
	why      string
	renewing bool // a voter is being replaced that has lost its directory
}

// Ready waits until this node can get locks: its session is attached to a leader and the group is
// past its grace. The first call also waits, for at most 90 s, until no change of the voters is due
// or in progress. So a rolling deployment that waits for Ready cannot stop instances faster than
// the group replaces voters. Ready waits for a lost voter until it has returned, or was replaced or
// removed: about a second in memory, 5 s if it is cut off, and up to a minute with directories
// ([Config.Dir]). With directories, Ready does not wait if no instance runs that could replace the
// voter, for example after the failure of a whole site. If an instance has come back without its
// directory, the wait has no limit but ctx, since the next loss would end the group. Ready also
// warms up: the first request after it opens no session and searches for no leader.
//
// If ctx ends before that, Ready returns an error that wraps the context's error and names what is
// missing. It returns the error of Node.Err if the node has failed, and ErrLeaving if the node has
// begun to leave, also if this happens while Ready waits. For a readiness probe see
// docs/OPERATION.md.
func (n *Node) Ready(ctx context.Context) error {
	if err := n.admit(ctx, "Ready"); err != nil {
		return err
	}
	if err := n.client.WaitReady(ctx); err != nil {
		return n.explain("wait until ready", err)
	}
	if !n.config.alone() && !n.settled.Load() {
		if err := n.awaitVoters(ctx); err != nil {
			return err
		}
	}
	return n.admit(ctx, "Ready")
}

// awaitVoters waits until the leader reports that no change of the voters is due. It returns nil
// then, and also when settleTime has passed since the first call, if that is bearable. It returns
// an error if ctx or the node ends first.
func (n *Node) awaitVoters(ctx context.Context) error {
	n.settleBy.CompareAndSwap(0, int64(n.engine.Now().Add(settleTime)))
	// With a directory, the session of this instance's last process may stand. So the leader's last
	// look, which is up to 50 ms old, can know this instance and be older than its start.
	wanted := 1
	if n.config.Dir != "" {
		wanted = 2
	}
	for {
		left := clock.Time(n.settleBy.Load()).Sub(n.engine.Now())
		settled := n.askVoters(ctx, max(left, lastAsk))
		last := n.unsettled.Load()
		if settled {
			wanted--
		}
		switch {
		case wanted == 0:
			n.settled.Store(true)
			return nil
		case n.admit(ctx, "Ready") != nil:
			return n.admit(ctx, "Ready")
		case ctx.Err() != nil:
			return n.explain("wait until ready", &settleError{err: ctx.Err(), why: last.reason()})
		case left <= 0 && !settled && last.bearable():
			n.config.Logger.Warn("ready, although the voters are still changing", "why", last.reason())
			n.settled.Store(true)
			return nil
		}
		pause(ctx, settlePoll)
	}
}

// askVoters asks a leader whether the voters are settled, and records what it says.
func (n *Node) askVoters(ctx context.Context, within time.Duration) (settled bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	status, err := n.engine.QueryStatus(ctx)
	if err != nil {
		return false
	}
	n.unsettled.Store(&unsettled{why: status.Report.Next.Why, renewing: status.Report.Renewing})
	return n.knows(&status) && (!status.Due || status.Report.AwaitsReturn)
}

// knows reports whether the leader has this node's session in its report, and so would wait for it.
// A member is not part of that report.
func (n *Node) knows(status *cluster.VoterStatus) bool {
	return status.Known || n.engine.Picture().Member
}

// bearable reports whether a node may count as ready after settleTime although the voters change.
// It may not if no leader has answered, or if a leader replaces a voter that has lost its
// directory, since the next loss could end the group.
func (u *unsettled) bearable() bool { return u != nil && !u.renewing }

func (u *unsettled) reason() string {
	if u == nil {
		return "no leader has answered whether the voters are settled"
	}
	return u.why
}

type settleError struct {
	err error
	why string
}

func (e *settleError) Error() string { return e.err.Error() + " (" + e.why + ")" }

func (e *settleError) Unwrap() error { return e.err }

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
