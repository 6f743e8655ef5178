package mortise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/purpose"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Node is one instance of the cluster. Make one with Start. All methods are safe for concurrent
// use.
type Node struct {
	config Config // without secrets

	engine *instance.Instance
	// The next two are the engine's. What the engine calls back uses neither: they are set when it
	// has started.
	client *client.Client
	trace  *trace.Tracer // nil without observers

	standby  atomic.Int64 // calls that wait for a lock whose purpose makes long waits normal
	settled  atomic.Bool  // Ready has seen the voters settled, or has given up on that
	settleBy atomic.Int64 // clock.Time at which it gives up; 0: it has not been called
}

// Start starts a node. ctx bounds the start only. It returns when the node is up: it listens, looks
// for the others and takes requests, which wait until there is a leader; see Ready. An error names
// every mistake in the configuration at once, or says what of the machine it could not get; nothing
// is left running then. Close or Leave ends the node.
func Start(ctx context.Context, config Config) (*Node, error) {
	world := outside.From(ctx)
	config = config.withDefaults()
	if err := config.validate(); err != nil {
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

// engineConfig is what the engine is told.
func (n *Node) engineConfig(source *credentials.Source, world outside.World) instance.Config {
	c := &n.config
	return instance.Config{
		Name: c.Name, Cluster: c.Cluster, Zone: c.Zone, Bind: c.Bind, Advertise: c.Advertise, Join: c.Join,
		JoinFunc: c.JoinFunc,
		Dir:      c.Dir, DirFreeBytes: c.DirFreeBytes, SessionTTL: c.SessionTTL, Logger: c.Logger, Version: version,
		Group: c.group(), Alone: c.alone(), Unreachable: c.unreachable(),
		Source: source, Self: identityOf(source), World: world,
		History: c.History, Trace: lockHooks(c.Hooks), Hooks: nodeHooks(c.Hooks),
		Admin: admin{n: n}, Translate: failed, Disks: func() string { return n.Status().waitsForDisks() },
	}
}

// Err returns nil while the node can be used, and why not once it cannot: ErrClosed, or the failure
// that ended it.
func (n *Node) Err() error { return n.engine.Err() }

// Leave takes the node out of the cluster in good order: it refuses new requests, ends the contexts
// of its locks so that their holders can finish, waits for their Unlock, hands its vote and its
// lead to others if it has them, closes the session if nothing is held any more, says goodbye and
// closes the node. If ctx ends first (10 s if it has no deadline) it stops waiting: a lock whose
// code may still run is left to expire, and a vote that was not handed over counts as lost. When
// all instances leave none waits for a successor. It returns nil if nothing was held at the end and
// no vote was lost; the error wraps [ErrVoteLost] if this instance voted, others stay, and none of
// them has taken the vote over.
//
// One line in main is enough to run it when the process is asked to end; examples/service has it in
// a whole program:
//
//	defer node.Leave(context.Background()) // in a main that returns on SIGTERM, see signal.NotifyContext
func (n *Node) Leave(ctx context.Context) error { return n.engine.Leave(ctx) }

// Close stops the node at once and waits until everything that it started has ended. It does not
// close the session: locks that are held expire, and until then nobody else is granted them; use
// Leave for an end in good order. It is bounded, and may be called in every state and again. If the
// disk of Config.Dir does not answer, Close stops all the rest and returns an error that says so
// after 20 s at most: a goroutine that is stuck in a system call cannot be ended, and ends by
// itself when the call does. It does nothing more then, and the directory stays in use by this
// process. What hooks have still to be told is told before it returns; see [Hooks].
func (n *Node) Close() error { return n.engine.Close() }

// Recover gives up a group whose majority is lost for good, by its ID as Status.Group shows it: the
// explicit way out where nothing else can know that what is missing will not come back. Call it on
// every instance of that group that is left. Each of them ends its locks, forgets the group, and as
// soon as all that Founders or Replicas ask for are in reach (start new instances in the places of
// the lost ones) they found the next one: its tokens are above all that any of them has seen, and
// it grants nothing until its grace is over. Members of the old group that are met later follow by
// themselves.
//
// If the majority is not lost but only out of reach, two groups then grant the same locks: make
// sure that the missing instances are gone. It fails, and changes nothing, if the group has a
// leader or is another one than this instance's; ctx bounds the wait for the disk.
func (n *Node) Recover(ctx context.Context, group string) error {
	if err := n.Err(); err != nil {
		return err
	}
	if err := ownError(queries.Allowed(n.engine.Rights(), &query.RecoverRequest{})); err != nil {
		return err
	}
	id, err := nodeid.ParseHex(group)
	if err != nil {
		return fmt.Errorf("mortise: recover: %q is no group ID; Status.Group shows it", group)
	}
	if err := n.engine.Recover(ctx, id); err != nil {
		return fmt.Errorf("mortise: recover: %w", err)
	}
	return nil
}

// Format implements [fmt.Formatter]. A node shows its name and the ID of its present life;
// [Node.Status] has the rest.
func (n *Node) Format(f fmt.State, _ rune) {
	if n == nil {
		fmt.Fprint(f, "<nil>")
		return
	}
	fmt.Fprintf(f, "mortise.Node(%s %s)", n.config.Name, n.engine.ID())
}

// LogValue implements [slog.LogValuer], as Format does it for fmt.
func (n *Node) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(n)) }

// Acquire is the general call; Lock, TryLock and Do are made of it. It returns a lock that is held,
// or an error and then the caller holds nothing, now or later. ctx, which must not be nil, bounds
// the wait: when it ends, Acquire returns at once, with an error that wraps the context's and says
// what the call waited for. If the lock can be granted without waiting, an already ended ctx still
// fails.
//
// If ctx comes from [Lock.Context] or from Do, the request is made under that lock. If that lock or
// one around it covers the request already it is entered again: the result is another handle of the
// same hold, with the same token, and the lock is released when each of its handles is unlocked. An
// exclusive lock covers an exclusive and a shared request for any of its keys, a shared one a
// shared request; permits of a semaphore are always asked for anew. MaxHold is each handle's own
// then: it ends the handle, and the hold if it is the last one. LockDelay, Notice, Value and Labels
// belong to the hold: a request that asks for others than the first one did is refused with an
// *[EnteredError]. If instead the request would have to wait, by however many steps, for a lock
// under which it is made itself, it is refused with a *[DeadlockError].
func (n *Node) Acquire(ctx context.Context, r Request) (*Lock, error) {
	return n.acquire(ctx, n.client, r)
}

// acquire is Acquire in the session of a client.
func (n *Node) acquire(ctx context.Context, client *client.Client, r Request) (*Lock, error) {
	if r.Labels != nil && purpose.Lasting(r.Labels) {
		n.standby.Add(1)
		defer n.standby.Add(-1)
	}
	call := n.trace.Start(ctx, r.asked())
	l, err := n.obtain(ctx, client, &r, call)
	switch {
	case err != nil:
		call.Refused(ctx, err)
		return nil, err
	case l.again != nil:
		call.Entered(ctx, l.again.call, l.again.hold.Token())
		return l, nil
	}
	call.Granted(ctx)
	return n.watched(l), nil
}

// obtain checks what is asked for, enters a lock again or asks the group for one.
func (n *Node) obtain(ctx context.Context, client *client.Client, r *Request, call *trace.Call) (*Lock, error) {
	if err := n.check(ctx, r); err != nil {
		return nil, err
	}
	again, under, err := n.scope(ctx, client, r)
	if again != nil || err != nil {
		return again, err
	}
	l := &Lock{node: n, call: call}
	asks := marked(call.Mark(), r, r.of(under))
	call.Asks(asks, &l.hold)
	err = client.AcquireInto(ctx, &l.hold, asks)
	call.Answered(err)
	if err != nil {
		return nil, n.explainUnder(under, r, err)
	}
	return l, nil
}

// check refuses a call that cannot succeed.
func (n *Node) check(ctx context.Context, r *Request) error {
	if err := n.admit(ctx); err != nil {
		return err
	}
	if ctx == nil {
		return fmt.Errorf("%w: %s: the context is nil: pass context.Background() if you have none", ErrBadRequest,
			r.String())
	}
	if !r.ordinary() {
		if err := r.validate(); err != nil {
			return err
		}
	}
	return r.badKeys()
}

// explainUnder is explain for a request that was made under the lock of another one, or nil.
func (n *Node) explainUnder(under *client.Request, r *Request, err error) error {
	err = n.explain(r.String(), err)
	var deadlock *DeadlockError
	if under != nil && errors.As(err, &deadlock) && len(deadlock.Circle) == 1 && deadlock.Circle[0].Key == under.Key {
		deadlock.upgrade = under.Shared()
		deadlock.permits = under.Terms != nil && under.Terms.Of > 0
	}
	return err
}

// admit refuses a call to a node that has ended or leaves.
func (n *Node) admit(ctx context.Context) error {
	if err := n.Err(); err != nil {
		return err
	}
	select {
	case <-n.engine.Leaving():
		return ErrLeaving
	default:
		return nil
	}
}

// Lock waits its turn and returns the lock, held. Waiters are served in the order in which the
// group received their requests.
func (n *Node) Lock(ctx context.Context, key string) (*Lock, error) {
	return n.Acquire(ctx, Request{Key: key})
}

// RLock waits its turn and returns the lock, held together with others who share it. See
// [Request.Shared].
func (n *Node) RLock(ctx context.Context, key string) (*Lock, error) {
	return n.Acquire(ctx, Request{Key: key, Shared: true})
}

// LockAll waits until all keys can be had at once and returns them as one lock. See [Request.Keys].
func (n *Node) LockAll(ctx context.Context, keys ...string) (*Lock, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: LockAll without a key", ErrBadRequest)
	}
	return n.Acquire(ctx, Request{Keys: keys})
}

// TryLock returns the lock if it is free, and never queues: a *HeldError (which is ErrHeld) says
// who holds it; ErrNotReady means that the group cannot tell, because there has been no leader for
// 2 s or its grace is not over. A TryLock that fails says nothing about a moment later; Lock with a
// short context is usually what is wanted.
func (n *Node) TryLock(ctx context.Context, key string) (*Lock, error) {
	return n.Acquire(ctx, Request{Key: key, Try: true})
}

// Do locks key, runs fn and unlocks, also if fn panics. The context given to fn ends when the lock
// is lost, with the reason as its cause; token fences the resource. Do returns the error of
// locking, of fn, or of unlocking: a nil error means that fn succeeded and the lock was held until
// it returned.
func (n *Node) Do(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) (err error) {
	lock, err := n.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer func() { err = joined(err, lock.Unlock(ctx)) }()
	return fn(lock.Context(ctx), lock.Token())
}

// joined joins what fn and Unlock have returned. Of a loss that fn has returned already the second
// error says nothing new.
func joined(fn, unlock error) error {
	if fn != nil && unlock != nil && errors.Is(fn, ErrLost) && strings.Contains(fn.Error(), unlock.Error()) {
		return fn
	}
	return errors.Join(fn, unlock)
}

// settleTime bounds how long the first Ready waits for changes of the voters: a group that cannot
// replace a voter, since nobody is there, must not stop a deployment for ever.
const settleTime = 30 * time.Second

// Ready waits until this node can be granted locks: its session is attached to a leader and the
// group is past its grace. The first time it also waits, for at most 30 s, until no change of the
// voters is due or in flight, so that a rolling deployment that is paced by it cannot be faster
// than the replacement of voters. It returns nil then; an error that wraps the context's and says
// what is missing if ctx ends before; the node's own error; or ErrLeaving if it has begun to leave,
// since it is granted nothing then. It is what a readiness probe should ask; docs/OPERATION.md says
// how, where a service has work that needs no locks.
func (n *Node) Ready(ctx context.Context) error {
	if err := n.admit(ctx); err != nil {
		return err
	}
	if err := n.client.WaitReady(ctx); err != nil {
		return n.explain("wait until ready", err)
	}
	if n.config.alone() || n.settled.Load() {
		return nil
	}
	now := n.engine.Now()
	n.settleBy.CompareAndSwap(0, int64(now.Add(settleTime)))
	bounded, cancel := context.WithTimeout(ctx, clock.Time(n.settleBy.Load()).Sub(now))
	defer cancel()
	why := n.awaitVoters(bounded)
	if ctx.Err() != nil {
		return n.explain("wait until ready", &settleError{err: ctx.Err(), why: why})
	}
	if why != "" {
		n.config.Logger.Warn("ready, although the voters are not what they should be", "why", why)
	}
	n.settled.Store(true)
	return nil
}

// awaitVoters waits until the leader says that no change of the voters is due, and returns what it
// still waits for when ctx ends.
func (n *Node) awaitVoters(ctx context.Context) (why string) {
	why = "no leader has said within " + settleTime.String() + " that the voters are as they should be"
	for ctx.Err() == nil {
		counsel, err := n.engine.Consult(ctx)
		switch {
		case err != nil:
			return why
		case (counsel.Known || n.engine.Picture().Member) && !counsel.Due: // the leader's look does not count members
			return ""
		}
		why = counsel.Report.Next.Why
		pause(ctx, settlePoll)
	}
	return why
}

// settlePoll is the time between two questions whether the voters are settled.
const settlePoll = 100 * time.Millisecond

// settleError is the end of the context of a Ready that waited for the voters.
type settleError struct {
	err error
	why string
}

func (e *settleError) Error() string { return e.err.Error() + " (" + e.why + ")" }

func (e *settleError) Unwrap() error { return e.err }

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
