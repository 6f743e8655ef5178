package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/gossip/swim"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// New returns an instance that has not started. Before Start, no other method may be called.
func New(config Config) *Instance {
	env := envOf(config.World)
	n := &Instance{
		config: config, env: env, logger: config.Logger,
		self: config.Self, started: make(chan struct{}),
	}
	n.ending.leaving, n.ending.shut = make(chan struct{}), make(chan struct{})
	n.sessions.Most = maxOwnSessions
	n.goroutines.begin()
	n.disk.news = make(chan struct{}, 1)
	return n
}

// Start starts the instance. ctx limits only the start. Start returns when the instance listens,
// searches for the other instances and accepts requests. After an error nothing is left running.
func (n *Instance) Start(ctx context.Context) (err error) {
	listener, err := n.config.listen(n.env)
	if err != nil {
		return err
	}
	if err := n.prepare(ctx, listener.Addr()); err != nil {
		return errors.Join(err, listener.Close(), n.closeDir())
	}
	n.trace = n.newTracer()
	n.grantable.begin(n.env.clock.Now())
	n.client = client.New(client.Config{
		Clock: n.env.clock, TTL: n.config.SessionTTL, Send: n.submit, Random: n.env.random, Logger: n.logger,
		Stays: n.config.Stays, StayIdle: n.config.StayIdle, Changed: n.phaseChanged,
		Watch: (&observer{node: n}).news, Since: n.begins.Since,
	})
	n.sessions.First = n.client
	n.services = n.answers()
	port, err := transport.New(n.portConfig(listener))
	if err != nil {
		n.client.Close()
		return errors.Join(fmt.Errorf("mortise: %w", err), listener.Close(), n.closeDir(), n.trace.Close())
	}
	n.port = port
	if err := n.startCluster(outbound{port, port.Gossip()}); err != nil {
		return errors.Join(fmt.Errorf("mortise: %w", err), n.Close())
	}
	n.watchDisk()
	return nil
}

func (n *Instance) portConfig(listener net.Listener) transport.Config {
	c := transport.Config{
		Cluster: n.config.Cluster, Self: transport.Self{Key: *n.key.Load(), Addr: n.reach()}, Life: n.begins.Life,
		Random: n.env.random, Wall: n.env.wall,
		Listener: listener, Dial: n.env.dial, Handler: inbound{n}, Services: n.services, Logger: n.logger,
		Unable: n.unreachable, Rules: n.env.fingerprints,
	}
	if n.config.Source != nil {
		c.TLS = n.config.Source
	}
	return c
}

func (n *Instance) newTracer() *trace.Tracer {
	t := n.config.Trace
	t.History, t.Clock, t.Logger, t.Spawn = n.newHistory(), n.env.clock, n.logger, n.spawn
	return trace.New(t)
}

// newHistory returns the configured recorder, or nil. The times are those of the boot clock, plus
// an offset that is computed once from the wall clock. So a change of the wall clock does not
// affect a running history.
func (n *Instance) newHistory() *history.Recorder {
	if n.config.History == nil {
		return nil
	}
	origin := n.env.wall().UnixNano() - int64(n.env.clock.Now())
	return history.NewRecorder(history.RecorderConfig{
		Writer: n.config.History, Node: n.config.Name, Now: func() int64 { return origin + int64(n.env.clock.Now()) },
	})
}

func (n *Instance) prepare(ctx context.Context, listening net.Addr) (err error) {
	if n.address = listening.String(); !n.isMember() {
		if n.address, err = advertised(ctx, &n.config, listening, n.env); err != nil {
			return err
		}
	}
	if n.dir, err = openDir(&n.config, n.env.files); err != nil {
		return fmt.Errorf("mortise: %w", err)
	}
	if n.begins.run, err = openRunDir(&n.config, n.env.files); err != nil {
		return fmt.Errorf("mortise: %w", err)
	}
	key := nodeid.NewKey(n.env.random)
	if n.dir != nil {
		n.records = &records{dir: n.dir, site: cmp.Or(n.config.World.Site, n.dir.Site()), during: n.during}
		if n.begins.Beginning, err = cluster.Begins(n.records, n.records.site); err != nil {
			return fmt.Errorf("mortise: Config.Dir %q: %w", n.config.Dir, err)
		}
		if !n.begins.Key.ID().IsZero() {
			key = n.begins.Key
		}
	}
	n.key.Store(&key)
	return nil
}

func (n *Instance) startCluster(net cluster.Net) error {
	defer close(n.started)
	c, err := cluster.Start(n.clusterConfig(net))
	if err != nil {
		return err
	}
	members := membership(c)
	n.members.Store(&members)
	return nil
}

func (n *Instance) clusterConfig(net cluster.Net) cluster.Config {
	c := cluster.Config{
		Name: n.config.Name, Label: n.config.Cluster, Zone: n.config.Zone, Advertise: n.address, Key: *n.key.Load(),
		Join:     n.config.Join,
		Settings: n.config.Group.Founding(n.config.Alone),
		Rules:    n.env.rules, Net: net, Gossip: swim.Start, Host: life{n},
		Clock: n.env.clock, Wall: n.env.wall, Resolve: n.env.resolve, Random: n.env.random, Logger: n.logger,
		Member: n.isMember(), JoinFunc: n.config.JoinFunc, Kubernetes: n.env.kubernetes,
		Awaited: n.awaited,
	}
	if n.records != nil {
		c.Records, c.Site = n.records, n.records.site
		if n.env.records != nil {
			c.Records = n.env.records(n.records)
		}
	}
	return c
}

// awaited returns the log text that says what the instance waits for. Disk faults come first,
// because they may be why reachable voters elect no leader.
func (n *Instance) awaited(waiting string) string {
	if why := n.client.Status().Outdated; why != (session.Outdated{}) {
		return why.String()
	}
	if n.dir == nil {
		return waiting
	}
	return cmp.Or(n.config.Disks(), waiting)
}

func (n *Instance) phaseChanged(phase client.Phase) {
	n.leading.attached.Store(phase == client.Attached)
	n.leaderKnown()
	if phase == client.Attached {
		n.learnNames()
	}
}

func (n *Instance) answers() transport.Services {
	guard := &queries.Guard{Started: func() bool { return n.cluster() != nil }, Translate: n.config.Translate}
	return transport.Services{
		List: []transport.Service{
			queries.Query(n.queryHere),
			{Desc: &query.Admin_ServiceDesc, Impl: n.config.Admin},
			queries.Cluster(n.group, disks{n}),
		},
		Intercept: guard.Intercept,
	}
}
