package mortise

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/session/client"
)

// Node is one instance of the cluster. Make one with Start. All methods are safe for concurrent use.
type Node struct {
	config Config // without secrets

	engine *instance.Instance
	// The next two are the engine's. What the engine calls back uses neither: they are set when it has started.
	client *client.Client
	trace  *trace.Tracer // nil without observers

	standby  atomic.Int64 // calls that wait for a lock whose purpose makes long waits normal
	settled  atomic.Bool  // Ready has seen the voters settled, or has given up on that
	settleBy atomic.Int64 // clock.Time at which it gives up; 0: it has not been called
}

// Start starts a node. ctx bounds the start only. It returns when the node is up: it listens, looks for the others and takes requests,
// which wait until there is a leader; see Ready. An error names every mistake in the configuration at once, or says what of the
// machine it could not get; nothing is left running then. Close or Leave ends the node.
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
		world.Inside(n.inside())
	}
	return n, nil
}

// Err returns nil while the node can be used, and why not once it cannot: ErrClosed, or the failure that ended it.
func (n *Node) Err() error { return n.engine.Err() }

// Leave takes the node out of the cluster in good order: it refuses new requests, ends the contexts of its locks so that their holders
// can finish, waits for their Unlock, hands its vote and its lead to others if it has them, closes the session if nothing is held any
// more, says goodbye and closes the node. If ctx ends first (10 s if it has no deadline) it stops waiting: a lock whose code may still run
// is left to expire, and a vote that was not handed over counts as lost. When all instances leave none waits for a successor. It returns
// nil if nothing was held at the end and no vote was lost; the error wraps [ErrVoteLost] if this instance voted, others stay, and none of
// them has taken the vote over.
//
// One line in main is enough to run it when the process is asked to end; examples/service has it in a whole program:
//
//	defer node.Leave(context.Background()) // in a main that returns on SIGTERM, see signal.NotifyContext
func (n *Node) Leave(ctx context.Context) error { return n.engine.Leave(ctx) }

// Close stops the node at once and waits until everything that it started has ended. It does not close the session: locks that are
// held expire, and until then nobody else is granted them; use Leave for an end in good order. It is bounded, and may be called in
// every state and again. If the disk of Config.Dir does not answer, Close stops all the rest and returns an error that says so after 20 s
// at most: a goroutine that is stuck in a system call cannot be ended, and ends by itself when the call does. It does nothing more
// then, and the directory stays in use by this process. What hooks have still to be told is told before it returns; see [Hooks].
func (n *Node) Close() error { return n.engine.Close() }

// Recover gives up a group whose majority is lost for good, by its ID as Status.Group shows it: the explicit way out
// where nothing else can know that what is missing will not come back. Call it on every instance of that group that is left. Each of them
// ends its locks, forgets the group, and as soon as all that Founders or Replicas ask for are in reach (start new instances in the places of
// the lost ones) they found the next one: its tokens are above all that any of them has seen, and it grants nothing until its grace is
// over. Members of the old group that are met later follow by themselves.
//
// If the majority is not lost but only out of reach, two groups then grant the same locks: make sure that the missing instances are gone.
// It fails, and changes nothing, if the group has a leader or is another one than this instance's; ctx bounds
// the wait for the disk.
func (n *Node) Recover(ctx context.Context, group string) error {
	if err := n.Err(); err != nil {
		return err
	}
	if err := (asker{rights: n.engine.Rights()}).isRoot(); err != nil {
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
