package mortise

import (
	"context"

	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/trace"
)

// This file alone knows both sides: what the engine is told of a configuration, and what its values are called here.

// engineConfig is what the engine is told.
func (n *Node) engineConfig(source *credentials.Source, world outside.World) instance.Config {
	c := &n.config
	return instance.Config{
		Name: c.Name, Cluster: c.Cluster, Zone: c.Zone, Bind: c.Bind, Advertise: c.Advertise, Join: c.Join, JoinFunc: c.JoinFunc,
		Dir: c.Dir, DirFreeBytes: c.DirFreeBytes, SessionTTL: c.SessionTTL, Logger: c.Logger, Version: version,
		Group: c.group(), Alone: c.alone(), Unreachable: c.unreachable(),
		Source: source, Self: identityOf(source), World: world,
		History: c.History, Trace: lockHooks(c.Hooks), Hooks: nodeHooks(c.Hooks),
		Admin: admin{n: n}, Translate: failed, Disks: func() string { return n.Status().waitsForDisks() },
	}
}

// identityOf returns what others see in the certificate of an instance.
func identityOf(source *credentials.Source) credentials.Peer {
	if source != nil {
		if own, err := source.Own(); err == nil { // else mayStart has let it pass
			return own
		}
	}
	return credentials.Peer{Tier: credentials.Root}
}

// group returns what this configuration says of the group. A node on its own needs no grace: its group is closed, nobody else can have been
// granted anything.
func (c *Config) group() replica.Settings {
	g := replica.Settings{
		Replicas: c.Replicas, Founders: replica.Unique(c.Founders), Voters: c.Voters, SessionTTL: c.SessionTTL, Grace: max(c.Grace, 0),
		SessionBytes: c.MaxSessionBytes, GroupBytes: c.MaxGroupBytes,
	}
	if c.alone() {
		g.Grace = 0
	}
	return g
}

// lockHooks are the hooks of locks, as the tracer calls them.
func lockHooks(h *Hooks) (t trace.Config) {
	if h == nil {
		return t
	}
	t.Queued, t.Hooks.Mark = true, h.Mark
	if h.Acquired != nil {
		t.Hooks.Acquired = func(ctx context.Context, e trace.Event) any { return h.Acquired(ctx, lockEvent(&e)) }
	}
	if h.Unlocked != nil {
		t.Hooks.Unlocked = func(ctx context.Context, e trace.Event) { h.Unlocked(ctx, lockEvent(&e)) }
	}
	if h.Lost != nil {
		t.Hooks.Lost = func(e trace.Event) { h.Lost(lockEvent(&e)) }
	}
	if h.Leaked != nil {
		t.Hooks.Leaked = func(e trace.Event) { h.Leaked(lockEvent(&e)) }
	}
	return t
}

// nodeHooks are the hooks of the instance, as the engine calls them.
func nodeHooks(h *Hooks) *instance.Hooks {
	if h == nil {
		return nil
	}
	return &instance.Hooks{
		Renewed: nodeHook(h.Renewed), Session: nodeHook(h.Session), Lease: nodeHook(h.Lease), Leader: nodeHook(h.Leader),
		Member: nodeHook(h.Member), Available: nodeHook(h.Available), Synced: nodeHook(h.Synced),
	}
}

func nodeHook(hook func(NodeEvent)) func(instance.NodeEvent) {
	if hook == nil {
		return nil
	}
	return func(e instance.NodeEvent) {
		hook(NodeEvent{
			State: NodeState(e.State), Name: e.Name, Instance: e.Instance, Session: e.Session, Own: e.Own, Term: e.Term,
			Took: e.Took, Left: e.Left, Err: e.Err,
		})
	}
}

// diskFault is a fault as people are shown it, or nil.
func diskFault(f *instance.DiskFault) *DiskFault {
	if f == nil {
		return nil
	}
	return &DiskFault{State: DiskState(f.State), Since: f.Since, Cause: f.Cause, Remedy: f.Remedy}
}

// faultyDisks are faults as people are shown them.
func faultyDisks(list []instance.FaultyDisk) (all []FaultyDisk) {
	for i := range list {
		f := &list[i]
		all = append(all, FaultyDisk{Name: f.Name, Instance: f.Instance, DiskFault: *diskFault(&f.DiskFault)})
	}
	return all
}
