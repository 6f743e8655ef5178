package instance

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"os"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// env is the injected environment of an instance, which tests replace.
type env struct {
	listen  func(address string) (net.Listener, error)
	dial    func(ctx context.Context, address string) (net.Conn, error)
	resolve func(ctx context.Context, host string) ([]string, error)
	network networkInfo
	// The process runs in a pod.
	kubernetes bool
	clock      clock.Clock
	wall       func() time.Time
	random     func([]byte)
	files      storage.FS
	// records wraps the records of package cluster. Nil means no wrapper.
	records func(cluster.Records) cluster.Records
	limits  lockfsm.Limits // limits of a group that this instance founds; must be equal on all founders
	rules   uint32         // newest version of the lock rules that this instance claims to know
}

func envOf(w outside.World) env {
	e := realEnv()
	if w.Listen != nil {
		e.listen = w.Listen
	}
	if w.Dial != nil {
		e.dial = w.Dial
	}
	if w.Resolve != nil {
		e.resolve = w.Resolve
	}
	if w.Wall != nil {
		e.wall = w.Wall
	}
	if w.Random != nil {
		e.random = w.Random
	}
	e.kubernetes = e.kubernetes || w.Kubernetes
	e.clock, e.files, e.limits = cmp.Or(w.Clock, e.clock), cmp.Or(w.Files, e.files), cmp.Or(w.Limits, e.limits)
	e.records, e.rules = w.Records, cmp.Or(w.Rules, lockfsm.RulesVersion)
	return e
}

func realEnv() env {
	var dialer net.Dialer
	return env{
		listen: func(address string) (net.Listener, error) { return net.Listen("tcp", address) },
		dial: func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		},
		resolve: net.DefaultResolver.LookupHost,
		network: realNetworkInfo(),
		// Kubernetes sets this variable in each container.
		kubernetes: os.Getenv("KUBERNETES_SERVICE_HOST") != "",
		clock:      clock.Boot(),
		wall:       time.Now,
		// random never fails, because crypto/rand ends the process if it has no random bytes.
		random: func(b []byte) { _, _ = rand.Read(b) },
		files:  storage.OSFS(),
		limits: lockfsm.DefaultLimits(),
	}
}
